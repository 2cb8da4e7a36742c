//! SIGTERM: what runs may end, what does not end in time is given back, nothing is lost, the exit code is 0.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::load::Load;
use crate::api::{http_job, id_of, text};
use crate::checker::{Checker, Conditions};
use crate::eventually::PATIENCE;
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply, Target};

const ROUNDS: u64 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_sqlite_that_is_asked_to_stop_under_load_loses_and_repeats_nothing() {
    stop_under_load(StoreKind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_postgres_that_is_asked_to_stop_under_load_loses_and_repeats_nothing() {
    stop_under_load(StoreKind::Postgres).await;
}

async fn stop_under_load(kind: StoreKind) {
    let target = Target::start().await;
    let mut server = Server::builder(kind).env("TICKWHEEL_ENGINE_DRAIN_TIMEOUT", "30s").start().await;
    let load = Load::start(&target, 1);
    let mut conditions = Conditions::default();
    for _ in 0..ROUNDS {
        load.point_at([server.api()]);
        load.acknowledges(60).await;
        let (asked, asked_at) = (Instant::now(), Timestamp::now());
        assert_eq!(server.terminate().await.code(), Some(0));
        assert!(
            asked.elapsed() < PATIENCE / 4,
            "the slowest call takes 0.15 s, the drain took {:?}",
            asked.elapsed()
        );
        load.point_at([]);
        server.restart().await;
        conditions.fault_since(asked_at, Duration::from_secs(2));
    }
    load.point_at([server.api()]);
    let acknowledged = load.stop().await;

    let checker = Checker::gather(&server.api(), &target, &acknowledged).await;
    checker.check(&acknowledged, &conditions);
    assert_eq!(checker.attempts_that("lost"), 0, "a drain leaves nothing behind");
    assert_eq!(checker.attempts_that("released"), 0, "every call could end in time");
}

#[tokio::test]
async fn an_attempt_that_outlasts_the_drain_on_sqlite_is_given_back_and_run_again() {
    outlast_the_drain(StoreKind::Sqlite).await;
}

#[tokio::test]
async fn an_attempt_that_outlasts_the_drain_on_postgres_is_given_back_and_run_again() {
    outlast_the_drain(StoreKind::Postgres).await;
}

async fn outlast_the_drain(kind: StoreKind) {
    let target = Target::start().await;
    let gate = Gate::closed();
    target.reply("/", Reply::ok().behind(&gate));
    let mut server = Server::builder(kind).env("TICKWHEEL_ENGINE_DRAIN_TIMEOUT", "300ms").start().await;
    let id = id_of(&server.api().submit(&http_job(&target.url("/"))).await);
    target.called("/", 1).await;
    assert_eq!(server.terminate().await.code(), Some(0));

    server.restart().await;
    let calls = target.called("/", 2).await;
    gate.open();
    let job = server.api().wait(&id).await;
    assert_eq!(text(&job, "status"), "completed", "{job}");
    assert_eq!(job["retries"], 0, "what a server gives back costs the job no retry");
    let attempts = server.api().attempts(&id).await;
    let outcomes: Vec<&str> = attempts.iter().map(|attempt| text(attempt, "outcome")).collect();
    assert_eq!(outcomes, ["released", "completed"]);
    assert_eq!([calls[0].fencing_token(), calls[1].fencing_token()], [1, 2], "I3");
    assert_eq!(target.calls_for(&id).len(), 2);
}
