//! What workers say into terms of the core, and back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::matching::{Demand, ExecutorKind};
use tickwheel_core::ports::{AttemptContext, HeldAttempt, Poll, WorkerActivity};
use tickwheel_core::settle::Outcome;
use tickwheel_core::worker::{NewWorker, WorkerProfile, WorkerSession};
use tickwheel_core::{SessionId, Timestamp};
use tickwheel_protocol::attempt::ReportedError;
use tickwheel_protocol::worker::{ReportedOutcome, WorkerState};
use tickwheel_protocol::{self as wire, Span, Time};
use uuid::Uuid;

use super::answer::{job, labels};
use super::job_request::{core_label, failed, new_uuid, payload};
use crate::error::ApiResult;

/// How long a poll waits if it does not say. Many proxies cut what takes longer than a minute.
pub const POLL_WAIT: Duration = Duration::from_secs(20);

/// The worker that registers.
pub fn new_worker(request: wire::RegisterWorker, lease: Duration, now: Timestamp) -> NewWorker {
    let names = |names: Vec<String>| names.into_iter().map(Arc::from).collect::<Vec<Arc<str>>>();
    let labels = request.labels.unwrap_or_default();
    NewWorker {
        id: SessionId::from_uuid(new_uuid(now)),
        instance: request.instance.as_deref().and_then(|instance| Uuid::try_parse(instance).ok()),
        profile: Arc::new(WorkerProfile {
            name: request.name,
            queues: request.queues.map_or_else(|| vec!["default".into()], names),
            types: names(request.types),
            executors: request.executors.unwrap_or_default().into_iter().map(executor).collect(),
            labels: labels.into_iter().map(|(name, label)| (name, core_label(label))).collect(),
            capacity: request.capacity.unwrap_or(1),
            lease_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX),
            library: request.library,
            host: request.host,
            pid: request.pid,
        }),
    }
}

fn executor(kind: wire::ExecutorKind) -> ExecutorKind {
    match kind {
        wire::ExecutorKind::Http => ExecutorKind::Http,
        wire::ExecutorKind::Process => ExecutorKind::Process,
    }
}

const fn executor_answer(kind: ExecutorKind) -> wire::ExecutorKind {
    match kind {
        ExecutorKind::Http => wire::ExecutorKind::Http,
        ExecutorKind::Process => wire::ExecutorKind::Process,
    }
}

/// A worker's wish for jobs.
pub fn poll(request: wire::PollWorker, jobs_max: usize) -> Poll {
    let slots = request.slots.unwrap_or_default();
    let by_type: HashMap<Arc<str>, usize> =
        slots.into_iter().map(|(job_type, places)| (job_type.into(), places as usize)).collect();
    let wanted = request.max.unwrap_or(1) as usize;
    Poll {
        demand: Demand { jobs_max: wanted.min(jobs_max), by_type },
        seq: request.seq,
        wait: request.wait.map_or(POLL_WAIT, Span::as_duration),
    }
}

/// A job that a worker is to run.
pub fn assignment(context: AttemptContext, now: Timestamp) -> ApiResult<wire::Assignment> {
    let AttemptContext { job: running, payload, token, deadline } = context;
    let mut running = *running;
    running.payload = payload.to_text().into();
    Ok(wire::Assignment {
        attempt: running.attempt,
        fencing_token: running.attempt,
        token,
        deadline: Time::from_millis(deadline.as_millis()),
        deadline_in: span(deadline.since(now)),
        traceparent: running.spec.traceparent.clone(),
        job: job(&running)?,
    })
}

/// A duration on the wire.
pub fn span(duration: Duration) -> Span {
    Span::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// How an attempt ended, as its worker says.
pub fn outcome(report: wire::AttemptReport, message_bytes_max: usize) -> Outcome {
    match report.outcome {
        ReportedOutcome::Completed => Outcome::Completed { result: report.result.as_deref().map(payload) },
        ReportedOutcome::Failed => {
            let (error, retryable, delay) = (report.error, report.retryable, report.delay);
            failed(wire::FailAttempt { error, retryable, delay }, message_bytes_max)
        }
        ReportedOutcome::Snoozed => {
            Outcome::Snoozed { again_in: report.delay.map_or(Duration::ZERO, Span::as_duration) }
        }
        ReportedOutcome::Cancelled => Outcome::Cancelled,
        ReportedOutcome::Released => Outcome::Released,
        ReportedOutcome::NotStarted => Outcome::NotSent {
            reason: not_started_reason(report.error),
            again_in: report.delay.map_or(Duration::ZERO, Span::as_duration),
        },
        ReportedOutcome::Accepted => Outcome::Accepted,
    }
}

fn not_started_reason(error: Option<ReportedError>) -> String {
    match error {
        Some(ReportedError::Message(message)) => message,
        Some(ReportedError::Coded(error)) => error.message,
        None => "its worker did not start it".into(),
    }
}

/// A worker in a list.
pub fn worker(session: &WorkerSession, activity: WorkerActivity, running: u64) -> wire::Worker {
    let profile = &session.profile;
    let time = |at: Timestamp| Time::from_millis(at.as_millis());
    let names = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect();
    let draining = session.draining || activity.draining;
    wire::Worker {
        id: session.id.to_string(),
        name: profile.name.clone(),
        state: if draining { WorkerState::Draining } else { WorkerState::Active },
        queues: names(&profile.queues),
        types: names(&profile.types),
        executors: profile.executors.iter().copied().map(executor_answer).collect(),
        labels: labels(&profile.labels),
        capacity: profile.capacity,
        running,
        stuck: activity.stuck,
        registered_at: time(session.opened_at),
        last_seen: time(activity.last_seen.unwrap_or(session.expires_at - profile.lease())),
        last_poll: activity.last_poll.map(time),
        lease_ends_at: time(session.expires_at),
        lease: span(profile.lease()),
        library: profile.library.clone(),
        host: profile.host.clone(),
        pid: profile.pid,
    }
}

/// An attempt that a worker has.
pub fn held(held: &HeldAttempt) -> wire::HeldAttempt {
    let time = |at: Timestamp| Time::from_millis(at.as_millis());
    wire::HeldAttempt {
        job_id: held.attempt.job_id.to_string(),
        job_type: held.job_type.clone(),
        attempt: held.attempt.attempt,
        started_at: held.started_at.map(time),
        deadline: held.deadline.map(time),
    }
}
