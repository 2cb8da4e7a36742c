//! The second, minute and hour fields in words.

use super::super::cron::{CronExpr, values};
use super::lists::{counted, joined, ordinal, progression, with_runs};

/// Up to so many times of day are listed one by one.
const LISTED_MAX: u32 = 4;
const ALL_OF_SIXTY: u64 = (1 << 60) - 1;
const ALL_HOURS: u64 = (1 << 24) - 1;

/// When on a matching day it fires.
pub(super) fn words(expr: &CronExpr) -> String {
    let (seconds, minutes, hours) = (expr.seconds, expr.minutes, u64::from(expr.hours));
    if seconds.count_ones() * minutes.count_ones() * hours.count_ones() <= LISTED_MAX {
        return format!("at {}", joined(&listed_times(seconds, minutes, hours), "and"));
    }
    let on_the_minute = seconds == 1;
    match minutes.count_ones() {
        1 if on_the_minute => hourly(minutes.trailing_zeros(), hours),
        _ if on_the_minute => with_hours(every(minutes, "minute", "hour"), hours),
        _ if minutes == ALL_OF_SIXTY => with_hours(every(seconds, "second", "minute"), hours),
        _ => {
            let in_minutes = joined(&with_runs(minutes, |minute| minute.to_string()), "and");
            let noun = if minutes.count_ones() == 1 { "minute" } else { "minutes" };
            let seconds = every(seconds, "second", "minute");
            with_hours(format!("{seconds}, in {noun} {in_minutes} of every hour"), hours)
        }
    }
}

fn listed_times(seconds: u64, minutes: u64, hours: u64) -> Vec<String> {
    let on_the_minute = seconds == 1;
    let mut times = Vec::new();
    for hour in values(hours) {
        for minute in values(minutes) {
            times.extend(values(seconds).map(|second| match on_the_minute {
                true => format!("{hour:02}:{minute:02}"),
                false => format!("{hour:02}:{minute:02}:{second:02}"),
            }));
        }
    }
    times
}

/// One minute of many hours.
fn hourly(minute: u32, hours: u64) -> String {
    let at_minute = if minute == 0 { String::new() } else { format!(" at minute {minute}") };
    match progression(hours) {
        _ if hours == ALL_HOURS => format!("every hour{at_minute}"),
        Some((first, last, 1)) => format!("every hour from {first:02}:{minute:02} to {last:02}:{minute:02}"),
        Some((0, last, step)) if last + step == 24 => format!("every {step} hours{at_minute}"),
        Some((first, last, step)) => {
            format!("every {step} hours from {first:02}:{minute:02} to {last:02}:{minute:02}")
        }
        None => with_hours(format!("at minute {minute}"), hours),
    }
}

/// The values of a field of sixty: "every 5 minutes", "at minutes 3 and 7 of every hour".
fn every(bits: u64, unit: &str, whole: &str) -> String {
    match progression(bits) {
        _ if bits == ALL_OF_SIXTY => format!("every {unit}"),
        Some((0, last, step)) if last + step == 60 => format!("every {}", counted(step.into(), unit)),
        Some((first, last, step)) if step > 1 => {
            format!("every {step} {unit}s from {unit} {first} to {last} of every {whole}")
        }
        _ => {
            let plural = if bits.count_ones() == 1 { "" } else { "s" };
            let list = joined(&with_runs(bits, |value| value.to_string()), "and");
            format!("at {unit}{plural} {list} of every {whole}")
        }
    }
}

/// Adds the hours in which that happens.
fn with_hours(what: String, hours: u64) -> String {
    match progression(hours) {
        _ if hours == ALL_HOURS => what,
        Some((first, last, 1)) => format!("{what} from {first:02}:00 to {last:02}:59"),
        Some((first, last, step)) => {
            format!("{what} in every {} hour from {first:02}:00 to {last:02}:59", ordinal(step))
        }
        None if hours.count_ones() == 1 => {
            let hour = hours.trailing_zeros();
            format!("{what} from {hour:02}:00 to {hour:02}:59")
        }
        None => {
            let list = joined(&with_runs(hours, |hour| format!("{hour:02}")), "and");
            format!("{what} in the hours {list}")
        }
    }
}
