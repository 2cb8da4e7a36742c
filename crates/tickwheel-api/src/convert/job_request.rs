//! Requests into jobs: everything is validated already, here defaults are filled in.

use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tickwheel_core::change::Edit;
use tickwheel_core::job::{DEFAULT_QUEUE, DEFAULT_TIMEOUT_MS, HttpTarget, WorkflowTarget};
use tickwheel_core::matching::{Amount, Label};
use tickwheel_core::ports::{Idempotency, NewJob};
use tickwheel_core::retry::{Backoff, RetryPolicy};
use tickwheel_core::schedule::JobTemplate;
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Delivery, Failure, Job, JobId, JobSpec, JsonText, Priority, State, Target, Timestamp};
use tickwheel_protocol::attempt::{CodedError, ReportedError};
use tickwheel_protocol::job::PatchStatus;
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::target::WORKFLOW_TIMEOUT_DEFAULT;
use tickwheel_protocol::{self as wire, FieldError, Problem, Time, canonical};
use uuid::{ContextV7, Uuid};

use super::process;

/// Ids of one process grow even within a millisecond, so that a batch is listed in its order.
static IDS: LazyLock<Mutex<ContextV7>> = LazyLock::new(|| Mutex::new(ContextV7::new()));

/// A validated request and what came with it.
pub struct Submission<'a> {
    /// What is wanted.
    pub job: wire::SubmitJob,
    /// The text it was read from.
    pub text: &'a str,
    /// The trace it belongs to.
    pub traceparent: Option<&'a str>,
}

/// The requested job.
pub fn new_job(submission: Submission<'_>, now: Timestamp) -> Result<NewJob, Problem> {
    let Submission { job: request, text, traceparent } = submission;
    let idempotency = request
        .idempotency_key
        .as_ref()
        .map(|key| Idempotency { key: key.clone(), fingerprint: fingerprint(text) });
    let id = JobId::from_uuid(new_uuid(now));
    let execute_at = match (request.execute_at, request.delay) {
        (Some(at), _) => timestamp(at),
        (None, Some(delay)) => now + delay.as_duration(),
        (None, None) => now,
    };
    if Time::from_millis(execute_at.as_millis()).as_millis() != execute_at.as_millis() {
        let detail = "is beyond the year 9999".into();
        let field = FieldError { pointer: "/delay".into(), code: FieldCode::OutOfRange, detail };
        return Err(Problem::invalid(vec![field]));
    }
    let queue = request.queue.as_deref().unwrap_or(DEFAULT_QUEUE).into();
    let priority = request.priority.map(priority).unwrap_or_default();
    let payload = request.payload.as_deref().map_or_else(JsonText::null, payload);
    let tags = request.tags.clone().unwrap_or_default();
    let job_type = request.job_type.clone();
    // A time in the past means now: the lag is measured from when it could have started.
    let due_at = execute_at.max(now);
    let mut job = Job::new(id, &job_type, spec(request, traceparent), now);
    (job.queue, job.priority, job.tags, job.payload) = (queue, priority, tags, payload.into());
    (job.execute_at, job.due_at) = (execute_at, due_at);
    Ok(NewJob { job, idempotency })
}

/// The job that each firing of a schedule makes, or that a task is.
pub(super) fn job_template(request: wire::SubmitJob) -> JobTemplate {
    JobTemplate {
        job_type: request.job_type.as_str().into(),
        queue: request.queue.as_deref().unwrap_or(DEFAULT_QUEUE).into(),
        priority: request.priority.map(priority).unwrap_or_default(),
        payload: request.payload.as_deref().map_or_else(JsonText::null, payload),
        tags: request.tags.clone().unwrap_or_default(),
        spec: spec(request, None).into(),
    }
}

