//! Submitting: when a job runs, in which order, and what a repeated submission does.

use std::time::Duration;

use http::Request;
use http_body_util::Full;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{Answer, Api, id_of, text, time};
use crate::e2e::{LATENESS_MAX, Stage, millis_between, on_both_stores, with};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply};

on_both_stores! {
    a_job_runs_at_once_and_what_came_of_it_can_be_read,
    a_delayed_job_runs_at_its_time_and_not_at_the_next_sweep,
    a_job_for_a_moment_runs_then_and_one_for_the_past_at_once,
    a_batch_is_answered_in_order_and_a_bad_job_does_not_hold_up_the_others,
    an_idempotency_key_makes_a_repetition_harmless,
    an_idempotency_key_holds_in_a_batch_and_after_a_restart,
    many_at_once_with_one_idempotency_key_make_one_job,
    a_critical_job_overtakes_the_low_ones_that_were_there_before_it,
    priorities_run_in_their_order,
}

async fn a_job_runs_at_once_and_what_came_of_it_can_be_read(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/run", Reply::ok().body(r#"{"pages": 12}"#));
    let before = Timestamp::now();
    let fields =
        json!({"payload": {"to": "ann"}, "tags": ["a", "b"], "metadata": {"order": 7}, "queue": "mail"});
    let answer = stage.api.post("/api/v1/jobs", &stage.job("/run", fields)).await.expect(201);
    let submitted = answer.json();
    let id = id_of(&submitted);
    assert_eq!(answer.headers["location"], format!("/api/v1/jobs/{id}"));
    assert_eq!(submitted["status"], "scheduled");

    let job = stage.api.wait(&id).await;
    assert_eq!(job["status"], "completed", "{job}");
    assert_eq!(job["result"], json!({"pages": 12}));
    assert_eq!(job["error"], Value::Null);
    assert_eq!((&job["attempt"], &job["retries"]), (&json!(1), &json!(0)));
    assert_eq!((&job["tags"], &job["metadata"]), (&json!(["a", "b"]), &json!({"order": 7})));
    assert_eq!(job["queue"], "mail");
    let (created, started, ended) =
        (time(&job, "created_at"), time(&job, "started_at"), time(&job, "completed_at"));
    assert!(before.as_millisecond() <= created.as_millisecond());
    assert!(created <= started && started <= ended);
    let calls = stage.target.calls_to("/run");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].json(), json!({"to": "ann"}));
}

async fn a_delayed_job_runs_at_its_time_and_not_at_the_next_sweep(kind: StoreKind) {
    // Without a sweep that could help, only the timing wheel can be punctual.
    let server = Server::builder(kind).env("TICKWHEEL_ENGINE_SWEEP_INTERVAL", "30s").start().await;
    let stage = Stage::on(server).await;
    let submitted = stage.api.submit(&stage.job("/run", json!({"delay": "250ms"}))).await;
    let (created, due) = (time(&submitted, "created_at"), time(&submitted, "execute_at"));
    assert_eq!(millis_between(created, due), 250);
    let arrived = stage.target.called("/run", 1).await[0].arrived_at;
    let lateness = millis_between(due, arrived);
    assert!((0..LATENESS_MAX.as_millis() as i64).contains(&lateness), "{lateness} ms late");
}

async fn a_job_for_a_moment_runs_then_and_one_for_the_past_at_once(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let later = Timestamp::now() + Duration::from_millis(600);
    // Any offset is understood, and answered in UTC.
    let berlin = later.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(2)));
    let said = berlin.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string();
    let submitted = stage.api.submit(&stage.job("/later", json!({"execute_at": said}))).await;
    assert_eq!(time(&submitted, "execute_at").as_millisecond(), later.as_millisecond());
    assert!(text(&submitted, "execute_at").ends_with('Z'));
    stage.submit("/past", json!({"execute_at": "2001-01-01T00:00:00Z"})).await;

    let past = stage.target.called("/past", 1).await[0].arrived_at;
    let due = stage.target.called("/later", 1).await[0].arrived_at;
    assert!(past < due);
    assert!(due.as_millisecond() >= later.as_millisecond());
}

async fn a_batch_is_answered_in_order_and_a_bad_job_does_not_hold_up_the_others(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let good = |n: u32| stage.job("/run", json!({"payload": n}));
    let jobs = json!({"jobs": [
        good(0), {"type": ""}, good(1), {"type": "x", "colour": "red"}, 7, good(2),
        stage.job("/run", json!({"idempotency_key": "k", "payload": 3})),
        stage.job("/run", json!({"idempotency_key": "k", "payload": 3})),
        stage.job("/run", json!({"idempotency_key": "k", "payload": 4})),
    ]});
    let answer = stage.api.post("/api/v1/jobs/batch", &jobs).await.expect(200).json();
    let results = answer["results"].as_array().unwrap();
    let told: Vec<String> = results.iter().map(told).collect();
    assert_eq!(
        told,
        [
            "job 0",
            "validation_failed at /jobs/1/type",
            "job 1",
            "unknown_field at /jobs/3/colour",
            "wrong_type at /jobs/4",
            "job 2",
            "job 3",
            "job 3",
            "idempotency_conflict at ",
        ]
    );
    assert_eq!(results[6]["job"]["id"], results[7]["job"]["id"]);
    let calls = stage.target.called("/run", 4).await;
    let mut payloads: Vec<_> = calls.iter().map(|call| call.json().as_u64().unwrap()).collect();
    payloads.sort_unstable();
    assert_eq!(payloads, [0, 1, 2, 3]);
    assert_eq!(stage.api.list("/api/v1/jobs").await.len(), 4);
}

