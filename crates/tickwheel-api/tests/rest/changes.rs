//! What people do to jobs.

use serde_json::{Value, json};
use tickwheel_testkit::Fault;

use crate::server::Server;

#[tokio::test]
async fn a_waiting_job_can_be_paused_resumed_run_now_and_cancelled() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "delay": "1h"})).await;
    let act = async |action: &str| server.call("POST", &format!("/api/v1/jobs/{id}/{action}")).await.ok(200);
    assert_eq!(act("pause").await["status"], "paused");
    assert_eq!(act("resume").await["status"], "scheduled");
    let run_now = act("run").await;
    assert_eq!(run_now["next_run_at"], "2027-01-15T08:00:00.000Z");
    assert_eq!(run_now["execute_at"], "2027-01-15T09:00:00.000Z");
    let cancelled = act("cancel").await;
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["next_run_at"], Value::Null);
    let retried = act("retry").await;
    assert_eq!(retried["status"], "scheduled");
}

#[tokio::test]
async fn deleting_a_running_job_asks_it_to_stop() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    server.claim(&id).await;
    let job = server.call("DELETE", &format!("/api/v1/jobs/{id}")).await.ok(200);
    assert_eq!(job["status"], "running");
    assert_eq!(job["cancel_requested"], true);
    assert_eq!(job["deadline"], "2027-01-15T08:05:00.000Z");
}

#[tokio::test]
async fn what_the_state_does_not_allow_is_a_conflict() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let act = async |action: &str| server.call("POST", &format!("/api/v1/jobs/{id}/{action}")).await;
    assert_eq!(act("retry").await.problem(409), "illegal_state");
    let token = server.claim(&id).await;
    assert_eq!(act("pause").await.problem(409), "illegal_state");
    server.post(&format!("/api/v1/attempts/{token}/complete"), json!({})).await.ok(204);
    for action in ["cancel", "pause", "resume", "run", "retry"] {
        assert_eq!(act(action).await.problem(409), "illegal_state", "{action}");
    }
    let unknown = "/api/v1/jobs/0190f5f0-0000-7000-8000-000000000000/cancel";
    assert_eq!(server.call("POST", unknown).await.problem(404), "not_found");
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_nothing_else() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "delay": "1h", "payload": {"a": 1}, "tags": ["x"]})).await;
    let path = format!("/api/v1/jobs/{id}");
    let patch = async |body: Value| server.send_text("PATCH", &path, body.to_string()).await;

    let job = patch(json!({"priority": "critical", "tags": ["y"]})).await.ok(200);
    assert_eq!(
        (&job["priority"], &job["tags"], &job["payload"]),
        (&json!("critical"), &json!(["y"]), &json!({"a": 1}))
    );
    let job = patch(json!({"execute_at": "2027-02-01T00:00:00Z", "status": "paused"})).await.ok(200);
    assert_eq!((&job["status"], &job["next_run_at"]), (&json!("paused"), &json!("2027-02-01T00:00:00.000Z")));
    let job = patch(json!({"status": "scheduled", "payload": null})).await.ok(200);
    assert_eq!((&job["status"], &job["payload"]), (&json!("scheduled"), &Value::Null));

    assert_eq!(patch(json!({"queue": "q"})).await.problem(400), "unknown_field");
    assert_eq!(patch(json!({"status": "completed"})).await.problem(422), "validation_failed");
    assert_eq!(patch(json!({"tags": [""]})).await.problem(422), "validation_failed");
    let large = json!({"payload": "x".repeat(256 << 10)});
    assert_eq!(patch(large).await.problem(413), "payload_too_large");

    server.call("POST", &format!("{path}/run")).await.ok(200);
    server.claim(&id).await;
    assert_eq!(patch(json!({"priority": "low"})).await.problem(409), "illegal_state");
}

#[tokio::test]
async fn a_job_moved_to_the_past_is_due_now_and_not_late() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "delay": "1h"})).await;
    let patch = json!({"execute_at": "2020-01-01T00:00:00Z"}).to_string();
    let job = server.send_text("PATCH", &format!("/api/v1/jobs/{id}"), patch).await.ok(200);
    assert_eq!(job["next_run_at"], "2027-01-15T08:00:00.000Z");
}

#[tokio::test]
async fn a_store_that_is_away_is_a_503_that_says_whether_to_ask_again() {
    let server = Server::start();
    server.store.fail_next(Fault::Aborted);
    let refused = server.post("/api/v1/jobs", json!({"type": "t"})).await;
    assert_eq!(refused.problem(503), "store_unavailable");
    assert_eq!(server.stored().await, 0);
    server.store.fail_next(Fault::LostReply);
    let in_doubt = server.post("/api/v1/jobs", json!({"type": "t"})).await;
    assert_eq!(in_doubt.problem(503), "outcome_unknown");
    assert_eq!(server.stored().await, 1);
}
