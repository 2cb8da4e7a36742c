//! Submitting and reading jobs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::server::{Answer, NOW, Server};

fn whole_job() -> Value {
    json!({
        "type": "send_email",
        "target": {"http": {"url": "https://svc/run", "method": "PUT", "headers": {"x-team": "mail"}}},
        "payload": {"any": "json"},
        "execute_at": "2027-12-01T16:00:00+01:00",
        "queue": "mail", "priority": "high",
        "retry": {"max_retries": 5, "backoff": "linear", "initial_delay": "2s", "max_delay": "1h", "jitter": 0.2},
        "timeout": 30, "delivery": "at_most_once",
        "depends_on": [], "tags": ["a", "b"], "metadata": {"ticket": 7}, "concurrency_key": "tenant-1", "requires": {},
        "callback_url": "https://svc/done", "idempotency_key": null, "created_by": "ada",
    })
}

#[tokio::test]
async fn a_submitted_job_comes_back_with_everything_it_was_given() {
    let server = Server::start();
    let answer = server.post("/api/v1/jobs", whole_job()).await;
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let job = answer.ok(201);
    assert_eq!(location, format!("/api/v1/jobs/{}", job["id"].as_str().unwrap()));
    let mut expected = json!({
        "id": job["id"], "type": "send_email", "status": "scheduled", "queue": "mail", "priority": "high",
        "tenant": "default", "execute_at": "2027-12-01T15:00:00.000Z", "next_run_at": "2027-12-01T15:00:00.000Z",
        "created_at": "2027-01-15T08:00:00.000Z", "started_at": null, "completed_at": null, "deadline": null,
        "attempt": 0, "retries": 0, "max_retries": 5, "cancel_requested": false, "result": null, "error": null,
        "tags": ["a", "b"], "metadata": {"ticket": 7}, "payload": {"any": "json"},
        "target": {"http": {"url": "https://svc/run", "method": "PUT", "headers": {"x-team": "mail"}}},
        "retry": {"max_retries": 5, "backoff": "linear", "initial_delay": "2s", "max_delay": "1h", "jitter": 0.2},
        "timeout": "30s", "delivery": "at_most_once", "depends_on": [], "concurrency_key": "tenant-1",
        "callback_url": "https://svc/done", "created_by": "ada", "schedule_id": null, "workflow_run_id": null,
        "task": null,
    });
    expected["retry"]["delays"] = Value::Null;
    assert_eq!(job, expected);
    assert_eq!(server.get(&location).await.ok(200), expected);
}

#[tokio::test]
async fn only_the_type_is_required() {
    let server = Server::start();
    let job = server.post("/api/v1/jobs", json!({"type": "t"})).await.ok(201);
    assert_eq!(job["queue"], "default");
    assert_eq!(job["priority"], "normal");
    assert_eq!(job["target"], json!({"worker": {}}));
    assert_eq!(job["payload"], Value::Null);
    assert_eq!(job["metadata"], json!({}));
    assert_eq!(job["timeout"], "300s");
    assert_eq!(job["max_retries"], 3);
    assert_eq!(job["execute_at"], "2027-01-15T08:00:00.000Z");
}

#[tokio::test]
async fn a_payload_is_kept_to_the_letter() {
    let server = Server::start();
    let text = r#"{"type":"t","payload":{"z":1.10,"a":12345678901234567890123,"s":"\u0000é"}}"#;
    let id = server.send_text("POST", "/api/v1/jobs", text).await.ok(201)["id"].as_str().unwrap().to_owned();
    let stored = server.store.with_model(|model| model.job(id.parse().unwrap()).unwrap().payload.clone());
    assert_eq!(stored.as_str(), r#"{"z":1.10,"a":12345678901234567890123,"s":"\u0000é"}"#);
}

async fn submit_with_header(server: &Server, key: &str, body: Value) -> Answer {
    let request = Request::post("/api/v1/jobs")
        .header(CONTENT_TYPE, "application/json; charset=utf-8")
        .header("Idempotency-Key", key)
        .body(Body::from(body.to_string()));
    server.send(request.expect("a valid request")).await
}

#[tokio::test]
async fn a_repeated_submission_answers_with_the_first_job_however_the_key_comes() {
    let server = Server::start();
    let body = json!({"type": "t", "payload": {"a": 1, "b": 2}});
    let first = submit_with_header(&server, "k", body.clone()).await.ok(201);
    assert_eq!(submit_with_header(&server, "k", body).await.ok(200), first);
    let spaced = r#"{ "payload" : {"b":2, "a":1}, "idempotency_key":"k", "type":"t" }"#;
    assert_eq!(server.send_text("POST", "/api/v1/jobs", spaced).await.ok(200), first);
    assert_eq!(server.stored().await, 1);
}

#[tokio::test]
async fn one_key_for_two_different_requests_is_a_conflict() {
    let server = Server::start();
    submit_with_header(&server, "k", json!({"type": "t", "payload": 1})).await.ok(201);
    let other = submit_with_header(&server, "k", json!({"type": "t", "payload": 2})).await;
    assert_eq!(other.problem(409), "idempotency_conflict");
    let torn = submit_with_header(&server, "k", json!({"type": "t", "idempotency_key": "other"})).await;
    assert_eq!(torn.problem(400), "idempotency_key_mismatch");
    assert_eq!(server.stored().await, 1);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_early_when_the_server_shuts_down() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "delay": "1h"})).await;
    let began = tokio::time::Instant::now();
    let shut_down = async {
        server.waiting.notified().await;
        server.ready.store(false, Ordering::SeqCst);
        server.ended.notify_waiters();
    };
    let path = format!("/api/v1/jobs/{id}?wait=30s");
    let (answer, ()) = tokio::join!(server.get(&path), shut_down);
    assert_eq!(answer.problem(503), "shutting_down");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn waiting_answers_as_soon_as_the_job_has_ended() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let token = server.claim(&id).await;
    let path = format!("/api/v1/jobs/{id}?wait=30s");
    let complete = async {
        server.waiting.notified().await;
        server.post(&format!("/api/v1/attempts/{token}/complete"), json!({"result": [1]})).await.ok(204);
    };
    let (job, ()) = tokio::join!(server.get(&path), complete);
    let job = job.ok(200);
    assert_eq!(job["status"], "completed");
    assert_eq!(job["result"], json!([1]));
    assert_eq!(server.get(&path).await.ok(200)["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_408_when_the_job_goes_on() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}?wait=2")).await.problem(408), "wait_timeout");
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}?wait=0")).await.problem(408), "wait_timeout");
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}?wait=6m")).await.problem(400), "invalid_parameter");
}

