//! Recurrences in plain English, and what the next change of the clocks does to a timetable.
//!
//! The words are made from what an expression means, not from how it is spelled: `1-5` and `MON-FRI` read the same.
//! They say exactly the firings of the expression on an ordinary day; what daylight saving does is told by
//! [`next_zone_change`].

mod days;
mod lists;
mod time_of_day;
mod zone_change;

#[cfg(test)]
mod tests;

pub use zone_change::{ClockChange, ZoneChange, next_zone_change};

use super::cron::CronExpr;
use super::policy::DayLogic;
use super::recurrence::{Interval, Recurrence};
use super::zone::Zone;
use crate::time::Timestamp;

/// The recurrence in words, such as "at 02:00 on Monday to Friday".
///
/// ```
/// use tickwheel_core::schedule::{DayLogic, Recurrence, explain};
///
/// let recurrence = Recurrence::parse("*/5 9-17 * * MON-FRI")?;
/// assert_eq!(explain(&recurrence, DayLogic::Or), "every 5 minutes from 09:00 to 17:59 on Monday to Friday");
/// # Ok::<(), tickwheel_core::schedule::CronError>(())
/// ```
pub fn explain(recurrence: &Recurrence, day_logic: DayLogic) -> String {
    match recurrence {
        Recurrence::Cron(expr) => explain_cron(expr, day_logic),
        Recurrence::Every(interval) => explain_interval(interval),
    }
}

fn explain_cron(expr: &CronExpr, day_logic: DayLogic) -> String {
    let time = time_of_day::words(expr);
    let days = match days::words(expr, day_logic) {
        // "every 5 minutes, every day" says the same thing twice.
        None if time.contains("every") => String::new(),
        None => " every day".to_owned(),
        Some(days) => format!(" {days}"),
    };
    let never = if expr.ever_matches(day_logic) { "" } else { ", which never comes" };
    format!("{time}{days}{never}")
}

fn explain_interval(interval: &Interval) -> String {
    let length = length_words(interval.every_ms() / 1000);
    // "every 1 day" is "every day", but "every 1 hour 30 minutes" keeps its number.
    let length = length.strip_prefix("1 ").filter(|unit| !unit.contains(' ')).unwrap_or(&length);
    if interval.anchor() == Timestamp::EPOCH {
        return format!("every {length}");
    }
    format!("every {length}, counted from {}Z", Zone::utc().civil_at(interval.anchor()))
}

/// A length of time: "1 hour 30 minutes".
fn length_words(seconds: u64) -> String {
    let units = [
        (seconds / 86_400, "day"),
        (seconds / 3600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let parts = units.iter().filter(|(count, _)| *count > 0);
    parts.map(|(count, unit)| lists::counted(*count, unit)).collect::<Vec<_>>().join(" ")
}
