//! The moments at which a schedule makes jobs, its excluded days taken into account: what people are shown of the
//! future, and what a backfill makes up for in the past. Decided the way [`plan`](mod@super::plan) decides it.
//!
//! Bounded: a day that is excluded costs little however often the schedule would fire on it, the search ends after a
//! year's worth of excluded days in a row, and as a whole after a number of steps.

use super::definition::ScheduleSpec;
use super::open_days::{Calendars, EXCLUDED_DAYS_MAX, OpenDays};
use super::timetable::Timetable;
use crate::time::Timestamp;

/// So many steps a search takes unless it is told otherwise: less than a second's work.
const STEPS_MAX: u64 = 2_000_000;

/// See the module. In order, without end if the schedule has none and nobody sets one.
#[derive(Clone, Debug)]
pub struct Upcoming<'a> {
    days: OpenDays<'a>,
    after: Timestamp,
    /// The next one that moved here from an excluded day.
    moved_to: Option<Timestamp>,
    steps: u64,
    steps_max: u64,
}

impl<'a> Upcoming<'a> {
    /// Those after `after`, and one that moved to `moved_to` from before. A calendar that does not exist excludes
    /// nothing.
    pub fn of(
        spec: &'a ScheduleSpec,
        timetable: &'a Timetable,
        calendars: &'a Calendars,
        after: Timestamp,
        moved_to: Option<Timestamp>,
    ) -> Self {
        let days = OpenDays::new(spec, timetable, calendars);
        Self { days, after, moved_to, steps: 0, steps_max: STEPS_MAX }
    }

    /// Those after `after` of a schedule that has always been: with all that moved from before.
    pub fn within(
        spec: &'a ScheduleSpec,
        timetable: &'a Timetable,
        calendars: &'a Calendars,
        after: Timestamp,
    ) -> Self {
        let mut all = Self::of(spec, timetable, calendars, after, None);
        all.moved_to = all.days.next_moved(after);
        all
    }

    /// Ends after so many steps, wherever it is then.
    #[must_use]
    pub fn steps_max(mut self, steps_max: u64) -> Self {
        self.steps_max = steps_max;
        self
    }

    /// Whether it ended before its time: there may be more, farther ahead.
    pub fn ran_out(&self) -> bool {
        self.steps() >= self.steps_max
    }

    /// How much was looked at so far.
    pub fn steps(&self) -> u64 {
        self.steps + self.days.steps()
    }

    /// The first firing of an excluded day that moves does so, which brings those behind it along; the day itself is
    /// passed over.
    fn pass_over_day_of(&mut self, first: Timestamp) {
        let moved = self.days.first_moved_of_day(first);
        self.moved_to = moved.into_iter().chain(self.moved_to).min();
        self.after = self.days.end_of_day(first);
    }
}

impl Iterator for Upcoming<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        if self.days.are_none() {
            return None;
        }
        for _ in 0..EXCLUDED_DAYS_MAX {
            if self.ran_out() {
                return None;
            }
            self.steps += 1;
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
