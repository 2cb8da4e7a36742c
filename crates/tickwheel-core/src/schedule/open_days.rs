//! On which days a schedule fires, and where the firings of the other days go.
//!
//! Kept true: a firing that moves goes to the same local time of the next open day, and only if the schedule does not
//! fire then anyway; so moved and regular firings are never the same moment.
//!
//! Bounded, however often a schedule fires and however much is excluded. Two days go *in step* while neither changes
//! its offset: if one firing of an excluded day has a regular one at its local time on the open day, so have all that
//! follow it, up to the next change of the clocks. An excluded day therefore costs a few steps, not one for each of its
//! firings.

use std::time::Duration;

use super::civil::{CivilDate, CivilTime};
use super::definition::{OnExcluded, ScheduleSpec};
pub use super::excluded_days::Calendars;
pub(super) use super::excluded_days::EXCLUDED_DAYS_MAX;
use super::excluded_days::ExcludedDays;
use super::timetable::Timetable;
use super::zone::{Moments, moment};
use crate::time::Timestamp;

/// Whether a schedule fires on no day at all.
pub fn excludes_every_day(spec: &ScheduleSpec, calendars: &Calendars) -> bool {
    !spec.exclude.is_empty() && ExcludedDays::of(&spec.exclude, calendars).is_every_day()
}

const MOMENT: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct OpenDays<'a> {
    pub timetable: &'a Timetable,
    excluded: ExcludedDays<'a>,
    moves: bool,
}

impl<'a> OpenDays<'a> {
    /// A calendar that does not exist excludes nothing.
    pub fn new(spec: &ScheduleSpec, timetable: &'a Timetable, calendars: &'a Calendars) -> Self {
        let excluded = ExcludedDays::of(&spec.exclude, calendars);
        let moves =
            spec.on_excluded == OnExcluded::NextDay && !excluded.is_empty() && !excluded.is_every_day();
        Self { timetable, excluded, moves }
    }

    /// Whether there is no day on which the schedule fires.
    pub const fn are_none(&self) -> bool {
        self.excluded.is_every_day()
    }

    /// Whether the schedule does not fire on the day of this moment.
    pub fn is_excluded_at(&self, moment: Timestamp) -> bool {
        // Most schedules exclude nothing, and a day costs a look at the zone.
        !self.excluded.is_empty() && self.excluded.contains(self.day_of(moment))
    }

    /// How much was looked at so far.
    pub const fn steps(&self) -> u64 {
        self.excluded.steps()
    }

    /// The last moment of the day of this one.
    pub fn end_of_day(&self, moment: Timestamp) -> Timestamp {
        (self.start_of_day(self.day_of(moment).plus_days(1)) - MOMENT).max(moment)
    }

    /// Where a firing on an excluded day moves to, if it does.
    pub fn moved(&self, nominal: Timestamp) -> Option<Timestamp> {
        let local = self.timetable.zone.civil_at(nominal);
        if !self.moves || !self.excluded.contains(local.date()) {
            return None;
        }
        let landing = self.landing(local, self.excluded.open_day_after(local.date())?);
        (!landing.is_regular).then_some(landing.at)
    }

    /// Where the first firing of the excluded day of `first` moves to that does move; `first` is its first firing.
    pub fn first_moved_of_day(&self, first: Timestamp) -> Option<Timestamp> {
        let day = self.day_of(first);
        let open = self.moves.then(|| self.excluded.open_day_after(day)).flatten()?;
        let mut nominal = first;
        loop {
            let local = self.timetable.zone.civil_at(nominal);
            if local.date() != day {
                return None;
            }
            let landing = self.landing(local, open);
            if !landing.is_regular {
                return Some(landing.at);
            }
            nominal = self.timetable.next_after(self.in_step_until(nominal, landing.at))?;
        }
    }

    /// The first moment after `at` to which a firing moved whose own time was not after it.
    pub fn next_moved(&self, at: Timestamp) -> Option<Timestamp> {
        if !self.moves {
            return None;
        }
        let today = self.day_of(at);
        let open = if self.excluded.contains(today) { self.excluded.open_day_after(today)? } else { today };
        let mut from = self.start_of_day(self.excluded.first_in_row_before(open)?) - MOMENT;
        let mut soonest: Option<Timestamp> = None;
        while let Some(nominal) = self.timetable.next_after(from).filter(|nominal| *nominal <= at) {
            let local = self.timetable.zone.civil_at(nominal);
            if local.date() >= open {
                break;
            }
            let landing = self.landing(local, open);
            let in_step_until = self.in_step_until(nominal, landing.at);
            from = if landing.at <= at {
                in_step_until.min(nominal + at.since(landing.at))
            } else if landing.is_regular {
                in_step_until
            } else {
                soonest = Some(soonest.map_or(landing.at, |other| other.min(landing.at)));
                in_step_until.max(nominal)
            };
            from = from.min(self.end_of_day(nominal)).max(nominal);
        }
        soonest
    }

    /// Where a firing at this local time of an excluded day goes to.
    fn landing(&self, local: CivilTime, open: CivilDate) -> Landing {
        self.excluded.count_steps(4);
        let fires_at = |at: Timestamp| self.timetable.next_after(at - MOMENT) == Some(at);
        let time = CivilTime::new(open, local.hour(), local.minute(), local.second());
        match time.map(|time| self.timetable.zone.moments_of(time)) {
            Some(Moments::One(at) | Moments::None { gap_ends_at: at }) => {
                Landing { at, is_regular: fires_at(at) }
            }
            Some(Moments::Two { first, last }) => {
                Landing { at: first, is_regular: fires_at(first) || fires_at(last) }
            }
            None => Landing { at: Timestamp::MAX, is_regular: true },
        }
    }

    /// Up to when after `nominal` an excluded day and the open one, where it lands at `landing`, go on in step.
    fn in_step_until(&self, nominal: Timestamp, landing: Timestamp) -> Timestamp {
        let (own_end, other_end) = (self.offset_ends_at(nominal), self.offset_ends_at(landing));
        let last = self.timetable.end_at.filter(|end| *end >= landing).unwrap_or(Timestamp::MAX);
        let other_end = (other_end - MOMENT).min(last);
        (own_end - MOMENT).min(nominal + other_end.since(landing)).max(nominal)
    }

    /// When the offset of the zone changes next.
    fn offset_ends_at(&self, at: Timestamp) -> Timestamp {
        moment(self.timetable.zone.regime_at(at.as_millis().div_euclid(1_000)).end)
    }

    fn day_of(&self, moment: Timestamp) -> CivilDate {
        self.timetable.zone.civil_at(moment).date()
    }

    fn start_of_day(&self, day: CivilDate) -> Timestamp {
        match CivilTime::new(day, 0, 0, 0).map(|midnight| self.timetable.zone.moments_of(midnight)) {
            Some(Moments::One(at) | Moments::Two { first: at, .. } | Moments::None { gap_ends_at: at }) => at,
            None => Timestamp::MAX,
        }
    }
}

/// Where a firing of an excluded day goes to.
struct Landing {
    at: Timestamp,
    /// The schedule fires then anyway.
    is_regular: bool,
}
