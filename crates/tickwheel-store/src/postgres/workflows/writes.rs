//! What steps write, turned into columns: one array a column is what a batched statement takes. What it is was decided
//! under the locks, so it is written as it is.

use const_format::formatcp;
use tickwheel_core::workflow::{FanOut, ReconcileRequest, Run, RunNotice};
use tickwheel_core::{Job, Timestamp};
use uuid::Uuid;

use super::reconcile_requests::DELETE_RECONCILED;
use crate::codes::OF_RUN;
use crate::columns::receiver_key;
use crate::postgres::pipeline::{BoundStatement, Param};
use crate::postgres::row::count;
use crate::schedule_columns::encode_number;
use crate::workflow_columns::state_of;

const UPDATE_TASKS: &str = "\
UPDATE jobs AS j
SET state = s.state, due_at = s.due_at, payload = coalesce(s.payload, j.payload), cancel_requested = s.cancel_requested,
    fan_out = s.fan_out, open_parents = s.open_parents, failed_parents = s.failed_parents, release = s.release
FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::text[], $5::boolean[], $6::integer[], $7::integer[], $8::smallint[],
            $9::text[])
  AS s (id, state, due_at, payload, cancel_requested, open_parents, failed_parents, release, fan_out)
WHERE j.id = ANY (ARRAY[s.id])";

const UPDATE_RUNS: &str = "\
UPDATE workflow_runs AS r
SET total = s.total, open = s.open, revision = s.revision, status = s.status, cancel_requested = s.cancel_requested,
    ended_at = s.ended_at, next_index = s.next_index, after_first = s.after_first, blocked = s.blocked, stalled = s.stalled,
    stalls_at = s.stalls_at, had_failure = s.had_failure, data_bytes = s.data_bytes,
    paused_at = s.paused_at
FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::bigint[], $5::smallint[], $6::boolean[], $7::bigint[],
            $8::integer[], $9::integer[], $10::integer[], $11::integer[], $12::bigint[], $13::boolean[], $14::bigint[], $15::bigint[])
  AS s (id, total, open, revision, status, cancel_requested, ended_at, next_index, after_first, blocked, stalled, stalls_at,
        had_failure, data_bytes, paused_at)
WHERE r.id = ANY (ARRAY[s.id])";

const INSERT_NOTICES: &str = formatcp!(
    "\
INSERT INTO callbacks (subject, subject_id, completed_at, due_at, attempt, state, url, document, receiver)
SELECT {OF_RUN}, s.run_id, s.notified_at, s.notified_at, 0, s.state, s.url, s.document, s.receiver
FROM unnest($1::uuid[], $2::bigint[], $3::smallint[], $4::text[], $5::text[], $6::text[])
  AS s (run_id, notified_at, state, url, document, receiver)"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[UPDATE_TASKS, UPDATE_RUNS, INSERT_NOTICES];

/// Jobs that were not over and are not.
#[derive(Default)]
pub(super) struct TaskRows<'a> {
    ids: Vec<Uuid>,
    states: Vec<i16>,
    due_at: Vec<i64>,
    payloads: Vec<Option<&'a str>>,
    cancel_requested: Vec<bool>,
    open_parents: Vec<i32>,
    failed_parents: Vec<i32>,
    releases: Vec<i16>,
    fan_outs: Vec<Option<String>>,
}

impl<'a> TaskRows<'a> {
    /// As they were and as they are. A payload is written where it is another one.
    pub fn of(jobs: impl IntoIterator<Item = (&'a Job, &'a Job)>) -> Self {
        let mut rows = Self::default();
        for (before, after) in jobs {
            rows.ids.push(after.id.as_uuid());
            rows.states.push(after.state().code());
            rows.due_at.push(after.due_at.as_millis());
            rows.payloads.push((before.payload != after.payload).then(|| after.payload.as_str()));
            rows.cancel_requested.push(after.cancel_requested);
            rows.open_parents.push(count(after.parents.open));
            rows.failed_parents.push(count(after.parents.failed));
            rows.releases.push(after.release().code());
            rows.fan_outs.push(after.fan_out.map(FanOut::to_text));
        }
        rows
    }

    pub fn statement(&self) -> Option<BoundStatement<'_>> {
        let params: [Param<'_>; 9] = [
            &self.ids,
            &self.states,
            &self.due_at,
            &self.payloads,
            &self.cancel_requested,
            &self.open_parents,
            &self.failed_parents,
            &self.releases,
            &self.fan_outs,
        ];
        (!self.ids.is_empty()).then(|| (UPDATE_TASKS, params.to_vec()))
    }
}

