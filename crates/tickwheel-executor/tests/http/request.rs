//! What a target gets.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tickwheel_core::Target;
use tickwheel_core::job::HttpTarget;
use tickwheel_core::ports::Executor;
use tickwheel_executor::executor::HttpExecutor;

use crate::fixture::{
    JOB_ID, NOW, SECRET, attempt, attempt_with, completed, executor, failure_of, signing_executor,
};
use crate::server::{Reply, Seen, TestServer};

async fn send(executor: &HttpExecutor, method: &str, headers: &[(&str, &str)]) -> Seen {
    let server = TestServer::always(Reply::ok("")).await;
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let target = HttpTarget { url: server.url("/run?x=1#part"), method: method.to_owned(), headers };
    assert_eq!(executor.run(&attempt_with(target)).await, completed(None));
    let seen = server.seen().await;
    assert_eq!(seen.one("host"), server.address.to_string());
    seen
}

#[tokio::test]
async fn a_target_gets_the_payload_and_the_facts_about_the_attempt() {
    let seen = send(&executor(), "POST", &[]).await;
    assert_eq!(seen.request_line, "POST /run?x=1 HTTP/1.1");
    assert_eq!(seen.body, br#"{"to": "you"}"#);
    for (name, value) in [
        ("content-type", "application/json"),
        ("content-length", "13"),
        ("idempotency-key", JOB_ID),
        ("tickwheel-job-id", JOB_ID),
        ("tickwheel-attempt", "3"),
        ("tickwheel-fencing-token", "3"),
        ("tickwheel-token", "opaque-token"),
        ("tickwheel-scheduled-for", "2026-12-01T15:00:00.000Z"),
        ("tickwheel-deadline", "2026-12-01T15:00:30.000Z"),
        ("tickwheel-tags", "monthly"),
        ("tickwheel-metadata", r#"{"team":"a"}"#),
        ("traceparent", "00-01990000000070008000000000000001-8000000000000002-01"),
        ("user-agent", concat!("tickwheel/", env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(seen.one(name), value, "{name}");
    }
    for absent in ["tickwheel-created-by", "webhook-id", "webhook-timestamp", "webhook-signature"] {
        assert!(seen.all(absent).is_empty(), "{absent}");
    }
}

#[tokio::test]
async fn a_method_without_a_body_gets_none() {
    for method in ["GET", "HEAD"] {
        let seen = send(&executor(), method, &[]).await;
        assert_eq!(seen.request_line, format!("{method} /run?x=1 HTTP/1.1"));
        assert!(seen.body.is_empty());
        assert!(seen.all("content-type").is_empty());
    }
    assert_eq!(send(&executor(), "DELETE", &[]).await.body, br#"{"to": "you"}"#);
}

#[tokio::test]
async fn headers_of_the_job_are_sent_but_ours_win() {
    let seen = send(
        &signing_executor(),
        "POST",
        &[
            ("X-Custom", "a"),
            ("x-custom", "b"),
            ("Authorization", "Bearer theirs"),
            ("Content-Type", "application/cloudevents+json"),
            ("Idempotency-Key", "forged"),
            ("tickwheel-token", "forged"),
            ("Tickwheel-Attempt", "99"),
            ("webhook-signature", "v1,forged"),
        ],
    )
    .await;
    assert_eq!(seen.all("x-custom"), ["a", "b"]);
    assert_eq!(seen.one("authorization"), "Bearer theirs");
    assert_eq!(seen.one("content-type"), "application/cloudevents+json");
    assert_eq!(seen.one("idempotency-key"), JOB_ID);
    assert_eq!(seen.one("tickwheel-token"), "opaque-token");
    assert_eq!(seen.one("tickwheel-attempt"), "3");
    assert_ne!(seen.one("webhook-signature"), "v1,forged");
}

#[tokio::test]
async fn a_job_cannot_steer_the_connection() {
    let seen = send(
        &executor(),
        "POST",
        &[
            ("Host", "metadata.internal"),
            ("Content-Length", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close"),
            ("Keep-Alive", "timeout=1"),
            ("Upgrade", "h2c"),
            ("TE", "trailers"),
            ("Trailer", "x"),
            ("Proxy-Authorization", "Basic x"),
        ],
    )
    .await;
    assert_eq!(seen.one("content-length"), "13");
    for absent in
        ["transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "proxy-authorization"]
    {
        assert!(seen.all(absent).is_empty(), "{absent}");
    }
}

#[tokio::test]
async fn the_trace_context_travels_with_the_job() {
    let server = TestServer::always(Reply::ok("")).await;
    let mut attempt = attempt(server.url("/"));
    let context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    Arc::make_mut(&mut attempt.job.spec).traceparent = Some(context.into());
    executor().run(&attempt).await;
    assert_eq!(server.seen().await.one("traceparent"), context);
}

#[tokio::test]
async fn a_signature_covers_id_time_and_body() {
    let seen = send(&signing_executor(), "POST", &[]).await;
    assert_eq!(seen.one("webhook-id"), JOB_ID);
    assert_eq!(seen.one("webhook-timestamp"), (NOW.as_millis() / 1000).to_string());
    assert_eq!(seen.one("webhook-signature"), expected_signature(&seen));
}

/// What a receiver computes, from what it received.
pub fn expected_signature(seen: &Seen) -> String {
    let key = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let signed =
        [seen.one("webhook-id").as_bytes(), seen.one("webhook-timestamp").as_bytes(), seen.body.as_slice()]
            .join(&b'.');
    mac.update(&signed);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[tokio::test]
async fn user_info_in_the_address_is_not_sent() {
    let server = TestServer::always(Reply::ok("")).await;
    let url = format!("http://me:secret@{}/", server.address);
    assert_eq!(executor().run(&attempt(url)).await, completed(None));
    let seen = server.seen().await;
    assert_eq!(seen.request_line, "POST / HTTP/1.1");
    assert_eq!(seen.one("host"), server.address.to_string());
    assert!(seen.all("authorization").is_empty());
}

#[tokio::test]
async fn what_cannot_be_sent_fails_without_a_retry_and_without_a_connection() {
    let server = TestServer::always(Reply::ok("")).await;
    let target = |url: &str, method: &str, header: (&str, &str)| HttpTarget {
        url: url.to_owned(),
        method: method.to_owned(),
        headers: vec![(header.0.to_owned(), header.1.to_owned())],
    };
    let url = server.url("/");
    let fine = ("x-fine", "yes");
    for bad in [
        target("file:///etc/passwd", "POST", fine),
        target("no address", "POST", fine),
        target(&url, "BAD METHOD", fine),
        target(&url, "", fine),
        target(&url, "CONNECT", fine),
        target(&url, "POST", ("x-split", "a\r\nx-injected: b")),
        target(&url, "POST", ("bad name", "a")),
    ] {
        let (failure, retryable, _) = failure_of(executor().run(&attempt_with(bad.clone())).await);
        assert_eq!((failure.code.as_str(), retryable), ("invalid_target", false), "{bad:?}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_job_for_workers_is_not_for_this_executor() {
    let mut attempt = attempt("http://example.org/");
    Arc::make_mut(&mut attempt.job.spec).target = Target::Worker;
    let (failure, retryable, _) = failure_of(executor().run(&attempt).await);
    assert_eq!((failure.code.as_str(), retryable), ("invalid_target", false));
}