fn spec(request: wire::SubmitJob, traceparent: Option<&str>) -> JobSpec {
    let target = target(request.target.unwrap_or_default());
    // A run takes its time, and its tasks have retries of their own: started again, it would be the same run.
    let starts_a_run = matches!(target, Target::Workflow(_));
    let timeout_default =
        if starts_a_run { WORKFLOW_TIMEOUT_DEFAULT.as_millis() } else { DEFAULT_TIMEOUT_MS };
    let retry_default = wire::Retry { max_retries: starts_a_run.then_some(0), ..wire::Retry::default() };
    JobSpec {
        target,
        retry: retry_policy(request.retry.unwrap_or(retry_default)),
        timeout_ms: request.timeout.map_or(timeout_default, wire::Span::as_millis),
        delivery: match request.delivery {
            None | Some(wire::Delivery::AtLeastOnce) => Delivery::AtLeastOnce,
            Some(wire::Delivery::AtMostOnce) => Delivery::AtMostOnce,
        },
        metadata: request.metadata.map_or_else(JsonText::empty_object, |m| JsonText::from_checked(m.get())),
        callback_url: request.callback_url,
        created_by: request.created_by,
        traceparent: traceparent.filter(|text| is_traceparent(text)).map(Into::into),
        concurrency_key: request.concurrency_key,
        requires: request
            .requires
            .unwrap_or_default()
            .into_iter()
            .map(|(name, label)| (name, core_label(label)))
            .collect(),
        depends_on: request.depends_on.unwrap_or_default().iter().map(|id| parent_id(id)).collect(),
        position: None,
    }
}

/// A label as the core has it.
pub(super) fn core_label(label: wire::Label) -> Label {
    match label {
        wire::Label::Flag(flag) => Label::Flag(flag),
        wire::Label::Number(number) => Label::Number(Amount(number)),
        wire::Label::Text(text) => Label::Text(text),
    }
}

fn parent_id(text: &str) -> JobId {
    text.parse().expect("no other entry of depends_on passes validation")
}

/// Two digests agree if the requests do, however they are spaced and ordered, and whether the key came as a field or
/// not.
pub(super) fn fingerprint(text: &str) -> [u8; 32] {
    let canonical = canonical::object_without(text, "idempotency_key");
    Sha256::digest(canonical.as_deref().unwrap_or(text)).into()
}

/// A fresh id of something that is made now.
pub(super) fn new_uuid(now: Timestamp) -> Uuid {
    let ms = u64::try_from(now.as_millis()).unwrap_or(0);
    let nanos = u32::try_from(ms % 1000).unwrap_or(0) * 1_000_000;
    let stamp = uuid::Timestamp::from_unix(&*IDS, ms / 1000, nanos);
    Uuid::new_v7(stamp)
}

pub(super) fn target(target: wire::Target) -> Target {
    match target {
        wire::Target::Http(http) => Target::Http(HttpTarget {
            url: http.url,
            method: http.method,
            headers: http.headers.into_iter().collect(),
        }),
        wire::Target::Workflow(workflow) => Target::Workflow(WorkflowTarget { name: workflow.name }),
        wire::Target::Process(process) => Target::Process(process::requested(process)),
        // The other kinds do not pass validation.
        wire::Target::Worker(_) | wire::Target::FanOut(_) | wire::Target::Message(_) => Target::Worker,
    }
}

fn retry_policy(retry: wire::Retry) -> RetryPolicy {
    let default = RetryPolicy::default();
    let delays: Option<Vec<u64>> =
        retry.delays.map(|all| all.iter().map(|delay| delay.as_millis()).collect());
    let initial_delay_ms = retry.initial_delay.map_or(default.initial_delay_ms, wire::Span::as_millis);
    let longest = delays.iter().flatten().copied().chain([initial_delay_ms, default.max_delay_ms]).max();
    let retries_default = match &delays {
        Some(delays) => u32::try_from(delays.len()).unwrap_or(u32::MAX),
        None => default.max_retries,
    };
    RetryPolicy {
        max_retries: retry.max_retries.unwrap_or(retries_default),
        initial_delay_ms,
        max_delay_ms: retry.max_delay.map(wire::Span::as_millis).or(longest).unwrap_or(default.max_delay_ms),
        // Whoever writes down every delay means it.
        jitter: retry.jitter.unwrap_or(if delays.is_some() { 0.0 } else { default.jitter }),
        backoff: match (delays, retry.backoff) {
            (Some(delays), _) => Backoff::Delays(delays),
            (None, Some(wire::Backoff::Fixed)) => Backoff::Fixed,
            (None, Some(wire::Backoff::Linear)) => Backoff::Linear,
            (None, Some(wire::Backoff::Exponential) | None) => Backoff::Exponential,
        },
        non_retryable: retry.non_retryable.unwrap_or_default(),
    }
}