/// How runs stand.
#[derive(Default)]
pub(super) struct RunRows {
    ids: Vec<Uuid>,
    total: Vec<i32>,
    open: Vec<i32>,
    revisions: Vec<i64>,
    statuses: Vec<i16>,
    cancel_requested: Vec<bool>,
    ended_at: Vec<Option<i64>>,
    next_index: Vec<i32>,
    after_first: Vec<Option<i32>>,
    blocked: Vec<i32>,
    stalled: Vec<i32>,
    stalls_at: Vec<Option<i64>>,
    had_failure: Vec<bool>,
    data_bytes: Vec<i64>,
    paused_at: Vec<Option<i64>>,
}

impl RunRows {
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let mut rows = Self::default();
        for run in runs {
            let progress = &run.progress;
            rows.ids.push(run.id.as_uuid());
            rows.total.push(count(run.total));
            rows.open.push(count(run.open));
            rows.revisions.push(encode_number(run.revision));
            rows.statuses.push(progress.status.code());
            rows.cancel_requested.push(progress.cancel_requested);
            rows.ended_at.push(progress.ended_at.map(Timestamp::as_millis));
            rows.next_index.push(count(progress.next_index));
            rows.after_first.push(progress.after_first.map(count));
            rows.blocked.push(count(progress.blocked));
            rows.stalled.push(count(progress.stalled));
            rows.stalls_at.push(progress.stalls_at.map(Timestamp::as_millis));
            rows.had_failure.push(run.had_failure);
            rows.data_bytes.push(encode_number(progress.data_bytes));
            rows.paused_at.push(progress.paused_at.map(Timestamp::as_millis));
        }
        rows
    }

    pub fn statement(&self) -> Option<BoundStatement<'_>> {
        let params: [Param<'_>; 15] = [
            &self.ids,
            &self.total,
            &self.open,
            &self.revisions,
            &self.statuses,
            &self.cancel_requested,
            &self.ended_at,
            &self.next_index,
            &self.after_first,
            &self.blocked,
            &self.stalled,
            &self.stalls_at,
            &self.had_failure,
            &self.data_bytes,
            &self.paused_at,
        ];
        (!self.ids.is_empty()).then(|| (UPDATE_RUNS, params.to_vec()))
    }
}

/// The requests that were answered.
#[derive(Default)]
pub(super) struct ReconciledRows {
    ids: Vec<Uuid>,
    times: Vec<i64>,
}

impl ReconciledRows {
    pub fn of<'a>(reconciled: impl IntoIterator<Item = &'a ReconcileRequest>) -> Self {
        let reconciled =
            reconciled.into_iter().map(|request| (request.id.as_uuid(), encode_number(request.times)));
        let (ids, times) = reconciled.unzip();
        Self { ids, times }
    }

    pub fn statement(&self) -> Option<BoundStatement<'_>> {
        let params: [Param<'_>; 2] = [&self.ids, &self.times];
        (!self.ids.is_empty()).then(|| (DELETE_RECONCILED, params.to_vec()))
    }
}

/// What is told of runs.
#[derive(Default)]
pub(super) struct NoticeRows<'a> {
    ids: Vec<Uuid>,
    notified_at: Vec<i64>,
    states: Vec<i16>,
    urls: Vec<&'a str>,
    documents: Vec<&'a str>,
    receivers: Vec<String>,
}

impl<'a> NoticeRows<'a> {
    /// What is to be told of runs as they stand, and since when.
    pub fn of(notified: impl IntoIterator<Item = (&'a [RunNotice], &'a Run, Timestamp)>) -> Self {
        let mut rows = Self::default();
        for (notices, run, now) in notified {
            for notice in notices {
                rows.ids.push(run.id.as_uuid());
                rows.notified_at.push(now.as_millis());
                rows.states.push(state_of(run.progress.status).code());
                rows.urls.push(&notice.url);
                rows.documents.push(notice.body.as_str());
                rows.receivers.push(receiver_key(&notice.url));
            }
        }
        rows
    }

    pub fn statement(&self) -> Option<BoundStatement<'_>> {
        let params: [Param<'_>; 6] =
            [&self.ids, &self.notified_at, &self.states, &self.urls, &self.documents, &self.receivers];
        (!self.ids.is_empty()).then(|| (INSERT_NOTICES, params.to_vec()))
    }
}
