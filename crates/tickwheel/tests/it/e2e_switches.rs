//! Stopping and going on: paused queues, the stop switch, and what a restart finds.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{id_of, text, time};
use crate::e2e::{Stage, for_a_while, on_both_stores, until_past};
use crate::eventually::{PATIENCE, eventually};
use crate::server::StoreKind;
use crate::target::{Gate, Reply};

on_both_stores! {
    nothing_of_a_paused_queue_starts_after_the_acknowledgement,
    a_paused_queue_stays_paused_over_a_restart_and_drains_when_resumed,
    queues_show_what_waits_and_what_runs,
    nothing_at_all_starts_while_halted_and_the_switch_survives_a_restart,
    what_is_running_may_end_while_halted,
    jobs_whose_time_passed_while_the_server_was_down_run_when_it_is_back,
    a_server_that_is_asked_to_stop_lets_running_jobs_end,
}

async fn nothing_of_a_paused_queue_starts_after_the_acknowledgement(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let jobs: Vec<Value> =
        (0..300).map(|n| stage.job("/lane", json!({"queue": "lane", "delay": format!("{n}ms")}))).collect();
    stage.api.submit_batch(&jobs).await;
    stage.target.called("/lane", 5).await;
    let paused = stage.api.act("/api/v1/queues/lane/pause").await.expect(200).json();
    let acknowledged_at = jiff::Timestamp::now();
    assert_eq!(paused["paused"], true);
    let other = stage.submit("/other", json!({"delay": "400ms"})).await;
    stage.until(&other, "completed").await;
    let late: Vec<Value> = stage
        .api
        .list("/api/v1/jobs?queue=lane&limit=1000")
        .await
        .into_iter()
        .filter(|job| job["started_at"].is_string() && time(job, "started_at") > acknowledged_at)
        .collect();
    assert!(late.is_empty(), "{} started after {acknowledged_at}: {:?}", late.len(), late.first());

    stage.api.act("/api/v1/queues/lane/resume").await.expect(200);
    assert_eq!(stage.target.called("/lane", 300).await.len(), 300, "each runs once");
}

async fn a_paused_queue_stays_paused_over_a_restart_and_drains_when_resumed(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    // It has had no job yet.
    stage.api.act("/api/v1/queues/lane/pause").await.expect(200);
    let lane = vec![stage.job("/lane", json!({"queue": "lane"})); 10];
    stage.api.submit_batch(&lane).await;
    stage.restart().await;
    let other = stage.submit("/other", json!({})).await;
    stage.until(&other, "completed").await;
    for_a_while(async || assert!(stage.target.calls_to("/lane").is_empty())).await;
    let queue = stage.api.get("/api/v1/queues/lane").await.expect(200).json();
    assert_eq!(queue["paused"], true);
    stage.api.act("/api/v1/queues/lane/resume").await.expect(200);
    stage.target.called("/lane", 10).await;
}

async fn queues_show_what_waits_and_what_runs(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    assert_eq!(stage.api.get("/api/v1/queues/nobody").await.expect(404).code(), "not_found");
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let running = stage.submit("/long", json!({"queue": "mail"})).await;
    stage.target.called("/long", 1).await;
    stage.api.act("/api/v1/queues/held/pause").await.expect(200);
    stage.submit("/run", json!({"queue": "held"})).await;
    stage.submit("/run", json!({"queue": "held"})).await;
    stage.submit("/run", json!({"queue": "future", "delay": "1h"})).await;
    for job_type in ["a", "b", "b"] {
        stage.api.submit(&json!({"type": job_type, "queue": "unserved"})).await;
    }

    let queues = stage.api.get("/api/v1/queues").await.expect(200).json();
    let queue = |name: &str, paused: bool, waiting: u32, running: u32| json!({"name": name, "paused": paused, "waiting": waiting, "more_waiting": false, "running": running});
    let found = queues["items"].as_array().unwrap();
    let expected = [
        queue("future", false, 0, 0),
        queue("held", true, 2, 0),
        queue("mail", false, 0, 1),
        queue("unserved", false, 3, 0),
    ];
    for expected in expected {
        assert!(found.contains(&expected), "{expected} is not in {queues}");
    }
    assert_eq!(stage.api.get("/api/v1/admin/status").await.expect(200).json()["waiting"], 5);
    eventually("the metric to count them too", PATIENCE, async || {
        (stage.api.metric("tickwheel_queue_waiting").await == 5.0).then_some(())
    })
    .await;
    gate.open();
    stage.until(&running, "completed").await;
}

async fn nothing_at_all_starts_while_halted_and_the_switch_survives_a_restart(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let status = stage.api.act("/api/v1/admin/halt").await.expect(200).json();
    assert_eq!(status["halted"], true);
    let id = stage.submit("/run", json!({})).await;
    let urgent = stage.submit("/run", json!({"priority": "critical", "queue": "lane"})).await;
    for_a_while(async || assert!(stage.target.calls().is_empty())).await;
    stage.restart().await;
    assert_eq!(stage.api.get("/api/v1/admin/status").await.expect(200).json()["halted"], true);
    stage.act(&id, "run").await.expect(200);
    for_a_while(async || assert!(stage.target.calls().is_empty())).await;
    let status = stage.api.act("/api/v1/admin/resume").await.expect(200).json();
    assert_eq!(status["halted"], false);
    stage.until(&id, "completed").await;
    stage.until(&urgent, "completed").await;
}

async fn what_is_running_may_end_while_halted(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let id = stage.submit("/long", json!({})).await;
    stage.target.called("/long", 1).await;
    stage.api.act("/api/v1/admin/halt").await.expect(200);
    gate.open();
    stage.until(&id, "completed").await;
}

async fn jobs_whose_time_passed_while_the_server_was_down_run_when_it_is_back(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let jobs: Vec<Value> =
        (0..20).map(|n| stage.job("/run", json!({"delay": format!("{}ms", 1_000 + n)}))).collect();
    let submitted = stage.api.submit_batch(&jobs).await;
    let future = stage.submit("/future", json!({"delay": "1h"})).await;
    stage.server.kill9().await;
    until_past(time(submitted.last().unwrap(), "execute_at")).await;
    let ran_before = stage.target.calls().len();
    stage.restart().await;
    for job in &submitted {
        let job = stage.api.wait(&id_of(job)).await;
        assert_eq!(text(&job, "status"), "completed");
    }
    assert_eq!(ran_before, 0, "killed before their time");
    assert_eq!(stage.target.calls_to("/run").len(), 20);
    assert_eq!(text(&stage.api.job(&future).await, "status"), "scheduled");
}

async fn a_server_that_is_asked_to_stop_lets_running_jobs_end(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let id = stage.submit("/long", json!({})).await;
    stage.target.called("/long", 1).await;
    stage.server.ask_to_stop();
    for_a_while(async || assert_eq!(stage.target.calls().len(), 1)).await;
    assert!(stage.server.is_up(), "it waits for the job");
    gate.open();
    let ended = stage.server.exited(Duration::from_secs(20)).await;
    assert!(ended.success(), "{ended}");
    stage.restart().await;
    let job = stage.api.job(&id).await;
    assert_eq!((text(&job, "status"), &job["attempt"]), ("completed", &json!(1)));
}
