//! Logs of attempts: sent by workers and by targets that answer later, read page by page, followed while they grow.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{CONTENT_TYPE, HOST};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::server::Server;

async fn send(server: &Server, token: &str, first: u64, lines: Value) {
    let body = json!({"first": first, "lines": lines});
    server.post(&format!("/api/v1/attempts/{token}/logs"), body).await.ok(204);
}

fn numbered(range: std::ops::Range<u64>) -> Value {
    range.map(|n| json!({"message": format!("line {n}")})).collect()
}

fn messages(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().expect("a page").iter();
    items.map(|line| line["message"].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test]
async fn a_line_has_a_number_a_time_by_the_servers_clock_a_level_and_fields() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let token = server.claim(&id).await;
    let lines = json!([
        {"age": "1500ms", "level": "warn", "message": "slow", "fields": {"took": 1.5}},
        {"message": "x".repeat(20_000)},
    ]);
    send(&server, &token, 0, lines).await;
    let page = server.get(&format!("/api/v1/jobs/{id}/attempts/1/logs")).await.ok(200);
    let expected = json!({"attempt": 1, "number": 0, "time": "2027-01-15T07:59:58.500Z", "level": "warn",
                          "message": "slow", "fields": {"took": 1.5}});
    assert_eq!(page["items"][0], expected);
    assert_eq!(page["items"][1]["level"], "info");
    assert_eq!(page["items"][1]["truncated"], true);
    assert_eq!(page["items"][1]["message"].as_str().map(str::len), Some(16 << 10));
    assert_eq!(page["next_cursor"], Value::Null);
}

#[tokio::test]
async fn a_worker_sends_lines_of_several_attempts_and_each_is_answered_by_itself() {
    let server = Server::start();
    let worker = server.post("/api/v1/workers", json!({"name": "w", "types": ["t"]})).await.ok(201);
    let path = format!("/api/v1/workers/{}/logs", worker["worker_id"].as_str().unwrap());
    let id = server.submit(json!({"type": "t"})).await;
    let token = server.claim(&id).await;
    let logs = json!({"logs": [
        {"token": token, "first": 0, "lines": numbered(0..3)},
        {"token": "nonsense", "first": 0, "lines": []},
        {"token": token, "first": 2_000_000_000_000_u64, "lines": []},
        {"token": token, "first": 2, "lines": numbered(2..5)},
    ]});
    let results = server.post(&path, logs).await.ok(200);
    assert_eq!(results["results"][0], json!({"status": "accepted"}));
    assert_eq!(results["results"][1]["error"]["code"], "stale_token");
    assert_eq!(results["results"][2]["error"]["errors"][0]["pointer"], "/first");
    assert_eq!(results["results"][3], json!({"status": "accepted"}));
    let page = server.get(&format!("/api/v1/jobs/{id}/logs")).await.ok(200);
    assert_eq!(messages(&page), ["line 0", "line 1", "line 2", "line 3", "line 4"]);
    assert_eq!(server.post(&path, json!({"logs": [{"token": token, "first": 0}]})).await.status, 400);
    let too_many = vec![json!({"token": token, "first": 0, "lines": []}); 1_001];
    assert_eq!(server.post(&path, json!({"logs": too_many})).await.problem(422), "validation_failed");
}

#[tokio::test]
async fn the_last_lines_come_with_the_report_and_a_repeated_report_adds_none() {
    let server = Server::start();
    let worker = server.post("/api/v1/workers", json!({"name": "w", "types": ["t"]})).await.ok(201);
    let path = format!("/api/v1/workers/{}/report", worker["worker_id"].as_str().unwrap());
    let id = server.submit(json!({"type": "t"})).await;
    let token = server.claim(&id).await;
    send(&server, &token, 0, numbered(0..2)).await;
    let report = json!({"reports": [{"token": token, "outcome": "completed",
                                     "logs": {"first": 1, "lines": numbered(1..4)}}]});
    for _ in 0..2 {
        server.post(&path, report.clone()).await.ok(200);
    }
    let page = server.get(&format!("/api/v1/jobs/{id}/attempts/1/logs")).await.ok(200);
    assert_eq!(messages(&page), ["line 0", "line 1", "line 2", "line 3"]);
    send(&server, &token, 4, json!([{"message": "an afterthought"}])).await;
    let page = server.get(&format!("/api/v1/jobs/{id}/logs")).await.ok(200);
    assert_eq!(page["items"][4]["message"], "an afterthought");
}

