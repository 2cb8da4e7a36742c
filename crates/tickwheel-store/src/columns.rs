//! How a job lies in columns, the same in both stores: enums as their numbers, times as milliseconds, the spec and the
//! tags as JSON text, a failure as a code and a message.
//!
//! Invariant: what was encoded here decodes to the same job; anything else is [`StoreError::Corrupt`], never a panic.
//! Deliberately not here: SQL and the types of either database's driver.
//!
//! [`StoreError::Corrupt`]: tickwheel_core::ports::StoreError::Corrupt

use std::ops::Range;
use std::sync::Arc;

use tickwheel_core::attempt::{AttemptOutcome, Failure};
use tickwheel_core::callback::Receiver;
use tickwheel_core::job::{Job, JobSpec, JsonText, Priority, TargetKind};
use tickwheel_core::parents::Release;
use tickwheel_core::ports::{JobQuery, StoreResult};
use tickwheel_core::settle::DeadReason;
use tickwheel_core::workflow::{FanOut, TaskPosition};
use tickwheel_core::{JobId, Partition, Payload, ScheduleId, SessionId, State, Timestamp};
use uuid::Uuid;

use crate::error::corrupt;
use crate::workflow_columns::task_ids;

/// A job as a row has it, borrowed from the row. A finished job's row leaves out what only a live one has, and the
/// other way round: those fields are `None`, `false` or zero.
#[derive(Debug)]
pub(crate) struct JobColumns<'row> {
    pub id: Uuid,
    pub partition: i64,
    pub tenant: &'row str,
    pub job_type: &'row str,
    pub queue: &'row str,
    pub priority: i64,
    pub state: i64,
    pub execute_at: i64,
    pub due_at: i64,
    pub created_at: i64,
    pub spec: &'row str,
    pub payload: &'row str,
    pub fan_out: Option<&'row str>,
    pub tags: &'row str,
    pub attempt: i64,
    pub retries: i64,
    pub lost: i64,
    pub burst_started_at: Option<i64>,
    pub burst_failures: i64,
    pub session: Option<Uuid>,
    pub started_at: Option<i64>,
    pub deadline: Option<i64>,
    pub cancel_requested: bool,
    pub completed_at: Option<i64>,
    pub last_outcome: Option<i64>,
    pub result: Option<&'row str>,
    pub error_code: Option<&'row str>,
    pub error_message: Option<&'row str>,
    pub schedule_id: Option<Uuid>,
    pub open_parents: i64,
    pub failed_parents: i64,
}

impl JobColumns<'_> {
    /// The job they stand for.
    pub fn decode(&self) -> StoreResult<Job> {
        let job = self.decode_request()?.in_stored_state(decode_state(self.state)?);
        self.decode_progress(job)
    }

    /// What was requested.
    fn decode_request(&self) -> StoreResult<Job> {
        let id = JobId::from_uuid(self.id);
        let created_at = Timestamp::from_millis(self.created_at);
        let mut job = Job::new(id, self.job_type, decode_spec(self.spec, id)?, created_at);
        job.partition = decode_partition(self.partition)?;
        job.tenant = self.tenant.into();
        job.queue = self.queue.into();
        job.priority = decode_priority(self.priority)?;
        job.execute_at = Timestamp::from_millis(self.execute_at);
        job.payload = Payload::from_stored(self.payload);
        job.fan_out = self.fan_out.map(decode_fan_out).transpose()?;
        job.tags = decode_tags(self.tags)?;
        job.schedule_id = self.schedule_id.map(ScheduleId::from_uuid);
        Ok(job)
    }

    /// How far it has come.
    fn decode_progress(&self, mut job: Job) -> StoreResult<Job> {
        job.due_at = Timestamp::from_millis(self.due_at);
        job.parents.open = decode_count("open_parents", self.open_parents)?;
        job.parents.failed = decode_count("failed_parents", self.failed_parents)?;
        job.attempt = decode_count("attempt", self.attempt)?;
        job.retries = decode_count("retries", self.retries)?;
        job.lost = decode_count("lost", self.lost)?;
        job.burst.started_at = self.burst_started_at.map(Timestamp::from_millis);
        job.burst.failures = decode_count("burst_failures", self.burst_failures)?;
        job.session = self.session.map(SessionId::from_uuid);
        job.started_at = self.started_at.map(Timestamp::from_millis);
        job.deadline = self.deadline.map(Timestamp::from_millis);
        job.cancel_requested = self.cancel_requested;
        job.completed_at = self.completed_at.map(Timestamp::from_millis);
        job.last_outcome = self.last_outcome.map(decode_outcome).transpose()?;
        job.result = self.result.map(JsonText::from_checked);
        job.error = decode_failure(self.error_code, self.error_message);
        Ok(job)
    }
}

