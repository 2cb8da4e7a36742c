//! The next local time that an expression matches, zones left aside.
//!
//! The calendar repeats after 400 years, so a search that found nothing in that time will never find anything: that
//! bounds the work for dates like the 30th of February.

use super::super::civil::{CivilTime, LAST_YEAR};
use super::super::policy::DayLogic;
use super::CronExpr;
use super::days::Month;

const CALENDAR_CYCLE_YEARS: i32 = 400;

impl CronExpr {
    /// The first matching local time that is not before `from`; `None` if there is none to the end of the year 9999.
    pub(in crate::schedule) fn first_match(&self, from: CivilTime, logic: DayLogic) -> Option<CivilTime> {
        let date = from.date();
        let month = Month::new(date.year(), date.month());
        let days = self.days_in(&month, date.month(), logic) >> date.day();
        let today = from.day_number();
        if days & 1 == 1
            && let Some(second) = self.first_time_of_day(from.second_of_day())
        {
            return Some(CivilTime::from_day_and_second(today, second));
        }
        let day_number = match days >> 1 {
            0 => self.first_day_after_month(date.year(), date.month(), logic)?,
            later => today + 1 + i64::from(later.trailing_zeros()),
        };
        Some(CivilTime::from_day_and_second(day_number, self.first_time_of_day(0)?))
    }

    /// Whether there is any date on which it fires.
    pub(in crate::schedule) fn ever_matches(&self, logic: DayLogic) -> bool {
        self.first_match(CivilTime::at(0, 0), logic).is_some()
    }

    fn days_in(&self, month: &Month, number: u8, logic: DayLogic) -> u32 {
        if self.months >> number & 1 == 0 {
            return 0;
        }
        let (of_month, of_week) = (self.days_of_month.in_month(month), self.days_of_week.in_month(month));
        if self.either_day_field_is_enough(logic) { of_month | of_week } else { of_month & of_week }
    }

    /// Debian's rule: a field that starts with `*` restricts the other one, whatever follows the `*`.
    pub(in crate::schedule) fn either_day_field_is_enough(&self, logic: DayLogic) -> bool {
        logic == DayLogic::Or && !self.days_of_month.starts_with_star && !self.days_of_week.starts_with_star
    }

    fn first_day_after_month(&self, year: i32, month: u8, logic: DayLogic) -> Option<i64> {
        let (mut year, mut month) = (year, month);
        let last_year = LAST_YEAR.min(year + CALENDAR_CYCLE_YEARS);
        loop {
            match self.months >> (month + 1) {
                0 => (year, month) = (year + 1, self.months.trailing_zeros() as u8),
                later => month += 1 + later.trailing_zeros() as u8,
            }
            if year > last_year {
                return None;
            }
            let shape = Month::new(year, month);
            let days = self.days_in(&shape, month, logic);
            if days != 0 {
                return Some(shape.first_day_number + i64::from(days.trailing_zeros()) - 1);
            }
        }
    }

    /// The first matching second of a day that is not before `from`.
    fn first_time_of_day(&self, from: u32) -> Option<i64> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        let hours = u64::from(self.hours);
        let (hour, minute, second) = if hours >> hour & 1 == 0 {
            (first_from(hours, hour + 1)?, first(self.minutes), first(self.seconds))
        } else if let Some(second) =
            first_from(self.seconds, second).filter(|_| self.minutes >> minute & 1 == 1)
        {
            (hour, minute, second)
        } else if let Some(minute) = first_from(self.minutes, minute + 1) {
            (hour, minute, first(self.seconds))
        } else {
            (first_from(hours, hour + 1)?, first(self.minutes), first(self.seconds))
        };
        Some(i64::from(hour * 3600 + minute * 60 + second))
    }
}

const fn first(bits: u64) -> u32 {
    bits.trailing_zeros()
}

/// The smallest value of the set that is at least `from` (which is at most 60).
const fn first_from(bits: u64, from: u32) -> Option<u32> {
    match bits >> from {
        0 => None,
        rest => Some(from + rest.trailing_zeros()),
    }
}
