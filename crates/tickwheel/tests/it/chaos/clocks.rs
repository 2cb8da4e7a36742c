//! Clocks that are wrong: set forwards and back under load, and different on two servers of one database. Everything is
//! compared on the target's clock, so what is early or late is seen only beyond the error of the clock.

use std::time::Duration;

use super::load::Load;
use crate::checker::{Checker, Conditions};
use crate::e2e::on_both_stores;
use crate::server::{Server, StoreKind};
use crate::target::Target;
use crate::wall_clock::WallClock;

on_both_stores! {
    a_clock_that_is_set_under_load_loses_and_doubles_nothing,
}

const HOUR: Duration = Duration::from_secs(3_600);

async fn a_clock_that_is_set_under_load_loses_and_doubles_nothing(kind: StoreKind) {
    let target = Target::start().await;
    let clock = WallClock::right();
    let server = Server::builder(kind).wall_clock(&clock).start().await;
    let load = Load::start(&target, 29);
    load.point_at([server.api()]);
    // What is submitted on a clock that is ahead waits on one that is behind; in the end all of it is due.
    for seconds in [3_600, 0, -3_600, 30, -30, 7_200] {
        load.acknowledges(30).await;
        clock.set(seconds);
    }
    load.acknowledges(30).await;
    let acknowledged = load.stop().await;
    let checker = Checker::gather(&server.api(), &target, &acknowledged).await;
    println!("{}", checker.summary(&acknowledged));
    let conditions = Conditions { clock_off: 2 * HOUR, ..Conditions::default() };
    checker.check(&acknowledged, &conditions);
    assert_eq!(checker.attempts_that("lost"), 0, "a lease does not follow the clock on the wall");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_whose_clocks_differ_by_an_hour_lose_and_double_nothing() {
    let target = Target::start().await;
    let right = Server::start(StoreKind::Postgres).await;
    let ahead = Server::builder(StoreKind::Postgres).beside(&right).clock_ahead(HOUR).start().await;
    let load = Load::start(&target, 31);
    load.point_at([right.api(), ahead.api()]);
    load.acknowledges(150).await;
    let acknowledged = load.stop().await;
    let checker = Checker::gather(&right.api(), &target, &acknowledged).await;
    println!("{}", checker.summary(&acknowledged));
    let conditions = Conditions { clock_off: HOUR, ..Conditions::default() };
    checker.check(&acknowledged, &conditions);
    assert_eq!(checker.attempts_that("lost"), 0, "a server that is ahead ends nobody's lease");
}
