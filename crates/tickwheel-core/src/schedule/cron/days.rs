//! Which days of a month the two day fields mean: a month is a bit set, bit 1 its first day.
//!
//! A whole month is answered at once, so that a search steps from month to month and not from day to day.

use super::super::civil::{day_number, weekday};

/// The shape of one month: how long it is and on which weekday it begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct Month {
    /// Days since 1970-01-01 to its first day.
    pub first_day_number: i64,
    /// 28 to 31.
    pub length: u8,
    /// 0 is Sunday.
    pub first_weekday: u8,
}

impl Month {
    pub fn new(year: i32, month: u8) -> Self {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 => 28 + u8::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let first_day_number = day_number(year, month, 1);
        Self { first_day_number, length, first_weekday: weekday(first_day_number) }
    }

    const fn weekday_of(&self, day: u8) -> u8 {
        (self.first_weekday + day - 1) % 7
    }

    const fn all_days(&self) -> u32 {
        days_between(1, self.length)
    }

    /// The days whose weekday is in `weekdays`.
    const fn days_on(&self, weekdays: u8) -> u32 {
        // The week written six times over, turned so that bit 0 is the weekday of the first.
        let weeks = weekdays as u64 * 0b1_0000001_0000001_0000001_0000001_0000001;
        ((weeks >> self.first_weekday << 1) as u32) & self.all_days()
    }

    /// The Monday to Friday nearest to `day`, never in another month.
    const fn nearest_weekday(&self, day: u8) -> u8 {
        match self.weekday_of(day) {
            0 if day == self.length => day - 2,
            0 => day + 1,
            6 if day == 1 => day + 2,
            6 => day - 1,
            _ => day,
        }
    }
}

const fn days_between(first: u8, last: u8) -> u32 {
    (u32::MAX << first) & (u32::MAX >> (31 - last))
}

/// The values of a bit set, smallest first.
pub(in crate::schedule) fn values(bits: impl Into<u64>) -> impl Iterator<Item = u8> + Clone {
    let mut rest: u64 = bits.into();
    std::iter::from_fn(move || {
        let value = rest.trailing_zeros() as u8;
        let found = (rest != 0).then_some(value);
        rest &= rest.wrapping_sub(1);
        found
    })
}

/// The day-of-month field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::schedule) struct DaysOfMonth {
    /// Plain days: bit 1 is the first.
    pub plain: u32,
    /// `L` is bit 0, `L-3` bit 3.
    pub before_last: u32,
    /// `15W` is bit 15.
    pub nearest_weekday: u32,
    /// `LW`.
    pub last_weekday: bool,
    /// The field begins with `*` or `?`.
    pub starts_with_star: bool,
}

impl DaysOfMonth {
    /// Every day of every month.
    pub const fn is_every_day(&self) -> bool {
        self.plain == days_between(1, 31)
    }

    /// Nothing but plain days.
    pub const fn is_plain(&self) -> bool {
        self.before_last == 0 && self.nearest_weekday == 0 && !self.last_weekday
    }

    pub fn in_month(&self, month: &Month) -> u32 {
        let plain = self.plain & month.all_days();
        if self.is_plain() { plain } else { plain | self.special_in(month) }
    }

    fn special_in(&self, month: &Month) -> u32 {
        let before_last = values(self.before_last).filter(|n| *n < month.length).map(|n| month.length - n);
        let nearest =
            values(self.nearest_weekday).filter(|day| *day <= month.length).map(|d| month.nearest_weekday(d));
        let last_weekday = self.last_weekday.then(|| month.nearest_weekday(month.length));
        before_last.chain(nearest).chain(last_weekday).fold(0, |days, day| days | 1 << day)
    }
}

/// The day-of-week field. Bit 0 is Sunday in every set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::schedule) struct DaysOfWeek {
    /// Every such weekday.
    pub plain: u8,
    /// `FRIL`: the last of the month.
    pub last: u8,
    /// `FRI#2`: the second of the month is in `nth[1]`.
    pub nth: [u8; 5],
    /// The field begins with `*` or `?`.
    pub starts_with_star: bool,
}

impl DaysOfWeek {
    /// Every weekday of every week.
    pub const fn is_every_day(&self) -> bool {
        self.plain == 0b111_1111
    }

    pub fn in_month(&self, month: &Month) -> u32 {
        let mut days = month.days_on(self.plain);
        if self.last != 0 {
            days |= month.days_on(self.last) & days_between(month.length - 6, month.length);
        }
        if self.nth != [0; 5] {
            for (week, weekdays) in (0u8..).zip(self.nth) {
                let last = (week * 7 + 7).min(31);
                days |= month.days_on(weekdays) & days_between(week * 7 + 1, last);
            }
        }
        days
    }
}
