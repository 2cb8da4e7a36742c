//! What a schedule is: when it fires, which job each firing makes, and how far it has come.
//!
//! The order of things: a *nominal time* is a moment of the timetable; a *firing* is what becomes of it (a job, or a
//! reason why there is none); the *cursor* is the nominal time up to which every firing has its record. A schedule
//! moves by advancing its cursor in the same transaction that writes the records and the jobs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::CronError;
use super::backfill::Backfill;
use super::calendar::Exclusion;
use super::policy::{DayLogic, DstFold, DstGap};
use super::recurrence::{BadInterval, Interval, Recurrence};
use super::timetable::Timetable;
use super::zone::{UnknownZone, Zone};
use crate::id::{JobId, Partition, ScheduleId};
use crate::job::{Job, JobSpec, JsonText, Priority};
use crate::time::Timestamp;
use crate::words::words;

/// A firing that is due this much too late still counts as on time when no later one is due too: a restart is no
/// outage.
pub const GRACE_MS: u64 = 60_000;
/// How far back missed firings are made up for when nobody says: a day.
pub const DEFAULT_WINDOW_MS: u64 = 86_400_000;
/// How many missed firings are made up for when nobody says.
pub const DEFAULT_MAX_BACKFILL: u32 = 100;
/// Nobody may ask for more.
pub const MAX_BACKFILL_MAX: u32 = 1_000;

/// When a schedule repeats, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A cron expression, a nickname or `@every …`.
    Cron(String),
    /// So many milliseconds after one another, counted from the anchor.
    Every {
        /// The distance.
        every_ms: u64,
        /// A moment that is one of them; the Unix epoch unless said.
        #[serde(default, skip_serializing_if = "is_epoch")]
        anchor: Timestamp,
    },
}

const fn is_epoch(at: &Timestamp) -> bool {
    at.as_millis() == 0
}

words! {
    /// What becomes of firings whose time passed while nobody could act on it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MissedPolicy {
        /// They are only recorded.
        Skip = "skip",
        /// One job stands for all of them.
        #[default]
        FireOnce = "fire_once",
        /// Each gets its job, the latest ones up to a cap.
        Backfill = "backfill",
    }
}

/// How missed firings are made up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedRule {
    /// What becomes of them.
    pub policy: MissedPolicy,
    /// Only of those that are not older than this.
    pub window_ms: u64,
    /// With `backfill`, this many at the most.
    pub max_backfill: u32,
}

impl Default for MissedRule {
    fn default() -> Self {
        Self {
            policy: MissedPolicy::default(),
            window_ms: DEFAULT_WINDOW_MS,
            max_backfill: DEFAULT_MAX_BACKFILL,
        }
    }
}

words! {
    /// What becomes of a firing while a job of an earlier one is not over.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Overlap {
        /// They run beside each other.
        #[default]
        Allow = "allow",
        /// It is skipped.
        Skip = "skip",
        /// It waits until the other is over.
        Queue = "queue",
        /// The other is cancelled.
        Replace = "replace",
    }
}

words! {
    /// What becomes of a firing on an excluded day.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnExcluded {
        /// It is skipped.
        #[default]
        Skip = "skip",
        /// It moves to the same local time of the next day that is not excluded.
        NextDay = "next_day",
    }
}

/// The job that each firing makes: a job without a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTemplate {
    /// What kind of work it is.
    pub job_type: Arc<str>,
    /// The lane it waits in.
    pub queue: Arc<str>,
    /// How urgent it is.
    pub priority: Priority,
    /// Target, retries, timeout and the rest.
    pub spec: Arc<JobSpec>,
    /// The data for the target.
    pub payload: JsonText,
    /// Labels to find it by.
    pub tags: Vec<String>,
}

/// What was requested. The stores keep it as one document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleSpec {
    /// When it repeats.
    pub rule: Rule,
    /// The IANA name of the zone in which it is read.
    pub timezone: String,
    /// What becomes of fixed times that the clock jumps over.
    pub dst_gap: DstGap,
    /// What becomes of fixed times that happen twice.
    pub dst_fold: DstFold,
    /// How the two day fields go together.
    pub day_logic: DayLogic,
    /// No firing before it.
    pub start_at: Option<Timestamp>,
    /// No firing after it.
    pub end_at: Option<Timestamp>,
    /// Its jobs start up to this much after their time, always the same for one schedule.
    pub jitter_ms: u64,
    /// Days on which it does not fire.
    pub exclude: Vec<Exclusion>,
    /// What becomes of firings on those days.
    pub on_excluded: OnExcluded,
    /// What becomes of firings whose time passed while nobody could act on it.
    pub missed: MissedRule,
    /// What becomes of firings while an earlier job is not over.
    pub overlap: Overlap,
    /// The job that each firing makes.
    pub job: JobTemplate,
}

