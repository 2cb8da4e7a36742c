//! Whether a local time matches an expression, read straight from its text: slow, and without anything in common with
//! the parser of the core. Takes for granted that the text is an expression.

use std::collections::BTreeSet;

use tickwheel_core::schedule::DayLogic;
use tickwheel_core::schedule::civil::{CivilDate, CivilTime};
use tickwheel_core::schedule::cron::Field;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// The smallest and the largest value of each field.
const SPANS: [(u8, u8); 6] = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
const DAY: usize = 3;
const MONTH: usize = 4;
const WEEKDAY: usize = 5;

/// Where a field stands in an expression of six.
pub fn position(field: Field) -> usize {
    let order =
        [Field::Second, Field::Minute, Field::Hour, Field::DayOfMonth, Field::Month, Field::DayOfWeek];
    order.iter().position(|other| *other == field).expect("all are listed")
}

/// Whether the expression matches.
pub fn matches(written: &str, logic: DayLogic, time: CivilTime) -> bool {
    let written = written.trim().to_ascii_lowercase();
    let written = match written.as_str() {
        "@hourly" => "0 * * * *",
        "@daily" | "@midnight" => "0 0 * * *",
        "@weekly" => "0 0 * * 0",
        "@monthly" => "0 0 1 * *",
        "@yearly" | "@annually" => "0 0 1 1 *",
        other => other,
    };
    let mut fields: Vec<&str> = written.split_whitespace().collect();
    if fields.len() == 5 {
        fields.insert(0, "0");
    }
    let date = time.date();
    let simple = [(0, time.second()), (1, time.minute()), (2, time.hour()), (MONTH, date.month())];
    if !simple.iter().all(|(position, value)| values(*position, fields[*position]).contains(value)) {
        return false;
    }
    let of_month = fields[DAY].split(',').any(|item| day_of_month_matches(item, date));
    let of_week = fields[WEEKDAY].split(',').any(|item| day_of_week_matches(item, date));
    let has_star = |position: usize| fields[position].starts_with(['*', '?']);
    let either = logic == DayLogic::Or && !has_star(DAY) && !has_star(WEEKDAY);
    if either { of_month || of_week } else { of_month && of_week }
}

fn day_of_month_matches(item: &str, date: CivilDate) -> bool {
    let length = (28..=31).rev().find(|day| day_of(date, *day).is_some()).expect("every month has 28 days");
    let is_weekday = |day: u8| day_of(date, day).is_some_and(|date| !matches!(date.weekday(), 0 | 6));
    if item == "lw" {
        return (1..=length).rev().find(|day| is_weekday(*day)) == Some(date.day());
    }
    if let Some(rest) = item.strip_prefix('l') {
        let before: u8 = rest.strip_prefix('-').map_or(0, |days| days.parse().expect("a number"));
        return length.checked_sub(before) == Some(date.day());
    }
    if let Some(day) = item.strip_suffix('w') {
        let day: i16 = day.parse().expect("a number");
        // The nearest first, and of two that are equally near, which there never are, the earlier.
        let mut candidates: Vec<i16> = (day - 2..=day + 2).collect();
        candidates.sort_by_key(|candidate| (candidate - day).abs());
        let nearest =
            candidates.into_iter().filter_map(|day| u8::try_from(day).ok()).find(|d| is_weekday(*d));
        return day <= i16::from(length) && nearest == Some(date.day());
    }
    values(DAY, item).contains(&date.day())
}

fn day_of(month: CivilDate, day: u8) -> Option<CivilDate> {
    CivilDate::new(month.year(), month.month(), day)
}

fn day_of_week_matches(item: &str, date: CivilDate) -> bool {
    if let Some((weekday, nth)) = item.split_once('#') {
        let nth: u8 = nth.parse().expect("a number");
        return value(WEEKDAY, weekday) % 7 == date.weekday() && (date.day() - 1) / 7 + 1 == nth;
    }
    if let Some(weekday) = item.strip_suffix('l') {
        return value(WEEKDAY, weekday) % 7 == date.weekday() && day_of(date, date.day() + 7).is_none();
    }
    values(WEEKDAY, item).contains(&date.weekday())
}

/// The values of a list of plain items. Sunday is 0.
pub fn values(position: usize, list: &str) -> BTreeSet<u8> {
    let (min, max) = SPANS[position];
    let mut all = BTreeSet::new();
    for item in list.split(',') {
        let (range, step) = split_step(item);
        let (first, last) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (min, max),
            Some((first, last)) => {
                let last_value = value(position, last);
                // FRI-SUN goes to the end of the week.
                let ends_week = position == WEEKDAY && last.eq_ignore_ascii_case("sun");
                let first = value(position, first);
                (first, if ends_week && first > 0 { 7 } else { last_value })
            }
            None if item.contains('/') => (value(position, range), max.max(value(position, range))),
            None => (value(position, range), value(position, range)),
        };
        all.extend((first..=last).step_by(step).map(|value| in_week(position, value)));
    }
    all
}

/// The values of a range that goes over the end of its field, such as `22-2` or `SAT-MON`.
pub fn wrapped_range(position: usize, written: &str) -> BTreeSet<u8> {
    let (min, max) = SPANS[position];
    let (range, step) = split_step(written);
    let (first, last) = range.split_once('-').expect("a range");
    let (first, last) = (in_week(position, value(position, first)), value(position, last));
    let len = usize::from(max - min) + 1;
    let distance = (usize::from(last) + len - usize::from(first)) % len;
    let wrapped = |steps: usize| (usize::from(first - min) + steps) % len + usize::from(min);
    (0..=distance).step_by(step).map(|steps| u8::try_from(wrapped(steps)).expect("it is small")).collect()
}

fn in_week(position: usize, value: u8) -> u8 {
    if position == WEEKDAY { value % 7 } else { value }
}

fn split_step(item: &str) -> (&str, usize) {
    item.split_once('/').map_or((item, 1), |(range, step)| (range, step.parse().expect("a number")))
}

fn value(position: usize, written: &str) -> u8 {
    let names: &[&str] = match position {
        MONTH => &MONTHS,
        WEEKDAY => &WEEKDAYS,
        _ => &[],
    };
    match names.iter().position(|name| name.eq_ignore_ascii_case(written)) {
        Some(index) => u8::try_from(index).expect("there are few") + SPANS[position].0,
        None => written.parse().expect("a number"),
    }
}
