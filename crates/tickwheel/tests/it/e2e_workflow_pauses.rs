//! Runs that are paused and resumed: nothing of them starts in between, whatever ends, comes due or crashes meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{Api, text, time};
use crate::e2e::{Stage, for_a_while, on_both_stores, quick_retries};
use crate::eventually::eventually;
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply};
use crate::workflows::{status_of, task_of};

on_both_stores! {
    nothing_of_a_paused_run_starts_after_the_acknowledgement,
    what_runs_goes_on_and_what_it_releases_waits,
    a_retry_waits_for_the_resume,
    a_run_that_is_killed_with_its_server_while_it_is_paused_stays_paused,
    a_paused_run_ends_with_the_last_thing_that_ran,
    a_paused_run_can_be_cancelled_and_then_starts_what_comes_last,
    a_failed_task_of_a_paused_run_can_be_retried_and_skipped,
    a_run_is_paused_once_and_not_after_its_end,
    the_run_inside_of_a_paused_run_goes_on,
}

async fn two_tasks(stage: &Stage, fields: Value) -> String {
    let tasks = vec![stage.task("a", &[], fields), stage.task("b", &["a"], json!({}))];
    stage.store("two", tasks, json!({})).await;
    stage.start("two", Value::Null).await
}

async fn pause(stage: &Stage, id: &str) -> Value {
    let run = stage.act_on_run(id, "pause").await.expect(200).json();
    assert_eq!(text(&run, "status"), "paused", "{run:#}");
    run
}

async fn resume(stage: &Stage, id: &str) -> Value {
    stage.act_on_run(id, "resume").await.expect(200).json()
}

async fn nothing_of_a_paused_run_starts_after_the_acknowledgement(kind: StoreKind) {
    const ITEMS: usize = 300;
    let stage = Stage::set(kind).await;
    let items: Vec<usize> = (0..ITEMS).collect();
    stage.target.reply("/each", Reply::ok().after(Duration::from_millis(5)));
    let each = json!({"for_each": "input", "concurrency": 20, "job": {"payload": {"$from": "item"}}});
    stage.store("fan", vec![stage.task("each", &[], each)], json!({})).await;
    let id = stage.start("fan", json!(items)).await;
    stage.target.called("/each", 5).await;
    pause(&stage, &id).await;
    let acknowledged_at = jiff::Timestamp::now();
    let other = stage.submit("/other", json!({"delay": "400ms"})).await;
    stage.until(&other, "completed").await;
    let all = stage.items(&id, "each").await;
    let late: Vec<&Value> = all
        .iter()
        .filter(|item| item["started_at"].is_string() && time(item, "started_at") > acknowledged_at)
        .collect();
    assert!(late.is_empty(), "{} started after {acknowledged_at}: {:?}", late.len(), late.first());

    resume(&stage, &id).await;
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "completed");
    assert_eq!(stage.target.calls_to("/each").len(), ITEMS, "each runs once");
}

async fn what_runs_goes_on_and_what_it_releases_waits(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::ok().behind(&gate));
    let id = two_tasks(&stage, json!({})).await;
    stage.target.called("/a", 1).await;
    let paused = pause(&stage, &id).await;
    assert_eq!(status_of(&paused, "a"), "running");
    gate.open();
    let run = stage.until_task(&id, "b", "scheduled").await;
    assert_eq!((text(&run, "status"), status_of(&run, "a")), ("paused", "completed"));
    assert_eq!(text(task_of(&run, "b"), "why_waiting"), "its run is paused; resume the run to let it start");
    for_a_while(async || assert!(stage.target.calls_to("/b").is_empty(), "I10")).await;
    let why = stage.why(text(task_of(&run, "b"), "job_id")).await;
    assert_eq!((text(&why, "code"), &why["since"]), ("run_paused", &run["paused_at"]), "{why}");
    let listed = stage.api.list("/api/v1/workflow-runs?status=paused").await;
    assert_eq!(listed.iter().map(|run| text(run, "id")).collect::<Vec<_>>(), [&*id]);
    assert!(stage.api.list("/api/v1/workflow-runs?status=running").await.is_empty());

    let run = resume(&stage, &id).await;
    assert_eq!((text(&run, "status"), &run["paused_at"]), ("running", &Value::Null));
    assert_eq!(text(&stage.api.run_ended(&id).await, "status"), "completed");
    assert_eq!(stage.target.calls_to("/b").len(), 1);
}