#[tokio::test]
async fn jobs_are_listed_newest_first_page_by_page() {
    let server = Server::start();
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(server.submit(json!({"type": "t", "payload": n})).await);
    }
    ids.reverse();
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/api/v1/jobs?limit=2&cursor={cursor}")).await.ok(200);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        listed.extend(items.iter().map(|job| job["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(listed, ids);
}

#[tokio::test]
async fn every_filter_of_the_list_filters() {
    let server = Server::start();
    let odd = server
        .submit(json!({"type": "odd", "queue": "q", "priority": "low", "tags": ["x"], "delay": "1h"}))
        .await;
    server.submit(json!({"type": "even"})).await;
    server.post(&format!("/api/v1/jobs/{odd}/pause"), json!({})).await.ok(200);
    for filter in
        ["status=paused", "type=odd", "queue=q", "tag=x", "priority=low", "type=odd&status=paused&tag="]
    {
        let list = server.get(&format!("/api/v1/jobs?{filter}")).await.ok(200);
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "{filter}");
        assert_eq!(list["items"][0]["id"], *odd, "{filter}");
    }
    let count = |list: Value| list["items"].as_array().unwrap().len();
    let now = tickwheel_protocol::Time::from_millis(NOW.as_millis());
    assert_eq!(count(server.get(&format!("/api/v1/jobs?from={now}")).await.ok(200)), 2);
    assert_eq!(count(server.get(&format!("/api/v1/jobs?to={now}")).await.ok(200)), 0);
    assert_eq!(count(server.get("/api/v1/jobs?schedule_id=s").await.ok(200)), 0);
    for status in tickwheel_protocol::Status::ALL {
        server.get(&format!("/api/v1/jobs?status={status}")).await.ok(200);
    }
}

#[tokio::test]
async fn attempts_tell_the_history_and_their_logs_exist_only_with_them() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}/attempts")).await.ok(200)["items"], json!([]));
    server.kill(&id).await;
    let list = server.get(&format!("/api/v1/jobs/{id}/attempts")).await.ok(200);
    assert_eq!(
        list["items"],
        json!([{
            "number": 1, "outcome": "failed", "error": {"code": "boom", "message": "it blew up"},
            "started_at": "2027-01-15T08:00:00.000Z", "ended_at": "2027-01-15T08:00:00.000Z",
        }])
    );
    let logs = server.get(&format!("/api/v1/jobs/{id}/attempts/1/logs")).await.ok(200);
    assert_eq!(logs, json!({"items": [], "next_cursor": null}));
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}/attempts/2/logs")).await.problem(404), "not_found");
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}/attempts/x/logs")).await.problem(400), "invalid_id");
}

#[tokio::test]
async fn why_answers_for_every_state_a_job_passes_through() {
    let server = Server::start();
    let http = json!({"http": {"url": "http://svc/"}});
    let why = async |id: &str| server.get(&format!("/api/v1/jobs/{id}/why")).await.ok(200);

    let id = server.submit(json!({"type": "t", "delay": "1h", "target": http})).await;
    let answer = why(&id).await;
    assert_eq!(answer["code"], "not_yet_due");
    assert_eq!(answer["expected_start"], "2027-01-15T09:00:00.000Z");
    assert_eq!(answer["job_id"], *id);
    assert_eq!(answer["status"], "scheduled");
    assert!(answer["sentence"].is_string() && answer["waits_for"].is_string() && answer["since"].is_string());

    server.call("POST", &format!("/api/v1/jobs/{id}/pause")).await.ok(200);
    assert_eq!(why(&id).await["code"], "paused");
    server.call("POST", &format!("/api/v1/jobs/{id}/run")).await.ok(200);
    assert_eq!(why(&id).await["code"], "about_to_start");
    server.call("POST", "/api/v1/queues/default/pause").await.ok(200);
    assert_eq!(why(&id).await["code"], "queue_paused");
    server.call("POST", "/api/v1/admin/halt").await.ok(200);
    assert_eq!(why(&id).await["code"], "halted");
    server.call("POST", "/api/v1/admin/resume").await.ok(200);
    server.call("POST", "/api/v1/queues/default/resume").await.ok(200);

    let token = server.claim(&id).await;
    assert_eq!(why(&id).await["code"], "running");
    server.post(&format!("/api/v1/attempts/{token}/fail"), json!({"error": "no luck"})).await.ok(204);
    assert_eq!(why(&id).await["code"], "retry_backoff");
    server.call("DELETE", &format!("/api/v1/jobs/{id}")).await.ok(200);
    assert_eq!(why(&id).await["code"], "cancelled");

    let lonely = server.submit(json!({"type": "t"})).await;
    assert_eq!(why(&lonely).await["code"], "unroutable");
    server.kill(&lonely).await;
    assert_eq!(why(&lonely).await["code"], "failed");
}