#[tokio::test]
async fn a_log_is_read_in_pages_over_all_attempts_or_one() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "retry": {"delays": [0, 0]}})).await;
    for attempt in 0..2 {
        let token = server.claim(&id).await;
        send(&server, &token, 0, numbered(attempt * 60..(attempt + 1) * 60)).await;
        server.call("POST", &format!("/api/v1/attempts/{token}/fail")).await.ok(204);
    }
    for path in [format!("/api/v1/jobs/{id}/logs"), format!("/api/v1/jobs/{id}/attempts/2/logs")] {
        let (mut cursor, mut seen) = (String::new(), Vec::new());
        loop {
            let page = server.get(&format!("{path}?limit=25&cursor={cursor}")).await.ok(200);
            seen.extend(messages(&page));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        let first = 120 - seen.len();
        assert_eq!(seen, (first..120).map(|n| format!("line {n}")).collect::<Vec<_>>());
        assert!(first == 0 || first == 60, "{path}");
    }
    let one = server.get(&format!("/api/v1/jobs/{id}/logs?attempt=1&limit=1000")).await.ok(200);
    assert_eq!(messages(&one).len(), 60);
    let other_list = server.get(&format!("/api/v1/jobs/{id}/attempts?limit=1")).await.ok(200);
    let cursor = other_list["next_cursor"].as_str().unwrap();
    let refused = server.get(&format!("/api/v1/jobs/{id}/logs?cursor={cursor}")).await;
    assert_eq!(refused.problem(400), "invalid_cursor");
    let refused = server.get(&format!("/api/v1/jobs/{id}/logs?follow=true&limit=3")).await;
    assert_eq!(refused.problem(400), "invalid_parameter");
    let unknown = "/api/v1/jobs/0190b9d0-0000-7000-8000-000000000000/logs?follow=true";
    assert_eq!(server.get(unknown).await.problem(404), "not_found");
}

/// The lines of an answer that goes on.
struct Stream {
    body: Body,
    text: String,
}

impl Stream {
    async fn open(server: &Server, path: &str) -> Self {
        let request = Request::get(path).header(HOST, "localhost").body(Body::empty()).expect("a request");
        let response = server.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/x-ndjson");
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next line; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let line = line.to_owned();
                self.text = rest.to_owned();
                return Some(line);
            }
            let frame = self.body.frame().await?.expect("no break");
            self.text += std::str::from_utf8(frame.data_ref().expect("data")).expect("UTF-8");
        }
    }

    async fn message(&mut self) -> Option<(String, String)> {
        let line: Value = serde_json::from_str(&self.next().await?).expect("JSON");
        Some((
            line["message"].as_str().expect("text").to_owned(),
            line["cursor"].as_str().expect("text").to_owned(),
        ))
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_gets_new_lines_until_the_job_has_ended() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "retry": {"delays": [0]}})).await;
    let mut stream = Stream::open(&server, &format!("/api/v1/jobs/{id}/logs?follow=true")).await;
    let token = server.claim(&id).await;
    send(&server, &token, 0, numbered(0..2)).await;
    assert_eq!(stream.message().await.unwrap().0, "line 0");
    let (message, cursor) = stream.message().await.unwrap();
    assert_eq!(message, "line 1");
    assert_eq!(stream.next().await.unwrap(), "", "a sign of life");
    server.call("POST", &format!("/api/v1/attempts/{token}/fail")).await.ok(204);
    let token = server.claim(&id).await;
    send(&server, &token, 0, json!([{"message": "again"}])).await;
    assert_eq!(stream.message().await.unwrap().0, "again");
    send(&server, &token, 1, json!([{"message": "the last"}])).await;
    server.call("POST", &format!("/api/v1/attempts/{token}/complete")).await.ok(204);
    assert_eq!(stream.message().await.unwrap().0, "the last", "nothing is lost at the end");
    assert_eq!(stream.next().await, None);

    let path = format!("/api/v1/jobs/{id}/logs?follow=true&cursor={cursor}");
    let mut resumed = Stream::open(&server, &path).await;
    assert_eq!(resumed.message().await.unwrap().0, "again");
    assert_eq!(resumed.message().await.unwrap().0, "the last");
    assert_eq!(resumed.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_followed_to_its_own_end() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t", "retry": {"delays": ["1h"]}})).await;
    let token = server.claim(&id).await;
    send(&server, &token, 0, numbered(0..1)).await;
    let mut stream = Stream::open(&server, &format!("/api/v1/jobs/{id}/logs?follow=true&attempt=1")).await;
    assert_eq!(stream.message().await.unwrap().0, "line 0");
    server.call("POST", &format!("/api/v1/attempts/{token}/fail")).await.ok(204);
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_shuts_down_ends_what_is_followed() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let mut stream = Stream::open(&server, &format!("/api/v1/jobs/{id}/logs?follow=true")).await;
    server.ready.store(false, std::sync::atomic::Ordering::SeqCst);
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.next()).await;
    assert_eq!(ended.expect("soon"), None);
}
