//! What the core knows into what a client reads.

use serde::de::DeserializeOwned;
use tickwheel_core::job::{HttpTarget, WorkflowTarget};
use tickwheel_core::matching::{Label, Labels};
use tickwheel_core::ports::{CallbackRecord, DeadLetter, StoreError, TriedCallback};
use tickwheel_core::retry::{Backoff, RetryPolicy};
use tickwheel_core::schedule::JobTemplate;
use tickwheel_core::why::Why;
use tickwheel_core::{
    AttemptRecord, Delivery, Failure, Job, JsonText, Payload, Priority, State, Target, Timestamp,
};
use tickwheel_protocol::{self as wire, Span, Time};

use super::process;
use crate::error::ApiResult;

/// A job. What its task is called takes its run to know, and is left out; so is how far it has come.
pub fn job(job: &Job) -> ApiResult<wire::Job> {
    Ok(wire::Job {
        id: job.id.as_uuid(),
        job_type: job.job_type.clone(),
        status: status(job.state()),
        queue: job.queue.clone(),
        priority: priority(job.priority),
        tenant: job.tenant.clone(),
        execute_at: time(job.execute_at),
        next_run_at: has_a_time(job.state()).then(|| time(job.due_at)),
        created_at: time(job.created_at),
        started_at: job.started_at.map(time),
        completed_at: job.completed_at.map(time),
        deadline: job.deadline.filter(|_| job.state() == State::Running).map(time),
        attempt: job.attempt,
        retries: job.retries,
        max_retries: job.spec.retry.max_retries,
        cancel_requested: job.cancel_requested,
        progress: None,
        progress_message: None,
        progress_at: None,
        result: Some(job.result.as_ref().map(json).transpose()?),
        error: job.error.as_ref().map(error),
        tags: job.tags.clone(),
        metadata: json(&job.spec.metadata)?,
        payload: Some(whole(&job.payload)?),
        target: target(&job.spec.target),
        retry: retry(&job.spec.retry),
        timeout: Span::from_millis(job.spec.timeout_ms),
        delivery: delivery(job.spec.delivery),
        depends_on: job.spec.parents().map(|id| id.as_uuid()).collect(),
        concurrency_key: job.spec.concurrency_key.clone(),
        requires: labels(&job.spec.requires),
        callback_url: job.spec.callback_url.clone(),
        created_by: job.spec.created_by.clone(),
        schedule_id: job.schedule_id.map(|id| id.to_string()),
        workflow_run_id: job.spec.position.as_ref().map(|position| position.run.to_string()),
        task: None,
    })
}

/// What a job requires, or a worker offers.
pub fn labels(labels: &Labels) -> wire::Labels {
    let label = |label: &Label| match label {
        Label::Flag(flag) => wire::Label::Flag(*flag),
        Label::Number(number) => wire::Label::Number(number.0),
        Label::Text(text) => wire::Label::Text(text.clone()),
    };
    labels.iter().map(|(name, value)| (name.clone(), label(value))).collect()
}

/// An attempt.
pub fn attempt(record: &AttemptRecord) -> wire::Attempt {
    wire::Attempt {
        number: record.number,
        started_at: time(record.started_at),
        ended_at: record.ended_at.map(time),
        outcome: record.outcome.map(|outcome| outcome.as_str().into()),
        error: record.error.as_ref().map(error),
    }
}

/// A dead letter.
pub fn dead_letter(letter: &DeadLetter) -> ApiResult<wire::DeadLetter> {
    let job = &letter.job;
    Ok(wire::DeadLetter {
        job_id: job.id.as_uuid(),
        job_type: job.job_type.to_string(),
        queue: job.queue.to_string(),
        priority: priority(job.priority),
        tenant: job.tenant.to_string(),
        reason: letter.reason.as_str().into(),
        error: job.error.as_ref().map(error),
        failed_at: time(letter.failed_at),
        attempts: job.attempt,
        payload: whole(&job.payload)?,
        tags: job.tags.clone(),
    })
}

/// A callback about a job.
pub fn callback(record: &CallbackRecord) -> wire::Callback {
    let over = record.tries.last().filter(|_| record.due_at.is_none());
    wire::Callback {
        id: record.id,
        event: format!("job.{}", record.state),
        url: record.url.clone(),
        status: over.map_or("pending", |tried| tried.outcome.as_str()).into(),
        next_try_at: record.due_at.map(time),
        tries: record.tries.iter().map(callback_try).collect(),
    }
}

fn callback_try(tried: &TriedCallback) -> wire::CallbackTry {
    wire::CallbackTry {
        number: tried.number,
        at: time(tried.at),
        outcome: tried.outcome.as_str().into(),
        answer: tried.answer.clone(),
    }
}

