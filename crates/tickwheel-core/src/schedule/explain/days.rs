//! The day and month fields in words.

use super::super::cron::{CronExpr, DaysOfMonth, DaysOfWeek, values};
use super::super::policy::DayLogic;
use super::lists::{counted, joined, ordinal, progression, with_runs};

/// The week as people read it, Monday first, with the bit of each day.
const WEEK: [(&str, u8); 7] = [
    ("Monday", 1),
    ("Tuesday", 2),
    ("Wednesday", 3),
    ("Thursday", 4),
    ("Friday", 5),
    ("Saturday", 6),
    ("Sunday", 0),
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const ALL_MONTHS: u16 = 0b1_1111_1111_1110;

/// On which days, or `None` for every day of the year.
pub(super) fn words(expr: &CronExpr, day_logic: DayLogic) -> Option<String> {
    let months =
        (expr.months != ALL_MONTHS).then(|| joined(&with_runs(expr.months.into(), month_name), "and"));
    let (of_month, of_week) = (&expr.days_of_month, &expr.days_of_week);
    let either = expr.either_day_field_is_enough(day_logic);
    let days = match (of_month.is_every_day(), of_week.is_every_day()) {
        (true, true) => None,
        (true, _) | (_, true) if either => None,
        (true, false) => Some(format!("on {}", weekdays(of_week, "and"))),
        (false, true) => {
            if let Some(months) = months.as_ref().filter(|_| of_month.is_plain()) {
                return Some(format!("on {} of {months}", month_days(of_month, "and")));
            }
            Some(format!("on {}", month_days(of_month, "and")))
        }
        (false, false) if either => {
            Some(format!("on {}, or {}", weekdays(of_week, "and"), month_days(of_month, "and")))
        }
        (false, false) => {
            Some(format!("on {}, but only on {}", month_days(of_month, "and"), weekdays(of_week, "or")))
        }
    };
    match (days, months) {
        (None, None) => None,
        (days, None) => days,
        (None, Some(months)) => Some(format!("every day in {months}")),
        (Some(days), Some(months)) => Some(format!("{days} in {months}")),
    }
}

fn month_name(month: u8) -> String {
    MONTHS[usize::from(month) - 1].to_owned()
}

/// "the 1st and 15th", "the last day of the month".
fn month_days(days: &DaysOfMonth, last_word: &str) -> String {
    let mut parts = match progression(days.plain.into()) {
        Some((first, last, step)) if step > 1 => {
            let (first, last) = (ordinal(first), ordinal(last));
            vec![format!("every {} day from the {first} to the {last}", ordinal(step))]
        }
        _ => with_runs(days.plain.into(), ordinal),
    };
    if let Some(first) = parts.first_mut().filter(|part| !part.starts_with("every")) {
        first.insert_str(0, "the ");
    }
    parts.extend(values(days.nearest_weekday).map(|day| format!("the weekday nearest the {}", ordinal(day))));
    if days.last_weekday {
        parts.push("the last weekday of the month".to_owned());
    }
    parts.extend(values(days.before_last).map(|before| match before {
        0 => "the last day of the month".to_owned(),
        days => format!("the day {} before the last of the month", counted(days.into(), "day")),
    }));
    joined(&parts, last_word)
}

/// "Monday to Friday", "the last Friday of the month".
fn weekdays(days: &DaysOfWeek, last_word: &str) -> String {
    let names = |bits: u8| WEEK.iter().filter(move |(_, bit)| bits >> bit & 1 == 1).map(|(name, _)| *name);
    let monday_first = (0u64..)
        .zip(WEEK)
        .fold(0, |all, (position, (_, bit))| all | u64::from(days.plain >> bit & 1) << position);
    let mut parts = with_runs(monday_first, |position| WEEK[usize::from(position)].0.to_owned());
    for (nth, bits) in (1..).zip(days.nth) {
        parts.extend(names(bits).map(|name| format!("the {} {name} of the month", ordinal(nth))));
    }
    parts.extend(names(days.last).map(|name| format!("the last {name} of the month")));
    joined(&parts, last_word)
}
