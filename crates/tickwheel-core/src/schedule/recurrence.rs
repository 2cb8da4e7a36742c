//! What repeats: a cron expression, or an interval.

use super::civil::LAST_SECOND;
use super::cron::{CronError, CronExpr};
use crate::time::Timestamp;

/// The rule of a schedule, without its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recurrence {
    /// Local times that match an expression.
    Cron(CronExpr),
    /// Every so often in real time, whatever the clocks on the walls do.
    Every(Interval),
}

impl Recurrence {
    /// Reads a cron expression, a nickname such as `@daily`, or an interval such as `@every 90s`.
    ///
    /// ```
    /// use tickwheel_core::Timestamp;
    /// use tickwheel_core::schedule::{Interval, Recurrence};
    ///
    /// let every = Recurrence::parse("@every 1h30m")?;
    /// assert_eq!(every, Recurrence::Every(Interval::new(5_400_000, Timestamp::EPOCH).unwrap()));
    /// # Ok::<(), tickwheel_core::schedule::CronError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if first.eq_ignore_ascii_case("@every") {
            return parse_every(text, rest.trim()).map(Self::Every);
        }
        CronExpr::parse(text).map(Self::Cron)
    }
}

fn parse_every(text: &str, length: &str) -> Result<Interval, CronError> {
    let every_ms = parse_length_ms(&length.to_ascii_lowercase()).ok_or_else(|| {
        CronError::whole(text, |value| {
            format!("{value} needs a duration, such as @every 90s, 5m, 1h30m or 2d")
        })
    })?;
    Interval::new(every_ms, Timestamp::EPOCH)
        .map_err(|bad| CronError::whole(text, |value| format!("{value}: {bad}")))
}

/// `1h30m` and the like: whole numbers, each with a unit.
fn parse_length_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total_ms: u64 = 0;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, tail) = tail.split_at(tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()));
        let unit_ms: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        total_ms = total_ms.checked_add(number.parse::<u64>().ok()?.checked_mul(unit_ms)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total_ms)
}

/// Moments at equal distances: the anchor, and every whole number of steps before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    every_ms: u64,
    anchor: Timestamp,
}

/// The length cannot be that of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadInterval {
    /// Less than a second.
    #[error("the interval is {0} ms; it must be at least 1 second")]
    TooShort(u64),
    /// More than [`Interval::EVERY_MS_MAX`].
    #[error("the interval is {0} ms; it must be at most 366 days")]
    TooLong(u64),
    /// Firings are on whole seconds.
    #[error("the interval is {0} ms; it must be whole seconds")]
    NotWholeSeconds(u64),
}

impl Interval {
    /// No interval is shorter.
    pub const EVERY_MS_MIN: u64 = 1_000;
    /// No interval is longer: a leap year.
    pub const EVERY_MS_MAX: u64 = 366 * 86_400_000;

    /// The interval of that length, counted from the second of `anchor`.
    pub fn new(every_ms: u64, anchor: Timestamp) -> Result<Self, BadInterval> {
        let anchor = Timestamp::from_millis(anchor.as_millis() - anchor.as_millis().rem_euclid(1_000));
        match every_ms {
            ..Self::EVERY_MS_MIN => Err(BadInterval::TooShort(every_ms)),
            Self::EVERY_MS_MAX.. if every_ms > Self::EVERY_MS_MAX => Err(BadInterval::TooLong(every_ms)),
            _ if !every_ms.is_multiple_of(1_000) => Err(BadInterval::NotWholeSeconds(every_ms)),
            _ => Ok(Self { every_ms, anchor }),
        }
    }

    /// Its length in milliseconds.
    pub const fn every_ms(&self) -> u64 {
        self.every_ms
    }

    /// The moment from which it is counted.
    pub const fn anchor(&self) -> Timestamp {
        self.anchor
    }

    /// The first of its moments after `after`.
    pub(super) fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = i128::from(after.as_millis().max(-1));
        let (anchor, every) = (i128::from(self.anchor.as_millis()), i128::from(self.every_ms));
        let next = after + every - (after - anchor).rem_euclid(every);
        i64::try_from(next).ok().filter(|ms| *ms <= LAST_SECOND * 1000).map(Timestamp::from_millis)
    }

    /// How many of its moments lie after `after` and not after `until`.
    pub(super) fn count_between(&self, after: Timestamp, until: Timestamp) -> u64 {
        let until = until.min(Timestamp::from_millis(LAST_SECOND * 1000));
        match self.next_after(after) {
            Some(first) if first <= until => {
                (until.as_millis() - first.as_millis()) as u64 / self.every_ms + 1
            }
            _ => 0,
        }
    }
}
