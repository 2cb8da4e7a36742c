//! The database says nothing for half a minute, and no connection ends: longer than a statement may take and than the
//! lease, which is the longest anybody waits for it.

use std::time::{Duration, Instant};

use super::load::Load;
use crate::checker::{Checker, Conditions};
use crate::e2e::until_past;
use crate::server::{Server, StoreKind};
use crate::target::Target;

const STALL: Duration = Duration::from_secs(30);
/// After the stall.
const RECOVERED_WITHIN: Duration = Duration::from_secs(5);
/// Nobody who asks waits for longer than this to be told no.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_stalls_for_half_a_minute_costs_nothing_but_time() {
    let target = Target::start().await;
    let (builder, wire) = Server::builder(StoreKind::Postgres).behind_a_wire().await;
    let server = builder.start().await;
    let load = Load::start(&target, 19);
    load.point_at([server.api()]);
    load.acknowledges(80).await;

    let mut conditions = Conditions::default();
    let fault = conditions.fault_for(STALL + RECOVERED_WITHIN);
    wire.stall();
    server.api().get("/healthz").await.expect(200);
    let asked = Instant::now();
    server.api().get("/readyz").await.expect(503);
    assert!(asked.elapsed() < ANSWERED_WITHIN, "{:?}", asked.elapsed());
    until_past(fault.began + STALL).await;
    wire.mend();

    load.acknowledges(80).await;
    let acknowledged = load.stop().await;
    let checker = Checker::gather(&server.api(), &target, &acknowledged).await;
    println!("{}", checker.summary(&acknowledged));
    checker.check(&acknowledged, &conditions);
    assert_eq!(checker.attempts_that("lost"), 0, "nobody else was there to take anything");
    server.ready().await;
}
