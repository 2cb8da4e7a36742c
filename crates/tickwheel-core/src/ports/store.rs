//! The store: the only truth. Timers, queues and owners are derived from it and may vanish at any moment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::callbacks::{Callback, CallbackRecord, CallbackTry, TakeCallbacks};
use super::schedules::ScheduleStore;
use super::workflows::WorkflowStore;
use crate::attempt::AttemptRecord;
use crate::callback::Receiver;
use crate::change::Change;
use crate::id::{JobId, Partition, RunId, ScheduleId, SessionId};
use crate::job::{Job, Priority, TargetKind};
use crate::parents::Release;
use crate::settle::{DeadReason, Settlement};
use crate::state::{IllegalTransition, State};
use crate::time::Timestamp;

/// Why the store did not do what was asked. Tells whether asking again is safe.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was changed: asking again is safe.
    #[error("the store did not do it: {0}")]
    Aborted(String),
    /// It may or may not have been done: read before asking again.
    #[error("the store did not say whether it did it: {0}")]
    Unknown(String),
    /// What is stored makes no sense to this version.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// Whether nothing was changed for certain.
    pub const fn is_certainly_aborted(&self) -> bool {
        matches!(self, Self::Aborted(_))
    }
}

/// A result of the store.
pub type StoreResult<T> = Result<T, StoreError>;

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

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It is stored.
    Created,
    /// The same request was seen before: this is its job.
    Existing(Box<Job>),
    /// The key was seen before with another request, which made this job.
    Conflict(JobId),
    /// It depends on other jobs, and is stored as they make it: pending, blocked, or scheduled if all of them have completed.
    Linked(Box<Job>),
    /// It depends on a job that its tenant does not have: nothing is stored of it.
    UnknownParent(JobId),
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
    pub group: Group,
}

/// Jobs that share their turns: among the due jobs of a tenant and priority, a run, a schedule and the rest are served one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(Uuid);

impl Group {
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

    /// The group of a job, by what its row says of it: only tasks of runs are let go by somebody else than the counts.
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

impl From<&Job> for DueJob {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id,
            partition: job.partition,
            due_at: job.due_at,
            priority: job.priority,
            tenant: job.tenant.clone(),
            queue: job.queue.clone(),
            group: Group::of(job.id, job.release(), job.schedule_id),
        }
    }
}

/// A job that has become scheduled: all that its planner needs, so that nobody reads the whole of it before it is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// For the timer.
    pub due: DueJob,
    /// Who runs it.
    pub target: TargetKind,
}

impl From<&Job> for Scheduled {
    fn from(job: &Job) -> Self {
        Self { due: DueJob::from(job), target: job.spec.target.kind() }
    }
}

/// Which waiting jobs to load.
#[derive(Clone, Debug)]
pub struct LoadDue {
    /// Of this priority,
    pub priority: Priority,
    /// of these partitions,
    pub partitions: PartitionSet,
    /// for one of these kinds of target,
    pub kinds: Vec<TargetKind>,
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
    /// Whether the conductor has something new to look at.
    pub looks: bool,
}

/// A process that runs jobs, and until when it is trusted to be alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// A name for people.
    pub node: String,
    /// When its lease ends unless renewed.
    pub expires_at: Timestamp,
}

/// Which running jobs nobody takes care of any more.
#[derive(Clone, Copy, Debug)]
pub struct FindAbandoned {
    /// The time.
    pub now: Timestamp,
    /// How long past its deadline a running attempt counts as abandoned.
    pub grace: Duration,
    /// This many at the most.
    pub limit: usize,
}

/// A page of a list, and where the next one starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, C> {
    /// What was found, in order.
    pub items: Vec<T>,
    /// Continue after this; `None` at the end. A page may be short or empty and still not be the last.
    pub next: Option<C>,
}

/// How much a list carries of the jobs in it. Unless told otherwise, all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Their payloads; left out, each is `null`.
    pub payload: bool,
    /// Their results; left out, there is none.
    pub result: bool,
    /// A page ends, whatever its limit, when what it carries has this many bytes. Whatever comes first is in it, however large.
    pub bytes_max: usize,
}

