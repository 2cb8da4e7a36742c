//! Dates far apart: leap years, special days and the whole calendar, against a walk from day to day.

use proptest::prelude::*;

use super::super::{DayLogic, Timetable, Zone};
use super::model::{ModelExpr, expressions};
use super::{Recurrence, at, firings, timetable};
use crate::Timestamp;

const DAY_MS: i64 = 86_400_000;

fn dates_by_walking(expr: &ModelExpr, logic: DayLogic, first: jiff::civil::Date, days: i64) -> Vec<String> {
    let dates = first.series(jiff::Span::new().days(1)).take(days as usize);
    dates.filter(|date| expr.has_date(*date, logic)).map(|date| date.to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn dates_agree_with_a_walk_from_day_to_day(
        expr in expressions(false), first_day in 0i64..2_900_000, days in 1i64..1500, and: bool,
    ) {
        let logic = if and { DayLogic::And } else { DayLogic::Or };
        let midnight = format!("0 0 {}", expr.text().splitn(3, ' ').nth(2).expect("five fields"));
        let timetable = Timetable {
            day_logic: logic,
            ..Timetable::new(Recurrence::parse(&midnight).expect("an expression"), Zone::utc())
        };
        let moment = |day: i64| Timestamp::from_millis(day * DAY_MS - 1);
        let found: Vec<String> = timetable
            .firings(moment(first_day), moment(first_day + days))
            .map(|at| timetable.zone.civil_at(at).date().to_string())
            .collect();
        let first = jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(first_day)).expect("in range");
        prop_assert_eq!(found, dates_by_walking(&expr, logic, first, days), "{} from {}", midnight, first);
    }
}

/// The dates (year and month cut off where they are clear) of firings in a range, in UTC.
fn days_of(expr: &str, from: &str, to: &str) -> Vec<String> {
    let all = firings(&timetable(expr, "UTC"), from, to);
    all.into_iter().map(|firing| firing[5..10].to_owned()).collect()
}

#[test]
fn special_days_fall_where_the_calendar_of_2026_has_them() {
    let first_half = |expr: &str| days_of(expr, "2025-12-31T23:59:59Z", "2026-06-30T23:59:59Z");
    assert_eq!(first_half("0 0 L * *"), ["01-31", "02-28", "03-31", "04-30", "05-31", "06-30"]);
    assert_eq!(first_half("0 0 L-3 * *"), ["01-28", "02-25", "03-28", "04-27", "05-28", "06-27"]);
    assert_eq!(first_half("0 0 LW * *"), ["01-30", "02-27", "03-31", "04-30", "05-29", "06-30"]);
    assert_eq!(first_half("0 0 15W * *"), ["01-15", "02-16", "03-16", "04-15", "05-15", "06-15"]);
    assert_eq!(first_half("0 0 1W * *"), ["01-01", "02-02", "03-02", "04-01", "05-01", "06-01"]);
    assert_eq!(first_half("0 0 31W * *"), ["01-30", "03-31", "05-29"]);
    assert_eq!(first_half("0 0 * * FRIL"), ["01-30", "02-27", "03-27", "04-24", "05-29", "06-26"]);
    assert_eq!(first_half("0 0 ? * FRI#2"), ["01-09", "02-13", "03-13", "04-10", "05-08", "06-12"]);
    assert_eq!(first_half("0 0 * * 7#5"), ["03-29", "05-31"]);
}

#[test]
fn the_first_saturday_moves_to_monday_and_not_into_the_month_before() {
    assert_eq!(days_of("0 0 1W 8 *", "2026-07-01T00:00:00Z", "2026-12-31T00:00:00Z"), ["08-03"]);
}

#[test]
fn both_day_fields_match_either_unless_one_starts_with_a_star() {
    let february = |expr: &str| days_of(expr, "2026-01-31T23:59:59Z", "2026-02-28T23:59:59Z");
    assert_eq!(february("0 0 13 * FRI"), ["02-06", "02-13", "02-20", "02-27"]);
    assert_eq!(february("0 0 10 * FRI"), ["02-06", "02-10", "02-13", "02-20", "02-27"]);
    assert_eq!(february("0 0 */2 * FRI"), ["02-13", "02-27"]);
    assert_eq!(february("0 0 10-20 * */5"), ["02-13", "02-15", "02-20"]);
    assert_eq!(february("0 0 13 * ?"), ["02-13"]);
    assert_eq!(february("0 0 1-31 * FRI").len(), 28);
}

#[test]
fn and_asks_for_both_day_fields() {
    let friday_13 = Timetable { day_logic: DayLogic::And, ..timetable("0 0 13 * FRI", "UTC") };
    let year = firings(&friday_13, "2026-01-01T00:00:00Z", "2026-12-31T00:00:00Z");
    assert_eq!(year, ["2026-02-13T00:00+00:00", "2026-03-13T00:00+00:00", "2026-11-13T00:00+00:00"]);
}

#[test]
fn a_leap_day_skips_the_century_that_has_none() {
    let leap_days = timetable("0 0 29 2 *", "UTC");
    let found = firings(&leap_days, "2092-03-01T00:00:00Z", "2108-12-31T00:00:00Z");
    assert_eq!(found, ["2096-02-29T00:00+00:00", "2104-02-29T00:00+00:00", "2108-02-29T00:00+00:00"]);
}

#[test]
fn the_rarest_date_is_found_over_the_century() {
    let monday_29 = Timetable { day_logic: DayLogic::And, ..timetable("0 0 29 2 MON", "America/New_York") };
    let found = firings(&monday_29, "2072-03-01T00:00:00Z", "2140-01-01T00:00:00Z");
    assert_eq!(found, ["2112-02-29T00:00-05:00"]);
}

#[test]
fn impossible_dates_never_come() {
    for expr in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 2 *", "0 0 L-30 2 *"] {
        let recurrence = Recurrence::parse(expr).expect("an expression");
        for zone in ["UTC", "America/New_York"] {
            let timetable = Timetable::new(recurrence, Zone::named(zone).expect("a zone"));
            assert_eq!(timetable.next_after(at("2026-01-01T00:00:00Z")), None, "{expr} in {zone}");
            assert_eq!(timetable.next_after(at("9998-01-01T00:00:00Z")), None, "{expr} in {zone}");
        }
    }
}
