//! When recurring work is due: cron expressions and intervals, read in a time zone.
//!
//! ```text
//!   text ──parse──▶ Recurrence ─┐
//!   name ──────────▶ Zone ──────┼──▶ Timetable ──next_after──▶ Timestamp
//!   dst_gap, dst_fold, … ───────┘        └──────explain──────▶ words
//! ```
//! Cron is searched on the local calendar ([`civil`]), where its fields have a meaning, and only then laid on real time
//! by the zone's table of offsets. That is the one place where daylight saving is decided (`firing`).
//!
//! Kept true: the firings of a [`Timetable`] are strictly increasing, on whole seconds for cron, and a search is
//! bounded work for every expression, also for dates that never come. Everything lies between 1970 and the end of the
//! year 9999.
//!
//! A [`Schedule`] adds to the timetable the job each firing makes and the rules for what can go wrong;
//! [`plan`](mod@plan) decides what becomes of every firing that is due.
//!
//! Deliberately not here: carrying a decision out, and storing anything.

pub mod backfill;
pub mod calendar;
pub mod civil;
pub mod cron;
mod definition;
pub mod edit;
mod excluded_days;
pub mod explain;
mod firing;
mod ledger;
mod open_days;
mod outages;
pub mod plan;
mod policy;
mod recurrence;
pub mod timer;
mod timetable;
mod upcoming;
pub mod zone;

#[cfg(test)]
mod tests;

pub use backfill::{Backfill, BackfillState};
pub use calendar::{Calendar, Exclusion};
pub use cron::{CronError, CronExpr};
pub use definition::{
    BadTimetable, DEFAULT_MAX_BACKFILL, DEFAULT_WINDOW_MS, GRACE_MS, JobTemplate, MAX_BACKFILL_MAX,
    MissedPolicy, MissedRule, OnExcluded, Overlap, Rule, Schedule, ScheduleProgress, ScheduleSpec,
};
pub use explain::{ZoneChange, explain, next_zone_change};
pub use ledger::{Fire, FireOutcome, FireReason};
pub use policy::{DayLogic, DstFold, DstGap};
pub use recurrence::{BadInterval, Interval, Recurrence};
pub use timetable::{Firings, Timetable};
pub use upcoming::Upcoming;
pub use zone::{UnknownZone, ZONE_DATA_VERSION, Zone};