async fn a_retry_waits_for_the_resume(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::status(500).behind(&gate));
    let id = two_tasks(&stage, json!({"job": {"retry": quick_retries(3)}})).await;
    stage.target.called("/a", 1).await;
    let run = pause(&stage, &id).await;
    gate.open();
    let job = text(task_of(&run, "a"), "job_id").to_owned();
    stage.until_backoff(&job, 1).await;
    stage.target.reply("/a", Reply::ok());
    for_a_while(async || assert_eq!(stage.target.calls_to("/a").len(), 1, "I10")).await;
    assert_eq!(text(&stage.why(&job).await, "code"), "run_paused");
    resume(&stage, &id).await;
    assert_eq!(text(&stage.api.run_ended(&id).await, "status"), "completed");
    assert_eq!(stage.target.calls_to("/a").len(), 2);
}

/// The attempt that was under way is lost with the server, and its job waits with the others.
async fn a_run_that_is_killed_with_its_server_while_it_is_paused_stays_paused(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::ok().behind(&gate));
    let id = two_tasks(&stage, json!({})).await;
    stage.target.called("/a", 1).await;
    let job = text(task_of(&pause(&stage, &id).await, "a"), "job_id").to_owned();
    stage.server.kill9().await;
    stage.restart().await;
    assert_eq!(text(&stage.api.run(&id).await, "status"), "paused");
    let other = stage.submit("/other", json!({})).await;
    stage.until(&other, "completed").await;
    stage.until_backoff(&job, 1).await;
    for_a_while(async || assert_eq!(stage.target.calls_to("/a").len(), 1, "I10")).await;
    assert_eq!(text(&stage.why(&job).await, "code"), "run_paused");

    stage.target.reply("/a", Reply::ok());
    resume(&stage, &id).await;
    assert_eq!(text(&stage.api.run_ended(&id).await, "status"), "completed");
    assert_eq!((stage.target.calls_to("/a").len(), stage.target.calls_to("/b").len()), (2, 1));
}

async fn a_paused_run_ends_with_the_last_thing_that_ran(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::ok().behind(&gate));
    stage.store("one", vec![stage.task("a", &[], json!({}))], json!({})).await;
    let id = stage.start("one", Value::Null).await;
    stage.target.called("/a", 1).await;
    pause(&stage, &id).await;
    gate.open();
    let run = stage.api.run_ended(&id).await;
    assert_eq!((text(&run, "status"), &run["paused_at"]), ("completed", &Value::Null));
    assert!(stage.api.list("/api/v1/workflow-runs?status=paused").await.is_empty());
}

async fn a_paused_run_can_be_cancelled_and_then_starts_what_comes_last(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::ok().behind(&gate));
    let tasks = vec![stage.task("a", &[], json!({})), stage.task("b", &["a"], json!({}))];
    let clean = stage.task("clean", &[], json!({}));
    stage.store("cleaned", tasks, json!({"after": [clean]})).await;
    let id = stage.start("cleaned", Value::Null).await;
    stage.target.called("/a", 1).await;
    pause(&stage, &id).await;
    stage.act_on_run(&id, "cancel").await.expect(200);
    let run = stage.api.run_ended(&id).await;
    assert_eq!((text(&run, "status"), status_of(&run, "clean")), ("cancelled", "completed"), "{run:#}");
    assert!(stage.target.calls_to("/b").is_empty());
}