impl Default for Extent {
    fn default() -> Self {
        Self { payload: true, result: true, bytes_max: usize::MAX }
    }
}

/// Which jobs to list, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// In one of these states; none: in any.
    pub states: BTreeSet<State>,
    /// Of this type.
    pub job_type: Option<String>,
    /// In this queue.
    pub queue: Option<String>,
    /// With all of these tags.
    pub tags: BTreeSet<String>,
    /// Of this priority.
    pub priority: Option<Priority>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Made by this schedule.
    pub schedule_id: Option<ScheduleId>,
    /// A task of this run.
    pub run: Option<RunId>,
    /// Created at this moment or later.
    pub created_from: Option<Timestamp>,
    /// Created before this moment.
    pub created_before: Option<Timestamp>,
    /// Older than this job.
    pub after: Option<JobId>,
    /// This many at the most.
    pub limit: usize,
    /// What of them.
    pub extent: Extent,
}

/// A job that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job, as it ended.
    pub job: Job,
    /// When it was given up.
    pub failed_at: Timestamp,
    /// Why there was no other attempt.
    pub reason: DeadReason,
}

impl DeadLetter {
    /// Its place in the list.
    pub const fn cursor(&self) -> DeadLetterCursor {
        DeadLetterCursor { failed_at: self.failed_at, id: self.job.id }
    }
}

/// A place in the list of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterCursor {
    /// When it was given up.
    pub failed_at: Timestamp,
    /// Which job.
    pub id: JobId,
}

/// Which dead letters to list, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterQuery {
    /// Of this type.
    pub job_type: Option<String>,
    /// Of this queue.
    pub queue: Option<String>,
    /// After this place.
    pub after: Option<DeadLetterCursor>,
    /// This many at the most.
    pub limit: usize,
    /// What of their jobs.
    pub extent: Extent,
}

/// A queue as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Nothing of it is started.
    pub paused: bool,
}

/// What forbids starts: turned by people, through any server.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Controls {
    /// The stop switch is on.
    pub halted: bool,
    /// The queues that are paused, by name.
    pub paused_queues: Vec<String>,
    /// The runs of workflows that are paused, by id.
    pub paused_runs: Vec<RunId>,
}

/// The source of truth.
///
/// Every method is one transaction with a business meaning. Writes are durable when the method returns. Every change of a
/// job's state is a compare-and-set here; therefore two nodes that both believe in something can never both act on it.
/// Batches are ordered: answer `n` belongs to item `n`.
#[async_trait]
pub trait Store: ScheduleStore + WorkflowStore {
    // --- submission -----------------------------------------------------------------------------------------

