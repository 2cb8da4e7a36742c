//! Days on which nothing fires: single dates, ranges of dates, and calendars that schedules share.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::civil::CivilDate;
use crate::time::Timestamp;

/// So many days a calendar may name.
pub const CALENDAR_DAYS_MAX: usize = 10_000;

/// Days on which a schedule does not fire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Exclusion {
    /// One day, `2026-12-25`.
    Day(CivilDate),
    /// All days from the first to the last, `2026-12-24/2026-12-31`.
    Days(CivilDate, CivilDate),
    /// Those of a shared calendar, `calendar:holidays`.
    Calendar(Arc<str>),
}

/// The text names no days.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a date (2026-12-25), a range of dates (2026-12-24/2026-12-31) or a calendar (calendar:holidays)"
)]
pub struct NoDays(String);

impl FromStr for Exclusion {
    type Err = NoDays;

    fn from_str(text: &str) -> Result<Self, NoDays> {
        let bad = || NoDays(text.chars().take(64).collect());
        if let Some(name) = text.strip_prefix("calendar:") {
            return if name.is_empty() { Err(bad()) } else { Ok(Self::Calendar(name.into())) };
        }
        match text.split_once('/') {
            None => parse_date(text).map(Self::Day).ok_or_else(bad),
            Some((first, last)) => match (parse_date(first), parse_date(last)) {
                (Some(first), Some(last)) if first <= last => Ok(Self::Days(first, last)),
                _ => Err(bad()),
            },
        }
    }
}

/// `2026-12-25`, and nothing else.
pub fn parse_date(text: &str) -> Option<CivilDate> {
    let mut parts = text.split('-');
    let mut number = |len: usize| {
        let part =
            parts.next().filter(|part| part.len() == len && part.bytes().all(|b| b.is_ascii_digit()))?;
        part.parse::<u16>().ok()
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    if parts.next().is_some() {
        return None;
    }
    CivilDate::new(year.into(), u8::try_from(month).ok()?, u8::try_from(day).ok()?)
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day(day) => day.fmt(f),
            Self::Days(first, last) => write!(f, "{first}/{last}"),
            Self::Calendar(name) => write!(f, "calendar:{name}"),
        }
    }
}

impl TryFrom<String> for Exclusion {
    type Error = NoDays;
    fn try_from(text: String) -> Result<Self, NoDays> {
        text.parse()
    }
}

impl From<Exclusion> for String {
    fn from(exclusion: Exclusion) -> Self {
        exclusion.to_string()
    }
}

/// A named set of days that schedules share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// Its name, unique within the tenant.
    pub name: Arc<str>,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The days.
    pub days: BTreeSet<CivilDate>,
    /// Weekdays that are excluded too, Sunday is 0.
    pub weekdays: BTreeSet<u8>,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Calendar {
    /// Whether it names this day.
    pub fn excludes(&self, day: CivilDate) -> bool {
        self.days.contains(&day) || self.weekdays.contains(&day.weekday())
    }
}