fn told(result: &Value) -> String {
    match result.get("job") {
        Some(job) => format!("job {}", job["payload"]),
        None => {
            let error = &result["error"];
            let pointer = error["errors"][0]["pointer"].as_str().unwrap_or_default();
            format!("{} at {pointer}", text(error, "code"))
        }
    }
}

async fn submit_with_header(api: &Api, job: &Value, key: &str) -> Answer {
    let request = Request::post("/api/v1/jobs")
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Full::from(job.to_string()));
    api.exchange(request.unwrap()).await.unwrap()
}

async fn an_idempotency_key_makes_a_repetition_harmless(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let job = stage.job("/run", json!({"payload": {"n": 1}, "delay": "1h"}));
    let keyed = with(job.clone(), json!({"idempotency_key": "order-1"}));
    let first = stage.api.submit(&keyed).await;

    let again = stage.api.post("/api/v1/jobs", &keyed).await.expect(200).json();
    assert_eq!(again["id"], first["id"]);
    let by_header = submit_with_header(&stage.api, &job, "order-1").await.expect(200).json();
    assert_eq!(by_header["id"], first["id"], "the header means the same as the field");
    let other_body = stage.job("/run", json!({"payload": {"n": 2}, "delay": "1h"}));
    let conflict = submit_with_header(&stage.api, &other_body, "order-1").await.expect(409);
    assert_eq!(conflict.code(), "idempotency_conflict");
    let two_keys = submit_with_header(&stage.api, &keyed, "order-2").await.expect(400);
    assert_eq!(two_keys.code(), "idempotency_key_mismatch");
    assert_eq!(stage.api.list("/api/v1/jobs").await.len(), 1);
}

async fn an_idempotency_key_holds_in_a_batch_and_after_a_restart(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let job = stage.job("/run", json!({"idempotency_key": "order-1"}));
    let id = id_of(&stage.api.submit(&job).await);
    stage.until(&id, "completed").await;
    stage.restart().await;
    let again = stage.api.post("/api/v1/jobs", &job).await.expect(200).json();
    assert_eq!((text(&again, "id"), text(&again, "status")), (id.as_str(), "completed"));
    let batched = stage.api.submit_batch(&[job]).await;
    assert_eq!(text(&batched[0], "id"), id);
    assert_eq!(stage.target.calls_to("/run").len(), 1);
}

async fn many_at_once_with_one_idempotency_key_make_one_job(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let job = stage.job("/run", json!({"idempotency_key": "once", "delay": "1h"}));
    let submissions = (0..20).map(|_| stage.api.post("/api/v1/jobs", &job));
    let answers = futures::future::join_all(submissions).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert!(answers.iter().all(|answer| answer.json()["id"] == answers[0].json()["id"]));
}

/// A stage with one slot that is taken by a job until the gate opens.
async fn with_a_taken_slot(kind: StoreKind) -> (Stage, Gate) {
    let stage = Stage::with_one_slot(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    stage.submit("/long", json!({})).await;
    stage.target.called("/long", 1).await;
    (stage, gate)
}

async fn a_critical_job_overtakes_the_low_ones_that_were_there_before_it(kind: StoreKind) {
    let (stage, gate) = with_a_taken_slot(kind).await;
    let low = vec![stage.job("/low", json!({"priority": "low"})); 50];
    stage.api.submit_batch(&low).await;
    stage.submit("/critical", json!({"priority": "critical"})).await;
    gate.open();
    stage.target.called("/low", 50).await;
    let order: Vec<String> = stage.target.calls().into_iter().map(|call| call.path).collect();
    assert_eq!(order[..2], ["/long", "/critical"], "{order:?}");
}

async fn priorities_run_in_their_order(kind: StoreKind) {
    let (stage, gate) = with_a_taken_slot(kind).await;
    let priorities = ["low", "normal", "critical", "high"];
    let jobs = priorities.map(|priority| stage.job(&format!("/{priority}"), json!({"priority": priority})));
    stage.api.submit_batch(&jobs).await;
    gate.open();
    let order = eventually("all of them to have run", PATIENCE, async || {
        let order: Vec<String> = stage.target.calls().into_iter().map(|call| call.path).collect();
        Some(order).filter(|order| order.len() == 5)
    });
    assert_eq!(order.await, ["/long", "/critical", "/high", "/normal", "/low"]);
}
