//! A server that stands still for longer than its lease and then goes on as if nothing had happened, beside one that
//! took over.

use std::time::Duration;

use jiff::Timestamp;

use super::held::Held;
use super::load::Load;
use crate::api::{http_job, id_of, text};
use crate::checker::{BUSY, Checker, Conditions};
use crate::e2e::until_past;
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, ServerBuilder, StoreKind};
use crate::target::{Gate, Reply, Target};

const LEASE: Duration = Duration::from_secs(1);
const TEN_LEASES: Duration = Duration::from_secs(10);
const LONGER_THAN_THE_LEASE: Duration = Duration::from_secs(3);
/// What is promised: the lease and two seconds.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(3).saturating_add(BUSY);

fn with_a_short_lease(kind: StoreKind) -> ServerBuilder {
    Server::builder(kind).env("TICKWHEEL_ENGINE_LEASE", &format!("{}s", LEASE.as_secs()))
}

#[tokio::test]
async fn what_a_frozen_server_ran_is_run_by_another_and_its_own_late_end_changes_nothing() {
    let target = Target::start().await;
    let (first_call, second_call) = (Gate::closed(), Gate::closed());
    let gates = (first_call.clone(), second_call.clone());
    target.on("/", move |call| match call.fencing_token() {
        1 => Reply::ok().body("\"late\"").behind(&gates.0),
        _ => Reply::ok().body("\"in time\"").behind(&gates.1),
    });
    let frozen = with_a_short_lease(StoreKind::Postgres).start().await;
    let id = id_of(&frozen.api().submit(&http_job(&target.url("/"))).await);
    target.called("/", 1).await;
    let other = with_a_short_lease(StoreKind::Postgres).beside(&frozen).start().await;
    frozen.freeze();

    let calls = eventually("the other to take over", TAKEN_OVER_WITHIN, async || {
        Some(target.calls_for(&id)).filter(|calls| calls.len() == 2)
    })
    .await;
    assert_eq!([calls[0].fencing_token(), calls[1].fencing_token()], [1, 2], "I3");
    second_call.open();
    let ended = other.api().wait(&id).await;
    assert_eq!(ended["result"], "in time", "{ended}");

    first_call.open();
    frozen.thaw();
    eventually("its late end to be refused", PATIENCE, async || {
        (frozen.api().metric("tickwheel_stale_settlements_total").await > 0.0).then_some(())
    })
    .await;
    let next = id_of(&frozen.api().submit(&http_job(&target.url("/next"))).await);
    assert_eq!(text(&frozen.api().wait(&next).await, "status"), "completed", "it works on");
    let late = format!("/api/v1/attempts/{}/complete", calls[0].header("tickwheel-token"));
    assert_eq!(frozen.api().act(&late).await.expect(409).code(), "stale_token");

    assert_eq!(other.api().job(&id).await, ended, "I3: a stale end changed something");
    let attempts = other.api().attempts(&id).await;
    let outcomes: Vec<&str> = attempts.iter().map(|attempt| text(attempt, "outcome")).collect();
    assert_eq!(outcomes, ["lost", "completed"]);
    assert_eq!(target.calls_for(&id).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_frozen_under_load_for_ten_leases_costs_neither_a_job_nor_a_second_delivery() {
    let target = Target::start().await;
    let frozen = with_a_short_lease(StoreKind::Postgres).start().await;
    let other = with_a_short_lease(StoreKind::Postgres).beside(&frozen).start().await;
    let load = Load::start(&target, 2);
    load.point_at([frozen.api(), other.api()]);
    load.acknowledges(60).await;

    let mut conditions = Conditions { late_calls: true, ..Conditions::default() };
    let held = Held::by(&target, [&frozen, &other]).await;
    let fault = conditions.fault_for(TAKEN_OVER_WITHIN);
    frozen.freeze();
    load.point_at([other.api()]);
    load.calm_down();
    until_past(fault.began + TEN_LEASES).await;
    held.release();
    frozen.thaw();
    // What it starts late of its own is over soon.
    conditions.fault_for(TAKEN_OVER_WITHIN);
    load.point_at([frozen.api(), other.api()]);
    load.pick_up();
    load.acknowledges(60).await;
    eventually("its late ends to be refused", PATIENCE, async || {
        (frozen.api().metric("tickwheel_stale_settlements_total").await > 0.0).then_some(())
    })
    .await;
    let mut acknowledged = load.stop().await;
    held.end(&mut acknowledged);

    let checker = Checker::gather(&other.api(), &target, &acknowledged).await;
    checker.check(&acknowledged, &conditions);
    let slowest = checker.slowest_takeover(fault).expect("the freeze hit no attempt under way");
    println!("taken over after {slowest:?}");
    assert!(slowest < TAKEN_OVER_WITHIN, "{slowest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_alone_on_sqlite_finishes_what_it_had_when_it_was_frozen() {
    freeze_alone(StoreKind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_alone_on_postgres_finishes_what_it_had_when_it_was_frozen() {
    freeze_alone(StoreKind::Postgres).await;
}

async fn freeze_alone(kind: StoreKind) {
    let target = Target::start().await;
    let server = with_a_short_lease(kind).start().await;
    let load = Load::start(&target, 6);
    load.point_at([server.api()]);
    load.acknowledges(60).await;
    let frozen_at = Timestamp::now();
    server.freeze();
    // sleep: the length of the freeze is what is tested
    tokio::time::sleep(LONGER_THAN_THE_LEASE).await;
    server.thaw();
    let mut conditions = Conditions::default();
    conditions.fault_since(frozen_at, TAKEN_OVER_WITHIN);
    load.acknowledges(60).await;
    let acknowledged = load.stop().await;

    let checker = Checker::gather(&server.api(), &target, &acknowledged).await;
    checker.check(&acknowledged, &conditions);
    assert_eq!(checker.attempts_that("lost"), 0, "nobody was there to take anything over");
}
