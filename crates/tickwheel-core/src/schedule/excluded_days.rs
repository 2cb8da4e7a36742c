//! Which days a schedule excludes, laid out so that a day is looked up quickly however much is excluded.
//!
//! Counts its own work in steps: whoever searches among days has a budget of them, not of time, so that an answer is
//! the same on every machine.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use super::calendar::{Calendar, Exclusion};
use super::civil::CivilDate;

/// How many excluded days in a row are passed over, and how far a firing may move from one.
pub(super) const EXCLUDED_DAYS_MAX: i64 = 366;
const ALL_WEEKDAYS: u8 = 0b111_1111;

/// The calendars of a tenant by name.
pub type Calendars = HashMap<Arc<str>, Calendar>;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct ExcludedDays<'a> {
    /// First and last days, in order, without overlap.
    ranges: Vec<(CivilDate, CivilDate)>,
    /// Only those that name days.
    calendars: Vec<&'a Calendar>,
    /// A bit for each, Sunday is the lowest.
    weekdays: u8,
    /// The day that was asked about last, and the answer: most questions come in runs.
    known: Cell<Option<(CivilDate, bool)>>,
    /// The day that was asked about last, and the first open one after it.
    known_open: Cell<Option<(CivilDate, Option<CivilDate>)>>,
    steps: Cell<u64>,
}

impl<'a> ExcludedDays<'a> {
    /// A calendar that does not exist excludes nothing.
    pub fn of(exclude: &[Exclusion], calendars: &'a Calendars) -> Self {
        let mut ranges = Vec::new();
        let mut named: Vec<&Calendar> = Vec::new();
        for exclusion in exclude {
            match exclusion {
                Exclusion::Day(day) => ranges.push((*day, *day)),
                Exclusion::Days(first, last) => ranges.push((*first, *last)),
                Exclusion::Calendar(name) => named.extend(calendars.get(name)),
            }
        }
        let weekdays =
            named.iter().flat_map(|calendar| &calendar.weekdays).fold(0, |all, day| all | 1 << day);
        named.retain(|calendar| !calendar.days.is_empty());
        named.sort_by_key(|calendar| &calendar.name);
        named.dedup_by_key(|calendar| &calendar.name);
        Self {
            ranges: merged(ranges),
            calendars: named,
            weekdays,
            known: Cell::new(None),
            known_open: Cell::new(None),
            steps: Cell::new(0),
        }
    }

    /// Whether no day is excluded.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.calendars.is_empty() && self.weekdays == 0
    }

    /// Whether every day is excluded, for ever.
    pub const fn is_every_day(&self) -> bool {
        self.weekdays == ALL_WEEKDAYS
    }

    /// Whether this day is.
    pub fn contains(&self, day: CivilDate) -> bool {
        if let Some((known, answer)) = self.known.get()
            && known == day
        {
            return answer;
        }
        self.count_steps(1 + self.calendars.len());
        let answer = self.weekdays >> day.weekday() & 1 == 1
            || self.is_in_a_range(day)
            || self.calendars.iter().any(|calendar| calendar.days.contains(&day));
        self.known.set(Some((day, answer)));
        answer
    }

    fn is_in_a_range(&self, day: CivilDate) -> bool {
        let place = self.ranges.partition_point(|(first, _)| *first <= day);
        place > 0 && day <= self.ranges[place - 1].1
    }

    /// The first day after this one that is not excluded, unless it is too far away.
    pub fn open_day_after(&self, day: CivilDate) -> Option<CivilDate> {
        if self.is_every_day() {
            return None;
        }
        match self.known_open.get() {
            Some((asked, Some(open))) if asked <= day && day < open => return Some(open),
            Some((asked, None)) if asked == day => return None,
            _ => {}
        }
        let mut days = (1..=EXCLUDED_DAYS_MAX).map(|days| day.plus_days(days));
        let open = days.find(|day| !self.contains(*day));
        self.known_open.set(Some((day, open)));
        open
    }

    /// The first of the excluded days in a row that end before this one, if there is any.
    pub fn first_in_row_before(&self, day: CivilDate) -> Option<CivilDate> {
        let days = (1..=EXCLUDED_DAYS_MAX).map(|days| day.plus_days(-days));
        days.take_while(|day| self.contains(*day)).last()
    }

    /// How much was done so far.
    pub const fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// So much more was done.
    pub fn count_steps(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps as u64);
    }
}

fn merged(mut ranges: Vec<(CivilDate, CivilDate)>) -> Vec<(CivilDate, CivilDate)> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, before| {
        let overlap = next.0 <= before.1;
        if overlap {
            before.1 = before.1.max(next.1);
        }
        overlap
    });
    ranges
}
