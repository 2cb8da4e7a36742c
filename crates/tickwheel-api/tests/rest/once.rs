//! Effects that happen once, and progress, as attempts tell them.

use serde_json::{Value, json};

use crate::server::Server;

async fn ask(server: &Server, token: &str, body: Value) -> Value {
    server.post(&format!("/api/v1/attempts/{token}/once/smtp"), body).await.ok(200)
}

async fn say(server: &Server, token: &str, word: &str, body: Value) -> u16 {
    server.post(&format!("/api/v1/attempts/{token}/once/smtp/{word}"), body).await.status.as_u16()
}

#[tokio::test]
async fn the_first_carries_it_out_and_later_attempts_get_the_result() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "retry": {"delays": [0, 0]}})).await;
    let first = server.claim(&id).await;
    assert_eq!(ask(&server, &first, json!({"scope": "job", "ttl": "7d"})).await, json!({"state": "first"}));
    assert_eq!(
        ask(&server, &first, json!({})).await,
        json!({"state": "first"}),
        "the answer may have been lost"
    );
    assert_eq!(say(&server, &first, "done", json!({"result": {"message_id": 7}})).await, 204);
    server.call("POST", &format!("/api/v1/attempts/{first}/fail")).await.ok(204);
    let second = server.claim(&id).await;
    assert_eq!(ask(&server, &second, json!({})).await, json!({"state": "done", "result": {"message_id": 7}}));
    let stale = server.post(&format!("/api/v1/attempts/{first}/once/smtp"), json!({})).await;
    assert_eq!(stale.problem(409), "stale_token");
    assert_eq!(say(&server, &first, "done", json!({})).await, 409);
}

#[tokio::test]
async fn who_died_in_between_leaves_it_in_doubt_and_who_gave_it_up_does_not() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "retry": {"delays": [0, 0, 0]}})).await;
    let first = server.claim(&id).await;
    ask(&server, &first, json!({})).await;
    assert_eq!(say(&server, &first, "abandon", json!({})).await, 204);
    assert_eq!(ask(&server, &first, json!({})).await["state"], "first");
    server.call("POST", &format!("/api/v1/attempts/{first}/fail")).await.ok(204);
    let second = server.claim(&id).await;
    assert_eq!(ask(&server, &second, json!({})).await, json!({"state": "in_doubt"}));
    assert_eq!(say(&server, &second, "done", json!({"result": null})).await, 204);
    assert_eq!(ask(&server, &second, json!({})).await, json!({"state": "done", "result": null}));
}

#[tokio::test]
async fn jobs_that_share_a_key_wait_for_each_other() {
    let server = Server::start();
    let (one, other) = (server.submit(json!({"type": "t"})).await, server.submit(json!({"type": "t"})).await);
    let (one, other) = (server.claim(&one).await, server.claim(&other).await);
    let shared = || json!({"scope": "tenant"});
    assert_eq!(ask(&server, &one, shared()).await["state"], "first");
    assert_eq!(ask(&server, &other, shared()).await, json!({"state": "busy", "retry_in": "1s"}));
    let not_held = server.post(&format!("/api/v1/attempts/{other}/once/smtp/done"), shared()).await;
    assert_eq!(not_held.problem(409), "illegal_state");
    assert_eq!(say(&server, &one, "done", json!({"result": "sent"})).await, 204);
    assert_eq!(ask(&server, &other, shared()).await, json!({"state": "done", "result": "sent"}));
}

#[tokio::test]
async fn keys_results_and_times_have_bounds() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let token = server.claim(&id).await;
    let once = format!("/api/v1/attempts/{token}/once");
    let refused = async |path: String, body: Value| server.post(&path, body).await.body["code"].clone();
    assert_eq!(refused(format!("{once}/{}", "k".repeat(256)), json!({})).await, "invalid_parameter");
    assert_eq!(refused(format!("{once}/a%00b"), json!({})).await, "invalid_parameter");
    assert_eq!(refused(format!("{once}/k"), json!({"ttl": "91d"})).await, "validation_failed");
    assert_eq!(refused(format!("{once}/k"), json!({"scope": "world"})).await, "validation_failed");
    assert_eq!(
        refused(format!("{once}/k/done"), json!({"result": "x".repeat(65_535)})).await,
        "payload_too_large"
    );
    assert_eq!(refused("/api/v1/attempts/nonsense/once/k".into(), json!({})).await, "not_found");
    server.post(&format!("{once}/a%2Fb%20c"), json!({})).await.ok(200);
    server.post(&format!("{once}/a%2Fb%20c/done"), json!({})).await.ok(204);
}

#[tokio::test]
async fn a_running_job_shows_how_far_it_has_come() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "retry": {"delays": [0]}})).await;
    let token = server.claim(&id).await;
    let get = async || server.get(&format!("/api/v1/jobs/{id}")).await.ok(200);
    assert_eq!(get().await.get("progress"), None);
    let beat = format!("/api/v1/attempts/{token}/heartbeat");
    server
        .post(&beat, json!({"progress": 12.5, "message": format!("a\nb{}", "c".repeat(300))}))
        .await
        .ok(200);
    let shown = get().await;
    assert_eq!(
        (&shown["progress"], &shown["progress_at"]),
        (&json!(12.5), &json!("2027-01-15T08:00:00.000Z"))
    );
    let message = shown["progress_message"].as_str().unwrap();
    assert!(message.starts_with("a bc") && message.len() == 255, "{message}");
    server.call("POST", &beat).await.ok(200);
    assert_eq!(get().await["progress"], 12.5, "a heartbeat without news changes nothing");
    assert_eq!(server.post(&beat, json!({"progress": 101})).await.pointers(), ["/progress"]);
    server.call("POST", &format!("/api/v1/attempts/{token}/fail")).await.ok(204);
    assert_eq!(get().await.get("progress"), None);
    let token = server.claim(&id).await;
    assert_eq!(get().await.get("progress"), None, "the next attempt starts without");
    let worker = server.post("/api/v1/workers", json!({"name": "w", "types": ["t"]})).await.ok(201);
    let beat = format!("/api/v1/workers/{}/heartbeat", worker["worker_id"].as_str().unwrap());
    server
        .post(&beat, json!({"attempts": [{"token": token, "progress": 50, "message": "half"}]}))
        .await
        .ok(200);
    assert_eq!(get().await.get("progress"), None, "it is not the attempt of this worker");
}