    /// Stores jobs. MUST be atomic: all of the batch that is new is stored, or nothing. A job whose idempotency key
    /// was seen (before, or earlier in the batch) is not stored and its answer says what the key stands for.
    /// Queue names not seen before become known.
    ///
    /// A job that depends on others ([`JobSpec::depends_on`](crate::job::JobSpec)) is stored as [`Job::waiting_for`] says for the states its
    /// parents have in that very transaction, and each of them knows it as a child from then on: a parent that ends while this is under way
    /// is counted once. One that depends on a job its tenant does not have is left out; the others are stored.
    async fn submit_jobs(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>>;

    // --- the hot path ---------------------------------------------------------------------------------------

    /// Waiting jobs (`scheduled`, neither in a paused queue nor of a paused run), in the order of their cursor.
    async fn load_due(&self, load: LoadDue) -> StoreResult<Vec<DueJob>>;

    /// Moves due jobs to `running` under `claim.session`: the attempt number grows by one, `started_at` is `claim.now`,
    /// `deadline` is that plus the job's timeout. The error of the previous attempt, if any, stays visible.
    /// MUST be atomic per job: no job is returned to two claimants. MUST leave out, silently, jobs that are not
    /// `scheduled`, not yet due, in a paused queue, or of a paused run; all of them while halted; all of them if the
    /// session has ended.
    async fn claim(&self, claim: Claim) -> StoreResult<Vec<Job>>;

    /// Ends attempts. MUST change nothing for a job that is not running exactly that attempt. In one transaction: the job's
    /// new state, the attempt's record, the dead letter, the callback to send. Ended jobs leave the live table.
    ///
    /// A job that is given back ([`Next::GiveBack`](crate::settle::Next)) MUST be as before the attempt but for `due_at` and the attempt's number: the attempt has no record,
    /// the error of the one before stays visible, and `started_at` is again that of the one before, or nothing.
    ///
    /// In the same transaction every child of a job that ended counts it ([`Parents::after`](crate::parents::Parents::after)), once, whatever runs
    /// twice: one whose parents are all done becomes `scheduled`, due at its `execute_at` or at the parent's `ended_at`, the later
    /// of the two; one with a failed or cancelled parent becomes `blocked`. What the counts mean to a task of a workflow, and what its run has to
    /// know, is said at [`Release`](crate::parents::Release) and [`WorkflowStore::looks`].
    async fn settle(&self, settlements: Vec<Settlement>) -> StoreResult<SettledBatch>;

    /// The attempt goes on without a session: whoever holds its token will report. Compare-and-set like [`settle`](Self::settle). If somebody wants the job
    /// cancelled nothing changes, except that a job which waits for a run of a workflow goes on until that has ended.
    async fn await_report(&self, job_id: JobId, attempt: u32) -> StoreResult<Settled>;

    // --- sessions -------------------------------------------------------------------------------------------

    /// What time it is for everybody who shares this store: leases are written and judged by it. A store that several processes share MUST answer by a
    /// clock of its own, for theirs may differ; others answer `ours`.
    async fn now(&self, ours: Timestamp) -> StoreResult<Timestamp> {
        Ok(ours)
    }

    /// Makes a session known. It MUST be fresh.
    async fn open_session(&self, session: Session) -> StoreResult<()>;

    /// Prolongs a session's lease. `false`: it has ended, and so has the right to its jobs.
    async fn renew_session(&self, id: SessionId, expires_at: Timestamp) -> StoreResult<bool>;

    /// Ends a session; its attempts, if any are left, are abandoned.
    async fn end_session(&self, id: SessionId) -> StoreResult<()>;

    /// Ends every session whose lease is over or whose process is known to be dead, except `own`; says how many.
    async fn expire_sessions(&self, own: SessionId, now: Timestamp) -> StoreResult<usize>;

    /// Running jobs whose session has ended, or whose deadline passed more than the grace ago.
    async fn find_abandoned(&self, find: FindAbandoned) -> StoreResult<Vec<Job>>;

    // --- one job --------------------------------------------------------------------------------------------

    /// The job, live or finished.
    async fn get_job(&self, id: JobId) -> StoreResult<Option<Job>>;

    /// The jobs that exist, in no particular order.
    async fn get_jobs(&self, ids: Vec<JobId>) -> StoreResult<Vec<Job>>;

    /// Those of these jobs that have ended. A run of a workflow goes by the id of its job number zero. For whoever waits for many:
    /// nothing of a job is read but its id.
    async fn ended_among(&self, ids: Vec<JobId>) -> StoreResult<Vec<JobId>>;

    /// Applies [`crate::change::apply`]. MUST be atomic: read, apply and write in one transaction. A cancelled job leaves the
    /// live table (and its callback is written), a revived one comes back to it and is no dead letter any more.
    ///
    /// The children of a cancelled job are blocked; those of a revived one that are blocked or pending wait for it again
    /// ([`Parents::after_revival`](crate::parents::Parents::after_revival)). A revived job's own parents are counted as they stand then, before the change is applied.
    async fn change_job(&self, id: JobId, change: Change, now: Timestamp) -> StoreResult<Changed>;

    /// Every attempt of a job, the first one first; the one under way included. `None`: no such job.
    async fn attempts(&self, id: JobId) -> StoreResult<Option<Vec<AttemptRecord>>>;

    // --- lists ----------------------------------------------------------------------------------------------

    /// Jobs, live and finished, newest first. MUST do bounded work a call: a page may be short and still have a next. MUST NOT read what is wide of
    /// more jobs than the page has, nor what its [`Extent`] leaves out.
    async fn list_jobs(&self, query: JobQuery) -> StoreResult<Page<Job, JobId>>;

    /// Dead letters, the latest first. The same holds.
    async fn list_dead_letters(
        &self,
        query: DeadLetterQuery,
    ) -> StoreResult<Page<DeadLetter, DeadLetterCursor>>;

    /// One dead letter.
    async fn get_dead_letter(&self, id: JobId) -> StoreResult<Option<DeadLetter>>;

    /// Takes a job off the list of dead letters; the job stays in history. `false`: it was not on it.
    async fn discard_dead_letter(&self, id: JobId) -> StoreResult<bool>;

    /// How many dead letters there are.
    async fn count_dead_letters(&self) -> StoreResult<u64>;

    /// How many a query would find on all its pages.
    async fn count_dead_letters_like(&self, query: DeadLetterQuery) -> StoreResult<u64>;

    // --- callbacks ------------------------------------------------------------------------------------------

    /// Receivers for whom a callback is due that nobody has taken, in order, from the one behind `after`. MUST do bounded work a call, however many
    /// callbacks wait for one receiver: it looks at `limit` receivers at the most, so a page may be short and still have a next.
    async fn due_receivers(
        &self,
        after: Option<Receiver>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<Page<Receiver, Receiver>>;

    /// Callbacks that are due, for each receiver the longest due first. They belong to the session, and nobody else gets them until they are settled or
    /// [given back](Self::give_back_callbacks). None if the session has ended.
    async fn take_callbacks(&self, take: TakeCallbacks) -> StoreResult<Vec<Callback>>;

    /// Records the end of one try by `session`. The try is counted here: one that its sender did not live to report is repeated as the same. MUST
    /// change nothing for a callback that is to be tried again and does not belong to that session any more, nor for one that is over. Of the tries about
    /// the same job MUST keep [`TRIES_KEPT_MAX`](crate::callback::TRIES_KEPT_MAX): this one, and those of the latest callbacks.
    async fn settle_callback(&self, session: SessionId, id: i64, tried: CallbackTry) -> StoreResult<()>;

    /// Writes a callback down to be sent at once. Its number and its tries do not count: it gets others. Answers its number.
    async fn write_callback(&self, callback: Callback) -> StoreResult<i64>;

    /// The callbacks about a job that there are and were, by their numbers, as far as they are kept.
    async fn callbacks_of(&self, job: JobId) -> StoreResult<Vec<CallbackRecord>>;

    /// Gives back callbacks that nobody is sending: those of sessions that have ended, and those of `own`, except what is `kept`. They are due as they were
    /// before they were taken. Says how many.
    async fn give_back_callbacks(&self, own: SessionId, kept: Vec<i64>) -> StoreResult<usize>;

    // --- controls -------------------------------------------------------------------------------------------

    /// Every queue that ever had a job or was paused, by name.
    async fn list_queues(&self) -> StoreResult<Vec<Queue>>;

    /// How many jobs of a queue wait and are due, paused or not. For people, not for the hot path.
    async fn count_due(&self, queue: &str, now: Timestamp) -> StoreResult<u64>;

    /// Pauses or resumes a queue. No claim that commits after this returns takes a job of a paused queue.
    async fn set_queue_paused(&self, queue: &str, paused: bool) -> StoreResult<()>;

    /// The stop switch, the paused queues and the paused runs. Every server asks about once a second: MUST be one small
    /// read.
    async fn controls(&self) -> StoreResult<Controls>;

    /// Whether the stop switch is on.
    async fn halted(&self) -> StoreResult<bool>;

    /// Turns the stop switch. No claim that commits after this returns takes any job while it is on.
    async fn set_halted(&self, halted: bool) -> StoreResult<()>;

    /// The installation's secret: `candidate` if there was none yet.
    async fn installation_secret(&self, candidate: [u8; 32]) -> StoreResult<[u8; 32]>;

    /// Whether the store can be read and written right now.
    async fn ping(&self) -> StoreResult<()>;

    /// Clears tables of dead rows that have at least so many of them. Nothing to do for a store that leaves none.
    async fn vacuum(&self, _dead_rows_min: u64) -> StoreResult<Vacuumed> {
        Ok(Vacuumed::default())
    }
}

/// What a vacuum did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// So many tables were cleared
    pub tables: u64,
    /// of so many dead rows,
    pub dead_rows: u64,
    /// in this time.
    pub took: Duration,
}
