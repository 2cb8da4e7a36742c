//! What only PostgreSQL promises. What every store promises is checked by the conformance suite.

mod claim;
mod controls;
mod dependencies;
mod faults;
mod lists;
mod schedules;
mod schema;
mod sessions;
mod statements;
mod vacuum;
mod workflows;

use std::time::{Duration, Instant};

use tickwheel_core::ports::{Claim, JobStore, SessionStore};
use tickwheel_core::settle::{Next, Settlement};
use tickwheel_core::{AttemptOutcome, Job, JobId, SessionId};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{JobBuilder, at, job, session};
use tokio_postgres::SimpleQueryMessage;

use super::{Client, PostgresOptions, PostgresStore};

/// How many connections wait for a lock.
const STUCK: &str = "SELECT count(*) FROM pg_stat_activity \
                     WHERE datname = current_database() AND wait_event_type = 'Lock'";
/// Ends them.
const END_STUCK: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                         WHERE datname = current_database() AND wait_event_type = 'Lock'";

async fn connect(database: &TestDatabase) -> PostgresStore {
    let options = PostgresOptions { pool_size: 4, ..PostgresOptions::default() };
    PostgresStore::connect(&database.url(), options).await.expect("the database is there")
}

async fn open_session(store: &PostgresStore, number: u64) -> SessionId {
    let session = session(number, at(3_600_000));
    let id = session.id;
    store.open_session(session).await.expect("the session is fresh");
    id
}

async fn submit(store: &PostgresStore, builders: impl IntoIterator<Item = JobBuilder>) -> Vec<JobId> {
    let jobs: Vec<_> = builders.into_iter().map(JobBuilder::build_new).collect();
    let ids = jobs.iter().map(|new| new.job.id).collect();
    store.submit_jobs(jobs).await.expect("the jobs are new");
    ids
}

/// Asks until the answer is yes: what happens on the server by itself takes a moment.
async fn eventually(what: &str, mut ask: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !ask().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::task::yield_now().await;
    }
}

/// The one number a statement answers.
async fn number(store: &PostgresStore, sql: &str) -> i64 {
    store.read(sql, &[]).await.expect("the server answers")[0].get(0)
}

/// The plan in the answer to an `EXPLAIN`, one step a line.
/// A value for each parameter of a statement; of ids many, where it takes many.
fn some_values(sql: &str) -> String {
    let id = "'00000000-0000-0000-0000-000000000001'::uuid";
    let kind_of = |n: usize| {
        let (_, kind) = sql.split_once(&format!("${n}::"))?;
        kind.split(|c: char| !c.is_alphanumeric() && c != '[' && c != ']').next()
    };
    let value = |kind: &str| match kind {
        "uuid[]" => format!("array_fill({id}, ARRAY[500])"),
        "uuid" => id.to_owned(),
        "text" => "'default'".to_owned(),
        "smallint" | "integer" | "bigint" => "1".to_owned(),
        _ => "NULL".to_owned(),
    };
    (1..).map_while(kind_of).map(value).collect::<Vec<_>>().join(", ")
}

/// For these values, and for any.
const PLAN_MODES: [&str; 2] = ["force_custom_plan", "force_generic_plan"];

async fn plan_of(client: &Client, mode: &str, options: &str, sql: &str, values: &str) -> String {
    let explain = format!(
        "SET plan_cache_mode = {mode}; PREPARE asked AS {sql}; EXPLAIN ({options}) EXECUTE asked ({values}); DEALLOCATE asked"
    );
    let answer = client.simple_query(&explain).await.expect("explained");
    let lines = answer.iter().filter_map(|line| match line {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The first job, claimed.
async fn claimed(store: &PostgresStore) -> Job {
    let session = open_session(store, 1).await;
    let jobs = submit(store, [job()]).await;
    let claim = Claim { claimed_by: None, session, jobs, now: at(0) };
    store.claim(claim).await.expect("it is due").pop().expect("nobody else has it")
}

fn completed(job: &Job) -> Settlement {
    Settlement {
        job_id: job.id,
        attempt: job.attempt,
        started_at: at(0),
        ended_at: at(1),
        outcome: AttemptOutcome::Completed,
        error: None,
        next: Next::Complete { result: None },
        spec: job.spec.clone(),
    }
}

fn ids(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}