async fn a_failed_task_of_a_paused_run_can_be_retried_and_skipped(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    stage.target.reply("/a", Reply::status(400));
    let tasks = vec![
        stage.task("a", &[], json!({})),
        stage.task("b", &["a"], json!({})),
        stage.task("long", &[], json!({})),
    ];
    stage.store("failing", tasks, json!({"on_failure": "continue"})).await;
    let id = stage.start("failing", Value::Null).await;
    stage.until_task(&id, "a", "failed").await;
    stage.target.called("/long", 1).await;
    pause(&stage, &id).await;
    stage.target.reply("/a", Reply::ok());
    let run = stage.act_on_run(&id, "tasks/a/retry").await.expect(200).json();
    assert_eq!((text(&run, "status"), status_of(&run, "a")), ("paused", "scheduled"), "{run:#}");
    for_a_while(async || assert_eq!(stage.target.calls_to("/a").len(), 1, "I10")).await;
    stage.act_on_run(&id, "tasks/a/skip").await.expect(200);
    let run = stage.until_task(&id, "b", "scheduled").await;
    assert_eq!((text(&run, "status"), status_of(&run, "a")), ("paused", "skipped"), "{run:#}");
    resume(&stage, &id).await;
    gate.open();
    assert_eq!(text(&stage.api.run_ended(&id).await, "status"), "completed");
}

async fn a_run_is_paused_once_and_not_after_its_end(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::ok().behind(&gate));
    let id = two_tasks(&stage, json!({})).await;
    assert_eq!(text(&resume(&stage, &id).await, "status"), "running", "it was not paused");
    let first = pause(&stage, &id).await;
    let again = pause(&stage, &id).await;
    assert_eq!(again["paused_at"], first["paused_at"]);
    resume(&stage, &id).await;
    gate.open();
    stage.api.run_ended(&id).await;
    for verb in ["pause", "resume"] {
        assert_eq!(stage.act_on_run(&id, verb).await.expect(409).code(), "illegal_state");
        let nobody = "01a1df02-7c51-7a40-9d3e-5b0c2e800000";
        assert_eq!(stage.act_on_run(nobody, verb).await.expect(404).code(), "not_found");
    }
}

/// A task that starts another workflow runs as long as that does.
async fn the_run_inside_of_a_paused_run_goes_on(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::ok().behind(&gate));
    let inner = vec![stage.task("a", &[], json!({})), stage.task("b", &["a"], json!({}))];
    stage.store("inner", inner, json!({})).await;
    let call = json!({"job": {"target": {"workflow": {"name": "inner"}}}});
    let outer = vec![stage.task("call", &[], call), stage.task("c", &["call"], json!({}))];
    stage.store("outer", outer, json!({})).await;
    let id = stage.start("outer", Value::Null).await;
    stage.target.called("/a", 1).await;
    pause(&stage, &id).await;
    gate.open();
    stage.target.called("/b", 1).await;
    stage.until_task(&id, "c", "scheduled").await;
    for_a_while(async || assert!(stage.target.calls_to("/c").is_empty(), "I10")).await;
    resume(&stage, &id).await;
    assert_eq!(text(&stage.api.run_ended(&id).await, "status"), "completed");
}

/// A server reads what the other has turned once a second, and until then its claims are refused.
#[tokio::test]
async fn a_run_that_is_paused_through_one_server_is_paused_for_the_other() {
    const SOON: Duration = Duration::from_secs(10);
    let stage = Stage::set(StoreKind::Postgres).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::ok().behind(&gate));
    let id = two_tasks(&stage, json!({})).await;
    stage.target.called("/a", 1).await;
    let mut other = Server::builder(StoreKind::Postgres).beside(&stage.server).start().await;
    act(&other.api(), &id, "pause").await;
    gate.open();
    stage.until_task(&id, "b", "scheduled").await;
    for_a_while(async || assert!(stage.target.calls_to("/b").is_empty(), "I10")).await;
    act(&other.api(), &id, "resume").await;
    other.terminate().await;
    eventually("the first server to go on", SOON, async || {
        (!stage.target.calls_to("/b").is_empty()).then_some(())
    })
    .await;
    assert_eq!(text(&stage.api.run_ended(&id).await, "status"), "completed");
    assert_eq!(stage.target.calls_to("/b").len(), 1);
}

async fn act(api: &Api, id: &str, verb: &str) {
    api.act(&format!("/api/v1/workflow-runs/{id}/{verb}")).await.expect(200);
}