/// Why a rule and a zone make no timetable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTimetable {
    /// The expression cannot be read.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// The interval cannot be.
    #[error(transparent)]
    Interval(#[from] BadInterval),
    /// There is no such zone.
    #[error(transparent)]
    Zone(#[from] UnknownZone),
}

impl ScheduleSpec {
    /// This job at these times of UTC, and everything else as when nobody says.
    pub fn new(rule: Rule, job: JobTemplate) -> Self {
        Self {
            rule,
            timezone: "UTC".into(),
            dst_gap: DstGap::default(),
            dst_fold: DstFold::default(),
            day_logic: DayLogic::default(),
            start_at: None,
            end_at: None,
            jitter_ms: 0,
            exclude: Vec::new(),
            on_excluded: OnExcluded::default(),
            missed: MissedRule::default(),
            overlap: Overlap::default(),
            job,
        }
    }

    /// When it fires.
    pub fn timetable(&self) -> Result<Timetable, BadTimetable> {
        let recurrence = match &self.rule {
            Rule::Cron(text) => Recurrence::parse(text)?,
            Rule::Every { every_ms, anchor } => Recurrence::Every(Interval::new(*every_ms, *anchor)?),
        };
        Ok(Timetable {
            recurrence,
            zone: Zone::named(&self.timezone)?,
            gap: self.dst_gap,
            fold: self.dst_fold,
            day_logic: self.day_logic,
            start_at: self.start_at,
            end_at: self.end_at,
        })
    }
}

/// How far a schedule has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleProgress {
    /// Every firing up to here has its record.
    pub cursor: Timestamp,
    /// The next nominal time; none if there is no further one.
    pub next_at: Option<Timestamp>,
    /// A firing that moved here from an excluded day.
    pub rolled_at: Option<Timestamp>,
    /// The earliest nominal time that waits for an earlier job to end. Those that wait have a record that says so.
    pub held_at: Option<Timestamp>,
    /// When to wake it again.
    pub wake_at: Option<Timestamp>,
    /// The backfill that is under way, or the last one.
    pub backfill: Option<Backfill>,
}

impl ScheduleProgress {
    /// Whether something waits for a job of the schedule to end.
    pub fn waits_for_a_job(&self) -> bool {
        self.held_at.is_some() || self.backfill.is_some_and(|backfill| backfill.is_running() && backfill.held)
    }

    /// When a backfill that is under way goes on. In a paused schedule it does not.
    pub(super) fn backfill_wakes_at(&self, paused: bool) -> Option<Timestamp> {
        self.backfill.filter(|backfill| backfill.is_running() && !paused).map(|backfill| backfill.wake_at)
    }
}

/// A schedule: the spec and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// UUIDv7.
    pub id: ScheduleId,
    /// The slice of the space it belongs to.
    pub partition: Partition,
    /// Who owns it.
    pub tenant: Arc<str>,
    /// Unique within the tenant.
    pub name: Arc<str>,
    /// What was requested.
    pub spec: Arc<ScheduleSpec>,
    /// Nothing fires.
    pub paused: bool,
    /// Why, in the words of whoever paused it.
    pub pause_note: Option<String>,
    /// Grows with every write: whoever decided on an older one has decided on something else.
    pub revision: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When the spec was last changed, or it was paused or resumed.
    pub updated_at: Timestamp,
    /// How far it has come.
    pub progress: ScheduleProgress,
}

impl Schedule {
    /// The job of the firing at `nominal`, which may start at `due_at`.
    pub fn job(&self, id: JobId, nominal: Timestamp, due_at: Timestamp, now: Timestamp) -> Job {
        let template = &self.spec.job;
        Job {
            tenant: self.tenant.clone(),
            queue: template.queue.clone(),
            priority: template.priority,
            execute_at: nominal,
            due_at: due_at.max(now),
            payload: template.payload.clone().into(),
            tags: template.tags.clone(),
            schedule_id: Some(self.id),
            ..Job::new(id, &template.job_type, template.spec.clone(), now)
        }
    }
}
