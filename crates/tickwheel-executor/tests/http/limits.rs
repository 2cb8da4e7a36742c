//! Answers that are too long, too slow, broken, or never come.

use std::time::Duration;

use tickwheel_core::ports::Executor;
use tickwheel_core::settle::Outcome;

use crate::fixture::{attempt, completed, executor, executor_reading, failure_at, failure_of, hasty};
use crate::server::{Reply, TestServer, within_patience};

const NO_LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
const CHUNKED_FOREVER: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffff\r\n";
const SHORT: Duration = Duration::from_millis(200);

fn truncated(outcome: Outcome) -> String {
    let Outcome::Completed { result: Some(result) } = outcome else {
        panic!("it should have completed: {outcome:?}");
    };
    let result: serde_json::Value = serde_json::from_str(result.as_str()).unwrap();
    assert_eq!(result["truncated"], true);
    result["captured"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_body_up_to_the_limit_is_kept_whole_and_one_byte_more_is_not() {
    let whole = TestServer::always(Reply::ok("x".repeat(100))).await;
    let outcome = executor_reading(100).run(&attempt(whole.url("/"))).await;
    assert_eq!(outcome, completed(Some(&format!("\"{}\"", "x".repeat(100)))));

    let longer = TestServer::always(Reply::ok("x".repeat(101))).await;
    assert_eq!(truncated(executor_reading(100).run(&attempt(longer.url("/"))).await), "x".repeat(100));
}

#[tokio::test]
async fn an_endless_body_completes_at_the_limit_and_is_let_go() {
    for head in [NO_LENGTH, CHUNKED_FOREVER] {
        let server = TestServer::always(Reply::Endless(head.into())).await;
        let outcome = within_patience(executor().run(&attempt(server.url("/")))).await;
        assert_eq!(truncated(outcome).len(), 64 * 1024);
        server.closed().await;
    }
}

#[tokio::test]
async fn a_huge_announced_body_is_not_read_to_its_end() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n";
    let server = TestServer::always(Reply::Endless(head.into())).await;
    let outcome = within_patience(executor().run(&attempt(server.url("/")))).await;
    assert_eq!(truncated(outcome).len(), 64 * 1024);
    server.closed().await;
}

#[tokio::test]
async fn an_attempt_without_an_answer_times_out_and_lets_go() {
    let server = TestServer::always(Reply::Silence).await;
    let outcome = within_patience(executor().run(&hasty(attempt(server.url("/")), SHORT))).await;
    assert_eq!(outcome, Outcome::TimedOut);
    server.closed().await;
}

#[tokio::test]
async fn a_trickling_body_times_out_and_is_let_go() {
    let server = TestServer::always(Reply::Trickle(NO_LENGTH.into())).await;
    let outcome = within_patience(executor().run(&hasty(attempt(server.url("/")), SHORT))).await;
    assert_eq!(outcome, Outcome::TimedOut);
    server.closed().await;
}

#[tokio::test]
async fn a_trickling_head_times_out() {
    let server = TestServer::always(Reply::Trickle(b"HTTP/1.1 200 OK\r\nx-slow: ".into())).await;
    let outcome = within_patience(executor().run(&hasty(attempt(server.url("/")), SHORT))).await;
    assert_eq!(outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn a_failure_stays_a_failure_though_its_explanation_trickles() {
    let server = TestServer::always(Reply::Trickle(b"HTTP/1.1 400 Bad Request\r\n\r\n".into())).await;
    let outcome = within_patience(executor().run(&hasty(attempt(server.url("/")), SHORT))).await;
    let (failure, retryable, _) = failure_of(outcome);
    assert_eq!((failure.code.as_str(), retryable), ("http_status", false));
    assert_eq!(failure.message, "the target answered 400 Bad Request");
}

#[tokio::test]
async fn an_accepted_attempt_is_accepted_though_its_body_never_ends() {
    let server = TestServer::always(Reply::Trickle(b"HTTP/1.1 202 Accepted\r\n\r\n".into())).await;
    assert_eq!(within_patience(executor().run(&attempt(server.url("/")))).await, Outcome::Accepted);
    server.closed().await;
}

#[tokio::test]
async fn an_endless_head_is_refused() {
    let server = TestServer::always(Reply::Endless(b"HTTP/1.1 200 OK\r\nx-long: ".into())).await;
    let (failure, ..) = within_patience(failure_at(&executor(), server.url("/"))).await;
    assert_eq!(failure.code, "response_invalid");
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    let server = TestServer::always(Reply::BytesThenClose(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".into())).await;
    let (failure, retryable, _) = failure_at(&executor(), server.url("/")).await;
    assert_eq!((failure.code.as_str(), retryable), ("response_invalid", true));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_lost_connection() {
    for broken in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let server = TestServer::always(Reply::BytesThenClose(broken.into())).await;
        let (failure, retryable, _) = failure_at(&executor(), server.url("/")).await;
        assert_eq!((failure.code.as_str(), retryable), ("connection_lost", true), "{broken:?}");
        assert_eq!(server.seen_so_far().await.len(), 1);
    }
}
