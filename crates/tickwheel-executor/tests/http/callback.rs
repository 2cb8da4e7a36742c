//! Callbacks as their receiver sees them.

use std::time::Duration;

use serde_json::{Value, json};
use tickwheel_core::ports::{Callback, CallbackSender, CallbackSubject, Undelivered};
use tickwheel_core::workflow::{RunEvent, RunEventDetails};
use tickwheel_core::{Failure, Job, JsonText, RunId, State, Target};
use tickwheel_executor::outbound::{
    AddressGuard, CallbackSenderOptions, SigningSecret, WebhookCallbackSender,
};
use uuid::Uuid;

use crate::fixture::{JOB_ID, NOW, SECRET, client, job};
use crate::request::expected_signature;
use crate::server::{Reply, TestServer, within_patience};

fn sender() -> WebhookCallbackSender {
    WebhookCallbackSender::new(CallbackSenderOptions::new(client(AddressGuard::allow_private())))
}

fn callback(url: String) -> (Callback, Job) {
    let job = job(Target::Worker);
    let callback = Callback {
        id: 41,
        subject: CallbackSubject::Job(job.id),
        url,
        state: State::Completed,
        attempt: 3,
        completed_at: NOW + Duration::from_millis(1_500),
        result: Some(JsonText::from_checked(r#"{"sent": 2.50}"#)),
        error: None,
        tries: 0,
    };
    (callback, job)
}

#[tokio::test]
async fn a_completed_job_is_told_with_its_result() {
    let server = TestServer::always(Reply::ok("")).await;
    let (callback, job) = callback(server.url("/hook"));
    sender().send(&callback, Some(&job), NOW).await.unwrap();

    let seen = server.seen().await;
    assert_eq!(seen.request_line, "POST /hook HTTP/1.1");
    assert_eq!(seen.one("content-type"), "application/json");
    assert!(seen.all("webhook-signature").is_empty());
    assert!(
        String::from_utf8_lossy(&seen.body).contains("2.50"),
        "the result is passed on as it was written"
    );
    let expected = json!({
        "type": "job.completed",
        "timestamp": "2026-12-01T15:00:01.500Z",
        "data": {
            "id": JOB_ID,
            "type": "send_email",
            "status": "completed",
            "queue": "mail",
            "tenant": "acme",
            "attempt": 3,
            "execute_at": "2026-12-01T15:00:00.000Z",
            "completed_at": "2026-12-01T15:00:01.500Z",
            "result": {"sent": 2.5},
            "error": null,
            "tags": ["monthly"],
            "metadata": {"team": "a"},
        },
    });
    assert_eq!(serde_json::from_slice::<Value>(&seen.body).unwrap(), expected);
}

#[tokio::test]
async fn a_failed_or_cancelled_job_is_told_with_its_error() {
    let server = TestServer::always(Reply::ok("")).await;
    for (state, event) in [(State::Failed, "job.failed"), (State::Cancelled, "job.cancelled")] {
        let (mut callback, job) = callback(server.url("/"));
        callback.state = state;
        callback.result = None;
        callback.error = Some(Failure::new("http_status", "the target answered 400"));
        sender().send(&callback, Some(&job), NOW).await.unwrap();
        let body: Value = serde_json::from_slice(&server.seen().await.body).unwrap();
        assert_eq!(body["type"], event);
        assert_eq!(body["data"]["status"], state.as_str());
        assert_eq!(body["data"]["result"], Value::Null);
        assert_eq!(
            body["data"]["error"],
            json!({"code": "http_status", "message": "the target answered 400"})
        );
    }
}

#[tokio::test]
async fn a_signed_callback_can_be_verified_and_told_from_news() {
    let server = TestServer::always(Reply::ok("")).await;
    let sender = WebhookCallbackSender::new(CallbackSenderOptions {
        signing: Some(SigningSecret::parse(SECRET).unwrap()),
        ..CallbackSenderOptions::new(client(AddressGuard::allow_private()))
    });
    let (callback, job) = callback(server.url("/"));
    for later_s in [0, 60] {
        let now = NOW + Duration::from_secs(later_s);
        sender.send(&callback, Some(&job), now).await.unwrap();
        let seen = server.seen().await;
        assert_eq!(seen.one("webhook-id"), format!("cb_41_{JOB_ID}"));
        assert_eq!(seen.one("webhook-timestamp"), (now.as_millis() / 1000).to_string());
        assert_eq!(seen.one("webhook-signature"), expected_signature(&seen));
    }
}

#[tokio::test]
async fn any_success_counts_as_delivered_and_nothing_else_does() {
    for status in ["200 OK", "202 Accepted", "204 No Content"] {
        let server = TestServer::always(Reply::Bytes(format!("HTTP/1.1 {status}\r\n\r\n").into())).await;
        let (callback, job) = callback(server.url("/"));
        let answer = format!("the callback URL answered {status}");
        assert_eq!(sender().send(&callback, Some(&job), NOW).await, Ok(answer));
    }
    for status in ["301 Moved", "404 Not Found", "500 Oops"] {
        let server = TestServer::always(Reply::new(status, &["location: http://169.254.169.254/"], "")).await;
        let (callback, job) = callback(server.url("/"));
        let error = sender().send(&callback, Some(&job), NOW).await.unwrap_err();
        assert!(error.to_string().contains(&status[..3]), "{error}");
        assert_eq!(server.seen_so_far().await.len(), 1);
    }
}

#[tokio::test]
async fn a_silent_receiver_is_given_up() {
    let server = TestServer::always(Reply::Silence).await;
    let sender = WebhookCallbackSender::new(CallbackSenderOptions {
        timeout: Duration::from_millis(100),
        ..CallbackSenderOptions::new(client(AddressGuard::allow_private()))
    });
    let (callback, job) = callback(server.url("/"));
    let error = within_patience(sender.send(&callback, Some(&job), NOW)).await.unwrap_err();
    assert_eq!(error, Undelivered::Failed("the callback URL did not answer within 100 ms".into()));
    server.closed().await;
}

#[tokio::test]
async fn callbacks_obey_the_same_guard() {
    let server = TestServer::always(Reply::ok("")).await;
    let sender = WebhookCallbackSender::new(CallbackSenderOptions::new(client(AddressGuard::public_only())));
    let (callback, job) = callback(server.url("/"));
    assert!(sender.send(&callback, Some(&job), NOW).await.unwrap_err().to_string().contains("may not reach"));
    assert_eq!(server.connections(), 0);
}

fn about_a_run(url: String, document: JsonText) -> Callback {
    let id = RunId::fresh(Uuid::from_u128(7 << 64));
    let (callback, _) = callback(url);
    Callback { subject: CallbackSubject::Run { id, document }, ..callback }
}

#[tokio::test]
async fn news_of_a_run_are_told_as_an_event() {
    let server = TestServer::always(Reply::ok("")).await;
    let news = RunEventDetails {
        event: RunEvent::Stalled,
        at: NOW + Duration::from_millis(1_500),
        run: RunId::fresh(Uuid::from_u128(7 << 64)),
        workflow: "etl".into(),
        version: 2,
        tenant: "acme".into(),
        created_at: NOW,
        input: JsonText::from_checked(r#"{"n": 2.50}"#),
        tasks: vec!["load".into()],
        tasks_count: 21,
    };
    let callback = about_a_run(server.url("/hook"), news.to_text());
    sender().send(&callback, None, NOW).await.unwrap();
    let seen = server.seen().await;
    assert!(String::from_utf8_lossy(&seen.body).contains("2.50"), "the input is passed on as it was written");
    let expected = json!({
        "type": "workflow_run.stalled",
        "timestamp": "2026-12-01T15:00:01.500Z",
        "data": {
            "id": news.run.to_string(),
            "workflow": "etl",
            "version": 2,
            "tenant": "acme",
            "status": "running",
            "created_at": "2026-12-01T15:00:00.000Z",
            "input": {"n": 2.5},
            "tasks": ["load"],
            "tasks_count": 21,
        },
    });
    assert_eq!(serde_json::from_slice::<Value>(&seen.body).unwrap(), expected);
}

#[tokio::test]
async fn a_document_of_an_older_program_is_told_as_it_is() {
    let server = TestServer::always(Reply::ok("")).await;
    let document = r#"{"type":"workflow_run.failed"}"#;
    let callback = about_a_run(server.url("/hook"), JsonText::from_checked(document));
    sender().send(&callback, None, NOW).await.unwrap();
    assert_eq!(server.seen().await.body, document.as_bytes());
}
