//! Schedules in the store: the same truth, the same compare-and-set as for jobs.

use async_trait::async_trait;

use super::creation::{Creation, NoSuchSchedule};
use super::jobs::{Idempotency, NewJob, PartitionSet};
use super::scheduler::SchedulerError;
use super::store::{Page, StoreResult};
use crate::id::{JobId, Partition, ScheduleId};
use crate::job::{Job, JsonText, Priority};
use crate::schedule::edit::{EditRefused, ScheduleEdit};
use crate::schedule::{Calendar, Fire, FireOutcome, Schedule, ScheduleProgress};
use crate::time::Timestamp;

/// What became of a new schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleCreated {
    /// It is stored.
    Created,
    /// The tenant has one of that name: this one.
    NameTaken(ScheduleId),
}

/// What became of a write that was decided on a certain revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// It is written.
    Done,
    /// The schedule is gone or has another revision: nothing changed.
    Stale,
}

/// A place in the order in which schedules wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WakeCursor {
    /// The time.
    pub wake_at: Timestamp,
    /// Among those of the same time, the id.
    pub id: ScheduleId,
}

/// What a timer has to know of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueSchedule {
    /// The schedule.
    pub id: ScheduleId,
    /// Its partition.
    pub partition: Partition,
    /// When to wake it.
    pub wake_at: Timestamp,
    /// How urgent its jobs are.
    pub priority: Priority,
}

impl WakeCursor {
    /// Before all others.
    pub const START: Self =
        Self { wake_at: Timestamp::from_millis(i64::MIN), id: ScheduleId::from_uuid(uuid::Uuid::nil()) };
}

impl DueSchedule {
    /// Its place in the order.
    pub const fn cursor(&self) -> WakeCursor {
        WakeCursor { wake_at: self.wake_at, id: self.id }
    }
}

/// Which schedules to load.
#[derive(Clone, Copy, Debug)]
pub struct LoadSchedules {
    /// Of these partitions,
    pub partitions: PartitionSet,
    /// after this place,
    pub after: WakeCursor,
    /// to be woken at this moment at the latest,
    pub until: Timestamp,
    /// this many at the most.
    pub limit: usize,
}

/// One decision to be carried out.
#[derive(Clone, Debug)]
pub struct ScheduleStep {
    /// Of this schedule,
    pub id: ScheduleId,
    /// if it still has this revision:
    pub revision: u64,
    /// where it is then,
    pub progress: ScheduleProgress,
    /// what became of its firings,
    pub fires: Vec<Fire>,
    /// and the jobs they made.
    pub jobs: Vec<Job>,
}

/// Which schedules to list, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleQuery {
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Paused or not.
    pub paused: Option<bool>,
    /// After this name.
    pub after: Option<String>,
    /// This many at the most.
    pub limit: usize,
}

/// Which firings to list, the latest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FireQuery {
    /// Of this schedule.
    pub schedule_id: ScheduleId,
    /// With this outcome.
    pub outcome: Option<FireOutcome>,
    /// Before this nominal time.
    pub before: Option<Timestamp>,
    /// This many at the most.
    pub limit: usize,
}

