//! Schedules: recurring work, what was ordered and what became of its firings.
//!
//! The job of a schedule is a job without a time: whatever says when or once contradicts the schedule and is refused.
//!
//! Deliberately not here: the meaning of expressions, zones and excluded days. Whether a text is one is the domain's to say.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::backfill::Backfill;
use crate::cron::{DayLogic, DstFold, DstGap};
use crate::document;
use crate::job::{SubmitJob, present, words};
use crate::local_time::LocalTime;
use crate::time::{Span, Time};

/// How far a job may start after its time.
pub const JITTER_MAX: Span = Span::from_millis(24 * 3_600_000);
/// How far back missed firings can be made up for.
pub const WINDOW_RANGE: RangeInclusive<Span> =
    Span::from_millis(1_000)..=Span::from_millis(366 * 24 * 3_600_000);
/// How many missed firings can be made up for.
pub const BACKFILL_RANGE: RangeInclusive<u32> = 1..=1_000;
/// Entries of `exclude`; a calendar holds more.
pub const EXCLUDE_MAX: usize = 366;
/// Firings that are shown ahead unless asked otherwise.
pub const NEXT_COUNT_DEFAULT: u32 = 10;
/// The name that no schedule can have: its path is that of the call that shows one without storing it.
pub const RESERVED_NAME: &str = "preview";
/// Outcomes that an answer carries of each schedule.
pub const LAST_FIRES_MAX: usize = 10;

words! {
    /// What becomes of firings whose time passed while nobody could act on it.
    MissedPolicy {
        /// They are only recorded.
        Skip = "skip",
        /// One job stands for all of them. The default.
        FireOnce = "fire_once",
        /// Each gets its job, the latest ones up to a cap.
        Backfill = "backfill",
    }
}

words! {
    /// What becomes of a firing while a job of an earlier one is not over.
    Overlap {
        /// They run beside each other. The default.
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
    OnExcluded {
        /// It is skipped. The default.
        Skip = "skip",
        /// It moves to the same local time of the next day that is not excluded.
        NextDay = "next_day",
    }
}

words! {
    /// What became of a firing.
    FireOutcome {
        /// It made its job.
        Fired = "fired",
        /// It made none, as its schedule wants it.
        Skipped = "skipped",
        /// Its time passed while nobody could act on it, and it was not made up for.
        Missed = "missed",
        /// It was missed, and the job of another firing stands for it.
        Coalesced = "coalesced",
        /// Somebody fired it by hand.
        Triggered = "triggered",
        /// It made its job long after its time.
        Backfilled = "backfilled",
    }
}

/// How missed firings are made up for. In a request, what is left out has its default (or stays, in a change); in an answer
/// all of it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Missed {
    /// What becomes of them. Default `fire_once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<MissedPolicy>,
    /// Only of those that are not older: 1 s to 366 days. Default 24 h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// With `backfill`, this many at the most. Default 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub max_backfill: Option<u32>,
}

