//! A few lines can ask for a lot of data. What a run makes is bounded, it is made in steps, and others go on meanwhile.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{id_of, text as text_field};
use crate::e2e::{Stage, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::server::StoreKind;
use crate::target::Reply;
use crate::workflows::{status_of, task_of};

on_both_stores! {
    data_that_many_elements_share_is_kept_once_and_sent_to_each,
    a_result_of_many_megabytes_reaches_every_element,
    a_fan_out_that_would_make_too_much_fails_also_after_a_restart,
    a_large_fan_out_is_made_in_steps_while_others_go_on,
    thousands_of_elements_are_joined,
    a_run_that_would_begin_with_too_much_is_refused,
}

const MEMORY_MAX: u64 = 600 << 20;

/// A workflow of one task that others must not hold up.
async fn store_small(stage: &Stage) {
    stage
        .store("small", vec![stage.task_with("one", &[], json!({"id": {"$from": "run.id"}}))], json!({}))
        .await;
}

async fn run_small(stage: &Stage) {
    let id = stage.start("small", Value::Null).await;
    let run = tokio::time::timeout(Duration::from_secs(10), stage.api.run_ended(&id)).await;
    assert_eq!(text_field(&run.expect("it is not held up"), "status"), "completed");
}

/// Elements whose results together are just small enough, and then as many that are to have one of them a hundred
/// times.
async fn a_fan_out_that_would_make_too_much_fails_also_after_a_restart(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    store_small(&stage).await;
    stage.target.reply("/a", Reply::json(json!("x".repeat(60_000))));
    let a = stage.task("a", &[], json!({"for_each": "input.few"}));
    let payload = json!({"job": {"payload": vec![json!({"$from": "item"}); 100]}, "for_each": "a.result"});
    let tasks = vec![a, stage.task("b", &["a"], payload)];
    stage.store("greedy", tasks, json!({})).await;
    let input = json!({"few": vec![0; 130]});
    let id = stage.start("greedy", input).await;
    run_small(&stage).await;
    let assert_failed = |run: &Value| {
        assert_eq!((text_field(run, "status"), status_of(run, "b")), ("failed", "failed"), "{run:#}");
        let error = &task_of(run, "b")["error"];
        assert_eq!(text_field(error, "code"), "data_too_large");
        assert!(text_field(error, "message").contains("268435456 bytes"), "{error}");
    };
    assert_failed(&stage.api.run_ended(&id).await);
    assert!(stage.server.memory_peak() < MEMORY_MAX, "{}", stage.server.memory_peak());

    stage.act_on_run(&id, "retry").await.expect(200);
    stage.restart().await;
    assert_failed(&stage.api.run_ended(&id).await);
    run_small(&stage).await;
    assert!(stage.server.memory_peak() < MEMORY_MAX, "{}", stage.server.memory_peak());
    assert!(stage.target.calls_to("/b").is_empty(), "none of its elements ran");
}

/// The text that one element in a thousand is given, again and again.
async fn a_large_fan_out_is_made_in_steps_while_others_go_on(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    store_small(&stage).await;
    stage.api.post("/api/v1/queues/slow/pause", &json!({})).await.success();
    let payload = vec![json!({"$from": "item"}); 100];
    let fields = json!({"for_each": "input", "job": {"queue": "slow", "payload": payload}});
    stage.store("large", vec![stage.task("each", &[], fields)], json!({})).await;
    let id = stage.start("large", json!(vec!["x".repeat(200); 1_000])).await;
    // Some are there before all of them are.
    let made = |run: &Value| run["tasks_total"].as_u64().expect("a number") - 1;
    let some = stage.until_run(&id, "to have elements", |run| made(run) > 0).await;
    assert!(made(&some) < 1_000, "all at once");
    run_small(&stage).await;
    eventually("all elements", PATIENCE, async || {
        // What is mapped of SQLite's file is the system's memory, not ours.
        let memory = stage.server.memory_private();
        assert!(memory < MEMORY_MAX / 2, "{memory}");
        (made(&stage.api.run(&id).await) == 1_000).then_some(())
    })
    .await;
    stage.act_on_run(&id, "cancel").await.expect(200);
    assert_eq!(text_field(&stage.api.run_ended(&id).await, "status"), "cancelled");
}

async fn thousands_of_elements_are_joined(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.on("/each", |call| Reply::json(call.json()));
    let all: Vec<u32> = (0..2_100).collect();
    let each = stage.task("each", &[], json!({"for_each": "input", "job": {"payload": {"$from": "item"}}}));
    let join = stage.task_with("join", &["each"], json!({"$from": "each.result"}));
    stage.store("many", vec![each, join], json!({})).await;
    let id = stage.start("many", json!(all)).await;
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text_field(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/join")[0].json(), json!(all));
    assert_eq!(stage.target.calls_to("/each").len(), all.len());
}

async fn a_run_that_would_begin_with_too_much_is_refused(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    // Just too small to be kept once.
    let payload = Value::from(vec![json!({"$from": "input"}); 1_000]);
    let tasks = (0..40).map(|n| stage.task_with(&format!("t{n}"), &[], payload.clone())).collect();
    stage.store("wide", tasks, json!({})).await;
    let refused = stage.api.post("/api/v1/workflows/wide/runs", &json!({"input": "x".repeat(1_000)})).await;
    let refused = refused.expect(422).json();
    assert!(refused.to_string().contains("33554432 bytes"), "{refused}");
    assert_eq!(stage.api.list("/api/v1/workflow-runs").await.len(), 0);
}

/// The first call of one element fails: what is sent again is the same.
async fn data_that_many_elements_share_is_kept_once_and_sent_to_each(kind: StoreKind) {
    const ELEMENTS: usize = 200;
    let stage = Stage::set(kind).await;
    let text = "x".repeat(240_000);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (expected, heard) = (json!(text), seen.clone());
    stage.target.on("/each", move |call| {
        let payload = call.json();
        assert_eq!(payload["text"], expected, "all of it");
        let item = payload["item"].as_u64().expect("a number");
        let mut seen = heard.lock().expect("the list");
        let is_first = !seen.contains(&item);
        seen.push(item);
        if is_first && item == 7 { Reply::status(500) } else { Reply::json(json!(item)) }
    });
    let payload = json!({"item": {"$from": "item"}, "text": {"$from": "input.text"}});
    let fields =
        json!({"for_each": "input.items", "job": {"payload": payload, "retry": {"initial_delay": "10ms"}}});
    stage.store("shared", vec![stage.task("each", &[], fields)], json!({})).await;
    let items: Vec<usize> = (0..ELEMENTS).collect();
    let id = stage.start("shared", json!({"items": items, "text": text})).await;
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text_field(&run, "status"), "completed", "{run:#}");
    let mut seen = std::mem::take(&mut *seen.lock().expect("the list"));
    assert_eq!(seen.len(), ELEMENTS + 1, "one of them twice");
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), ELEMENTS);

    // Whoever reads a job reads all of its payload; a page is no larger than pages are.
    let path = format!("/api/v1/jobs?workflow_run_id={id}&limit=1000&include=payload");
    let page = stage.api.get(&path).await.success().json();
    let jobs = page["items"].as_array().expect("a list");
    assert!(
        (2..50).contains(&jobs.len()) && page["next_cursor"].is_string(),
        "{} jobs on a page",
        jobs.len()
    );
    let job = stage.api.job(&id_of(&jobs[0])).await;
    assert_eq!((&job["payload"], &job["payload"]["text"]), (&jobs[0]["payload"], &json!(text)));
    let memory = stage.server.memory_private();
    assert!(memory < MEMORY_MAX / 4, "{memory}");
    if kind == StoreKind::Sqlite {
        let bytes = bytes_in(&stage.server.data_dir());
        assert!(bytes < 20 << 20, "once, and not {ELEMENTS} times: {bytes}");
    }
}

