//! The client against a server that answers what it was told to: what is sent, what is sent again, what comes of it.

#![allow(clippy::unwrap_used)]

mod fake_server;

use std::io::Write as _;
use std::time::Duration;

use fake_server::{FakeServer, job, problem};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tickwheel_client::protocol::{Code, Priority};
use tickwheel_client::{Client, ClientOptions, Error, JobOptions, JobType, NewJob, NewSchedule};

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct SendEmail {
    to: String,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Receipt {
    message_id: u64,
}

impl JobType for SendEmail {
    const NAME: &'static str = "send_email";
    type Output = Receipt;
    fn options() -> JobOptions {
        JobOptions::default().queue("mail").max_retries(5).timeout(Duration::from_secs(30))
    }
}

fn email() -> SendEmail {
    SendEmail { to: "a@example.com".into() }
}

#[tokio::test]
async fn a_submission_has_the_defaults_of_its_type_and_what_the_caller_says() {
    let server = FakeServer::answering(vec![(201, job("scheduled", json!({})))]);
    let submit = server.client().submit(email()).delay(Duration::from_millis(1500)).priority(Priority::Low);
    let handle = submit.await.unwrap();
    assert_eq!(handle.job().status.as_str(), "scheduled");
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /api/v1/jobs");
    let mut sent = asked.json();
    assert_eq!(sent["idempotency_key"].as_str().map(str::len), Some(36));
    sent.as_object_mut().unwrap().remove("idempotency_key");
    let expected = json!({
        "type": "send_email", "payload": {"to": "a@example.com"}, "queue": "mail", "delay": "1500ms",
        "priority": "low", "timeout": "30s", "retry": {"max_retries": 5, "backoff": null, "initial_delay": null,
        "max_delay": null, "jitter": null, "delays": null},
    });
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_submission_whose_answer_was_lost_is_sent_again_with_the_same_key() {
    let busy = (503, problem(Code::Overloaded));
    let server = FakeServer::answering(vec![(0, Value::Null), busy, (200, job("scheduled", json!({})))]);
    server.client().submit(email()).await.unwrap();
    let keys: Vec<_> = server.asked().iter().map(|asked| asked.json()["idempotency_key"].clone()).collect();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| key.is_string() && *key == keys[0]), "{keys:?}");
}

#[tokio::test]
async fn a_rejection_is_not_repeated_and_has_its_code() {
    let server = FakeServer::answering(vec![(422, problem(Code::ValidationFailed))]);
    let error = server.client().submit(email()).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::ValidationFailed));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_payload_over_the_limit_is_not_sent() {
    let server = FakeServer::answering(vec![]);
    let payload = "x".repeat((256 << 10) - 1);
    let error = server.client().submit_job(NewJob::named("echo", &payload)).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::PayloadTooLarge));
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_left_for_the_next_one() {
    let server = FakeServer::answering(vec![(200, job("scheduled", json!({}))); 4]);
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    // Whichever it begins with, all calls arrive.
    for _ in 0..4 {
        let servers = vec![nobody.clone(), server.url.clone(), nobody.clone()];
        let options = ClientOptions { servers, patience: Duration::ZERO, ..ClientOptions::default() };
        Client::with_options(options).unwrap().submit(email()).await.unwrap();
    }
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test]
async fn a_key_file_is_read_anew_when_the_key_is_not_accepted() {
    let refused = (401, problem(Code::NotFound));
    let server = FakeServer::answering(vec![refused, (200, job("scheduled", json!({})))]);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "tw_old").unwrap();
    let options = ClientOptions {
        servers: vec![server.url.clone()],
        api_key_file: Some(file.path().into()),
        ..ClientOptions::default()
    };
    let client = Client::with_options(options).unwrap();
    std::fs::write(file.path(), "tw_new\n").unwrap();
    client.submit(email()).await.unwrap();
    let keys: Vec<_> = server.asked().iter().map(|asked| asked.header("authorization")).collect();
    assert_eq!(keys, [Some("Bearer tw_old".to_owned()), Some("Bearer tw_new".to_owned())]);
}

