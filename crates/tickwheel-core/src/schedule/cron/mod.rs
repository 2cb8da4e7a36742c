//! Cron expressions: five fields, or six with leading seconds.
//!
//! | field | values | also |
//! |---|---|---|
//! | second (optional) | 0–59 | |
//! | minute | 0–59 | |
//! | hour | 0–23 | |
//! | day-of-month | 1–31 | `L` last day, `L-3` three days before it, `LW` last weekday, `15W` weekday nearest the 15th, `?` |
//! | month | 1–12, `JAN`–`DEC` | |
//! | day-of-week | 0–7 (0 and 7 are Sunday), `SUN`–`SAT` | `FRIL` last Friday, `FRI#2` second Friday, `?` |
//!
//! Everywhere: `*`, lists `1,5`, ranges `1-5`, steps `*/5`, `10-40/10`, and `10/15` for "from 10 to the end in steps of
//! 15". `@hourly`, `@daily`, `@midnight`, `@weekly`, `@monthly`, `@yearly` and `@annually` stand for what they say.
//!
//! An expression is held as bit sets: a million of them are small, and finding the next match is a matter of shifts.
//! What is not here: zones and daylight saving (`firing`), and intervals ([`super::Recurrence`]).

mod days;
mod error;
mod field;
mod item;
mod parse;
mod search;

#[cfg(test)]
mod tests;

pub(super) use days::{DaysOfMonth, DaysOfWeek, Month, values};
pub use error::CronError;
pub use field::Field;
pub use parse::TEXT_BYTES_MAX;

/// A cron expression. Texts that differ only in their spelling are equal.
///
/// ```
/// use tickwheel_core::schedule::CronExpr;
///
/// assert_eq!(CronExpr::parse("0 9 * * mon-fri")?, CronExpr::parse("0 9 * * 1,2,3,4,5")?);
/// let error = CronExpr::parse("60 * * * *").unwrap_err();
/// assert_eq!(error.to_string(), "minute: 60 is out of range, allowed are 0-59");
/// # Ok::<(), tickwheel_core::schedule::CronError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CronExpr {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
    pub(super) months: u16,
    pub(super) days_of_month: DaysOfMonth,
    pub(super) days_of_week: DaysOfWeek,
    follows_real_time: bool,
}

impl CronExpr {
    /// Whether the minute or the hour begins with `*`. Such an expression means "every so often" and follows real time:
    /// it fires in both hours of a fold and has nothing to make up for after a gap. Any other means fixed local times.
    pub const fn follows_real_time(&self) -> bool {
        self.follows_real_time
    }
}
