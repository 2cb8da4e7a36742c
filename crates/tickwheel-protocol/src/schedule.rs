//! Schedules: recurring jobs, and the record of their firings.
//!
//! The job of a schedule has no time of its own. A request whose job says when or how often to start is rejected.
//!
//! Deliberately not here: the meaning of expressions, zones and excluded days. The domain decides whether a text is
//! one.

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

/// How long after its time a job may start.
pub const JITTER_MAX: Span = Span::from_millis(24 * 3_600_000);
/// How far back the server may make up for missed firings.
pub const WINDOW_RANGE: RangeInclusive<Span> =
    Span::from_millis(1_000)..=Span::from_millis(366 * 24 * 3_600_000);
/// How many missed firings the server may make up for.
pub const BACKFILL_RANGE: RangeInclusive<u32> = 1..=1_000;
/// How many entries `exclude` may have. A calendar holds more.
pub const EXCLUDE_MAX: usize = 366;
/// How many firings an answer shows unless the request says otherwise.
pub const NEXT_COUNT_DEFAULT: u32 = 10;
/// A name that no schedule may have: its path belongs to the call that previews a schedule.
pub const RESERVED_NAME: &str = "preview";
/// How many firings the answer for a schedule contains.
pub const LAST_FIRES_MAX: usize = 10;

words! {
    /// What happens to firings whose time passed while no server could act on them.
    MissedPolicy {
        /// The ledger records them, and they make no jobs.
        Skip = "skip",
        /// One job stands for all of them. The default.
        FireOnce = "fire_once",
        /// Each makes a job: the latest ones, up to `max_backfill` of them.
        Backfill = "backfill",
    }
}

words! {
    /// What happens to a firing while a job of an earlier firing has not ended.
    Overlap {
        /// Both jobs run at the same time. The default.
        Allow = "allow",
        /// The firing is skipped.
        Skip = "skip",
        /// The firing waits until the earlier job has ended.
        Queue = "queue",
        /// The earlier job is cancelled.
        Replace = "replace",
    }
}

words! {
    /// What happens to a firing on an excluded day.
    OnExcluded {
        /// The firing is skipped. The default.
        Skip = "skip",
        /// The firing moves to the same local time on the next day that is not excluded.
        NextDay = "next_day",
    }
}

words! {
    /// The outcome of a firing.
    FireOutcome {
        /// It made its job.
        Fired = "fired",
        /// It made no job, as the schedule's settings require.
        Skipped = "skipped",
        /// Its time passed while no server could act on it, and nothing made up for it.
        Missed = "missed",
        /// It was missed, and the job of another firing stands for it.
        Coalesced = "coalesced",
        /// Somebody triggered it by hand.
        Triggered = "triggered",
        /// It made its job long after its time.
        Backfilled = "backfilled",
    }
}

/// How the server makes up for missed firings. Fields that you leave out have their defaults in a new schedule, and
/// keep their values in a change. An answer contains all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Missed {
    /// What happens to missed firings. Default `fire_once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<MissedPolicy>,
    /// How far back: the policy applies only to firings that are not older than this. 1 s to 366 days. Default 24 h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// With `backfill`: how many firings to make up for. Default 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub max_backfill: Option<u32>,
}