#[tokio::test]
async fn a_result_is_typed_and_a_failure_says_why() {
    let failed = json!({"status": "failed", "attempt": 3, "error": {"code": "bad_address", "message": "no such host"}});
    let server = FakeServer::answering(vec![
        (201, job("scheduled", json!({}))),
        (408, problem(Code::WaitTimeout)),
        (200, job("completed", json!({"result": {"message_id": 7}}))),
        (200, job("failed", failed)),
        (200, job("cancelled", json!({}))),
    ]);
    let handle = server.client().submit(email()).await.unwrap();
    let error = handle.wait(Duration::from_millis(5)).await.unwrap_err();
    assert!(matches!(error, Error::WaitTimeout { id } if id == handle.id()), "{error}");
    assert_eq!(handle.wait(Duration::from_secs(60)).await.unwrap(), Receipt { message_id: 7 });
    let Err(Error::JobFailed(failure)) = handle.wait(Duration::from_secs(60)).await else {
        panic!("it failed")
    };
    assert_eq!((failure.code.as_str(), failure.attempts), ("bad_address", 3));
    let error = handle.wait(Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(error, Error::JobCancelled { .. }), "{error}");
    assert!(server.asked()[1].line.contains("?wait="), "{}", server.asked()[1].line);
    assert!(server.asked()[2].line.ends_with("?wait=25000ms"), "{}", server.asked()[2].line);
}

#[tokio::test]
async fn many_jobs_go_in_few_requests_and_each_has_its_outcome_in_place() {
    let item = |asked: &Value| match asked["queue"].as_str() {
        Some("bad") => json!({"error": problem(Code::ValidationFailed)}),
        _ => json!({"job": job("scheduled", json!({}))}),
    };
    let server = FakeServer::computing(move |asked| {
        let jobs = asked.json()["jobs"].as_array().unwrap().iter().map(item).collect::<Vec<_>>();
        (200, json!({"results": jobs}))
    });
    let new = |i: u32| {
        let job = NewJob::named("echo", &json!({"n": i}));
        if i % 7_000 == 3 { job.queue("bad") } else { job }
    };
    let outcomes = server.client().submit_many((0..12_000).map(new)).await;
    let errors: Vec<_> = outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_err()).collect();
    assert_eq!(outcomes.len(), 12_000);
    assert_eq!(errors.iter().map(|(i, _)| *i).collect::<Vec<_>>(), [3, 7_003]);
    assert_eq!(errors[0].1.as_ref().unwrap_err().code(), Some(Code::ValidationFailed));
    let sizes: Vec<_> =
        server.asked().iter().map(|asked| asked.json()["jobs"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [10_000, 2_000]);
}

#[tokio::test]
async fn a_schedule_is_put_under_its_name() {
    let schedule = json!({
        "id": "01890000-0000-7000-8000-000000000000", "name": "digest", "cron": "0 7 * * *", "every": null, "anchor": null,
        "timezone": "UTC", "description": "", "next_fire_at": null, "never": false, "paused": false, "pause_note": null,
        "job": {"type": "send_email"}, "missed": {}, "overlap": "allow", "dst_gap": "run_after", "dst_fold": "once",
        "day_logic": "or", "start_at": null, "end_at": null, "jitter": "0s", "exclude": [], "on_excluded": "skip",
        "tenant": "default", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        "queued_since": null, "last_fires": [], "backfill": null,
    });
    let server = FakeServer::answering(vec![(200, schedule)]);
    let digest = NewSchedule::cron("digest", "0 7 * * *", NewJob::of(&email())).timezone("Europe/Berlin");
    let put = server.client().schedules().put(digest).await.unwrap();
    assert_eq!(put.name, "digest");
    let asked = server.asked();
    let lines: Vec<_> = asked.iter().map(|asked| asked.line.as_str()).collect();
    assert_eq!(lines, ["PUT /api/v1/schedules/digest"]);
    assert_eq!(asked[0].json()["timezone"], "Europe/Berlin");
    assert_eq!(asked[0].json()["job"]["payload"]["to"], "a@example.com");
}

#[test]
fn bad_settings_are_reported_together() {
    let options = ClientOptions {
        servers: vec!["ftp://somewhere".into()],
        api_key: Some("two\nlines".into()),
        ca_file: Some("no-such-file.pem".into()),
        ..ClientOptions::default()
    };
    let Err(Error::BadSettings(mistakes)) = Client::with_options(options) else { panic!("they are bad") };
    assert_eq!(mistakes.len(), 3, "{mistakes:?}");
}
