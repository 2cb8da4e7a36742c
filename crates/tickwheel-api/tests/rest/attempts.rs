//! Reports by token.

use serde_json::{Value, json};

use crate::server::Server;

#[tokio::test]
async fn whoever_holds_the_token_may_complete_the_attempt_once() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let token = server.claim(&id).await;
    let complete = format!("/api/v1/attempts/{token}/complete");
    let answer = server.post(&complete, json!({"result": {"sent": 3}})).await;
    assert_eq!(answer.ok(204), Value::Null);
    let job = server.get(&format!("/api/v1/jobs/{id}")).await.ok(200);
    assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!({"sent": 3})));
    assert_eq!(server.post(&complete, json!({})).await.problem(409), "stale_token");
    assert_eq!(
        server.call("POST", &format!("/api/v1/attempts/{token}/heartbeat")).await.problem(409),
        "stale_token"
    );
}

#[tokio::test]
async fn a_failure_may_be_a_sentence_or_have_a_code_and_is_retried_unless_told_otherwise() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "retry": {"initial_delay": "1s", "jitter": 0}})).await;
    let token = server.claim(&id).await;
    let report = json!({"error": "no luck", "delay": "10m"});
    server.post(&format!("/api/v1/attempts/{token}/fail"), report).await.ok(204);
    let job = server.get(&format!("/api/v1/jobs/{id}")).await.ok(200);
    assert_eq!(job["status"], "scheduled");
    assert_eq!(job["next_run_at"], "2027-01-15T08:10:00.000Z");
    assert_eq!(job["error"], json!({"code": "reported", "message": "no luck"}));
    assert_eq!(job["retries"], 1);

    server.call("POST", &format!("/api/v1/jobs/{id}/run")).await.ok(200);
    server.kill(&id).await;
    let job = server.get(&format!("/api/v1/jobs/{id}")).await.ok(200);
    assert_eq!(job["status"], "failed");
    assert_eq!(job["error"], json!({"code": "boom", "message": "it blew up"}));
}

#[tokio::test]
async fn a_stale_token_changes_nothing() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "retry": {"delays": [0]}})).await;
    let old = server.claim(&id).await;
    server.call("POST", &format!("/api/v1/attempts/{old}/fail")).await.ok(204);
    let current = server.claim(&id).await;
    assert_ne!(old, current);
    assert_eq!(
        server.call("POST", &format!("/api/v1/attempts/{old}/complete")).await.problem(409),
        "stale_token"
    );
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}")).await.ok(200)["status"], "running");
    server.call("POST", &format!("/api/v1/attempts/{current}/complete")).await.ok(204);
}

#[tokio::test]
async fn a_heartbeat_tells_the_deadline_and_whether_to_stop() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "timeout": "1m"})).await;
    let token = server.claim(&id).await;
    let path = format!("/api/v1/attempts/{token}/heartbeat");
    let beat = server.call("POST", &path).await.ok(200);
    assert_eq!(beat, json!({"cancel": false, "deadline": "2027-01-15T08:01:00.000Z"}));
    server.call("DELETE", &format!("/api/v1/jobs/{id}")).await.ok(200);
    assert_eq!(server.call("POST", &path).await.ok(200)["cancel"], true);
}

#[tokio::test]
async fn a_made_up_token_names_nothing_and_a_bad_report_is_refused() {
    let server = Server::start();
    assert_eq!(server.call("POST", "/api/v1/attempts/guess/complete").await.problem(404), "not_found");
    let id = server.submit(json!({"type": "t"})).await;
    let token = server.claim(&id).await;
    let forged = format!("{}{}", &token[..token.len() - 1], if token.ends_with('A') { "B" } else { "A" });
    assert_eq!(
        server.call("POST", &format!("/api/v1/attempts/{forged}/fail")).await.problem(404),
        "not_found"
    );

    let post =
        async |verb: &str, body: Value| server.post(&format!("/api/v1/attempts/{token}/{verb}"), body).await;
    assert_eq!(post("complete", json!({"resutl": 1})).await.problem(400), "unknown_field");
    assert_eq!(
        post("complete", json!({"result": "x".repeat(256 << 10)})).await.problem(413),
        "payload_too_large"
    );
    assert_eq!(post("fail", json!({"error": 7})).await.problem(400), "wrong_type");
    assert_eq!(post("fail", json!({"delay": "400d"})).await.problem(422), "validation_failed");
    assert_eq!(
        post("fail", json!({"error": {"code": "", "message": "m"}})).await.problem(422),
        "validation_failed"
    );
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}")).await.ok(200)["status"], "running");
}

#[tokio::test]
async fn a_long_error_message_is_cut_and_not_lost() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let token = server.claim(&id).await;
    let report = json!({"error": format!("\u{0}{}", "é".repeat(100_000)), "retryable": false});
    server.post(&format!("/api/v1/attempts/{token}/fail"), report).await.ok(204);
    let job = server.get(&format!("/api/v1/jobs/{id}")).await.ok(200);
    let message = job["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("\u{fffd}é") && message.ends_with('…') && message.len() < 17_000);
}
