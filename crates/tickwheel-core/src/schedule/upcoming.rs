//! The moments at which a schedule makes jobs, its excluded days taken into account: what people are shown of the future, and what a
//! backfill makes up for in the past. Decided the way [`plan`](mod@super::plan) decides it.
//!
//! Bounded: a day that is excluded costs little however often the schedule would fire on it, and the search ends after a year's worth
//! of excluded days in a row.

use super::definition::ScheduleSpec;
use super::open_days::{Calendars, EXCLUDED_DAYS_MAX, OpenDays};
use super::timetable::Timetable;
use crate::time::Timestamp;

/// So many firings of an excluded day are looked at for the first that moves.
const MOVING_MAX: usize = 1_000;

/// See the module. In order, without end if the schedule has none.
#[derive(Clone, Debug)]
pub struct Upcoming<'a> {
    days: OpenDays<'a>,
    after: Timestamp,
    /// The next one that moved here from an excluded day.
    moved_to: Option<Timestamp>,
}

impl<'a> Upcoming<'a> {
    /// Those after `after`, and one that moved to `moved_to` from before. A calendar that does not exist excludes nothing.
    pub fn of(
        spec: &'a ScheduleSpec,
        timetable: &'a Timetable,
        calendars: &'a Calendars,
        after: Timestamp,
        moved_to: Option<Timestamp>,
    ) -> Self {
        Self { days: OpenDays { spec, timetable, calendars }, after, moved_to }
    }

    /// Those after `after` of a schedule that has always been: with all that moved from before.
    pub fn within(
        spec: &'a ScheduleSpec,
        timetable: &'a Timetable,
        calendars: &'a Calendars,
        after: Timestamp,
    ) -> Self {
        let days = OpenDays { spec, timetable, calendars };
        Self { days, after, moved_to: days.next_moved(after) }
    }

    /// The first firing of an excluded day that moves does so, which brings those behind it along; the day itself is passed over.
    fn pass_over_day_of(&mut self, first: Timestamp) {
        let end = self.days.end_of_day(first);
        let rest = self.days.timetable.firings(first, end).take(MOVING_MAX);
        let moved = std::iter::once(first).chain(rest).find_map(|nominal| self.days.moved(nominal));
        self.moved_to = moved.into_iter().chain(self.moved_to).min();
        self.after = end;
    }
}

impl Iterator for Upcoming<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        for _ in 0..EXCLUDED_DAYS_MAX {
            let regular = self.days.timetable.next_after(self.after);
            if let Some(moved) = self.moved_to.filter(|moved| regular.is_none_or(|at| *moved < at)) {
                self.moved_to = self.days.next_moved(moved);
                self.after = self.after.max(moved);
                return Some(moved);
            }
            let at = regular?;
            if !self.days.is_excluded_at(at) {
                self.after = at;
                return Some(at);
            }
            self.pass_over_day_of(at);
        }
        None
    }
}
