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
//! Kept true: the firings of a [`Timetable`] are strictly increasing, on whole seconds for cron, and a search is bounded
//! work for every expression, also for dates that never come. Everything lies between 1970 and the end of the year 9999.
//!
//! Deliberately not here: what becomes of a firing (missed runs, overlap, exclusions, jitter) and anything that is stored.

pub mod civil;
pub mod cron;
pub mod explain;
mod firing;
mod policy;
mod recurrence;
mod timetable;
pub mod zone;

#[cfg(test)]
mod tests;

pub use cron::{CronError, CronExpr};
pub use explain::{ZoneChange, explain, next_zone_change};
pub use policy::{DayLogic, DstFold, DstGap};
pub use recurrence::{BadInterval, Interval, Recurrence};
pub use timetable::{Firings, Timetable};
pub use zone::{UnknownZone, ZONE_DATA_VERSION, Zone};
