//! The firings of a schedule that are to come, with its excluded days taken into account: what people are shown, decided the way the
//! plan is going to decide it.
//!
//! Bounded: a day that is excluded costs one step however often the schedule would fire on it, and the search ends after a year's worth
//! of excluded days in a row.

use std::time::Duration;

use tickwheel_core::Timestamp;
use tickwheel_core::schedule::civil::{CivilDate, CivilTime};
use tickwheel_core::schedule::plan::Calendars;
use tickwheel_core::schedule::zone::Moments;
use tickwheel_core::schedule::{Exclusion, OnExcluded, ScheduleSpec, Timetable};

const EXCLUDED_DAYS_MAX: u32 = 366;

/// Firings that are to come, in order.
pub struct Upcoming<'a> {
    spec: &'a ScheduleSpec,
    timetable: &'a Timetable,
    calendars: &'a Calendars,
    after: Timestamp,
    /// A firing that moved here from an excluded day.
    moved_to: Option<Timestamp>,
}

impl<'a> Upcoming<'a> {
    /// Those after `after`, and one that moved to `moved_to`.
    pub fn of(
        spec: &'a ScheduleSpec,
        timetable: &'a Timetable,
        calendars: &'a Calendars,
        after: Timestamp,
        moved_to: Option<Timestamp>,
    ) -> Self {
        Self { spec, timetable, calendars, after, moved_to }
    }

    fn is_excluded(&self, day: CivilDate) -> bool {
        self.spec.exclude.iter().any(|exclusion| match exclusion {
            Exclusion::Day(excluded) => *excluded == day,
            Exclusion::Days(first, last) => (*first..=*last).contains(&day),
            Exclusion::Calendar(name) => {
                self.calendars.get(name).is_some_and(|calendar| calendar.excludes(day))
            }
        })
    }

    /// The first firing of an excluded day moves if it is to; the rest of the day is passed over.
    fn pass_over_day(&mut self, first: Timestamp) {
        let local = self.timetable.zone.civil_at(first);
        let next_day = local.date().plus_days(1);
        if self.spec.on_excluded == OnExcluded::NextDay {
            let mut days = (0..i64::from(EXCLUDED_DAYS_MAX)).map(|days| next_day.plus_days(days));
            let Some(day) = days.find(|day| !self.is_excluded(*day)) else {
                self.after = Timestamp::MAX;
                return;
            };
            let moved = CivilTime::new(day, local.hour(), local.minute(), local.second());
            self.moved_to = moved.map(|time| self.moment(time)).into_iter().chain(self.moved_to).min();
        }
        let midnight = CivilTime::new(next_day, 0, 0, 0).map(|time| self.moment(time));
        let day_ends = midnight.map_or(Timestamp::MAX, |midnight| midnight - Duration::from_millis(1));
        self.after = first.max(day_ends);
    }

    fn moment(&self, time: CivilTime) -> Timestamp {
        match self.timetable.zone.moments_of(time) {
            Moments::One(at) | Moments::Two { first: at, .. } => at,
            Moments::None { gap_ends_at } => gap_ends_at,
        }
    }
}

impl Iterator for Upcoming<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        for _ in 0..EXCLUDED_DAYS_MAX {
            let regular = self.timetable.next_after(self.after);
            if let Some(moved) = self.moved_to.filter(|moved| regular.is_none_or(|at| *moved <= at)) {
                self.moved_to = None;
                self.after = self.after.max(moved);
                return Some(moved);
            }
            let at = regular?;
            if !self.is_excluded(self.timetable.zone.civil_at(at).date()) {
                self.after = at;
                return Some(at);
            }
            self.pass_over_day(at);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tickwheel_core::schedule::Calendar;

    use super::*;
    use crate::convert;

    /// 2026-12-23T12:00:00Z, a Wednesday.
    const NOW: Timestamp = Timestamp::from_millis(1_798_027_200_000);

    fn upcoming(fields: Value, count: usize) -> Vec<String> {
        let mut order = json!({"name": "s", "job": {"type": "t"}});
        for (name, value) in fields.as_object().expect("fields") {
            order[name] = value.clone();
        }
        let schedule = convert::new_schedule(serde_json::from_value(order).expect("an order"), NOW);
        let spec = schedule.expect("a good order").spec;
        let timetable = spec.timetable().expect("a timetable");
        let weekends = Calendar {
            name: "weekends".into(),
            tenant: "default".into(),
            days: [].into(),
            weekdays: [0, 6].into(),
            updated_at: NOW,
        };
        let calendars = [(weekends.name.clone(), weekends)].into();
        let firings = Upcoming::of(&spec, &timetable, &calendars, NOW, None).take(count);
        firings.map(|at| timetable.zone.civil_at(at).to_string()[5..16].to_owned()).collect()
    }

    #[test]
    fn excluded_days_are_passed_over_however_often_the_schedule_fires_on_them() {
        let exclude = json!(["2026-12-24", "2026-12-27/2026-12-29", "calendar:weekends"]);
        assert_eq!(
            upcoming(json!({"cron": "0 9 * * *", "exclude": exclude}), 3),
            ["12-25T09:00", "12-30T09:00", "12-31T09:00"]
        );
        let every_second =
            json!({"every": "1s", "exclude": ["2026-12-23/2027-12-01"], "timezone": "Asia/Tokyo"});
        assert_eq!(upcoming(every_second, 1), ["12-02T00:00"]);
    }

    #[test]
    fn a_firing_moves_to_the_next_day_that_is_not_excluded_unless_it_fires_then_anyway() {
        let weekly = json!({"cron": "0 9 * * SAT", "exclude": ["calendar:weekends", "2026-12-28"], "on_excluded": "next_day"});
        assert_eq!(upcoming(weekly, 3), ["12-29T09:00", "01-04T09:00", "01-11T09:00"]);
        let daily = json!({"cron": "0 9 * * *", "exclude": ["calendar:weekends"], "on_excluded": "next_day"});
        assert_eq!(upcoming(daily, 4), ["12-24T09:00", "12-25T09:00", "12-28T09:00", "12-29T09:00"]);
    }

    #[test]
    fn a_search_among_excluded_days_ends() {
        let exclude = json!(["2026-01-01/9999-12-31"]);
        for on_excluded in ["skip", "next_day"] {
            let never = json!({"every": "1s", "exclude": exclude, "on_excluded": on_excluded});
            assert_eq!(upcoming(never, 1), [""; 0], "{on_excluded}");
        }
    }
}
