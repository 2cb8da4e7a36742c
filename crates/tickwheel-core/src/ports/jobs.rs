//! Jobs in the store: from submission to the end, and what people do to them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::creation::{Creation, UnknownParent};
use super::store::StoreResult;

use crate::attempt::AttemptRecord;
use crate::change::Change;
use crate::id::{JobId, Partition, RunId, ScheduleId, SessionId};
use crate::job::{Job, Priority, TargetKind};
use crate::matching::{Class, Route};
use crate::parents::Release;
use crate::settle::Settlement;
use crate::state::IllegalTransition;
use crate::time::Timestamp;

/// A job to be stored.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The job, state and times filled in.
    pub job: Job,
    /// Makes a repeated submission harmless.
    pub idempotency: Option<Idempotency>,
}

/// An idempotency key and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Unique within the tenant.
    pub key: String,
    /// A digest of the request: the same key with another one is a conflict.
    pub fingerprint: [u8; 32],
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The job as it is now.
    Done(Box<Job>),
    /// There is no such job.
    NotFound,
    /// The job's state does not allow it.
    Illegal(IllegalTransition),
}

/// A place in the order in which jobs become due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueCursor {
    /// The time.
    pub due_at: Timestamp,
    /// Among those of the same time, the id.
    pub id: JobId,
}

impl DueCursor {
    /// Before everything.
    pub const START: Self = Self { due_at: Timestamp::from_millis(i64::MIN), id: JobId::FIRST };

    /// The place right before this one.
    #[must_use]
    pub fn just_before(self) -> Self {
        match self.id.before() {
            Some(id) => Self { id, ..self },
            None => Self { due_at: self.due_at - Duration::from_millis(1), id: JobId::LAST },
        }
    }
}

/// A set of partitions, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionSet(u64);

impl PartitionSet {
    /// All of them.
    pub const ALL: Self = Self(u64::MAX);
    /// None of them.
    pub const NONE: Self = Self(0);

    /// With `partition` added.
    #[must_use]
    pub const fn with(self, partition: Partition) -> Self {
        Self(self.0 | 1 << partition.0)
    }

    /// Without `partition`.
    #[must_use]
    pub const fn without(self, partition: Partition) -> Self {
        Self(self.0 & !(1 << partition.0))
    }

    /// Whether `partition` is in it.
    pub const fn contains(self, partition: Partition) -> bool {
        self.0 >> partition.0 & 1 == 1
    }

    /// The bits, lowest partition first, as a signed number for the stores.
    pub const fn bits(self) -> i64 {
        self.0 as i64
    }
}

/// What a timer has to know of a waiting job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueJob {
    /// The job.
    pub id: JobId,
    /// Its partition.
    pub partition: Partition,
    /// When it may start.
    pub due_at: Timestamp,
    /// How urgent it is.
    pub priority: Priority,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// Where it waits.
    pub queue: Arc<str>,
    /// With whom it shares its turns.
    pub group: FairShareGroup,
    /// Who could run it.
    pub class: Class,
}

/// Jobs that share their turns: among the due jobs of a tenant and priority, a run, a schedule and the rest are served
/// one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FairShareGroup(Uuid);

impl FairShareGroup {
    /// Jobs of no run and no schedule.
    pub const REST: Self = Self(Uuid::nil());

    /// The tasks of a run.
    pub const fn of_run(run: RunId) -> Self {
        Self(run.as_uuid())
    }

    /// The jobs of a schedule.
    pub const fn of_schedule(schedule: ScheduleId) -> Self {
        Self(schedule.as_uuid())
    }

    /// The group of a job, by what its row says of it: only tasks of runs are released by somebody else than the
    /// counts.
    pub fn of(id: JobId, release: Release, schedule: Option<ScheduleId>) -> Self {
        match (release, schedule) {
            (Release::Counted, None) => Self::REST,
            (Release::Counted, Some(schedule)) => Self::of_schedule(schedule),
            _ => Self::of_run(RunId::of_task(id)),
        }
    }
}

impl DueJob {
    /// Its place in the order of due jobs.
    pub const fn cursor(&self) -> DueCursor {
        DueCursor { due_at: self.due_at, id: self.id }
    }
}

impl DueJob {
    fn of_class(job: &Job, class: Class) -> Self {
        Self {
            id: job.id,
            partition: job.partition,
            due_at: job.due_at,
            priority: job.priority,
            tenant: job.tenant.clone(),
            queue: job.queue.clone(),
            group: FairShareGroup::of(job.id, job.release(), job.schedule_id),
            class,
        }
    }
}

impl From<&Job> for DueJob {
    fn from(job: &Job) -> Self {
        Self::of_class(job, Class::of(job))
    }
}

/// A job that has become scheduled: all that its planner needs, so that nobody reads the whole of it before it is
/// claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// For the timer.
    pub due: DueJob,
    /// Who runs it.
    pub target: TargetKind,
    /// Its route, where a job for workers is at hand as a whole. The others are of routes that are known already.
    pub route: Option<Arc<Route>>,
}

impl From<&Job> for Scheduled {
    fn from(job: &Job) -> Self {
        let route = Route::of(job).map(Arc::new);
        let class = Class::of_route(route.as_ref().map(|route| route.id));
        Self { due: DueJob::of_class(job, class), target: job.spec.target.kind(), route }
    }
}

/// Which waiting jobs to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadDue {
    /// Of this class,
    pub class: Class,
    /// of this priority,
    pub priority: Priority,
    /// of these partitions,
    pub partitions: PartitionSet,
    /// after this place,
    pub after: DueCursor,
    /// due at this moment at the latest,
    pub until: Timestamp,
    /// this many at the most.
    pub limit: usize,
}