/// The part of the store that keeps schedules.
///
/// As with jobs, every method is one transaction, durable when it returns.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Stores a schedule whose id is fresh, unless its tenant has one of that name.
    async fn create_schedule(&self, schedule: Schedule) -> StoreResult<ScheduleCreated>;

    /// The schedules that exist, in no particular order. One whose row makes no sense is left out, so that it does not
    /// keep the others from firing.
    async fn get_schedules(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<Schedule>>;

    /// The schedule of that name.
    async fn find_schedule(&self, tenant: &str, name: &str) -> StoreResult<Option<Schedule>>;

    /// Schedules by name.
    async fn list_schedules(&self, query: ScheduleQuery) -> StoreResult<Page<Schedule, String>>;

    /// Schedules that are to be woken, in the order of their cursor.
    async fn load_schedules(&self, load: LoadSchedules) -> StoreResult<Vec<DueSchedule>>;

    /// Carries decisions out. MUST be atomic per step: the progress, the records and the jobs, or nothing. MUST change
    /// nothing for a schedule that is gone or has another revision. The revision grows by one. Queue names not seen
    /// before become known.
    ///
    /// A record of a nominal time that has one already replaces it only if the former has no job of its own
    /// ([`Fire::has_own_job`]): one job per schedule and nominal time, whatever crashes or runs twice. A step that
    /// would make a second one changes nothing and is stale.
    async fn advance_schedules(&self, steps: Vec<ScheduleStep>) -> StoreResult<Vec<Advanced>>;

    /// Writes the spec, whether it is paused, and the progress; with it what became of firings meanwhile.
    /// `schedule.revision` is the one it was decided on; compare-and-set as in
    /// [`advance_schedules`](Self::advance_schedules). The name does not change.
    async fn change_schedule(&self, schedule: Schedule, fires: Vec<Fire>) -> StoreResult<Advanced>;

    /// Removes a schedule and its ledger; its jobs stay. After this returns nothing fires. `false`: there was none.
    async fn delete_schedule(&self, id: ScheduleId) -> StoreResult<bool>;

    /// Stores a job that somebody asked for, and its record, unless its idempotency key was seen. The job depends on
    /// nothing. If the record's nominal time has one already, it takes the next that [`Fire::by_request_after`] gives.
    async fn trigger_schedule(&self, job: NewJob, fire: Fire) -> StoreResult<Creation<Job, NoSuchSchedule>>;

    /// The jobs of these schedules that are not over.
    async fn active_jobs(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<(ScheduleId, JobId)>>;
}

/// The ledger of firings. [`ScheduleStore`] writes it, in the transactions that move schedules.
#[async_trait]
pub trait LedgerStore: Send + Sync {
    /// What became of a schedule's firings, the latest first.
    async fn list_fires(&self, query: FireQuery) -> StoreResult<Page<Fire, Timestamp>>;

    /// The nominal times from `from` on of a schedule's firings that are recorded as queued, the oldest first, so many
    /// at the most.
    async fn queued_firings(
        &self,
        id: ScheduleId,
        from: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<Timestamp>>;

    /// All records of a schedule that are of a time after `after` up to and including `until`, the oldest first. A run
    /// of firings that reaches into it is among them.
    async fn fires_within(
        &self,
        id: ScheduleId,
        after: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<Fire>>;

    /// The latest `count` records of each of these schedules, the latest first.
    async fn latest_fires(&self, ids: Vec<ScheduleId>, count: usize) -> StoreResult<Vec<Fire>>;
}

/// Calendars of days that schedules leave out.
#[async_trait]
pub trait CalendarStore: Send + Sync {
    /// Stores a calendar, in place of one of that name.
    async fn put_calendar(&self, calendar: Calendar) -> StoreResult<()>;

    /// The calendars of a tenant, by name.
    async fn list_calendars(&self, tenant: &str) -> StoreResult<Vec<Calendar>>;

    /// Removes a calendar. `false`: there was none.
    async fn delete_calendar(&self, tenant: &str, name: &str) -> StoreResult<bool>;
}

/// What became of a request to change a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleEdited {
    /// It is changed, and as this.
    Done(Box<Schedule>),
    /// As it is, it cannot be changed in this way.
    Refused(EditRefused),
    /// There is no such schedule.
    NotFound,
}

/// A job that somebody wants now.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// The new job's id.
    pub job_id: JobId,
    /// Other data than the schedule's.
    pub payload: Option<JsonText>,
    /// Makes a repeated request harmless.
    pub idempotency: Option<Idempotency>,
}

/// The engine's service for schedules. Once acknowledged, a change is in force.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// Stores a schedule.
    async fn create(&self, schedule: Schedule) -> Result<ScheduleCreated, SchedulerError>;

    /// Changes a schedule.
    async fn edit(&self, id: ScheduleId, edit: ScheduleEdit) -> Result<ScheduleEdited, SchedulerError>;

    /// Makes a job of it now, paused or not.
    async fn trigger(
        &self,
        id: ScheduleId,
        trigger: Trigger,
    ) -> Result<Creation<Job, NoSuchSchedule>, SchedulerError>;

    /// Removes it: nothing fires after the answer. `false`: there was none.
    async fn delete(&self, id: ScheduleId) -> Result<bool, SchedulerError>;

    /// Stores a calendar, in place of one of that name. Firings that are decided from now on go by it.
    async fn put_calendar(&self, calendar: Calendar) -> Result<(), SchedulerError>;

    /// Removes a calendar. `false`: there was none.
    async fn delete_calendar(&self, tenant: &str, name: &str) -> Result<bool, SchedulerError>;
}
