//! Jobs that change their table other than by the end of an attempt: ended by somebody, or brought back. Many at once,
//! an array a column.
//!
//! Whoever waits for them is told by the caller, who holds their locks.

use std::borrow::Cow;

use const_format::concatcp;
use tickwheel_core::matching::Route;
use tickwheel_core::workflow::FanOut;
use tickwheel_core::{AttemptOutcome, AttemptRecord, Job, Timestamp};
use uuid::Uuid;

use super::pipeline::Param;
use super::row::{count, storable};
use super::workers::RouteRows;
use crate::columns::{encode_failure, receiver_key};
use crate::job_columns::{Selection, Table, arrays, list};
use crate::sql_text::sql;

/// A job as history has it.
const ENDED_JOB: Selection = Selection::all(Table::Finished);

/// What of it is different from before, in the order of the parameters.
const CHANGED_BY_END: &[&str] = &[
    "id",
    "state",
    "due_at",
    "completed_at",
    "payload",
    "result",
    "error_code",
    "error_message",
    "open_parents",
    "failed_parents",
    "last_outcome",
    "fan_out",
];

const END: &str = concatcp!(
    "\
WITH ended AS (
    DELETE FROM jobs AS j
    USING unnest(",
    sql!(arrays(CHANGED_BY_END)),
    ", $13::text[], $14::text[])
       AS s (",
    sql!(list(CHANGED_BY_END)),
    ", callback_url, receiver)
    WHERE j.id = ANY (ARRAY[s.id])
    RETURNING ",
    sql!(ENDED_JOB.values("j.", CHANGED_BY_END, &[])),
    ", s.callback_url, s.receiver
), callbacks_to_send AS (
    INSERT INTO callbacks (subject_id, completed_at, due_at, attempt, state, url, result, error_code, error_message, receiver)
    SELECT id, completed_at, completed_at, attempt, state, callback_url, result, error_code, error_message, receiver
    FROM ended WHERE callback_url IS NOT NULL
)
INSERT INTO finished_jobs (",
    sql!(ENDED_JOB.names()),
    ")
SELECT ",
    sql!(ENDED_JOB.names()),
    "
FROM ended"
);

/// A job that comes back. What only a running job has is as in a new one.
const RETRIED_JOB: Selection = Selection::without(
    Table::Live,
    &["burst_started_at", "burst_failures", "session", "deadline", "cancel_requested"],
);

/// What of it is different from before, in the order of the parameters.
const CHANGED_BY_RETRY: &[&str] = &[
    "id",
    "state",
    "due_at",
    "payload",
    "retries",
    "lost",
    "open_parents",
    "failed_parents",
    "release",
    "fan_out",
    "route",
];

const RETRY: &str = concatcp!(
    "\
WITH ended AS (
    DELETE FROM finished_jobs AS f
    USING unnest(",
    sql!(arrays(CHANGED_BY_RETRY)),
    ")
       AS s (",
    sql!(list(CHANGED_BY_RETRY)),
    ")
    WHERE f.id = ANY (ARRAY[s.id])
    RETURNING ",
    sql!(RETRIED_JOB.values("f.", CHANGED_BY_RETRY, &[])),
    "
), no_longer_dead AS (
    DELETE FROM dead_letters WHERE job_id = ANY ($1::uuid[])
)
INSERT INTO jobs (",
    sql!(RETRIED_JOB.names()),
    ")
SELECT ",
    sql!(RETRIED_JOB.names()),
    "
FROM ended"
);

const INSERT_ATTEMPTS: &str = "\
INSERT INTO attempts (job_id, number, outcome, started_at, ended_at, error_code, error_message)
SELECT * FROM unnest($1::uuid[], $2::integer[], $3::smallint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[END, RETRY, INSERT_ATTEMPTS];

/// Jobs that go to history.
#[derive(Default)]
pub(super) struct EndedRows<'a> {
    ids: Vec<Uuid>,
    states: Vec<i16>,
    due_at: Vec<i64>,
    completed_at: Vec<Option<i64>>,
    payloads: Vec<&'a str>,
    results: Vec<Option<&'a str>>,
    error_codes: Vec<Option<Cow<'a, str>>>,
    error_messages: Vec<Option<Cow<'a, str>>>,
    open_parents: Vec<i32>,
    failed_parents: Vec<i32>,
    callback_urls: Vec<Option<&'a str>>,
    receivers: Vec<Option<String>>,
    last_outcomes: Vec<Option<i16>>,
    fan_outs: Vec<Option<String>>,
}

impl<'a> EndedRows<'a> {
    /// The jobs as they are when they are over.
    pub fn of(jobs: impl IntoIterator<Item = &'a Job>) -> Self {
        let mut ended = Self::default();
        jobs.into_iter().for_each(|job| ended.push(job));
        ended
    }

    fn push(&mut self, job: &'a Job) {
        let (code, message) = encode_failure(job.error.as_ref());
        self.ids.push(job.id.as_uuid());
        self.states.push(job.state().code());
        self.due_at.push(job.due_at.as_millis());
        self.completed_at.push(job.completed_at.map(Timestamp::as_millis));
        self.payloads.push(job.payload.as_str());
        self.results.push(job.result.as_ref().map(|result| result.as_str()));
        self.error_codes.push(code.map(storable));
        self.error_messages.push(message.map(storable));
        self.open_parents.push(count(job.parents.open));
        self.failed_parents.push(count(job.parents.failed));
        self.callback_urls.push(job.spec.callback_url.as_deref());
        self.receivers.push(job.spec.callback_url.as_deref().map(receiver_key));
        self.last_outcomes.push(job.last_outcome.map(AttemptOutcome::code));
        self.fan_outs.push(job.fan_out.map(FanOut::to_text));
    }

    /// What it takes to move them.
    pub fn statements(&self) -> Vec<(&'static str, Vec<Param<'_>>)> {
        if self.ids.is_empty() {
            return Vec::new();
        }
        let params: [Param<'_>; 14] = [
            &self.ids,
            &self.states,
            &self.due_at,
            &self.completed_at,
            &self.payloads,
            &self.results,
            &self.error_codes,
            &self.error_messages,
            &self.open_parents,
            &self.failed_parents,
            &self.last_outcomes,
            &self.fan_outs,
            &self.callback_urls,
            &self.receivers,
        ];
        vec![(END, params.to_vec())]
    }
}

/// Jobs that come back from history and are no dead letters any more.
#[derive(Default)]
pub(super) struct RetriedRows<'a> {
    ids: Vec<Uuid>,
    states: Vec<i16>,
    due_at: Vec<i64>,
    payloads: Vec<&'a str>,
    retries: Vec<i32>,
    lost: Vec<i32>,
    open_parents: Vec<i32>,
    failed_parents: Vec<i32>,
    releases: Vec<i16>,
    fan_outs: Vec<Option<String>>,
    routes: Vec<Option<Uuid>>,
    held_routes: RouteRows,
    last_attempts: Attempts,
}

impl<'a> RetriedRows<'a> {
    /// The jobs as they were and as they are.
    pub fn of(jobs: impl IntoIterator<Item = (&'a Job, &'a Job)>) -> Self {
        let mut retried = Self::default();
        let mut routes = Vec::new();
        for (before, after) in jobs {
            let route = Route::of(after);
            retried.push(before, after, route.as_ref().map(|route| route.id.as_uuid()));
            routes.extend(route);
        }
        retried.held_routes = RouteRows::of(routes);
        retried
    }

    fn push(&mut self, before: &Job, after: &'a Job, route: Option<Uuid>) {
        // The attempt that ended the job lived in its row of history, which goes: from now on it has a row of its own.
        if let Some(last) = before.current_attempt() {
            self.last_attempts.push(after.id.as_uuid(), last);
        }
        self.ids.push(after.id.as_uuid());
        self.states.push(after.state().code());
        self.due_at.push(after.due_at.as_millis());
        self.payloads.push(after.payload.as_str());
        self.retries.push(count(after.retries));
        self.lost.push(count(after.lost));
        self.open_parents.push(count(after.parents.open));
        self.failed_parents.push(count(after.parents.failed));
        self.releases.push(after.release().code());
        self.fan_outs.push(after.fan_out.map(FanOut::to_text));
        self.routes.push(route);
    }

    /// What it takes to move them.
    pub fn statements(&self) -> Vec<(&'static str, Vec<Param<'_>>)> {
        let mut statements = Vec::new();
        if !self.last_attempts.ids.is_empty() {
            statements.push((INSERT_ATTEMPTS, self.last_attempts.params()));
        }
        if !self.ids.is_empty() {
            statements.push((RETRY, self.params()));
        }
        statements.extend(self.held_routes.hold());
        statements
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![
            &self.ids,
            &self.states,
            &self.due_at,
            &self.payloads,
            &self.retries,
            &self.lost,
            &self.open_parents,
            &self.failed_parents,
            &self.releases,
            &self.fan_outs,
            &self.routes,
        ]
    }
}

/// Attempts that are over.
#[derive(Default)]
struct Attempts {
    ids: Vec<Uuid>,
    numbers: Vec<i32>,
    outcomes: Vec<Option<i16>>,
    started_at: Vec<i64>,
    ended_at: Vec<Option<i64>>,
    error_codes: Vec<Option<String>>,
    error_messages: Vec<Option<String>>,
}

impl Attempts {
    fn push(&mut self, job: Uuid, attempt: AttemptRecord) {
        let (code, message) = attempt.error.map(|error| (error.code, error.message)).unzip();
        self.ids.push(job);
        self.numbers.push(count(attempt.number));
        self.outcomes.push(attempt.outcome.map(|outcome| outcome.code()));
        self.started_at.push(attempt.started_at.as_millis());
        self.ended_at.push(attempt.ended_at.map(Timestamp::as_millis));
        self.error_codes.push(code);
        self.error_messages.push(message);
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![
            &self.ids,
            &self.numbers,
            &self.outcomes,
            &self.started_at,
            &self.ended_at,
            &self.error_codes,
            &self.error_messages,
        ]
    }
}