/// Which jobs to take, and for whom.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Who takes them.
    pub session: SessionId,
    /// If that is a worker: the session of the node that claims in its name.
    pub claimed_by: Option<SessionId>,
    /// The jobs, no id twice.
    pub jobs: Vec<JobId>,
    /// The time: a job due later is not taken.
    pub now: Timestamp,
}

/// What became of a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It is written.
    Applied,
    /// The job is not (or no longer) running that attempt: nothing changed.
    Stale,
    /// The job would have gone again, but somebody wants it cancelled: nothing changed, decide anew.
    CancelRequested,
}

/// What became of a batch of settlements.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SettledBatch {
    /// An answer a settlement, in order.
    pub settled: Vec<Settled>,
    /// The jobs that waited for one that completed, and wait no more: they are scheduled.
    pub released: Vec<Scheduled>,
    /// Whether there are new reconcile requests.
    pub reconcile_requested: bool,
}

/// Jobs, one transaction per verb: see [`Store`](super::Store) for what holds for all of them.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Stores jobs. MUST be atomic: all of the batch that is new is stored, or nothing. A job whose idempotency key
    /// was seen (before, or earlier in the batch) is not stored and its answer says what the key stands for.
    /// Queue names not seen before become known. A new job is answered as it is stored.
    ///
    /// A job that depends on others ([`JobSpec::depends_on`](crate::job::JobSpec)) is stored as [`Job::waiting_for`]
    /// says for the states its parents have in that very transaction, and each of them knows it as a child from then
    /// on: a parent that ends while this is under way is counted once. One that depends on a job its tenant does not
    /// have is left out; the others are stored.
    async fn submit_jobs(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Creation<Job, UnknownParent>>>;

    /// Waiting jobs (`scheduled`, neither in a paused queue nor of a paused run) in the order of their cursor. Of those
    /// that the built-in executors run, the ones with one of these kinds of target.
    async fn load_due(&self, load: LoadDue, kinds: &[TargetKind]) -> StoreResult<Vec<DueJob>>;

    /// Moves due jobs to `running` under `claim.session`: the attempt number grows by one, `started_at` is `claim.now`,
    /// `deadline` is that plus the job's timeout. The error of the previous attempt, if any, stays visible.
    /// MUST be atomic per job: no job is returned to two claimants. MUST leave out, silently, jobs that are not
    /// `scheduled`, not yet due, in a paused queue, or of a paused run; all of them while halted; all of them if the
    /// session has ended.
    async fn claim(&self, claim: Claim) -> StoreResult<Vec<Job>>;

    /// Ends attempts. MUST change nothing for a job that is not running exactly that attempt. In one transaction: the
    /// job's new state, the attempt's record, the dead letter, the callback to send. Ended jobs leave the live table.
    ///
    /// A job that returns to its queue ([`Next::ReturnToQueue`](crate::settle::Next)) MUST be as before the attempt but
    /// for `due_at` and the attempt's number: the attempt has no record, the error of the one before stays visible, and
    /// `started_at` is again that of the one before, or nothing.
    ///
    /// In the same transaction every child of a job that ended counts it
    /// ([`Parents::after`](crate::parents::Parents::after)), once, whatever runs twice: one whose parents are all done
    /// becomes `scheduled`, due at its `execute_at` or at the parent's `ended_at`, the later of the two; one with a
    /// failed or cancelled parent becomes `blocked`. What the counts mean to a task of a workflow, and what its run has
    /// to know, is said at [`Release`](crate::parents::Release) and
    /// [`RunStore::reconcile_requests`](super::RunStore::reconcile_requests).
    async fn settle(&self, settlements: Vec<Settlement>) -> StoreResult<SettledBatch>;

    /// The attempt goes on without a session: whoever holds its token will report. Compare-and-set like
    /// [`settle`](Self::settle). If somebody wants the job cancelled nothing changes, except that a job which waits for
    /// a run of a workflow goes on until that has ended.
    async fn await_report(&self, job_id: JobId, attempt: u32) -> StoreResult<Settled>;

    /// The job, live or finished.
    async fn get_job(&self, id: JobId) -> StoreResult<Option<Job>>;

    /// The jobs that exist, in no particular order.
    async fn get_jobs(&self, ids: Vec<JobId>) -> StoreResult<Vec<Job>>;

    /// Those of these jobs that have ended. A run of a workflow goes by the id of its job number zero. For whoever
    /// waits for many: nothing of a job is read but its id.
    async fn ended_among(&self, ids: Vec<JobId>) -> StoreResult<Vec<JobId>>;

    /// Applies [`crate::change::apply`]. MUST be atomic: read, apply and write in one transaction. A cancelled job
    /// leaves the live table (and its callback is written), a retried one comes back to it and is no dead letter any
    /// more.
    ///
    /// The children of a cancelled job are blocked; those of a retried one that are blocked or pending wait for it
    /// again ([`Parents::after_retries`](crate::parents::Parents::after_retries)). A retried job's own parents are
    /// counted as they stand then, before the change is applied.
    async fn change_job(&self, id: JobId, change: Change, now: Timestamp) -> StoreResult<Changed>;

    /// Every attempt of a job, the first one first; the one under way included. `None`: no such job.
    async fn attempts(&self, id: JobId) -> StoreResult<Option<Vec<AttemptRecord>>>;

    /// Takes a job off the list of dead letters; the job stays in history. `false`: it was not on it.
    async fn discard_dead_letter(&self, id: JobId) -> StoreResult<bool>;
}
