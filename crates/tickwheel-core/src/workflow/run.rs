//! A run of a workflow: what was asked for, how far it has come, and the steps by which it goes on.
//!
//! The tasks of a run are jobs; nobody keeps a second record of how they stand. A run only counts those that have not
//! ended, so that whoever ends one knows in the same transaction whether the whole run has to be reconciled.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::position::{FanOut, TaskPosition};
use crate::attempt::Failure;
use crate::change::{Change, apply, cancel_elsewhere};
use crate::id::{JobId, Partition, RunId};
use crate::job::{Job, JsonText};
use crate::parents::{NOT_UNTIL_RELEASED, Parents};
use crate::payload::Payload;
use crate::state::{JobEvent, State};
use crate::time::Timestamp;
use crate::words::words;

words! {
    /// Where a run stands. The numbers are stored.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunStatus {
        /// Something of it runs, or will.
        #[default]
        Running = "running",
        /// Every task ended well.
        Completed = "completed",
        /// Nothing goes on without somebody's help.
        Failed = "failed",
        /// Somebody ended it.
        Cancelled = "cancelled",
        /// None of its jobs starts until somebody resumes it. Otherwise as if it were running: what runs goes on, and
        /// what follows from its end is decided.
        Paused = "paused",
    }
}

impl RunStatus {
    /// Whether nothing more happens to it by itself, nor by a resume.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Running | Self::Paused)
    }
}

/// How far a run has come, as the reconciler knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// Where it stands.
    pub status: RunStatus,
    /// Somebody wants it to end.
    pub cancel_requested: bool,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Since when it is paused.
    pub paused_at: Option<Timestamp>,
    /// The number that its next job gets.
    pub next_index: u32,
    /// The number of the first of the tasks that come after all others, once they are there.
    pub after_first: Option<u32>,
    /// So many of its open jobs end only when others do: blocked ones, and fan-outs. When no others are open, the run
    /// is to be reconciled. More than there are costs a reconcile.
    pub blocked: u32,
    /// So many of its tasks wait for longer than they should.
    pub stalled: u32,
    /// When to check whether a task waits for too long.
    pub stalls_at: Option<Timestamp>,
    /// So many bytes of data it has made ([`DataLimits`](super::DataLimits)).
    pub data_bytes: u64,
}

impl RunProgress {
    /// After one of its jobs, that had ended, was brought back: it goes on. One that is paused stays so.
    #[must_use]
    pub const fn retried(self) -> Self {
        Self {
            status: if self.status.is_over() { RunStatus::Running } else { self.status },
            cancel_requested: false,
            ended_at: None,
            after_first: None,
            ..self
        }
    }
}

/// A run of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// UUIDv7.
    pub id: RunId,
    /// The slice of the job space that it and its jobs belong to.
    pub partition: Partition,
    /// Who owns it.
    pub tenant: Arc<str>,
    /// Of which workflow,
    pub workflow: Arc<str>,
    /// and which version of it.
    pub version: u32,
    /// What it was given.
    pub input: JsonText,
    /// The job that waits for it.
    pub job_id: Option<JobId>,
    /// When it was started.
    pub created_at: Timestamp,
    /// So many jobs it has,
    pub total: u32,
    /// and so many of them have not ended. Counted by whoever ends one.
    pub open: u32,
    /// One of them has ended other than well at some time. Once it is so it stays so, whatever came of it.
    pub had_failure: bool,
    /// Grows with every write of the progress: whoever decided on an older one has decided on something else.
    pub revision: u64,
    /// How far it has come.
    pub progress: RunProgress,
}

/// Tasks of one run that ended in one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskEnds {
    /// So many.
    pub ended: u32,
    /// Some of them ended other than well.
    pub badly: bool,
}

impl TaskEnds {
    /// One more has ended in this state.
    pub fn count(&mut self, state: State) {
        self.ended += 1;
        self.badly |= state != State::Completed;
    }
}

/// What a run counts of its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCounts {
    /// So many have not ended,
    pub open: u32,
    /// and so many of those are blocked.
    pub blocked: u32,
    /// One has ended other than well at some time.
    pub had_failure: bool,
}

impl RunCounts {
    /// Those of a run.
    pub const fn of(run: &Run) -> Self {
        Self { open: run.open, blocked: run.progress.blocked, had_failure: run.had_failure }
    }

    /// After tasks have ended.
    #[must_use]
    pub const fn after(self, ends: TaskEnds) -> Self {
        Self {
            open: self.open.saturating_sub(ends.ended),
            had_failure: self.had_failure || ends.badly,
            ..self
        }
    }

