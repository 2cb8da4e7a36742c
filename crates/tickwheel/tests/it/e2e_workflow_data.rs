//! A few lines can ask for a lot of data. What a run makes is bounded, it is made in steps, and others go on meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::text;
use crate::e2e::{Stage, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::server::StoreKind;
use crate::target::Reply;
use crate::workflows::{status_of, task_of};

on_both_stores! {
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
    assert_eq!(text(&run.expect("it is not held up"), "status"), "completed");
}

/// Elements whose results together are just small enough, and then many that are to have all of them.
async fn a_fan_out_that_would_make_too_much_fails_also_after_a_restart(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    store_small(&stage).await;
    stage.target.reply("/a", Reply::json(json!("x".repeat(60_000))));
    let a = stage.task("a", &[], json!({"for_each": "input.few"}));
    let payload = json!({"job": {"payload": {"$from": "a.result"}}, "for_each": "input.many"});
    let tasks = vec![a, stage.task("b", &["a"], payload)];
    stage.store("greedy", tasks, json!({})).await;
    let input = json!({"few": vec![0; 130], "many": vec![0; 120]});
    let id = stage.start("greedy", input).await;
    run_small(&stage).await;
    let assert_failed = |run: &Value| {
        assert_eq!((text(run, "status"), status_of(run, "b")), ("failed", "failed"), "{run:#}");
        let error = &task_of(run, "b")["error"];
        assert_eq!(text(error, "code"), "data_too_large");
        assert!(text(error, "message").contains("268435456 bytes"), "{error}");
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

/// The same large input for each of a thousand elements.
async fn a_large_fan_out_is_made_in_steps_while_others_go_on(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    store_small(&stage).await;
    stage.api.post("/api/v1/queues/slow/pause", &json!({})).await.success();
    let fields =
        json!({"for_each": "input.items", "job": {"queue": "slow", "payload": {"$from": "input.text"}}});
    stage.store("large", vec![stage.task("each", &[], fields)], json!({})).await;
    let id = stage.start("large", json!({"items": vec![0; 1_000], "text": "x".repeat(240_000)})).await;
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
    assert_eq!(text(&stage.api.run_ended(&id).await, "status"), "cancelled");
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
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/join")[0].json(), json!(all));
    assert_eq!(stage.target.calls_to("/each").len(), all.len());
}

async fn a_run_that_would_begin_with_too_much_is_refused(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let tasks = (0..200).map(|n| stage.task_with(&format!("t{n}"), &[], json!({"$from": "input"}))).collect();
    stage.store("wide", tasks, json!({})).await;
    let refused = stage.api.post("/api/v1/workflows/wide/runs", &json!({"input": "x".repeat(200_000)})).await;
    let refused = refused.expect(422).json();
    assert!(refused.to_string().contains("33554432 bytes"), "{refused}");
    assert_eq!(stage.api.list("/api/v1/workflow-runs").await.len(), 0);
}