/// `00-<32 hex>-<16 hex>-<2 hex>`; anything else is dropped, as W3C Trace Context asks.
fn is_traceparent(text: &str) -> bool {
    let lengths = [2, 32, 16, 2];
    let parts: Vec<_> = text.split('-').collect();
    parts.len() == lengths.len()
        && parts.iter().zip(lengths).all(|(part, len)| {
            part.len() == len && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        })
}

/// New values for a job that has not started.
pub fn edit(patch: wire::PatchJob) -> Edit {
    Edit {
        execute_at: patch.execute_at.map(timestamp),
        priority: patch.priority.map(priority),
        payload: patch.payload.as_deref().map(payload),
        tags: patch.tags,
        paused: patch.status.map(|status| status == PatchStatus::Paused),
    }
}

/// What somebody says went wrong with an attempt.
pub fn failed(report: wire::FailAttempt, message_bytes_max: usize) -> Outcome {
    let (code, message) = match report.error {
        None => (None, "whoever ran it reported a failure".into()),
        Some(ReportedError::Message(message)) => (None, message),
        Some(ReportedError::Coded(error)) => {
            let code = error.code.clone();
            (code, described(error))
        }
    };
    let code = code.unwrap_or_else(|| "reported".into());
    Outcome::Failed {
        failure: Failure::new(code, storable(message, message_bytes_max)),
        retryable: report.retryable.unwrap_or(true),
        retry_after: report.delay.map(|delay| Duration::from_millis(delay.as_millis())),
    }
}

/// The message with the class of the error and where it happened.
fn described(error: CodedError) -> String {
    let mut text = match error.class {
        Some(class) if !error.message.is_empty() => format!("{class}: {}", error.message),
        Some(class) => class,
        None => error.message,
    };
    if let Some(stack) = error.stack.filter(|stack| !stack.is_empty()) {
        text.push_str("\n\n");
        text.push_str(&stack);
    }
    text
}

/// A report must not be lost because its message is long or odd: it is cut, and NUL, which not every store can hold,
/// replaced.
fn storable(message: String, bytes_max: usize) -> String {
    let mut message = message.replace('\0', "\u{fffd}");
    if message.len() > bytes_max {
        message.truncate(message.floor_char_boundary(bytes_max));
        message.push('…');
    }
    message
}

/// A JSON document that was read strictly.
pub fn payload(json: &RawValue) -> JsonText {
    JsonText::from_checked(json.get())
}

/// A moment.
pub fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_millis(time.as_millis())
}

/// How urgent.
pub fn priority(priority: wire::Priority) -> Priority {
    match priority {
        wire::Priority::Critical => Priority::Critical,
        wire::Priority::High => Priority::High,
        wire::Priority::Normal => Priority::Normal,
        wire::Priority::Low => Priority::Low,
    }
}