/// Why a job is not running.
pub fn why(job: &Job, why: Why) -> wire::Why {
    wire::Why {
        job_id: job.id.as_uuid(),
        status: status(job.state()),
        code: why.code.into(),
        sentence: why.sentence,
        waits_for: why.waits_for.map(Into::into),
        since: Some(time(why.since)),
        expected_start: why.expected_start.map(time),
    }
}

/// A job that waits for others gets its time when they are done.
const fn has_a_time(state: State) -> bool {
    matches!(state, State::Scheduled | State::Dispatched | State::Paused)
}

/// A payload that was [put together](crate::payloads).
fn whole<T: DeserializeOwned>(payload: &Payload) -> ApiResult<T> {
    let refers = || StoreError::Corrupt("a payload that refers to other data".to_owned());
    json(&payload.whole().ok_or_else(refers)?)
}

pub(super) fn json<T: DeserializeOwned>(text: &JsonText) -> ApiResult<T> {
    let unreadable = |error: serde_json::Error| StoreError::Corrupt(error.to_string());
    Ok(serde_json::from_str(text.as_str()).map_err(unreadable)?)
}

pub(super) fn time(at: Timestamp) -> Time {
    Time::from_millis(at.as_millis())
}

pub(super) fn error(failure: &Failure) -> wire::JobError {
    wire::JobError { code: failure.code.clone(), message: failure.message.clone(), truncated: false }
}

fn target(target: &Target) -> wire::Target {
    match target {
        Target::Worker => wire::Target::default(),
        Target::Http(HttpTarget { url, method, headers }) => wire::Target::Http(wire::HttpTarget {
            url: url.clone(),
            method: method.clone(),
            headers: headers.iter().cloned().collect(),
        }),
        Target::Workflow(WorkflowTarget { name }) => {
            wire::Target::Workflow(wire::WorkflowTarget { name: name.clone() })
        }
        Target::FanOut => wire::Target::FanOut(wire::FanOutTarget {}),
        Target::Process(process) => wire::Target::Process(process::answered(process)),
    }
}

fn retry(policy: &RetryPolicy) -> wire::Retry {
    let (backoff, delays) = match &policy.backoff {
        Backoff::Fixed => (Some(wire::Backoff::Fixed), None),
        Backoff::Linear => (Some(wire::Backoff::Linear), None),
        Backoff::Exponential => (Some(wire::Backoff::Exponential), None),
        Backoff::Delays(delays) => (None, Some(delays.iter().copied().map(Span::from_millis).collect())),
    };
    wire::Retry {
        max_retries: Some(policy.max_retries),
        backoff,
        initial_delay: Some(Span::from_millis(policy.initial_delay_ms)),
        max_delay: Some(Span::from_millis(policy.max_delay_ms)),
        jitter: Some(policy.jitter),
        delays,
        non_retryable: (!policy.non_retryable.is_empty()).then(|| policy.non_retryable.clone()),
    }
}

/// The job that each firing of a schedule makes, or that a task is.
pub(super) fn job_template(template: &JobTemplate) -> ApiResult<wire::SubmitJob> {
    let spec = &template.spec;
    Ok(wire::SubmitJob {
        job_type: template.job_type.to_string(),
        target: Some(target(&spec.target)),
        payload: Some(json(&template.payload)?),
        queue: Some(template.queue.to_string()),
        priority: Some(priority(template.priority)),
        retry: Some(retry(&spec.retry)),
        timeout: Some(Span::from_millis(spec.timeout_ms)),
        delivery: Some(delivery(spec.delivery)),
        tags: Some(template.tags.clone()),
        metadata: Some(json(&spec.metadata)?),
        concurrency_key: spec.concurrency_key.clone(),
        requires: Some(labels(&spec.requires)).filter(|labels| !labels.is_empty()),
        callback_url: spec.callback_url.clone(),
        created_by: spec.created_by.clone(),
        ..wire::SubmitJob::default()
    })
}

fn delivery(delivery: Delivery) -> wire::Delivery {
    match delivery {
        Delivery::AtLeastOnce => wire::Delivery::AtLeastOnce,
        Delivery::AtMostOnce => wire::Delivery::AtMostOnce,
    }
}

pub(super) fn priority(priority: Priority) -> wire::Priority {
    match priority {
        Priority::Critical => wire::Priority::Critical,
        Priority::High => wire::Priority::High,
        Priority::Normal => wire::Priority::Normal,
        Priority::Low => wire::Priority::Low,
    }
}

/// The state of a job.
pub fn status(state: State) -> wire::Status {
    match state {
        State::Pending => wire::Status::Pending,
        State::Scheduled => wire::Status::Scheduled,
        State::Dispatched => wire::Status::Dispatched,
        State::Running => wire::Status::Running,
        State::Completed => wire::Status::Completed,
        State::Failed => wire::Status::Failed,
        State::Cancelled => wire::Status::Cancelled,
        State::Paused => wire::Status::Paused,
        State::Blocked => wire::Status::Blocked,
        State::Skipped => wire::Status::Skipped,
    }
}
