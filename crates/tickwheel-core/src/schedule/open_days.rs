//! On which days a schedule fires, and where the firings of the other days go.
//!
//! Kept true: a firing that moves goes to the same local time of the next open day, and only if the schedule does not fire
//! then anyway; so moved and regular firings are never the same moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::calendar::{Calendar, Exclusion};
use super::civil::{CivilDate, CivilTime};
use super::definition::{OnExcluded, ScheduleSpec};
use super::timetable::Timetable;
use super::zone::Moments;
use crate::time::Timestamp;

/// How far a firing may move from an excluded day, and how many excluded days in a row are passed over.
pub(super) const EXCLUDED_DAYS_MAX: i64 = 366;
/// So many firings of the days before are looked at for one that moved.
const FIRINGS_MAX: usize = 1_000_000;

/// The calendars of a tenant by name.
pub type Calendars = HashMap<Arc<str>, Calendar>;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenDays<'a> {
    pub spec: &'a ScheduleSpec,
    pub timetable: &'a Timetable,
    /// One that does not exist excludes nothing.
    pub calendars: &'a Calendars,
}

impl OpenDays<'_> {
    /// Whether the schedule does not fire on the day of this moment.
    pub fn is_excluded_at(&self, moment: Timestamp) -> bool {
        // Most schedules exclude nothing, and a day costs a look at the zone.
        !self.spec.exclude.is_empty() && self.is_excluded(self.timetable.zone.civil_at(moment).date())
    }

    fn is_excluded(&self, day: CivilDate) -> bool {
        self.spec.exclude.iter().any(|exclusion| match exclusion {
            Exclusion::Day(excluded) => *excluded == day,
            Exclusion::Days(first, last) => (*first..=*last).contains(&day),
            Exclusion::Calendar(name) => self.calendars.get(name).is_some_and(|days| days.excludes(day)),
        })
    }

    /// The last moment of the day of this one.
    pub fn end_of_day(&self, moment: Timestamp) -> Timestamp {
        let next_day = self.timetable.zone.civil_at(moment).date().plus_days(1);
        let midnight = CivilTime::new(next_day, 0, 0, 0).map(|time| self.moment(time));
        midnight.map_or(Timestamp::MAX, |midnight| midnight - Duration::from_millis(1)).max(moment)
    }

    /// Where a firing on an excluded day moves to, if it does.
    pub fn moved(&self, nominal: Timestamp) -> Option<Timestamp> {
        if self.spec.on_excluded != OnExcluded::NextDay {
            return None;
        }
        let local = self.timetable.zone.civil_at(nominal);
        if !self.is_excluded(local.date()) {
            return None;
        }
        let mut days = (1..=EXCLUDED_DAYS_MAX).map(|days| local.date().plus_days(days));
        let day = days.find(|day| !self.is_excluded(*day))?;
        let at = self.moment(CivilTime::new(day, local.hour(), local.minute(), local.second())?);
        (self.timetable.next_after(at - Duration::from_millis(1)) != Some(at)).then_some(at)
    }

    /// The first moment after `at` to which a firing moved whose own time was not after it.
    pub fn next_moved(&self, at: Timestamp) -> Option<Timestamp> {
        if self.spec.on_excluded != OnExcluded::NextDay || self.spec.exclude.is_empty() {
            return None;
        }
        let day = self.timetable.zone.civil_at(at).date();
        let excluded =
            (1..=EXCLUDED_DAYS_MAX).take_while(|days| self.is_excluded(day.plus_days(-days))).count();
        let from = at - Duration::from_secs(86_400) * (excluded as u32 + 1);
        let moved =
            self.timetable.firings(from, at).take(FIRINGS_MAX).filter_map(|nominal| self.moved(nominal));
        moved.filter(|moved| *moved > at).min()
    }

    fn moment(&self, time: CivilTime) -> Timestamp {
        match self.timetable.zone.moments_of(time) {
            Moments::One(at) | Moments::Two { first: at, .. } => at,
            Moments::None { gap_ends_at } => gap_ends_at,
        }
    }
}
