//! Times as people type them: `tomorrow 9:00`, `friday 17:30`, `in 2h`, `2026-12-01 09:00`, or exact ones with an
//! offset.
//!
//! A time without an offset is local to this machine. If it occurs twice, the first occurrence counts; if the clock
//! skips it, the moment after the gap.

use std::time::Duration;

use tickwheel_core::Timestamp;
use tickwheel_core::schedule::Zone;
use tickwheel_core::schedule::calendar::parse_date;
use tickwheel_core::schedule::civil::{CivilDate, CivilTime};
use tickwheel_protocol::{Span, Time};

use super::local::{self, first_moment};
use crate::output::{now, relative};

/// For help texts.
pub const FORMS: &str = "A TIME is exact (2026-12-01T15:00:00Z), local to this machine (2026-12-01 15:00, tomorrow 9:00, friday 17:30, 9pm), \
    or relative to now (in 2h, 30m ago).";

const WEEKDAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// What a time is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A start in the future. A day alone is not precise enough, and a time in the past is a mistake.
    Appointment,
    /// A bound in the past. A day alone means its midnight.
    Back,
}

/// Parses a start time.
pub fn appointment(text: &str) -> Result<Time, String> {
    read(text, Purpose::Appointment, now(), local::zone())
}

/// Parses a time in the past.
pub fn back(text: &str) -> Result<Time, String> {
    read(text, Purpose::Back, now(), local::zone())
}

fn read(text: &str, purpose: Purpose, now: Time, zone: Zone) -> Result<Time, String> {
    if let Ok(exact) = text.trim().parse() {
        return Ok(exact);
    }
    let words = text.trim().to_lowercase();
    let from_now = seen_from_now(&words, now);
    let at = match from_now {
        Some(at) => at,
        None => on_the_clock(&words, purpose, now, zone)?,
    };
    if purpose == Purpose::Appointment && at < now {
        return Err(format!("that was {}", relative(at, now)));
    }
    Ok(at)
}

fn not_a_time() -> String {
    "expected a time such as \"tomorrow 9:00\", \"2026-12-01 15:00\", \"in 2h\", or RFC 3339 with an offset: 2026-12-01T15:00:00Z".into()
}

fn seen_from_now(words: &str, now: Time) -> Option<Time> {
    let shifted = |span: &str, sign: i64| {
        let span: Span = span.trim().parse().ok()?;
        let ms = i64::try_from(span.as_millis()).ok()?;
        now.as_millis().checked_add(sign * ms).map(Time::from_millis)
    };
    match (words, words.strip_prefix("in "), words.strip_suffix(" ago")) {
        ("now", ..) => Some(now),
        (_, Some(span), _) => shifted(span, 1),
        (_, _, Some(span)) => shifted(span, -1),
        _ => None,
    }
}

