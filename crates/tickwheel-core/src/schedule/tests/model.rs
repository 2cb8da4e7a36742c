//! The naive model: an expression as a list of parts that a person would check one by one, walked through time step by
//! step with jiff's own conversions. Slow, obvious, and without a line in common with what it checks.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use proptest::prelude::*;

use super::super::{DayLogic, DstFold, DstGap};

#[derive(Clone, Debug)]
pub enum Part {
    Star,
    StarStep(i8),
    Value(i8),
    Range(i8, i8),
    RangeStep(i8, i8, i8),
    Last(i8),
    LastWeekday,
    Nearest(i8),
    LastOf(i8),
    NthOf(i8, i8),
}

impl Part {
    fn text(&self) -> String {
        match self {
            Self::Star => "*".into(),
            Self::StarStep(step) => format!("*/{step}"),
            Self::Value(value) => value.to_string(),
            Self::Range(first, last) => format!("{first}-{last}"),
            Self::RangeStep(first, last, step) => format!("{first}-{last}/{step}"),
            Self::Last(0) => "L".into(),
            Self::Last(before) => format!("L-{before}"),
            Self::LastWeekday => "LW".into(),
            Self::Nearest(day) => format!("{day}W"),
            Self::LastOf(day) => format!("{day}L"),
            Self::NthOf(day, nth) => format!("{day}#{nth}"),
        }
    }

    /// `min` is the smallest value of the field, from which `*/n` counts.
    fn has(&self, value: i8, min: i8) -> bool {
        match *self {
            Self::Star => true,
            Self::StarStep(step) => (value - min) % step == 0,
            Self::Value(only) => value == only,
            Self::Range(first, last) => first <= value && value <= last,
            Self::RangeStep(first, last, step) => {
                first <= value && value <= last && (value - first) % step == 0
            }
            _ => false,
        }
    }

