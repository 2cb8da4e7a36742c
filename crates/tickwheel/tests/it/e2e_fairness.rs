//! Large amounts of work beside small ones of the same tenant and priority: a run, a schedule and the rest take turns.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::time;
use crate::e2e::{Stage, millis_between, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::target::{Call, Reply};

on_both_stores! {
    a_large_run_holds_up_neither_schedules_nor_small_runs,
    a_backlog_larger_than_memory_holds_up_neither_schedules_nor_small_runs,
    memory_full_of_jobs_for_later_holds_up_none_that_is_due,
}

/// How many jobs the large work has: at the pace of its target, it takes far longer than the test.
const JOBS: usize = 3_000;
/// How late a firing may be on a busy machine and still count as punctual.
const LATE_MS_MAX: i64 = 3_000;

/// A server that gets through a few slow jobs at a time, and a schedule that fires every second.
async fn stage(kind: StoreKind) -> Stage {
    let server = Server::builder(kind)
        .env("TICKWHEEL_ENGINE_SLOTS", "4")
        .env("TICKWHEEL_ENGINE_NEAR_JOBS_MAX", "4000")
        .start()
        .await;
    let stage = Stage::on(server).await;
    stage.target.reply("/large", Reply::ok().after(Duration::from_millis(40)));
    let job = json!({"type": "tick", "target": {"http": {"url": stage.target.url("/tick")}}});
    let schedule = json!({"name": "tick", "every": "1s", "job": job});
    stage.api.post("/api/v1/schedules", &schedule).await.expect(201);
    stage
        .store(
            "small",
            vec![stage.task("first", &[], json!({})), stage.task("then", &["first"], json!({}))],
            json!({}),
        )
        .await;
    stage
}

/// While the large work goes on, each second's firing starts on time, and a small run comes to its end.
async fn others_have_their_turns(stage: &Stage) {
    stage.target.called("/large", 40).await;
    let since = Timestamp::now();
    let small = stage.start("small", Value::Null).await;
    let run = stage.until_run(&small, "to end", |run| run["status"] == "completed").await;
    let took = millis_between(since, Timestamp::now());
    assert!(took < 2 * LATE_MS_MAX, "a small run took {took} ms: {run:#}");
    let ticks = eventually("three firings", PATIENCE, async || {
        let ticks: Vec<Call> = stage.target.calls_to("/tick");
        let later: Vec<Call> = ticks.into_iter().filter(|tick| tick.arrived_at > since).collect();
        (later.len() >= 3).then_some(later)
    })
    .await;
    for tick in ticks {
        let job = stage.api.job(tick.job_id()).await;
        let late = millis_between(time(&job, "execute_at"), tick.arrived_at);
        assert!(late < LATE_MS_MAX, "a firing started {late} ms after its time");
    }
    let done = stage.target.calls_to("/large").len();
    assert!(done < JOBS, "the large work was over before anybody had to wait for it");
}

async fn a_large_run_holds_up_neither_schedules_nor_small_runs(kind: StoreKind) {
    let stage = stage(kind).await;
    let all: Vec<usize> = (0..JOBS).collect();
    stage.target.reply("/list", Reply::json(json!({"all": all})));
    let large = stage.task("large", &["list"], json!({"for_each": "list.result.all"}));
    stage.store("fan", vec![stage.task("list", &[], json!({})), large], json!({})).await;
    stage.start("fan", Value::Null).await;
    others_have_their_turns(&stage).await;
}

async fn a_backlog_larger_than_memory_holds_up_neither_schedules_nor_small_runs(kind: StoreKind) {
    let stage = stage(kind).await;
    let jobs: Vec<Value> = (0..JOBS).map(|_| stage.job("/large", json!({}))).collect();
    stage.api.submit_batch(&jobs).await;
    others_have_their_turns(&stage).await;
}

async fn memory_full_of_jobs_for_later_holds_up_none_that_is_due(kind: StoreKind) {
    let stage = stage(kind).await;
    let jobs: Vec<Value> = (0..JOBS).map(|_| stage.job("/large", json!({"delay": "25s"}))).collect();
    stage.api.submit_batch(&jobs).await;
    let id = stage.submit("/due", json!({})).await;
    let job = stage.until(&id, "completed").await;
    let late = millis_between(time(&job, "execute_at"), time(&job, "started_at"));
    assert!(late < LATE_MS_MAX, "it started {late} ms after its time");
    assert!(stage.target.calls_to("/large").is_empty(), "the others are for later");
}