/// The ids among which all jobs are that a query could want: they say when a job was created, and of which run it is a
/// task.
pub(crate) fn ids_of(query: &JobQuery) -> Range<JobId> {
    let mut start = query.created_from.map_or(JobId::FIRST, JobId::first_at);
    let mut end = query.created_before.map_or(JobId::LAST, JobId::first_at);
    end = query.after.map_or(end, |after| after.min(end));
    if let Some(run) = query.run {
        let tasks = task_ids(run);
        let after_last = Uuid::from_u128(tasks.end().as_uuid().as_u128().saturating_add(1));
        start = start.max(*tasks.start());
        end = end.min(JobId::from_uuid(after_last));
    }
    start..end
}

/// The spec as JSON text.
pub(crate) fn encode_spec(spec: &JobSpec) -> String {
    serde_json::to_string(spec)
        .expect("a spec has only string keys and finite numbers, or null for the others")
}

/// The spec behind its text, of this job.
fn decode_spec(text: &str, id: JobId) -> StoreResult<Arc<JobSpec>> {
    let spec: JobSpec = serde_json::from_str(text).map_err(|cause| corrupt("job spec", cause))?;
    let position = spec.position.map(|position| position.filled_in(id));
    Ok(Arc::new(JobSpec { position, ..spec }))
}

/// The position of this job in a run, from the text of its spec.
pub(crate) fn decode_position(text: &str, id: JobId) -> StoreResult<Option<TaskPosition>> {
    let position = TaskPosition::of_spec(text).map_err(|cause| corrupt("job spec", cause))?;
    Ok(position.map(|position| position.filled_in(id)))
}

/// The items of a fan-out, from their text.
pub(crate) fn decode_fan_out(text: &str) -> StoreResult<FanOut> {
    FanOut::from_text(text).map_err(|cause| corrupt("items of a fan-out", cause))
}

/// The timeout as a column has it; one that does not fit is as good as for ever.
pub(crate) fn encode_timeout(spec: &JobSpec) -> i64 {
    i64::try_from(spec.timeout_ms).unwrap_or(i64::MAX)
}

/// The tags as a JSON array.
pub(crate) fn encode_tags(tags: &[String]) -> String {
    if tags.is_empty() {
        return NO_TAGS.to_owned();
    }
    serde_json::to_string(tags).expect("strings are always valid JSON")
}

const NO_TAGS: &str = "[]";

fn decode_tags(text: &str) -> StoreResult<Vec<String>> {
    if text == NO_TAGS {
        return Ok(Vec::new());
    }
    serde_json::from_str(text).map_err(|cause| corrupt("job tags", cause))
}

/// The key of the receiver of a callback.
pub(crate) fn receiver_key(url: &str) -> String {
    Receiver::of(url).as_str().to_owned()
}

/// A failure's two columns, borrowed: code and message, both or neither.
pub(crate) fn encode_failure(failure: Option<&Failure>) -> (Option<&str>, Option<&str>) {
    (failure.map(|f| f.code.as_str()), failure.map(|f| f.message.as_str()))
}

/// The failure of its two columns.
pub(crate) fn decode_failure(code: Option<&str>, message: Option<&str>) -> Option<Failure> {
    code.map(|code| Failure::new(code, message.unwrap_or_default()))
}

/// The state behind a stored number.
pub(crate) fn decode_state(code: i64) -> StoreResult<State> {
    decode_code("state", code, State::from_code)
}

/// The kind of target with this number.
pub(crate) fn decode_target(code: i64) -> StoreResult<TargetKind> {
    decode_code("target", code, TargetKind::from_code)
}

/// The release with this number.
pub(crate) fn decode_release(code: i64) -> StoreResult<Release> {
    decode_code("release", code, Release::from_code)
}

/// The priority behind a stored number.
pub(crate) fn decode_priority(code: i64) -> StoreResult<Priority> {
    decode_code("priority", code, Priority::from_code)
}

/// The attempt's outcome behind a stored number.
pub(crate) fn decode_outcome(code: i64) -> StoreResult<AttemptOutcome> {
    decode_code("attempt outcome", code, AttemptOutcome::from_code)
}

/// The reason of a dead letter behind a stored number.
pub(crate) fn decode_dead_reason(code: i64) -> StoreResult<DeadReason> {
    decode_code("reason of a dead letter", code, DeadReason::from_code)
}

/// What a stored number stands for.
pub(crate) fn decode_code<T>(what: &str, code: i64, from_code: impl Fn(i16) -> Option<T>) -> StoreResult<T> {
    i16::try_from(code).ok().and_then(from_code).ok_or_else(|| corrupt(what, code))
}

/// A partition number.
pub(crate) fn decode_partition(number: i64) -> StoreResult<Partition> {
    u16::try_from(number)
        .ok()
        .filter(|number| *number < Partition::COUNT)
        .map(Partition)
        .ok_or_else(|| corrupt("partition", number))
}

/// A number of attempts, retries, tries or parents.
pub(crate) fn decode_count(what: &str, count: i64) -> StoreResult<u32> {
    u32::try_from(count).map_err(|_| corrupt(what, count))
}

/// A secret of 32 bytes.
pub(crate) fn decode_secret(bytes: &[u8]) -> StoreResult<[u8; 32]> {
    bytes.try_into().map_err(|_| corrupt("length of the secret", bytes.len()))
}