    /// Whether the run needs a reconcile after these ends, which are counted already: something ended badly, or nothing
    /// but blocked tasks is open.
    pub const fn need_reconcile_after(self, ends: TaskEnds) -> bool {
        ends.ended > 0 && (ends.badly || self.open <= self.blocked)
    }
}

/// The errors of a run's tasks are read whole if they have no more bytes than this together;
pub const TASK_ERRORS_BYTES_MAX: u64 = 1 << 20;
/// otherwise each is cut to this many: ten thousand tasks may have failed, each with a long one.
pub const TASK_ERROR_BYTES_MAX: usize = 256;

/// A job of a run, without the data it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTask {
    /// The job.
    pub job_id: JobId,
    /// Its position.
    pub position: TaskPosition,
    /// Where it stands.
    pub state: State,
    /// What kind of work it is.
    pub job_type: Arc<str>,
    /// How the jobs stand that it waits for.
    pub parents: Parents,
    /// Number of the latest attempt.
    pub attempt: u32,
    /// When its next attempt may start, or the last one could.
    pub due_at: Timestamp,
    /// When the latest attempt started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Somebody asked the running attempt to stop.
    pub cancel_requested: bool,
    /// Why it failed, or was skipped.
    pub error: Option<TaskError>,
    /// Its items, of a fan-out.
    pub fan_out: Option<FanOut>,
}

impl RunTask {
    /// Of a job of a run.
    pub fn of(job: &Job) -> Option<Self> {
        Some(Self {
            job_id: job.id,
            position: job.spec.position.clone()?,
            state: job.state,
            job_type: job.job_type.clone(),
            parents: job.parents,
            attempt: job.attempt,
            due_at: job.due_at,
            started_at: job.started_at,
            completed_at: job.completed_at,
            cancel_requested: job.cancel_requested,
            error: job.error.clone().map(|failure| TaskError { failure, is_cut: false }),
            fan_out: job.fan_out,
        })
    }
}

/// Why a task failed or was skipped, as far as an overview of its run says. The whole is in the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskError {
    /// The failure, perhaps with the beginning of its message alone.
    pub failure: Failure,
    /// There is more of the message than this.
    pub is_cut: bool,
}

impl TaskError {
    /// Of a task in a run whose tasks' errors have `all_bytes` together. If that is too much, it is enough to know more
    /// than [`TASK_ERROR_BYTES_MAX`] bytes of the message.
    pub fn of(code: &str, message: &str, all_bytes: u64) -> Self {
        let shown = if all_bytes > TASK_ERRORS_BYTES_MAX { beginning(message) } else { message };
        Self { failure: Failure::new(code, shown), is_cut: shown.len() < message.len() }
    }
}

/// As much of an error as is repeated where many are told of it.
pub fn beginning(message: &str) -> &str {
    &message[..message.floor_char_boundary(TASK_ERROR_BYTES_MAX)]
}

/// A request to reconcile a run, or one job of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconcileRequest {
    /// The job; of a run as a whole, the number zero of it.
    pub id: JobId,
    /// How often it was made: if it was made again meanwhile, it is not done.
    pub times: u64,
}

impl ReconcileRequest {
    /// The id of the request for a run as a whole.
    pub fn id_of_run(run: RunId) -> JobId {
        JobId::of_task(run, 0)
    }

    /// Whether it is about the run as a whole.
    pub fn is_whole(self) -> bool {
        Self::id_of_run(self.run()) == self.id
    }

    /// The run.
    pub const fn run(self) -> RunId {
        RunId::of_task(self.id)
    }
}

/// What the reconciler does to a job of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskChange {
    /// It may start.
    Release {
        /// With this data, if it took the results of others to know it.
        payload: Option<Payload>,
    },
    /// It cannot go on: something it needs did not end well.
    Block,
    /// It can again.
    Unblock,
    /// It waits for its items, so many of which have not ended.
    Expand {
        /// They are these.
        fan_out: FanOut,
        /// Whether this is the first time: then none of them has ended.
        fresh: bool,
    },
    /// It ends without running.
    End {
        /// In this state.
        state: State,
        /// With this result.
        result: Option<JsonText>,
        /// For this reason.
        error: Option<Failure>,
    },
    /// It is asked to stop. If nobody here is at work on it, it ends.
    Stop,
    /// It is to run again.
    Retry,
    /// It is to begin anew: it waits for what it depends on, and gets its data again.
    Restart,
}

impl TaskChange {
    /// Whether it is for a job that has ended, and has not afterwards.
    pub const fn brings_back(&self) -> bool {
        matches!(self, Self::Retry | Self::Restart)
    }

