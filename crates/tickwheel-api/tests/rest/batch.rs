//! Many jobs in one request.

use serde_json::{Value, json};
use tickwheel_protocol::Limits;

use crate::server::Server;

const BATCH: &str = "/api/v1/jobs/batch";

#[tokio::test]
async fn each_job_of_a_batch_is_judged_by_itself_in_order() {
    let server = Server::start();
    let batch = json!({"jobs": [
        {"type": "a", "idempotency_key": "k"},
        {"type": ""},
        {"type": "b", "colour": "red"},
        {"type": "a", "idempotency_key": "k"},
        {"type": "c", "idempotency_key": "k"},
        7,
        {"type": "d"},
    ]});
    let results = server.post(BATCH, batch).await.ok(200)["results"].take();
    let told: Vec<&str> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["job"]["type"].as_str().or(result["error"]["code"].as_str()).unwrap())
        .collect();
    assert_eq!(
        told,
        ["a", "validation_failed", "unknown_field", "a", "idempotency_conflict", "wrong_type", "d"]
    );
    assert_eq!(results[0]["job"]["id"], results[3]["job"]["id"]);
    assert_eq!(results[1]["error"]["errors"][0]["pointer"], "/jobs/1/type");
    assert_eq!(results[1]["error"]["detail"], "must not be empty");
    assert_eq!(results[2]["error"]["errors"][0]["pointer"], "/jobs/2/colour");
    assert_eq!(server.stored().await, 2);
}

#[tokio::test]
async fn a_job_of_a_batch_that_would_call_a_forbidden_address_is_refused_alone() {
    let server = Server::start();
    let target = |url: &str| json!({"type": "t", "target": {"http": {"url": url}}});
    let batch = json!({"jobs": [target("http://example.com/"), target("http://127.1/")]});
    let results = server.post(BATCH, batch).await.ok(200)["results"].take();
    assert_eq!(results[0]["job"]["type"], "t");
    let error = &results[1]["error"]["errors"][0];
    assert_eq!(
        (&error["code"], &error["pointer"]),
        (&json!("forbidden_address"), &json!("/jobs/1/target/http/url"))
    );
    assert_eq!(server.stored().await, 1);
}

#[tokio::test]
async fn jobs_of_a_batch_are_listed_in_its_order() {
    let server = Server::start();
    let jobs: Vec<Value> = (0..100).map(|n| json!({"type": "t", "payload": n})).collect();
    server.post(BATCH, json!({ "jobs": jobs })).await.ok(200);
    let list = server.get("/api/v1/jobs?limit=100&include=payload").await.ok(200);
    let payloads: Vec<u64> =
        list["items"].as_array().unwrap().iter().map(|job| job["payload"].as_u64().unwrap()).collect();
    assert!(payloads.iter().rev().copied().eq(0..100));
}

#[tokio::test]
async fn a_batch_may_have_ten_thousand_jobs_and_not_one_more() {
    let server = Server::start();
    let batch = |jobs: usize| json!({"jobs": vec![json!({"type": "t"}); jobs]});
    let results = server.post(BATCH, batch(10_000)).await.ok(200);
    assert_eq!(results["results"].as_array().unwrap().len(), 10_000);
    let over = server.post(BATCH, batch(10_001)).await;
    assert_eq!(over.problem(422), "validation_failed");
    assert_eq!(over.pointers(), ["/jobs"]);
    assert_eq!(server.store.with_model(|model| model.list_queues()).len(), 1);
}

#[tokio::test]
async fn a_batch_that_is_malformed_as_a_whole_is_refused_as_a_whole() {
    let server = Server::with_limits(Limits { batch_bytes_max: 2_000_000, ..Limits::default() });
    for (body, status, code) in [
        ("", 400, "invalid_json"),
        (r#"{"jobs":[{"type":"t"}"#, 400, "invalid_json"),
        (r#"{"jobs":[{"type":"t","type":"t"}]}"#, 400, "duplicate_field"),
        (r#"{"jobs":{}}"#, 400, "wrong_type"),
        (r#"{"jobs":[],"atomic":true}"#, 400, "unknown_field"),
        ("{}", 400, "missing_field"),
    ] {
        assert_eq!(server.send_text("POST", BATCH, body).await.problem(status), code, "{body}");
    }
    // Larger than a single job may be, smaller than a batch may be; then larger than that.
    let padded = |bytes: usize| format!("{}{}", r#"{"jobs":[]}"#, " ".repeat(bytes));
    server.send_text("POST", BATCH, padded(1_500_000)).await.ok(200);
    assert_eq!(server.send_text("POST", BATCH, padded(2_000_000)).await.problem(413), "body_too_large");
    assert_eq!(server.stored().await, 0);
}