/// Where a job stands.
pub fn state(status: wire::Status) -> State {
    match status {
        wire::Status::Pending => State::Pending,
        wire::Status::Scheduled => State::Scheduled,
        wire::Status::Dispatched => State::Dispatched,
        wire::Status::Running => State::Running,
        wire::Status::Completed => State::Completed,
        wire::Status::Failed => State::Failed,
        wire::Status::Cancelled => State::Cancelled,
        wire::Status::Paused => State::Paused,
        wire::Status::Blocked => State::Blocked,
        wire::Status::Skipped => State::Skipped,
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::Partition;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn request(json: &str) -> NewJob {
        let job = serde_json::from_str(json).expect(json);
        new_job(Submission { job, text: json, traceparent: None }, NOW).expect(json)
    }

    fn policy(json: &str) -> RetryPolicy {
        retry_policy(serde_json::from_str(json).expect(json))
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let job = request(r#"{"type":"t"}"#).job;
        assert_eq!((&*job.queue, &*job.tenant, job.priority), ("default", "default", Priority::Normal));
        assert_eq!((job.execute_at, job.due_at, job.created_at), (NOW, NOW, NOW));
        assert_eq!(job.spec.target, Target::Worker);
        assert_eq!(job.spec.retry, RetryPolicy::default());
        assert_eq!(job.spec.timeout(), Duration::from_secs(300));
        assert_eq!((job.payload.as_str(), job.spec.metadata.as_str()), ("null", "{}"));
        assert_eq!(job.partition, Partition::of(job.id));
    }

    #[test]
    fn a_time_in_the_past_is_kept_and_means_now() {
        let job = request(r#"{"type":"t","execute_at":"2000-01-01T00:00:00Z"}"#).job;
        assert!(job.execute_at < NOW);
        assert_eq!(job.due_at, NOW);
        assert_eq!(request(r#"{"type":"t","delay":"30m"}"#).job.due_at, NOW + Duration::from_secs(1800));
    }

    #[test]
    fn the_jobs_it_depends_on_are_kept_as_they_were_named_so_that_an_entry_can_be_found() {
        let [first, second] =
            ["01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8058"];
        let job = request(&format!(r#"{{"type":"t","depends_on":["{second}","{first}","{second}"]}}"#)).job;
        assert_eq!(job.spec.depends_on, [second, first, second].map(parent_id));
        assert_eq!(request(r#"{"type":"t","depends_on":null}"#).job.spec.depends_on, []);
    }

    #[test]
    fn jobs_with_one_concurrency_key_share_a_partition() {
        let partition =
            |key: &str| request(&format!(r#"{{"type":"t","concurrency_key":"{key}"}}"#)).job.partition;
        assert_eq!(partition("a"), partition("a"));
        assert!((0..20).any(|n| partition(&n.to_string()) != partition("a")));
    }

    #[test]
    fn ids_grow_within_a_millisecond_and_carry_the_time() {
        let ids: Vec<_> = (0..1000).map(|_| JobId::from_uuid(new_uuid(NOW))).collect();
        assert!(ids.is_sorted());
        assert!(ids[0] >= JobId::first_at(NOW));
        assert!(ids[999] < JobId::first_at(NOW + Duration::from_millis(1)));
    }

    #[test]
    fn the_fingerprint_ignores_how_the_request_is_written_and_where_the_key_is() {
        let print = |json: &str| fingerprint(json);
        let plain = print(r#"{"type":"t","payload":{"a":1,"b":[2]}}"#);
        assert_eq!(plain, print(r#"{ "payload": {"b": [2], "a": 1}, "idempotency_key": "k", "type": "t" }"#));
        assert_ne!(plain, print(r#"{"type":"t","payload":{"a":1,"b":[3]}}"#));
    }

    #[test]
    fn explicit_delays_say_how_often_and_are_taken_at_their_word() {
        let explicit = policy(r#"{"delays":["2h","10s"]}"#);
        assert_eq!(explicit.max_retries, 2);
        assert_eq!(explicit.backoff, Backoff::Delays(vec![7_200_000, 10_000]));
        assert_eq!((explicit.max_delay_ms, explicit.jitter), (7_200_000, 0.0));
        assert_eq!(policy(r#"{"delays":[1],"max_retries":5}"#).max_retries, 5);
        assert_eq!(policy(r#"{"initial_delay":"2h"}"#).max_delay_ms, 7_200_000);
    }

    #[test]
    fn a_reported_message_is_cut_and_made_storable_rather_than_refused() {
        assert_eq!(storable("a\0b".into(), 100), "a\u{fffd}b");
        assert_eq!(storable("ééé".into(), 3), "é…");
    }

    #[test]
    fn only_a_well_formed_trace_context_is_carried_on() {
        assert!(is_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        for odd in
            ["", "00-4bf9-00f0-01", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "a\r\nb"]
        {
            assert!(!is_traceparent(odd), "{odd}");
        }
    }
}
