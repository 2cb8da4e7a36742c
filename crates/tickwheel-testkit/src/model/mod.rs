//! The store as it should be: a few maps and no cleverness.
//!
//! [`Model`] is the executable specification of [`tickwheel_core::ports::Store`],
//! [`tickwheel_core::ports::ScheduleStore`] and
//! [`tickwheel_core::ports::WorkflowStore`]: synchronous, deterministic, one method a verb.
//! The conformance suite compares every real store with it step by step, and simulations use it as the shared truth.
//! [`ModelStore`] puts it behind the port, with faults on demand.
//!
//! Deliberately not here: durability, indexes, bounds on the work of a list.

mod attempt_notes;
mod calendars;
mod callbacks;
mod claim;
mod controls;
mod dependencies;
mod faults;
mod fires;
mod jobs;
mod lists;
mod runs;
mod schedule_store;
mod schedules;
mod sessions;
mod settle;
mod store;
mod submit;
mod workers;
mod workflow_store;
mod workflows;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tickwheel_core::ports::{Callback, CallbackRecord, Session};
use tickwheel_core::schedule::{Calendar, Fire, Schedule};
use tickwheel_core::settle::DeadReason;
use tickwheel_core::workflow::{Run, Workflow};
use tickwheel_core::{AttemptRecord, Job, JobId, RunId, ScheduleId, SessionId, State, Timestamp};
use uuid::Uuid;

pub use faults::{Fault, Verb};
pub use store::ModelStore;

/// Everything the store knows, and every verb of the port as a plain method.
#[derive(Clone, Debug, Default)]
pub struct Model {
    live: BTreeMap<JobId, Job>,
    finished: BTreeMap<JobId, Job>,
    /// By parent.
    children: BTreeMap<JobId, BTreeSet<JobId>>,
    /// Attempts that are over and not the job's last word; see [`Model::attempts`].
    past_attempts: BTreeMap<(JobId, u32), AttemptRecord>,
    dead_letters: BTreeMap<JobId, DeadMark>,
    idempotency: BTreeMap<(Arc<str>, String), KeyMark>,
    callbacks: BTreeMap<i64, PendingCallback>,
    callbacks_written: i64,
    /// What came of callbacks so far.
    callback_records: BTreeMap<(Uuid, i64), CallbackRecord>,
    queues: BTreeMap<String, Paused>,
    schedules: BTreeMap<ScheduleId, Schedule>,
    /// By nominal time.
    fires: BTreeMap<(ScheduleId, Timestamp), Fire>,
    /// By tenant and name.
    calendars: BTreeMap<(Arc<str>, Arc<str>), Calendar>,
    /// By tenant, name and version.
    workflows: BTreeMap<(Arc<str>, Arc<str>, u32), Workflow>,
    /// The versions that were the latest when their workflow was removed.
    removed_workflows: BTreeSet<(Arc<str>, Arc<str>, u32)>,
    runs: BTreeMap<RunId, Run>,
    /// By tenant and key.
    run_keys: BTreeMap<(Arc<str>, String), RunKeyMark>,
    /// The reconcile requests, and the number of the latest one.
    reconcile_requests: BTreeMap<JobId, u64>,
    reconcile_request_count: u64,
    sessions: BTreeMap<SessionId, Session>,
    workers: workers::WorkerSessions,
    notes: attempt_notes::Notes,
    killed: BTreeSet<SessionId>,
    halted: bool,
    secret: Option<[u8; 32]>,
}

/// Whether a queue is paused.
type Paused = bool;

#[derive(Clone, Copy, Debug)]
struct DeadMark {
    failed_at: Timestamp,
    reason: DeadReason,
}

#[derive(Clone, Copy, Debug)]
struct KeyMark {
    fingerprint: [u8; 32],
    job_id: JobId,
}

#[derive(Clone, Copy, Debug)]
struct RunKeyMark {
    fingerprint: [u8; 32],
    run: RunId,
}

#[derive(Clone, Debug)]
struct PendingCallback {
    callback: Callback,
    due_at: Timestamp,
    /// Who sends it.
    session: Option<SessionId>,
}

impl Model {
    /// A store in which nothing ever happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// The jobs that wait or run.
    pub const fn live(&self) -> &BTreeMap<JobId, Job> {
        &self.live
    }

    /// The jobs that have ended.
    pub const fn finished(&self) -> &BTreeMap<JobId, Job> {
        &self.finished
    }

    /// The job, live or finished.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.live.get(&id).or_else(|| self.finished.get(&id))
    }

    /// The schedules.
    pub const fn schedules(&self) -> &BTreeMap<ScheduleId, Schedule> {
        &self.schedules
    }

    /// The runs of workflows.
    pub const fn runs(&self) -> &BTreeMap<RunId, Run> {
        &self.runs
    }

    /// The sessions that have not ended.
    pub const fn sessions(&self) -> &BTreeMap<SessionId, Session> {
        &self.sessions
    }

    /// The callbacks that are not over, in the order in which they were written.
    pub fn callbacks(&self) -> impl Iterator<Item = &Callback> {
        self.callbacks.values().map(|pending| &pending.callback)
    }

    /// Files an ended job. Its outcome becomes a callback if anybody wants to know.
    fn finish(&mut self, job: Job, callback_url: Option<String>) -> &Job {
        let job = job.archived();
        if let Some(url) = callback_url {
            self.write_callback(&job, &url);
        }
        self.live.remove(&job.id);
        self.finished.entry(job.id).insert_entry(job).into_mut()
    }

    fn is_paused(&self, queue: &str) -> bool {
        self.queues.get(queue).copied().unwrap_or(false)
    }

    fn running(&self, id: JobId, attempt: u32) -> Option<&Job> {
        self.live.get(&id).filter(|job| job.state() == State::Running && job.attempt == attempt)
    }
}
