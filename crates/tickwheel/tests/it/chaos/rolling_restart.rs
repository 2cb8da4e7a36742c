//! Two servers on one database are replaced one after the other, again and again, as in a deployment, under load.

use super::load::Load;
use crate::checker::{Checker, Conditions};
use crate::server::{Server, StoreKind};
use crate::target::Target;

const ROUNDS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_under_load_costs_no_attempt_and_delays_nothing() {
    let target = Target::start().await;
    let one = Server::start(StoreKind::Postgres).await;
    let other = Server::builder(StoreKind::Postgres).beside(&one).start().await;
    let mut servers = [one, other];
    let load = Load::start(&target, 41);
    load.point_at(servers.iter().map(Server::api));
    for round in 0..2 * ROUNDS {
        load.acknowledges(40).await;
        load.point_at([servers[(round + 1) % 2].api()]);
        let server = &mut servers[round % 2];
        assert_eq!(server.terminate().await.code(), Some(0));
        server.restart().await;
        load.point_at(servers.iter().map(Server::api));
    }
    load.acknowledges(40).await;
    let acknowledged = load.stop().await;
    let checker = Checker::gather(&servers[0].api(), &target, &acknowledged).await;
    println!("{}", checker.summary(&acknowledged));
    // No fault at all: one of them was always there.
    checker.check(&acknowledged, &Conditions::default());
    for outcome in ["lost", "released"] {
        assert_eq!(checker.attempts_that(outcome), 0, "every call could end in time");
    }
}