fn on_the_clock(words: &str, purpose: Purpose, now: Time, zone: Zone) -> Result<Time, String> {
    let today = zone.civil_at(Timestamp::from_millis(now.as_millis())).date();
    let (day, clock) = parts(words).ok_or_else(not_a_time)?;
    if clock.is_none() && purpose == Purpose::Appointment {
        return Err(format!("at what time of that day? For example \"{words} 9:00\""));
    }
    let at = |day: CivilDate| {
        let (hour, minute, second) = clock.unwrap_or_default();
        let time = CivilTime::new(day, hour, minute, second).expect("a clock that was read shows a time");
        Time::from_millis(first_moment(time, zone).as_millis())
    };
    // Of the days that can be meant, the nearest that is on the right side of now.
    let nearest = |days: &mut dyn Iterator<Item = CivilDate>| {
        let is_right = |at: &Time| match purpose {
            Purpose::Appointment => *at > now,
            Purpose::Back => *at <= now,
        };
        days.map(at).find(is_right).ok_or_else(not_a_time)
    };
    let step = if purpose == Purpose::Back { -1 } else { 1 };
    match day {
        Day::Date(date) => Ok(at(date)),
        Day::FromToday(days) => Ok(at(today.plus_days(days))),
        Day::Any => nearest(&mut (0..=1).map(|days| today.plus_days(days * step))),
        Day::Weekday(weekday) => {
            let days = (0..=7).map(|days| today.plus_days(days * step));
            nearest(&mut days.filter(|day| day.weekday() == weekday))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Day {
    Date(CivilDate),
    FromToday(i64),
    /// 0 is Sunday.
    Weekday(u8),
    /// Not given.
    Any,
}

type Clock = (u8, u8, u8);

fn parts(words: &str) -> Option<(Day, Option<Clock>)> {
    let split = match words.split_once('t') {
        Some((date, clock)) if parse_date(date).is_some() => format!("{date} {clock}"),
        _ => words.replace(" at ", " "),
    };
    let said: Vec<&str> = split.split_whitespace().collect();
    match said.as_slice() {
        [one] => match day(one) {
            Some(day) => Some((day, None)),
            None => Some((Day::Any, Some(clock(one)?))),
        },
        [first, rest @ ..] => match day(first) {
            Some(day) => Some((day, Some(clock(&rest.concat())?))),
            None => Some((Day::Any, Some(clock(&said.concat())?))),
        },
        [] => None,
    }
}

fn day(word: &str) -> Option<Day> {
    let named = |name: &&str| word.len() >= 3 && name.starts_with(word);
    match word {
        "today" => Some(Day::FromToday(0)),
        "tomorrow" => Some(Day::FromToday(1)),
        "yesterday" => Some(Day::FromToday(-1)),
        _ => match WEEKDAYS.iter().position(named) {
            Some(weekday) => u8::try_from(weekday).ok().map(Day::Weekday),
            None => parse_date(word).map(Day::Date),
        },
    }
}

/// `9:00`, `09:00:30`, `9am`, `9:30pm`, `noon`, `midnight`.
fn clock(word: &str) -> Option<Clock> {
    match word {
        "noon" => return Some((12, 0, 0)),
        "midnight" => return Some((0, 0, 0)),
        _ => {}
    }
    let (digits, half) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(0)),
        (_, Some(digits)) => (digits, Some(12)),
        _ => (word, None),
    };
    let mut numbers = digits.split(':').map(|part| {
        let is_number = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u8>().ok().filter(|_| is_number)
    });
    let hour = numbers.next()??;
    let minute = match numbers.next() {
        Some(minute) => minute?,
        // `9` alone may be anything.
        None => half.map(|_| 0)?,
    };
    let second = numbers.next().unwrap_or(Some(0))?;
    let hour = match half {
        Some(half) => (1..=12).contains(&hour).then_some(hour % 12 + half)?,
        None => hour,
    };
    let is_time = hour < 24 && minute < 60 && second < 60 && numbers.next().is_none();
    is_time.then_some((hour, minute, second))
}

/// A moment in local time, and how far away it is.
pub fn told(at: Time) -> String {
    format!("{} ({})", local::clock(at, local::zone()), relative(at, now()))
}

/// So soon that it needs no mention.
pub fn is_soon(at: Time) -> bool {
    let soon = Duration::from_secs(1).as_millis();
    at.as_millis() <= now().as_millis().saturating_add(i64::try_from(soon).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Monday, 17:05 in Berlin.
    const NOW: &str = "2026-11-16T16:05:00Z";

    fn in_berlin(text: &str, purpose: Purpose) -> Result<String, String> {
        let zone = Zone::named("Europe/Berlin").unwrap();
        read(text, purpose, NOW.parse().unwrap(), zone).map(|at| at.to_string().replace(":00.000Z", "Z"))
    }

    #[test]
    fn an_appointment_is_read_on_the_clock_here_and_lies_ahead() {
        for (text, utc) in [
            ("2026-12-01T15:00:00Z", "2026-12-01T15:00Z"),
            ("2026-12-01T15:00", "2026-12-01T14:00Z"),
            ("2026-12-01 15:00:30", "2026-12-01T14:00:30.000Z"),
            ("tomorrow 9:00", "2026-11-17T08:00Z"),
            ("Tomorrow at 9am", "2026-11-17T08:00Z"),
            ("today 23:59", "2026-11-16T22:59Z"),
            ("17:05", "2026-11-17T16:05Z"),
            ("18:00", "2026-11-16T17:00Z"),
            ("12am", "2026-11-16T23:00Z"),
            ("noon", "2026-11-17T11:00Z"),
            ("9:30 pm", "2026-11-16T20:30Z"),
            ("monday 9:00", "2026-11-23T08:00Z"),
            ("mon 18:00", "2026-11-16T17:00Z"),
            ("fri 17:30", "2026-11-20T16:30Z"),
            ("in 90m", "2026-11-16T17:35Z"),
            ("now", "2026-11-16T16:05Z"),
        ] {
            assert_eq!(in_berlin(text, Purpose::Appointment).as_deref(), Ok(utc), "{text}");
        }
    }

    #[test]
    fn an_appointment_that_is_past_or_says_no_time_is_refused() {
        assert_eq!(in_berlin("today 9:00", Purpose::Appointment), Err("that was 8h 5m ago".into()));
        for text in ["yesterday 9:00", "30m ago", "2026-11-15 12:00"] {
            assert!(in_berlin(text, Purpose::Appointment).unwrap_err().contains("ago"), "{text}");
        }
        for text in ["tomorrow", "friday", "2026-12-01"] {
            let told = in_berlin(text, Purpose::Appointment).unwrap_err();
            assert!(told.contains("what time of that day"), "{told}");
        }
    }

    #[test]
    fn a_bound_may_be_a_day_and_the_one_of_the_past_lies_back() {
        for (text, utc) in [
            ("yesterday", "2026-11-14T23:00Z"),
            ("monday", "2026-11-15T23:00Z"),
            ("sunday", "2026-11-14T23:00Z"),
            ("18:00", "2026-11-15T17:00Z"),
            ("1d ago", "2026-11-15T16:05Z"),
            ("2026-11-01", "2026-10-31T23:00Z"),
        ] {
            assert_eq!(in_berlin(text, Purpose::Back).as_deref(), Ok(utc), "{text}");
        }
    }

    #[test]
    fn where_the_clock_changes_there_is_always_a_moment() {
        assert_eq!(in_berlin("2027-03-28 02:30", Purpose::Appointment).as_deref(), Ok("2027-03-28T01:00Z"));
        assert_eq!(in_berlin("2026-10-25 02:30", Purpose::Back).as_deref(), Ok("2026-10-25T00:30Z"));
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "soon",
            "9",
            "25:00",
            "9:60",
            "13pm",
            "0am",
            "tomorrow soon",
            "in a while",
            "mo 9:00",
            "2026-13-01 9:00",
            "2026-12-01Tx",
            "tomorrow 9:00 sharp",
            "in",
            "ago",
            "9:00:00:00",
        ] {
            let told = in_berlin(text, Purpose::Appointment).unwrap_err();
            assert!(told.contains("tomorrow 9:00"), "{text}: {told}");
        }
    }
}
