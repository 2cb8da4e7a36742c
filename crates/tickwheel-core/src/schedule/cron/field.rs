//! The six fields: their names, their ranges, the names of their values.

use std::fmt;

/// A field of a cron expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// 0–59, the optional first field.
    Second,
    /// 0–59.
    Minute,
    /// 0–23.
    Hour,
    /// 1–31.
    DayOfMonth,
    /// 1–12 or names.
    Month,
    /// 0–7 or names; 0 and 7 are Sunday.
    DayOfWeek,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Field {
    /// The fields in the order in which they are written.
    pub(super) const ALL: [Self; 6] =
        [Self::Second, Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    /// What the field is called.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day-of-month",
            Self::Month => "month",
            Self::DayOfWeek => "day-of-week",
        }
    }

    /// The values that `*` stands for: smallest and largest.
    pub(super) const fn span(self) -> (u8, u8) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 6),
        }
    }

    /// The largest value that may be written: Sunday is also 7.
    pub(super) const fn largest_written(self) -> u8 {
        match self {
            Self::DayOfWeek => 7,
            _ => self.span().1,
        }
    }

    /// How many values `*` stands for.
    pub(super) const fn len(self) -> u8 {
        let (min, max) = self.span();
        max - min + 1
    }

    pub(super) const fn has_question_mark(self) -> bool {
        matches!(self, Self::DayOfMonth | Self::DayOfWeek)
    }

    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

    /// The value a name stands for, in any case.
    pub(super) fn value_of(self, name: &str) -> Option<u8> {
        let position = self.names().iter().position(|known| known.eq_ignore_ascii_case(name))?;
        u8::try_from(position).ok().map(|position| position + self.span().0)
    }

    /// The name of a value, where values have names.
    pub(super) fn name_of(self, value: u8) -> Option<&'static str> {
        self.names().get(usize::from(value.checked_sub(self.span().0)?)).copied()
    }

    /// What may be written as a plain value.
    pub(super) fn allowed(self) -> String {
        let numbers = format!("{}-{}", self.span().0, self.largest_written());
        match self.names() {
            [first, .., last] => format!("{numbers} or {first}-{last}"),
            _ => numbers,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