    /// The job after the change; `None` if it is not in a state for it, because somebody else was faster.
    pub fn apply(&self, job: &Job, now: Timestamp) -> Option<Job> {
        let waits = matches!(job.state, State::Pending | State::Blocked);
        let mut job = job.clone();
        match self {
            Self::Release { payload } if waits => {
                job.release_at(now).ok()?;
                if let Some(payload) = payload {
                    job.payload = payload.clone();
                }
            }
            Self::Block => job.undergo(JobEvent::ParentFailed).ok()?,
            Self::Unblock => job.undergo(JobEvent::Unblocked).ok()?,
            Self::Expand { fan_out, fresh } if waits && *fresh != job.fan_out.is_some() => {
                job.fan_out = Some(*fan_out);
                if *fresh {
                    job.parents = Parents { open: fan_out.items, failed: 0 };
                }
            }
            Self::End { state, result, error } => {
                let event = match state {
                    State::Completed => JobEvent::MarkedDone,
                    State::Skipped => JobEvent::Skipped,
                    State::Failed => JobEvent::Refused,
                    _ => JobEvent::Cancelled,
                };
                if job.state == State::Running {
                    return None;
                }
                job.undergo(event).ok()?;
                job.due_at = if job.due_at == NOT_UNTIL_RELEASED { now } else { job.due_at };
                job.completed_at = Some(now);
                job.last_outcome = None;
                job.result.clone_from(result);
                job.error.clone_from(error);
            }
            Self::Stop if job.awaits_report() => cancel_elsewhere(&mut job, now).ok()?,
            Self::Stop if job.state == State::Running => job.cancel_requested = true,
            Self::Retry => return retried(&job, now),
            Self::Restart => {
                job = retried(&job, now)?;
                if job.state == State::Scheduled {
                    job.hold().ok()?;
                }
            }
            Self::Release { .. } | Self::Expand { .. } | Self::Stop => return None,
        }
        Some(job)
    }
}

fn retried(job: &Job, now: Timestamp) -> Option<Job> {
    apply(job, &Change::Retry { payload: None }, now).ok()
}

/// Something to be told about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunNotice {
    /// Where to.
    pub url: String,
    /// What: [`RunEventDetails`](super::RunEventDetails), as a JSON document.
    pub body: JsonText,
}

/// One decision about a run, to be carried out as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStep {
    /// Of this run,
    pub run: RunId,
    /// if it still has this revision:
    pub revision: u64,
    /// at this time
    pub now: Timestamp,
    /// these of its jobs change, in this order,
    pub changes: Vec<(JobId, TaskChange)>,
    /// these are added, as they are,
    pub jobs: Vec<Job>,
    /// these of them are to be reconciled at once,
    pub reconcile_requests: Vec<JobId>,
    /// this is how far it has come then, if that is any different,
    pub progress: Option<RunProgress>,
    /// these requests are answered by it,
    pub reconciled: Vec<ReconcileRequest>,
    /// and this is to be told.
    pub notices: Vec<RunNotice>,
}

/// One of the jobs of a run, which are in the order of their numbers. Numbers may be missing: of those that are still
/// to be made.
pub fn task_at(tasks: &[RunTask], index: u32) -> Option<&RunTask> {
    let at = index.checked_sub(super::position::FIRST_INDEX)? as usize;
    let near = tasks.get(at).filter(|task| task.position.index == index);
    near.or_else(|| tasks.get(tasks.binary_search_by_key(&index, |task| task.position.index).ok()?))
}

impl RunStep {
    /// Whether it pauses the run. One that finds it paused does not.
    pub fn pauses(&self) -> bool {
        self.progress.is_some_and(|progress| {
            progress.status == RunStatus::Paused && progress.paused_at == Some(self.now)
        })
    }

    /// How many bytes of data it writes.
    pub fn data_bytes(&self) -> usize {
        let changed = self.changes.iter().map(|(_, change)| match change {
            TaskChange::Release { payload } => payload.as_ref().map_or(0, |payload| payload.as_str().len()),
            TaskChange::End { result, .. } => result.as_ref().map_or(0, |result| result.as_str().len()),
            _ => 0,
        });
        changed.sum::<usize>() + self.jobs.iter().map(|job| job.payload.as_str().len()).sum::<usize>()
    }

    /// One that does nothing yet.
    pub const fn nothing(run: &Run, now: Timestamp) -> Self {
        Self {
            run: run.id,
            revision: run.revision,
            now,
            changes: Vec::new(),
            jobs: Vec::new(),
            reconcile_requests: Vec::new(),
            progress: None,
            reconciled: Vec::new(),
            notices: Vec::new(),
        }
    }
}
