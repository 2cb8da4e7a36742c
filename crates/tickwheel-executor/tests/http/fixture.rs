//! Jobs, attempts and executors to test with.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::job::HttpTarget;
use tickwheel_core::payload::Document;
use tickwheel_core::ports::{AttemptContext, Clock, Executor};
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Failure, Job, JobId, JobSpec, JsonText, SessionId, Target, Timestamp};
use tickwheel_executor::executor::{HttpExecutor, HttpExecutorOptions};
use tickwheel_executor::outbound::{AddressGuard, OutboundClient, OutboundOptions, SigningSecret};
use uuid::Uuid;

/// 2026-12-01T15:00:00Z.
pub const NOW: Timestamp = Timestamp::from_millis(1_796_137_200_000);
pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub const JOB_ID: &str = "01990000-0000-7000-8000-000000000001";

struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        NOW
    }
}

pub fn client(guard: AddressGuard) -> OutboundClient {
    OutboundClient::new(OutboundOptions::guarded_by(guard))
}

pub fn options(client: OutboundClient) -> HttpExecutorOptions {
    HttpExecutorOptions::new(client, Arc::new(StoppedClock))
}

/// An executor that may call the servers of the tests.
pub fn executor() -> HttpExecutor {
    HttpExecutor::new(options(client(AddressGuard::allow_private())))
}

pub fn signing_executor() -> HttpExecutor {
    HttpExecutor::new(HttpExecutorOptions {
        signing: Some(SigningSecret::parse(SECRET).unwrap()),
        ..options(client(AddressGuard::allow_private()))
    })
}

/// An executor that reads this much of an answer.
pub fn executor_reading(response_bytes_max: usize) -> HttpExecutor {
    HttpExecutor::new(HttpExecutorOptions {
        response_bytes_max,
        ..options(client(AddressGuard::allow_private()))
    })
}

/// The first attempt of a job that POSTs to `url`, with time enough.
pub fn attempt(url: impl Into<String>) -> AttemptContext {
    attempt_with(HttpTarget { url: url.into(), method: "POST".into(), headers: Vec::new() })
}

pub fn attempt_with(target: HttpTarget) -> AttemptContext {
    let job = job(Target::Http(target));
    AttemptContext {
        payload: Document::Whole(job.payload.whole().expect("it refers to nothing")),
        job: Box::new(job),
        token: "opaque-token".into(),
        deadline: NOW + Duration::from_secs(30),
    }
}

/// The same attempt with little time.
pub fn hasty(mut attempt: AttemptContext, timeout: Duration) -> AttemptContext {
    Arc::make_mut(&mut attempt.job.spec).timeout_ms = u64::try_from(timeout.as_millis()).unwrap();
    attempt
}

pub fn job(target: Target) -> Job {
    let id = JobId::from_uuid(Uuid::try_parse(JOB_ID).unwrap());
    let metadata = JsonText::from_checked(r#"{"team":"a"}"#);
    let spec = JobSpec { timeout_ms: 30_000, metadata, ..JobSpec::new(target) };
    let mut job = Job::new(id, "send_email", spec, NOW).claimed(SessionId::from_uuid(Uuid::nil()), NOW);
    (job.tenant, job.queue) = ("acme".into(), "mail".into());
    job.payload = JsonText::from_checked(r#"{"to": "you"}"#).into();
    job.tags = vec!["monthly".into()];
    (job.attempt, job.retries) = (3, 2);
    job
}

/// What becomes of an attempt at `url` that failed.
pub async fn failure_at(
    executor: &HttpExecutor,
    url: impl Into<String>,
) -> (Failure, bool, Option<Duration>) {
    failure_of(executor.run(&attempt(url)).await)
}

pub fn failure_of(outcome: Outcome) -> (Failure, bool, Option<Duration>) {
    match outcome {
        Outcome::Failed { failure, retryable, retry_after } => (failure, retryable, retry_after),
        other => panic!("it should have failed: {other:?}"),
    }
}

pub fn completed(result: Option<&str>) -> Outcome {
    Outcome::Completed { result: result.map(JsonText::from_checked) }
}