    fn has_day_of_month(&self, date: Date) -> bool {
        let is_weekday = |date: Date| !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday);
        let weekdays = || {
            date.first_of_month()
                .series(jiff::Span::new().days(1))
                .take(31)
                .filter(|day| day.month() == date.month() && is_weekday(*day))
        };
        match *self {
            Self::Last(before) => date.day() + before == date.days_in_month(),
            Self::LastWeekday => weekdays().last() == Some(date),
            // On a tie (a lone Saturday or Sunday has none within its month) the earlier day comes first.
            Self::Nearest(day) if day <= date.days_in_month() => {
                weekdays().min_by_key(|near| (near.day() - day).abs()) == Some(date)
            }
            Self::Nearest(_) => false,
            _ => self.has(date.day(), 1),
        }
    }

    fn has_day_of_week(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        match *self {
            Self::LastOf(day) => weekday == day % 7 && date.day() + 7 > date.days_in_month(),
            Self::NthOf(day, nth) => weekday == day % 7 && (date.day() + 6) / 7 == nth,
            _ => self.has(weekday, 0) || weekday == 0 && self.has(7, 0) && !matches!(self, Self::StarStep(_)),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ModelExpr {
    pub seconds: Option<Vec<Part>>,
    pub minutes: Vec<Part>,
    pub hours: Vec<Part>,
    pub days_of_month: Vec<Part>,
    pub months: Vec<Part>,
    pub days_of_week: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
pub struct Policies {
    pub gap: DstGap,
    pub fold: DstFold,
    pub day_logic: DayLogic,
}

fn starts_with_star(parts: &[Part]) -> bool {
    matches!(parts[0], Part::Star | Part::StarStep(_))
}

impl ModelExpr {
    pub fn text(&self) -> String {
        let fields = [&self.minutes, &self.hours, &self.days_of_month, &self.months, &self.days_of_week];
        let texts = self
            .seconds
            .iter()
            .chain(fields)
            .map(|parts| parts.iter().map(Part::text).collect::<Vec<_>>().join(","));
        texts.collect::<Vec<_>>().join(" ")
    }

    pub fn has_date(&self, date: Date, logic: DayLogic) -> bool {
        let of_month = self.days_of_month.iter().any(|part| part.has_day_of_month(date));
        let of_week = self.days_of_week.iter().any(|part| part.has_day_of_week(date));
        let star = starts_with_star(&self.days_of_month) || starts_with_star(&self.days_of_week);
        let day = if logic == DayLogic::And || star { of_month && of_week } else { of_month || of_week };
        day && self.months.iter().any(|part| part.has(date.month(), 1))
    }

    fn has(&self, time: DateTime, logic: DayLogic) -> bool {
        let second = match &self.seconds {
            Some(parts) => parts.iter().any(|part| part.has(time.second(), 0)),
            None => time.second() == 0,
        };
        second
            && self.minutes.iter().any(|part| part.has(time.minute(), 0))
            && self.hours.iter().any(|part| part.has(time.hour(), 0))
            && self.has_date(time.date(), logic)
    }

    /// All firings after `after` up to `until`, in seconds since the epoch.
    pub fn firings(&self, zone: &TimeZone, policies: Policies, after: i64, until: i64) -> Vec<i64> {
        let step = if self.seconds.is_some() { 1 } else { 60 };
        let local = |second: i64| zone.to_datetime(jiff::Timestamp::from_second(second).expect("in range"));
        if starts_with_star(&self.minutes) || starts_with_star(&self.hours) {
            let instants = (after + 1..=until).filter(|second| second % step == 0);
            return instants.filter(|second| self.has(local(*second), policies.day_logic)).collect();
        }
        let mut firings = BTreeSet::new();
        // Offsets and gaps are below 15 and 25 hours.
        let wall_clock = (after - 40 * 3600)..=(until + 40 * 3600);
        for wall in wall_clock.filter(|wall| wall % step == 0) {
            let time = TimeZone::UTC.to_datetime(jiff::Timestamp::from_second(wall).expect("in range"));
            if !self.has(time, policies.day_logic) {
                continue;
            }
            match zone.to_ambiguous_timestamp(time).offset() {
                AmbiguousOffset::Unambiguous { offset } => {
                    firings.insert(wall - i64::from(offset.seconds()));
                }
                AmbiguousOffset::Gap { before, after } => match policies.gap {
                    DstGap::Skip => {}
                    DstGap::Shift => {
                        firings.insert(wall - i64::from(before.seconds()));
                    }
                    DstGap::RunAfter => {
                        let mut second = wall - i64::from(after.seconds());
                        while local(second) < time {
                            second += step;
                        }
                        firings.insert(second);
                    }
                },
                AmbiguousOffset::Fold { before, after } => {
                    if policies.fold != DstFold::Last {
                        firings.insert(wall - i64::from(before.seconds()));
                    }
                    if policies.fold != DstFold::Once {
                        firings.insert(wall - i64::from(after.seconds()));
                    }
                }
            }
        }
        firings.into_iter().filter(|second| *second > after && *second <= until).collect()
    }
}

/// The plain parts of a field from `min` to `max`.
fn plain(min: i8, max: i8) -> impl Strategy<Value = Part> + Clone {
    let pair = (min..=max, min..=max).prop_map(|(a, b)| (a.min(b), a.max(b)));
    prop_oneof![
        2 => Just(Part::Star),
        2 => (1..=(max - min + 1)).prop_map(Part::StarStep),
        6 => (min..=max).prop_map(Part::Value),
        2 => pair.clone().prop_map(|(a, b)| Part::Range(a, b)),
        2 => (pair, 1..=(max - min + 1)).prop_map(|((a, b), step)| Part::RangeStep(a, b, step)),
    ]
}

fn list(part: impl Strategy<Value = Part>) -> impl Strategy<Value = Vec<Part>> {
    prop::collection::vec(part, 1..3)
}

/// The day fields and the month: mostly open, so that something fires.
fn dates() -> impl Strategy<Value = (Vec<Part>, Vec<Part>, Vec<Part>)> {
    let of_month = prop_oneof![
        6 => plain(1, 31),
        1 => (0i8..=30).prop_map(Part::Last),
        1 => Just(Part::LastWeekday),
        1 => (1i8..=31).prop_map(Part::Nearest),
    ];
    let of_week = prop_oneof![
        6 => plain(0, 6),
        1 => Just(Part::Value(7)),
        1 => (0i8..=7).prop_map(Part::LastOf),
        1 => (0i8..=7, 1i8..=5).prop_map(|(day, nth)| Part::NthOf(day, nth)),
    ];
    let mostly_open = |parts| prop_oneof![Just(vec![Part::Star]), parts];
    (
        mostly_open(list(of_month).boxed()),
        prop_oneof![3 => Just(vec![Part::Star]), 1 => list(plain(1, 12))],
        mostly_open(list(of_week).boxed()),
    )
}

/// Any expression; the small hours, where clocks change, more often than the others.
pub fn expressions(seconds: bool) -> impl Strategy<Value = ModelExpr> {
    let hours = prop_oneof![plain(0, 23), plain(0, 4), (0i8..=3).prop_map(Part::Value)];
    let seconds = if seconds { list(plain(0, 59)).prop_map(Some).boxed() } else { Just(None).boxed() };
    (seconds, list(plain(0, 59)), list(hours), dates()).prop_map(|(seconds, minutes, hours, dates)| {
        let (days_of_month, months, days_of_week) = dates;
        ModelExpr { seconds, minutes, hours, days_of_month, months, days_of_week }
    })
}

pub fn policies() -> impl Strategy<Value = Policies> {
    (0i16..3, 0i16..3, 0i16..2).prop_map(|(gap, fold, day_logic)| Policies {
        gap: DstGap::from_code(gap).expect("three of them"),
        fold: DstFold::from_code(fold).expect("three of them"),
        day_logic: DayLogic::from_code(day_logic).expect("two of them"),
    })
}
