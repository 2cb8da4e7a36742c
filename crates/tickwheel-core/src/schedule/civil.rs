//! The calendar and the clock on the wall: dates and local times that know nothing of zones.
//!
//! The Gregorian calendar is used throughout. A local time is one integer, so that comparing and adding cost nothing;
//! which moments it stands for is the zone's business ([`super::Zone::moments_of`]).

use std::fmt;

use super::cron::Month;

pub(super) const SECONDS_PER_DAY: i64 = 86_400;
/// The last second that the calendar of the wire can write: 9999-12-30T22:00:00Z.
pub(super) const LAST_SECOND: i64 = 253_402_207_200;
/// No local date is searched beyond it.
pub(super) const LAST_YEAR: i32 = 9999;

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CivilDate {
    year: i32,
    month: u8,
    day: u8,
}

impl CivilDate {
    /// The day, if the calendar has it.
    pub fn new(year: i32, month: u8, day: u8) -> Option<Self> {
        let exists = (1..=LAST_YEAR).contains(&year)
            && (1..=12).contains(&month)
            && (1..=Month::new(year, month).length).contains(&day);
        exists.then_some(Self { year, month, day })
    }

    /// The year.
    pub const fn year(self) -> i32 {
        self.year
    }

    /// The month, 1 to 12.
    pub const fn month(self) -> u8 {
        self.month
    }

    /// The day of the month, from 1.
    pub const fn day(self) -> u8 {
        self.day
    }

    /// The weekday: 0 is Sunday, 6 Saturday.
    pub const fn weekday(self) -> u8 {
        weekday(self.day_number())
    }

    /// So many days later.
    #[must_use]
    pub const fn plus_days(self, days: i64) -> Self {
        Self::from_day_number(self.day_number() + days)
    }

    /// The day after it; none after the last day of the calendar.
    pub fn tomorrow(self) -> Option<Self> {
        Some(self.plus_days(1)).filter(|day| day.year <= LAST_YEAR)
    }

    /// How many days later `other` is; negative if it is earlier.
    pub const fn days_until(self, other: Self) -> i64 {
        other.day_number() - self.day_number()
    }

    pub(super) const fn day_number(self) -> i64 {
        day_number(self.year, self.month, self.day)
    }

    /// From days since 1970-01-01.
    // Howard Hinnant's `civil_from_days`: years begin in March, so that the leap day comes last.
    pub(super) const fn from_day_number(number: i64) -> Self {
        let shifted = number + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8;
        let month = (if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 }) as u8;
        let year = (year_of_era + era * 400) as i32 + (month <= 2) as i32;
        Self { year, month, day }
    }
}

impl fmt::Display for CivilDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Days from 1970-01-01 to the given day.
pub(super) const fn day_number(year: i32, month: u8, day: u8) -> i64 {
    let year = year as i64 - (month <= 2) as i64;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month as i64 + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day as i64 - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The weekday of a day number: 0 is Sunday, 6 Saturday.
pub(super) const fn weekday(day_number: i64) -> u8 {
    (day_number + 4).rem_euclid(7) as u8
}

/// A date and the time a clock on the wall shows, to the second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CivilTime(i64);

impl CivilTime {
    /// That time of that day, if a clock can show it (there is no second 60).
    pub fn new(date: CivilDate, hour: u8, minute: u8, second: u8) -> Option<Self> {
        let second_of_day = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
        (hour < 24 && minute < 60 && second < 60)
            .then(|| Self(date.day_number() * SECONDS_PER_DAY + second_of_day))
    }

    /// What a clock shows that is `offset_s` seconds ahead of UTC.
    pub(super) const fn at(second: i64, offset_s: i64) -> Self {
        Self(second + offset_s)
    }

    /// The second at which a clock shows this that is `offset_s` seconds ahead of UTC.
    pub(super) const fn second_at(self, offset_s: i64) -> i64 {
        self.0 - offset_s
    }

    pub(super) const fn from_day_and_second(day_number: i64, second_of_day: i64) -> Self {
        Self(day_number * SECONDS_PER_DAY + second_of_day)
    }

    pub(super) const fn day_number(self) -> i64 {
        self.0.div_euclid(SECONDS_PER_DAY)
    }

    pub(super) const fn second_of_day(self) -> u32 {
        self.0.rem_euclid(SECONDS_PER_DAY) as u32
    }

    /// The day.
    pub const fn date(self) -> CivilDate {
        CivilDate::from_day_number(self.day_number())
    }

    /// The hour, 0 to 23.
    pub const fn hour(self) -> u8 {
        (self.second_of_day() / 3600) as u8
    }

    /// The minute, 0 to 59.
    pub const fn minute(self) -> u8 {
        (self.second_of_day() / 60 % 60) as u8
    }

    /// The second, 0 to 59.
    pub const fn second(self) -> u8 {
        (self.second_of_day() % 60) as u8
    }
}

impl fmt::Display for CivilTime {
    /// As RFC 3339 has it, without the offset: `2026-03-08T02:30:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{:02}:{:02}:{:02}", self.date(), self.hour(), self.minute(), self.second())
    }
}

impl fmt::Debug for CivilTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_agree_with_jiff_over_the_whole_calendar() {
        let mut theirs = jiff::civil::date(1969, 12, 1);
        let mut number = -31;
        while theirs < jiff::civil::date(9999, 12, 31) {
            let ours = CivilDate::from_day_number(number);
            assert_eq!(ours.to_string(), theirs.to_string());
            assert_eq!(ours.day_number(), number);
            assert_eq!(weekday(number), theirs.weekday().to_sunday_zero_offset() as u8);
            theirs = theirs.tomorrow().expect("not yet the last day");
            number += 1;
        }
    }

    #[test]
    fn the_calendar_has_a_last_day() {
        let day = |year, month, day| CivilDate::new(year, month, day).expect("a day");
        assert_eq!(day(2024, 2, 28).tomorrow(), Some(day(2024, 2, 29)));
        assert_eq!(day(9999, 12, 31).tomorrow(), None);
        assert_eq!(day(2024, 2, 28).days_until(day(2024, 3, 1)), 2);
        assert_eq!(day(2024, 3, 1).days_until(day(2024, 2, 28)), -2);
    }

    #[test]
    fn only_days_and_times_that_exist_can_be_made() {
        assert!(CivilDate::new(2024, 2, 29).is_some());
        assert!(CivilDate::new(2100, 2, 29).is_none());
        assert!(CivilDate::new(2024, 13, 1).is_none());
        assert!(CivilDate::new(2024, 4, 31).is_none());
        let day = CivilDate::new(2024, 2, 29).expect("a leap day");
        assert!(CivilTime::new(day, 24, 0, 0).is_none());
        let time = CivilTime::new(day, 23, 59, 58).expect("a time");
        assert_eq!(time.to_string(), "2024-02-29T23:59:58");
        assert_eq!((time.date(), time.hour(), time.minute(), time.second()), (day, 23, 59, 58));
    }
}