/// A schedule to be created. `name`, `job` and either `cron` or `every` are required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitSchedule {
    /// Unique.
    #[schema(value_type = document::Name, example = "daily-report")]
    pub name: String,
    /// The expression: five fields, six with leading seconds, a nickname such as `@daily`, or `@every 90s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Cron>, example = "0 2 * * *")]
    pub cron: Option<String>,
    /// An interval instead of an expression: 1 s to 366 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// The moment from which `every` is counted. Default 1970-01-01T00:00:00Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Time>,
    /// The IANA name of the zone in which local times are read. Default `UTC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::TimeZone>, example = "America/New_York")]
    pub timezone: Option<String>,
    /// The job that each firing makes: a job without `execute_at`, `delay`, `idempotency_key` and `depends_on`.
    pub job: SubmitJob,
    /// How missed firings are made up for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// What becomes of firings while an earlier job is not over. Default `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What becomes of times that the clock jumps over. Default `run_after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<DstGap>,
    /// What becomes of times that happen twice. Default `once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_fold: Option<DstFold>,
    /// How the two day fields go together. Default `or`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_logic: Option<DayLogic>,
    /// No firing before it; it may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Time>,
    /// No firing after it; it may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Time>,
    /// Its jobs start up to this much after their time, always by the same amount: 0 to 24 h. Default `0s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Days on which it does not fire: `2026-12-25`, `2026-12-24/2026-12-31` or `calendar:holidays`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::ExcludedDays>>, max_items = 366)]
    pub exclude: Option<Vec<String>>,
    /// What becomes of firings on those days. Default `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_excluded: Option<OnExcluded>,
    /// Whether it begins paused. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// New values for a schedule, in force from its next firing on; what is left out stays. The name stays too.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchSchedule {
    /// An expression, also in place of an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Cron>)]
    pub cron: Option<String>,
    /// An interval, also in place of an expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// The moment from which `every` is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Time>,
    /// The IANA name of the zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::TimeZone>)]
    pub timezone: Option<String>,
    /// Another job, as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<SubmitJob>,
    /// How missed firings are made up for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// What becomes of firings while an earlier job is not over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What becomes of times that the clock jumps over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<DstGap>,
    /// What becomes of times that happen twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_fold: Option<DstFold>,
    /// How the two day fields go together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_logic: Option<DayLogic>,
    /// No firing before it; `null`: from now on.
    #[serde(default, deserialize_with = "present_or_null", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Time>)]
    pub start_at: Option<Option<Time>>,
    /// No firing after it; `null`: for ever.
    #[serde(default, deserialize_with = "present_or_null", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Time>)]
    pub end_at: Option<Option<Time>>,
    /// Its jobs start up to this much after their time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Days on which it does not fire, in place of the former ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::ExcludedDays>>, max_items = 366)]
    pub exclude: Option<Vec<String>>,
    /// What becomes of firings on those days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_excluded: Option<OnExcluded>,
    /// `true` pauses it, `false` resumes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

fn present_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Time>>, D::Error> {
    Option::<Time>::deserialize(deserializer).map(Some)
}

/// "Pause it."
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSchedule {
    /// Why, for whoever finds it paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub note: Option<String>,
}

/// "Make a job of it now."
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerSchedule {
    /// Other data than the schedule's; `null` is a value here.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// Makes a repeated request harmless. The same as the `Idempotency-Key` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub idempotency_key: Option<String>,
}

/// A schedule: what was ordered and how far it has come.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// UUIDv7.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// Unique.
    pub name: String,
    /// The expression, unless it is an interval.
    pub cron: Option<String>,
    /// The interval, unless it is an expression.
    pub every: Option<Span>,
    /// The moment from which `every` is counted.
    pub anchor: Option<Time>,
    /// The zone, as the database writes its name.
    pub timezone: String,
    /// When it fires, in words.
    #[schema(example = "at 02:00 every day")]
    pub description: String,
    /// When it fires next; `null` while it is paused, or if it never does. Its job may start later by the jitter.
    pub next_fire_at: Option<Time>,
    /// Whether there is no further firing at all: the date does not exist, the end is past, or every weekday is excluded.
    pub never: bool,
    /// Nothing fires.
    pub paused: bool,
    /// Why, in the words of whoever paused it.
    pub pause_note: Option<String>,
    /// The job that each firing makes.
    pub job: SubmitJob,
    /// How missed firings are made up for.
    pub missed: Missed,
    /// What becomes of firings while an earlier job is not over.
    pub overlap: Overlap,
    /// What becomes of times that the clock jumps over.
    pub dst_gap: DstGap,
    /// What becomes of times that happen twice.
    pub dst_fold: DstFold,
    /// How the two day fields go together.
    pub day_logic: DayLogic,
    /// No firing before it.
    pub start_at: Option<Time>,
    /// No firing after it.
    pub end_at: Option<Time>,
    /// Its jobs start up to this much after their time.
    pub jitter: Span,
    /// Days on which it does not fire.
    pub exclude: Vec<String>,
    /// What becomes of firings on those days.
    pub on_excluded: OnExcluded,
    /// Who owns it.
    pub tenant: String,
    /// When it was created.
    pub created_at: Time,
    /// When it was last changed, paused or resumed.
    pub updated_at: Time,
    /// Since when firings wait for the job of an earlier one, with `overlap: queue`: the time of the oldest of them.
    pub queued_since: Option<Time>,
    /// What became of its latest firings, ten at the most, the latest first.
    pub last_fires: Vec<Fire>,
    /// The backfill that is under way, or else the last one.
    pub backfill: Option<Backfill>,
}

