//! What an answer's status and body mean.

use std::time::Duration;

use tickwheel_core::ports::Executor;
use tickwheel_core::settle::Outcome;

use crate::fixture::{attempt, completed, executor, failure_at};
use crate::server::{Reply, TestServer};

async fn outcome(reply: Reply) -> Outcome {
    let server = TestServer::always(reply).await;
    executor().run(&attempt(server.url("/"))).await
}

#[tokio::test]
async fn a_success_completes_with_its_body_as_the_result() {
    assert_eq!(outcome(Reply::ok(r#"{"sent": 2}"#)).await, completed(Some(r#"{"sent": 2}"#)));
    assert_eq!(outcome(Reply::new("201 Created", &[], "[1]")).await, completed(Some("[1]")));
    assert_eq!(outcome(Reply::ok("fine, thanks")).await, completed(Some("\"fine, thanks\"")));
    assert_eq!(outcome(Reply::ok("")).await, completed(None));
    assert_eq!(outcome(Reply::Bytes(b"HTTP/1.1 204 No Content\r\n\r\n".into())).await, completed(None));
}

#[tokio::test]
async fn a_chunked_body_is_put_together() {
    let reply = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n";
    assert_eq!(outcome(Reply::Bytes(reply.into())).await, completed(Some("{\"a\":1}")));
}

#[tokio::test]
async fn accepted_means_that_the_target_reports_later() {
    assert_eq!(outcome(Reply::new("202 Accepted", &[], "later")).await, Outcome::Accepted);
}

#[tokio::test]
async fn a_failure_that_may_pass_is_retryable_and_any_other_is_not() {
    for (status, expected) in [
        ("408 Request Timeout", true),
        ("425 Too Early", true),
        ("429 Too Many Requests", true),
        ("500 Internal Server Error", true),
        ("503 Service Unavailable", true),
        ("599 Odd", true),
        ("400 Bad Request", false),
        ("401 Unauthorized", false),
        ("404 Not Found", false),
        ("409 Conflict", false),
        ("422 Unprocessable Content", false),
        ("600 Odder", false),
    ] {
        let server = TestServer::always(Reply::new(status, &[], "the\r\nreason\0")).await;
        let (failure, retryable, retry_after) = failure_at(&executor(), server.url("/")).await;
        assert_eq!(
            (failure.code.as_str(), retryable, retry_after),
            ("http_status", expected, None),
            "{status}"
        );
        assert!(failure.message.contains(&status[..3]), "{}", failure.message);
        assert!(failure.message.ends_with(": the reason"), "{}", failure.message);
    }
}

#[tokio::test]
async fn a_long_explanation_is_shortened() {
    let server = TestServer::always(Reply::new("400 Bad Request", &[], "ä".repeat(5_000))).await;
    let (failure, ..) = failure_at(&executor(), server.url("/")).await;
    assert_eq!(failure.message.matches('ä').count(), 500);
}

#[tokio::test]
async fn the_target_says_when_to_come_back() {
    for (header, expected_s) in [
        ("retry-after: 120", Some(120)),
        ("Retry-After: 1000000000", Some(1_000_000_000)),
        ("retry-after: Tue, 01 Dec 2026 15:01:30 GMT", Some(90)),
        ("retry-after: Tue, 01 Dec 2026 14:00:00 GMT", Some(0)),
        ("retry-after: whenever", None),
    ] {
        let server = TestServer::always(Reply::new("429 Too Many Requests", &[header], "")).await;
        let (_, retryable, retry_after) = failure_at(&executor(), server.url("/")).await;
        assert!(retryable);
        assert_eq!(retry_after, expected_s.map(Duration::from_secs), "{header}");
    }
}

#[tokio::test]
async fn a_redirect_is_refused_wherever_it_leads() {
    let elsewhere = TestServer::always(Reply::ok("")).await;
    let other = elsewhere.url("/");
    for status in
        ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent", "304 Not Modified"]
    {
        for location in ["http://169.254.169.254/latest/meta-data", &other] {
            let location_header = format!("location: {location}");
            let server = TestServer::always(Reply::new(status, &[&location_header], "")).await;
            let (failure, retryable, _) = failure_at(&executor(), server.url("/")).await;
            assert_eq!((failure.code.as_str(), retryable), ("redirect_refused", false), "{status}");
            assert!(failure.message.contains(location), "{}", failure.message);
            assert_eq!(server.seen_so_far().await.len(), 1);
        }
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn an_unwanted_switch_of_protocols_fails() {
    let reply = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    let server = TestServer::always(Reply::BytesThenClose(reply.into())).await;
    let (failure, retryable, _) = failure_at(&executor(), server.url("/")).await;
    assert_eq!((failure.code.as_str(), retryable), ("http_status", false));
}

#[tokio::test]
async fn an_early_hint_is_not_the_answer() {
    let reply = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(outcome(Reply::Bytes(reply.into())).await, completed(Some("{}")));
}