/// The two requests that contain a whole schedule. Only the name differs: a path may say it.
macro_rules! whole_schedules {
    ($($(#[$attribute:meta])* $field:ident: $type:ty,)*) => {
        /// A schedule to create. `name`, `job` and either `cron` or `every` are required.
        #[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct SubmitSchedule {
            /// The name, which must be unique.
            #[schema(value_type = document::Name, example = "daily-report")]
            pub name: String,
            $($(#[$attribute])* pub $field: $type,)*
        }

        /// A schedule to create, or to put in the place of the one with its name. `job` and either `cron` or `every`
        /// are required.
        #[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct PutSchedule {
            /// The name in the path, if it is said again.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(value_type = Option<document::Name>, example = "daily-report")]
            pub name: Option<String>,
            $($(#[$attribute])* pub $field: $type,)*
        }

        impl PutSchedule {
            /// The schedule of this name.
            pub fn named(self, name: String) -> SubmitSchedule {
                SubmitSchedule { name, $($field: self.$field,)* }
            }
        }
    };
}

whole_schedules! {
    /// The expression: five fields, six with leading seconds, a nickname such as `@daily`, or `@every 90s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Cron>, example = "0 2 * * *")]
    cron: Option<String>,
    /// An interval instead of an expression: 1 s to 366 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<Span>,
    /// The time from which `every` counts. Default 1970-01-01T00:00:00Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor: Option<Time>,
    /// The IANA name of the time zone for local times. Default `UTC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::TimeZone>, example = "America/New_York")]
    timezone: Option<String>,
    /// The job that each firing makes: a job without `execute_at`, `delay`, `idempotency_key` and `depends_on`.
    job: SubmitJob,
    /// How the server makes up for missed firings.
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<Missed>,
    /// What happens to a firing while an earlier job has not ended. Default `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<Overlap>,
    /// What happens to times that the clock skips. Default `run_after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    dst_gap: Option<DstGap>,
    /// What happens to times that occur twice. Default `once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    dst_fold: Option<DstFold>,
    /// How the two day fields combine. Default `or`.
    #[serde(skip_serializing_if = "Option::is_none")]
    day_logic: Option<DayLogic>,
    /// The schedule does not fire before this time. It may fire at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_at: Option<Time>,
    /// The schedule does not fire after this time. It may fire at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_at: Option<Time>,
    /// Its jobs start up to this long after their time. The shift is the same for every job of the schedule. 0 to 24 h.
    /// Default `0s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<Span>,
    /// Days on which it does not fire: `2026-12-25`, `2026-12-24/2026-12-31` or `calendar:holidays`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::ExcludedDays>>, max_items = 366)]
    exclude: Option<Vec<String>>,
    /// What happens to firings on those days. Default `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_excluded: Option<OnExcluded>,
    /// Whether the schedule is paused. Default `false` in a new schedule. One that exists stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
}

/// New values for a schedule. They apply from the next firing on. Fields that you leave out keep their value. The name
/// cannot change.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchSchedule {
    /// An expression. It also replaces an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Cron>)]
    pub cron: Option<String>,
    /// An interval. It also replaces an expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// The time from which `every` counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Time>,
    /// The IANA name of the time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::TimeZone>)]
    pub timezone: Option<String>,
    /// A new job, complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<SubmitJob>,
    /// How the server makes up for missed firings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// What happens to a firing while an earlier job has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What happens to times that the clock skips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<DstGap>,
    /// What happens to times that occur twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_fold: Option<DstFold>,
    /// How the two day fields combine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_logic: Option<DayLogic>,
    /// The schedule does not fire before this time. `null`: it may fire from now on.
    #[serde(default, deserialize_with = "present_or_null", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Time>)]
    pub start_at: Option<Option<Time>>,
    /// The schedule does not fire after this time. `null`: it fires without end.
    #[serde(default, deserialize_with = "present_or_null", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Time>)]
    pub end_at: Option<Option<Time>>,
    /// Its jobs start up to this long after their time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Days on which it does not fire. They replace the earlier ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::ExcludedDays>>, max_items = 366)]
    pub exclude: Option<Vec<String>>,
    /// What happens to firings on those days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_excluded: Option<OnExcluded>,
    /// `true` pauses it, `false` resumes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

fn present_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Time>>, D::Error> {
    Option::<Time>::deserialize(deserializer).map(Some)
}

/// A request to pause a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSchedule {
    /// Why it is paused, for whoever wonders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub note: Option<String>,
}

/// A request to fire a schedule now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerSchedule {
    /// A payload to use instead of the schedule's. `null` is a value here.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// Makes it safe to repeat the request: the same key with the same body makes no second job. Same as the
    /// `Idempotency-Key` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub idempotency_key: Option<String>,
}

/// A schedule: its settings and its progress.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// UUIDv7.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// The name, which is unique.
    pub name: String,
    /// The expression. `null` if the schedule has an interval.
    pub cron: Option<String>,
    /// The interval. `null` if the schedule has an expression.
    pub every: Option<Span>,
    /// The time from which `every` counts.
    pub anchor: Option<Time>,
    /// The time zone, as the time-zone database spells it.
    pub timezone: String,
    /// When it fires, in words.
    #[schema(example = "at 02:00 every day")]
    pub description: String,
    /// When it fires next. `null` while it is paused, and if it never fires again. With `jitter`, the job may start
    /// later.
    pub next_fire_at: Option<Time>,
    /// Whether it will never fire again: the date does not exist, the end is past, or every weekday is excluded.
    pub never: bool,
    /// Whether it is paused. While it is, it does not fire.
    pub paused: bool,
    /// Why it is paused, in the words of whoever paused it.
    pub pause_note: Option<String>,
    /// The job that each firing makes.
    pub job: SubmitJob,
    /// How the server makes up for missed firings.
    pub missed: Missed,
    /// What happens to a firing while an earlier job has not ended.
    pub overlap: Overlap,
    /// What happens to times that the clock skips.
    pub dst_gap: DstGap,
    /// What happens to times that occur twice.
    pub dst_fold: DstFold,
    /// How the two day fields combine.
    pub day_logic: DayLogic,
    /// The schedule does not fire before this time.
    pub start_at: Option<Time>,
    /// The schedule does not fire after this time.
    pub end_at: Option<Time>,
    /// Its jobs start up to this long after their time.
    pub jitter: Span,
    /// Days on which it does not fire.
    pub exclude: Vec<String>,
    /// What happens to firings on those days.
    pub on_excluded: OnExcluded,
    /// The tenant that owns it.
    pub tenant: String,
    /// When it was created.
    pub created_at: Time,
    /// When it was last changed, paused or resumed.
    pub updated_at: Time,
    /// With `overlap: queue`, the time of the oldest firing that waits for an earlier job to end.
    pub queued_since: Option<Time>,
    /// Its latest firings, up to ten, latest first.
    pub last_fires: Vec<Fire>,
    /// The backfill that is running, or else the last one.
    pub backfill: Option<Backfill>,
}

/// A schedule without the fields that only a stored one has.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlannedSchedule {
    /// The name, which is unique.
    pub name: String,
    /// The expression. `null` if the schedule has an interval.
    pub cron: Option<String>,
    /// The interval. `null` if the schedule has an expression.
    pub every: Option<Span>,
    /// The time from which `every` counts.
    pub anchor: Option<Time>,
    /// The time zone, as the time-zone database spells it.
    pub timezone: String,
    /// When it fires, in words.
    #[schema(example = "at 02:00 every day")]
    pub description: String,
    /// When it fires next. `null` if it is paused, or never fires.
    pub next_fire_at: Option<Time>,
    /// Whether it will never fire.
    pub never: bool,
    /// Whether it is paused. While it is, it does not fire.
    pub paused: bool,
    /// The job that each firing makes.
    pub job: SubmitJob,
    /// How the server makes up for missed firings.
    pub missed: Missed,
    /// What happens to a firing while an earlier job has not ended.
    pub overlap: Overlap,
    /// What happens to times that the clock skips.
    pub dst_gap: DstGap,
    /// What happens to times that occur twice.
    pub dst_fold: DstFold,
    /// How the two day fields combine.
    pub day_logic: DayLogic,
    /// The schedule does not fire before this time.
    pub start_at: Option<Time>,
    /// The schedule does not fire after this time.
    pub end_at: Option<Time>,
    /// Its jobs start up to this long after their time.
    pub jitter: Span,
    /// Days on which it does not fire.
    pub exclude: Vec<String>,
    /// What happens to firings on those days.
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
    /// The schedule, with every default filled in.
    pub schedule: PlannedSchedule,
    /// Its next firings in order, with the offset of the zone. For a paused schedule: the firings it would have.
    pub next: Vec<LocalTime>,
}

/// A record of the ledger: one firing, or a span of firings with the same outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fire {
    /// When it should fire. For a span: the first time.
    pub nominal_time: Time,
    /// For a span: the last time. Otherwise the same as `nominal_time`.
    pub last_nominal_time: Time,
    /// How many firings this record covers.
    pub count: u64,
    /// The outcome.
    pub outcome: FireOutcome,
    /// Why: `on_time`, `caught_up`, `paused`, `excluded_day`, `overlap`, `replaced`, `missed_policy`, `outside_window`,
    /// `over_cap`, `by_request` or, while it waits for an earlier job to end, `queued`.
    pub reason: String,
    /// The job that it made, or that stands for it.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub job_id: Option<Uuid>,
    /// When the record was written.
    pub recorded_at: Time,
}

/// A firing in the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextFire {
    /// The time in UTC.
    pub nominal_time: Time,
    /// The same time with the offset of the schedule's zone.
    pub local_time: LocalTime,
}
