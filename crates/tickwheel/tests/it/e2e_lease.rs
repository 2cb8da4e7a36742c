//! A server that cannot trust its lease, because it stood still, was cut off from its store, or had its clock set: it
//! takes nothing meanwhile, and no job pays for it. Jobs that may run at most once are the ones to look at, for they
//! have nothing to pay with.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_postgres::NoTls;

use crate::api::text;
use crate::e2e::{Stage, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::wall_clock::WallClock;

on_both_stores! {
    a_standstill_longer_than_the_lease_costs_no_job_an_attempt,
    a_step_of_the_clock_forwards_costs_no_job_an_attempt,
}

const LEASE: &str = "2s";
const LONGER_THAN_THE_LEASE: Duration = Duration::from_millis(3_500);
const JOBS: usize = 120;

/// Half of them may run at most once.
async fn submit_jobs(stage: &Stage, delay: &str) {
    let delivery = |number| if number % 2 == 0 { "at_most_once" } else { "at_least_once" };
    let job = |number| stage.job("/once", json!({"delivery": delivery(number), "delay": delay}));
    stage.api.submit_batch(&(0..JOBS).map(job).collect::<Vec<Value>>()).await;
}

/// Each was called once, in its first attempt, and nothing is known of any other.
async fn assert_each_ran_once_in_its_first_attempt(stage: &Stage) {
    stage.target.called("/once", JOBS).await;
    let jobs = eventually("all of them to complete", PATIENCE, async || {
        let jobs = stage.api.list("/api/v1/jobs?limit=1000").await;
        jobs.iter().all(|job| job["status"] == "completed").then_some(jobs)
    })
    .await;
    assert_eq!(jobs.len(), JOBS);
    for job in &jobs {
        assert_eq!(job["attempt"], 1, "{job:#}");
    }
    assert_eq!(stage.api.attempts(text(&jobs[0], "id")).await.len(), 1);
    assert_eq!(stage.target.calls_to("/once").len(), JOBS, "each was called once");
    let started = stage.api.metric("tickwheel_attempts_started_total").await;
    assert_eq!(started, JOBS as f64, "nothing was taken twice");
}

async fn a_standstill_longer_than_the_lease_costs_no_job_an_attempt(kind: StoreKind) {
    let server = Server::builder(kind).env("TICKWHEEL_ENGINE_LEASE", LEASE).start().await;
    let stage = Stage::on(server).await;
    submit_jobs(&stage, "1s").await;
    stage.server.freeze();
    // sleep: the length of the standstill is what is tested
    tokio::time::sleep(LONGER_THAN_THE_LEASE).await;
    stage.server.thaw();
    assert_each_ran_once_in_its_first_attempt(&stage).await;
}

async fn a_step_of_the_clock_forwards_costs_no_job_an_attempt(kind: StoreKind) {
    let clock = WallClock::right();
    let stage = Stage::on(Server::builder(kind).wall_clock(&clock).start().await).await;
    submit_jobs(&stage, "10m").await;
    clock.set(3_600);
    assert_each_ran_once_in_its_first_attempt(&stage).await;
}

#[tokio::test]
async fn an_outage_of_the_database_longer_than_the_lease_costs_no_job_an_attempt() {
    let server = Server::builder(StoreKind::Postgres).env("TICKWHEEL_ENGINE_LEASE", LEASE).start().await;
    let stage = Stage::on(server).await;
    submit_jobs(&stage, "1s").await;
    shut_out(&stage.server, true).await;
    // sleep: the length of the outage is what is tested
    tokio::time::sleep(LONGER_THAN_THE_LEASE).await;
    shut_out(&stage.server, false).await;
    assert_each_ran_once_in_its_first_attempt(&stage).await;
}

/// Ends every connection to the server's database and lets nobody in, or lets everybody in again.
async fn shut_out(server: &Server, out: bool) {
    let database = server.database().expect("a server on PostgreSQL");
    let (client, connection) = tokio_postgres::connect(database.server_url(), NoTls).await.unwrap();
    let serving = tokio::spawn(connection);
    let name = database.name();
    client.batch_execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {}", !out)).await.unwrap();
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1";
    client.query_one(end, &[&name]).await.unwrap();
    drop(client);
    serving.await.unwrap().unwrap();
}