/// A schedule without what only a stored one has: what creating it would answer, or what an existing one was ordered to be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlannedSchedule {
    /// Unique.
    pub name: String,
    /// The expression, unless it is an interval.
    pub cron: Option<String>,
    /// The interval, unless it is an expression.
    pub every: Option<Span>,
    /// The moment from which `every` is counted.
    pub anchor: Option<Time>,
    /// The zone, as the database writes its name.
    pub timezone: String,
    /// When it fires, in words.
    #[schema(example = "at 02:00 every day")]
    pub description: String,
    /// When it fires next; `null` if it is paused, or if it never does.
    pub next_fire_at: Option<Time>,
    /// Whether there is no firing at all.
    pub never: bool,
    /// Nothing fires.
    pub paused: bool,
    /// The job that each firing makes.
    pub job: SubmitJob,
    /// How missed firings are made up for.
    pub missed: Missed,
    /// What becomes of firings while an earlier job is not over.
    pub overlap: Overlap,
    /// What becomes of times that the clock jumps over.
    pub dst_gap: DstGap,
    /// What becomes of times that happen twice.
    pub dst_fold: DstFold,
    /// How the two day fields go together.
    pub day_logic: DayLogic,
    /// No firing before it.
    pub start_at: Option<Time>,
    /// No firing after it.
    pub end_at: Option<Time>,
    /// Its jobs start up to this much after their time.
    pub jitter: Span,
    /// Days on which it does not fire.
    pub exclude: Vec<String>,
    /// What becomes of firings on those days.
    pub on_excluded: OnExcluded,
}

impl From<Schedule> for PlannedSchedule {
    fn from(schedule: Schedule) -> Self {
        Self {
            name: schedule.name,
            cron: schedule.cron,
            every: schedule.every,
            anchor: schedule.anchor,
            timezone: schedule.timezone,
            description: schedule.description,
            next_fire_at: schedule.next_fire_at,
            never: schedule.never,
            paused: schedule.paused,
            job: schedule.job,
            missed: schedule.missed,
            overlap: schedule.overlap,
            dst_gap: schedule.dst_gap,
            dst_fold: schedule.dst_fold,
            day_logic: schedule.day_logic,
            start_at: schedule.start_at,
            end_at: schedule.end_at,
            jitter: schedule.jitter,
            exclude: schedule.exclude,
            on_excluded: schedule.on_excluded,
        }
    }
}

/// What a schedule would be, and when it would fire. Nothing is stored.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SchedulePreview {
    /// The schedule, every default filled in.
    pub schedule: PlannedSchedule,
    /// Its next firings, in order, with the zone's offset; of a paused one, those it would have.
    pub next: Vec<LocalTime>,
}

/// What became of a firing, or of a run of firings that all came to the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fire {
    /// When it was to fire; of a run, the first time.
    pub nominal_time: Time,
    /// The last time of a run; otherwise the same.
    pub last_nominal_time: Time,
    /// How many firings this stands for.
    pub count: u64,
    /// What became of it.
    pub outcome: FireOutcome,
    /// Why: `on_time`, `caught_up`, `paused`, `excluded_day`, `overlap`, `replaced`, `missed_policy`, `outside_window`,
    /// `over_cap`, `by_request` or, while it waits for the job of an earlier one, `queued`.
    pub reason: String,
    /// The job it made, or that stands for it.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub job_id: Option<Uuid>,
    /// When this was written.
    pub recorded_at: Time,
}

/// A firing that is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextFire {
    /// When, in UTC.
    pub nominal_time: Time,
    /// When, with the offset of the schedule's zone.
    pub local_time: LocalTime,
}