/// Ten thousand elements that are given 8 MB each are made, and those of a smaller run are sent all of it.
async fn a_result_of_many_megabytes_reaches_every_element(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    store_small(&stage).await;
    stage.target.reply("/a", Reply::json(json!("x".repeat(60_000))));
    let a = stage.task("a", &[], json!({"for_each": "input.few"}));
    let payload =
        json!({"job": {"queue": "slow", "payload": {"$from": "a.result"}}, "for_each": "input.many"});
    let tasks = vec![a, stage.task("b", &["a"], payload)];
    stage.store("shared", tasks, json!({})).await;
    stage.api.post("/api/v1/queues/slow/pause", &json!({})).await.success();
    let id = stage.start("shared", json!({"few": vec![0; 130], "many": vec![0; 10_000]})).await;
    stage.until_run(&id, "to have its elements", |run| run["tasks_total"] == json!(10_132)).await;
    run_small(&stage).await;
    let memory = stage.server.memory_private();
    assert!(memory < MEMORY_MAX / 2, "80 GB of payloads: {memory}");

    let first = &stage.items(&id, "b").await[0];
    let job = stage.api.job(text_field(first, "job_id")).await;
    assert_eq!(job["payload"].as_array().expect("an array").len(), 130);
    stage.act_on_run(&id, "cancel").await.expect(200);
    stage.api.post("/api/v1/queues/slow/resume", &json!({})).await.success();
    let four = stage.start("shared", json!({"few": vec![0; 130], "many": vec![0; 4]})).await;
    assert_eq!(text_field(&stage.api.run_ended(&four).await, "status"), "completed");
    let calls = stage.target.calls_to("/b");
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|call| call.json() == job["payload"]));
}

/// A hundred thousand tasks are made and cancelled. What stays is SQLite's cache, and little else.
#[tokio::test]
async fn memory_goes_back_after_large_runs() {
    const MEMORY_AFTER_MAX: u64 = 110 << 20;
    let stage = Stage::set(StoreKind::Sqlite).await;
    stage.api.post("/api/v1/queues/slow/pause", &json!({})).await.success();
    let fields = json!({"for_each": "input", "job": {"queue": "slow"}});
    stage.store("large", vec![stage.task("each", &[], fields)], json!({})).await;
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(stage.start("large", json!(vec![0; 10_000])).await);
    }
    for id in &ids {
        stage.until_run(id, "to have its elements", |run| run["tasks_total"] == json!(10_001)).await;
    }
    for id in &ids {
        stage.act_on_run(id, "cancel").await.expect(200);
        stage.api.run_ended(id).await;
    }
    eventually("memory to go back", PATIENCE, async || {
        (stage.server.memory_private() < MEMORY_AFTER_MAX).then_some(())
    })
    .await;
}

fn bytes_in(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).expect("a directory");
    files.map(|file| file.and_then(|file| file.metadata()).map_or(0, |file| file.len())).sum()
}
