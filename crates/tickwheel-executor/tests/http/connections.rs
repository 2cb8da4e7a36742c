//! How connections come about, are used again, and end.

use std::collections::HashSet;

use tickwheel_core::ports::Executor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fixture::{attempt, completed, executor, failure_at};
use crate::server::{Reply, TestServer};

#[tokio::test]
async fn two_attempts_share_one_connection() {
    let server = TestServer::always(Reply::ok("{}")).await;
    let executor = executor();
    for _ in 0..2 {
        assert_eq!(executor.run(&attempt(server.url("/"))).await, completed(Some("{}")));
    }
    assert_eq!(server.seen_so_far().await.len(), 2);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_failure_with_a_body_leaves_the_connection_usable() {
    let server = TestServer::always(Reply::new("500 Oops", &[], "sorry")).await;
    let executor = executor();
    for _ in 0..2 {
        failure_at(&executor, server.url("/")).await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn dropping_an_attempt_closes_its_connection() {
    let server = TestServer::always(Reply::Silence).await;
    let executor = executor();
    let attempt = attempt(server.url("/"));
    let mut running = executor.run(&attempt);
    tokio::select! {
        outcome = &mut running => panic!("nobody answered, and yet: {outcome:?}"),
        _ = server.seen() => {}
    }
    drop(running);
    server.closed().await;
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let server = TestServer::in_turn(vec![Reply::ok("1"), Reply::ok("2")]).await;
    let executor = executor();
    let attempt = attempt(server.url("/"));
    drop(executor.run(&attempt));
    // The first reply is still there for the first attempt that is really run.
    assert_eq!(executor.run(&attempt).await, completed(Some("1")));
}

/// The server closes after each answer without saying so: the pool keeps finding dead connections.
#[tokio::test]
async fn no_attempt_is_sent_twice_over_connections_that_went_stale() {
    let Reply::Bytes(answer) = Reply::ok("{}") else { unreachable!("a well-formed answer is bytes") };
    let server = TestServer::always(Reply::BytesThenClose(answer)).await;
    let executor = executor();
    for number in 1..=100 {
        let mut attempt = attempt(server.url("/"));
        attempt.job.attempt = number;
        executor.run(&attempt).await;
    }
    let seen = server.seen_so_far().await;
    let distinct: HashSet<_> = seen.iter().map(|request| request.one("tickwheel-attempt")).collect();
    assert_eq!(distinct.len(), seen.len());
    assert!(seen.len() >= 50, "only {} of 100 arrived", seen.len());
}

#[tokio::test]
async fn a_port_nobody_listens_on_is_worth_another_try() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (failure, retryable, _) = failure_at(&executor(), format!("http://{free}/")).await;
    assert_eq!((failure.code.as_str(), retryable), ("connect_failed", true));
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_not_spoken_to() {
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // Kept open: what fails must be the handshake, not the connection.
        stream.read_to_end(&mut Vec::new()).await.unwrap_or_default();
    });
    let (failure, retryable, _) = failure_at(&executor(), format!("https://{address}/")).await;
    assert_eq!((failure.code.as_str(), retryable), ("tls_failed", true), "{}", failure.message);
}
