//! One of two servers is cut off from the database: its connections end, or nothing comes through them any more. The
//! other one takes over what it ran; it takes nothing itself as long as it cannot be sure of its lease, and goes on
//! when the database is there again.

use std::time::Duration;

use super::held::Held;
use super::load::Load;
use crate::checker::{BUSY, Checker, Conditions};
use crate::e2e::until_past;
use crate::eventually::{PATIENCE, eventually};
use crate::proxy::Proxy;
use crate::server::{Server, StoreKind};
use crate::target::Target;

const LEASE: Duration = Duration::from_secs(2);
const OUTAGE: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_ran_whose_connections_end_is_taken_over_at_once() {
    cut_off(Proxy::cut, Duration::from_secs(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_ran_that_is_cut_off_in_silence_is_taken_over_after_its_lease() {
    cut_off(Proxy::stall, LEASE + Duration::from_secs(2)).await;
}

async fn cut_off(how: fn(&Proxy), promise: Duration) {
    let taken_over_within = promise + BUSY;
    let target = Target::start().await;
    let builder = Server::builder(StoreKind::Postgres).env("TICKWHEEL_ENGINE_LEASE", "2s");
    let (behind_a_wire, wire) = builder.clone().behind_a_wire().await;
    let cut_off = behind_a_wire.start().await;
    let other = builder.beside(&cut_off).start().await;
    let load = Load::start(&target, 11);
    load.point_at([cut_off.api(), other.api()]);
    load.acknowledges(80).await;

    let held = Held::by(&target, [&cut_off, &other]).await;
    let mut conditions = Conditions { late_calls: true, ..Conditions::default() };
    let fault = conditions.fault_for(taken_over_within);
    how(&wire);
    load.point_at([other.api()]);
    load.calm_down();
    until_past(fault.began + 2 * LEASE).await;
    let started = async || cut_off.api().metric("tickwheel_attempts_started_total").await;
    let started_by_then = started().await;
    eventually("it not to be ready", PATIENCE, async || {
        (cut_off.api().get("/readyz").await.status == 503).then_some(())
    })
    .await;
    until_past(fault.began + OUTAGE).await;
    assert_eq!(started().await, started_by_then, "it starts nothing without a lease");

    held.release();
    wire.mend();
    cut_off.ready().await;
    load.point_at([cut_off.api()]);
    load.pick_up();
    load.acknowledges(40).await;
    let mut acknowledged = load.stop().await;
    held.end(&mut acknowledged);
    let checker = Checker::gather(&cut_off.api(), &target, &acknowledged).await;
    println!("{}", checker.summary(&acknowledged));
    checker.check(&acknowledged, &conditions);
    let slowest = checker.slowest_takeover(fault).expect("no attempt was under way");
    println!("taken over after {slowest:?}");
    assert!(slowest < taken_over_within, "{slowest:?}");
}
