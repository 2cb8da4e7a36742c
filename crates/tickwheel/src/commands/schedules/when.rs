//! Times as people type them for a schedule: exact ones, and local ones in the schedule's zone.
//!
//! Kept true: a range covers everything that its words can mean. If a local time occurs twice, the range begins with
//! the first occurrence and ends with the second. A day begins with its first moment and ends with its last.

use std::str::FromStr;
use std::time::Duration;

use tickwheel_core::Timestamp;
use tickwheel_core::schedule::Zone;
use tickwheel_core::schedule::calendar::parse_date;
use tickwheel_core::schedule::civil::{CivilDate, CivilTime};
use tickwheel_core::schedule::zone::Moments;
use tickwheel_protocol::Time;

use crate::commands::local::{first_moment, first_of};

/// A time, as far as it is known without the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// An exact moment.
    Exact(Time),
    /// A local time.
    Local(CivilTime),
    /// A whole day.
    Day(CivilDate),
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let not_a_time = "expected RFC 3339 (2026-11-01T09:00:00Z), or 2026-11-01T09:00 or 2026-11-01 in the schedule's time zone";
        if let Some(day) = parse_date(text) {
            return Ok(Self::Day(day));
        }
        if let Some(time) = local_time(text) {
            return Ok(Self::Local(time));
        }
        text.parse().map(Self::Exact).map_err(|_| not_a_time.into())
    }
}

/// `2026-11-01T09:00` or `2026-11-01T09:00:30`; a space does as well.
fn local_time(text: &str) -> Option<CivilTime> {
    let (date, clock) = text.split_once(['T', 't', ' '])?;
    let mut parts = clock.split(':').map(|part| {
        let is_number = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u8>().ok().filter(|_| is_number)
    });
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    CivilTime::new(parse_date(date)?, hour, minute, second).filter(|_| parts.next().is_none())
}

impl When {
    /// Whether the zone must be known.
    pub const fn needs_zone(self) -> bool {
        !matches!(self, Self::Exact(_))
    }

    /// The first moment it can mean.
    pub fn first(self, zone: Zone) -> Time {
        match self {
            Self::Exact(at) => at,
            Self::Local(time) => wire(first_moment(time, zone)),
            Self::Day(day) => wire(first_of(day, zone)),
        }
    }

    /// The last moment it can mean.
    pub fn last(self, zone: Zone) -> Time {
        match self {
            Self::Exact(at) => at,
            Self::Local(time) => wire(match zone.moments_of(time) {
                Moments::One(at) | Moments::Two { last: at, .. } => at,
                Moments::None { gap_ends_at } => gap_ends_at,
            }),
            Self::Day(day) => wire(first_of(day.plus_days(1), zone) - Duration::from_millis(1)),
        }
    }
}

fn wire(at: Timestamp) -> Time {
    Time::from_millis(at.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str, zone: &str) -> [String; 2] {
        let when: When = text.parse().unwrap();
        let zone = Zone::named(zone).unwrap();
        [when.first(zone), when.last(zone)].map(|at| at.to_string())
    }

    #[test]
    fn an_exact_time_is_itself_wherever_the_schedule_is() {
        let utc = "2026-11-01T08:00:00.000Z";
        assert_eq!(range("2026-11-01T09:00:00+01:00", "Asia/Tokyo"), [utc, utc]);
        assert!(!"2026-11-01T08:00:00Z".parse::<When>().unwrap().needs_zone());
    }

    #[test]
    fn a_time_without_offset_is_read_on_the_clock_of_the_schedule() {
        let utc = "2026-11-02T14:00:00.000Z";
        for text in ["2026-11-02T09:00", "2026-11-02 09:00", "2026-11-02T09:00:00"] {
            assert_eq!(range(text, "America/New_York"), [utc, utc], "{text}");
        }
    }

    #[test]
    fn a_day_is_all_of_it_also_where_the_clocks_change() {
        assert_eq!(
            range("2026-11-01", "America/New_York"),
            ["2026-11-01T04:00:00.000Z", "2026-11-02T04:59:59.999Z"]
        );
        // No clock in Beirut shows that midnight.
        assert_eq!(range("2026-03-29", "Asia/Beirut")[0], "2026-03-28T22:00:00.000Z");
    }

    #[test]
    fn a_time_that_happens_twice_begins_with_the_first_and_ends_with_the_second() {
        assert_eq!(
            range("2026-11-01T01:30", "America/New_York"),
            ["2026-11-01T05:30:00.000Z", "2026-11-01T06:30:00.000Z"]
        );
        let gap_ends_at = "2026-03-08T07:00:00.000Z";
        assert_eq!(range("2026-03-08T02:30", "America/New_York"), [gap_ends_at, gap_ends_at]);
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-11-1",
            "2026-11-01T",
            "2026-11-01T9:00",
            "2026-11-01T24:00",
            "2026-11-01T09:00:00:00",
            "2026-11-01T09",
            "09:00",
        ] {
            let told = text.parse::<When>().unwrap_err();
            assert!(told.contains("in the schedule's time zone"), "{text}");
        }
    }
}
