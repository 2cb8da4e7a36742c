//! The words, example by example.

use proptest::prelude::*;

use super::super::tests::model::{expressions, policies};
use super::super::{DayLogic, DstFold, DstGap, Recurrence, Timetable, Zone};
use super::*;

fn words(text: &str) -> String {
    explain(&Recurrence::parse(text).expect("a recurrence"), DayLogic::Or)
}

#[test]
fn common_expressions_read_well() {
    for (text, expected) in [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("@hourly", "every hour"),
        ("15 * * * *", "every hour at minute 15"),
        ("@daily", "at 00:00 every day"),
        ("0 2 * * *", "at 02:00 every day"),
        ("0 2 * * MON-FRI", "at 02:00 on Monday to Friday"),
        ("*/5 9-17 * * *", "every 5 minutes from 09:00 to 17:59"),
        ("0 9-17 * * 1-5", "every hour from 09:00 to 17:00 on Monday to Friday"),
        ("0 */2 * * *", "every 2 hours"),
        ("0 */6 * * *", "at 00:00, 06:00, 12:00 and 18:00 every day"),
        ("30 9,12 * * SAT,SUN", "at 09:30 and 12:30 on Saturday and Sunday"),
        ("@weekly", "at 00:00 on Sunday"),
        ("@monthly", "at 00:00 on the 1st"),
        ("@yearly", "at 00:00 on the 1st of January"),
        ("0 0 1,15 * *", "at 00:00 on the 1st and 15th"),
        ("0 0 1 */3 *", "at 00:00 on the 1st of January, April, July and October"),
        ("0 0 * * FRIL", "at 00:00 on the last Friday of the month"),
        ("0 0 13 * FRIL", "at 00:00 on the last Friday of the month, or the 13th"),
        ("0 0 * * MON#1", "at 00:00 on the 1st Monday of the month"),
        ("0 18 L * *", "at 18:00 on the last day of the month"),
        ("0 18 LW * *", "at 18:00 on the last weekday of the month"),
        ("0 18 15W * *", "at 18:00 on the weekday nearest the 15th"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("30 0 2 * * *", "at 02:00:30 every day"),
        ("@every 90s", "every 1 minute 30 seconds"),
        ("@every 5m", "every 5 minutes"),
        ("@every 1d", "every day"),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn uncommon_expressions_are_said_exactly() {
    for (text, expected) in [
        ("*/7 * * * *", "every 7 minutes from minute 0 to 56 of every hour"),
        ("3,7 * * * *", "at minutes 3 and 7 of every hour"),
        ("0-4 * * * *", "at minutes 0 to 4 of every hour"),
        ("*/5 */2 * * *", "every 5 minutes in every 2nd hour from 00:00 to 22:59"),
        ("*/5 1,4,20 * * *", "every 5 minutes in the hours 01, 04 and 20"),
        ("10 1,2,3,8,20 * * *", "at minute 10 in the hours 01 to 03, 08 and 20 every day"),
        ("10 1-23/2 * * *", "every 2 hours from 01:10 to 23:10"),
        ("*/20 0-4 3 * * *", "every 20 seconds, in minutes 0 to 4 of every hour from 03:00 to 03:59"),
        ("15 * * * * *", "at second 15 of every minute"),
        ("0 0 */2 * MON", "at 00:00 on every 2nd day from the 1st to the 31st, but only on Monday"),
        ("0 0 L-3 * *", "at 00:00 on the day 3 days before the last of the month"),
        ("0 0 1-7,L * *", "at 00:00 on the 1st to 7th and the last day of the month"),
        ("0 0 * 6-8 *", "at 00:00 every day in June to August"),
        ("0 0 * 6 MON,WED,FRI", "at 00:00 on Monday, Wednesday and Friday in June"),
        ("0 0 1-31 * MON", "at 00:00 every day"),
        ("0 0 30 2 *", "at 00:00 on the 30th of February, which never comes"),
        ("*/5 * * * MON", "every 5 minutes on Monday"),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn day_logic_and_is_said() {
    let friday_13 = Recurrence::parse("0 0 13 * FRI").expect("a recurrence");
    assert_eq!(explain(&friday_13, DayLogic::And), "at 00:00 on the 13th, but only on Friday");
    assert_eq!(explain(&friday_13, DayLogic::Or), "at 00:00 on Friday, or the 13th");
}

#[test]
fn an_anchor_is_said() {
    let interval = Interval::new(3_600_000, Timestamp::from_millis(1_767_225_610_000)).expect("an hour");
    let recurrence = Recurrence::Every(interval);
    assert_eq!(explain(&recurrence, DayLogic::Or), "every hour, counted from 2026-01-01T00:00:10Z");
}

fn new_york(text: &str) -> Timetable {
    let recurrence = Recurrence::parse(text).expect("a recurrence");
    Timetable::new(recurrence, Zone::named("America/New_York").expect("a zone"))
}

/// 2026-01-01 and 2026-06-01: the next change is the gap of March and the fold of November.
const WINTER: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const SUMMER: Timestamp = Timestamp::from_millis(1_780_272_000_000);

#[track_caller]
fn assert_effect(timetable: &Timetable, after: Timestamp, expected: &str) {
    let change = next_zone_change(timetable, after).expect("New York changes its clocks");
    let (_, effect) = change.effect.split_once(": ").expect("the clock, then the effect");
    assert_eq!(effect, expected);
}

#[test]
fn the_next_change_is_named_with_its_offsets() {
    let change = next_zone_change(&new_york("30 2 * * *"), WINTER).expect("a change");
    assert_eq!(change.at, Timestamp::from_millis(1_772_953_200_000));
    assert_eq!(
        (change.offset_before.to_string(), change.offset_after.to_string()),
        ("-05:00".into(), "-04:00".into())
    );
    assert_eq!(change.kind, ClockChange::Gap);
    assert_eq!(
        change.effect,
        "the clock goes from 2026-03-08 02:00 to 03:00: the firing of 02:30 comes right after it, at 03:00"
    );
    let change = next_zone_change(&new_york("30 2 * * *"), change.at).expect("another");
    assert_eq!((change.at, change.kind), (Timestamp::from_millis(1_793_512_800_000), ClockChange::Fold));
}

#[test]
fn the_effect_of_a_gap_depends_on_the_policy() {
    let at_half_past = new_york("30 2 * * *");
    assert_effect(
        &Timetable { gap: DstGap::Skip, ..at_half_past },
        WINTER,
        "the firing of 02:30 is left out",
    );
    assert_effect(
        &Timetable { gap: DstGap::Shift, ..at_half_past },
        WINTER,
        "the firing of 02:30 comes 1 hour later",
    );
    let quarters = new_york("0,15,30,45 2 * * *");
    assert_effect(&quarters, WINTER, "the 4 firings of 02:00 to 02:45 become one, right after it, at 03:00");
    let at_three_too = new_york("0 2,3 * * *");
    assert_effect(&at_three_too, WINTER, "the firing of 02:00 becomes one with that of 03:00");
    let half_hourly = new_york("*/30 * * * *");
    assert_effect(
        &half_hourly,
        WINTER,
        "the 2 firings of 02:00 to 02:30 do not exist that day, it goes on in real time",
    );
}

#[test]
fn the_effect_of_a_fold_depends_on_the_policy() {
    let at_half_past = new_york("30 1 * * *");
    assert_effect(&at_half_past, SUMMER, "the firing of 01:30 comes once, the first time");
    let last = Timetable { fold: DstFold::Last, ..at_half_past };
    assert_effect(&last, SUMMER, "the firing of 01:30 comes once, the second time");
    assert_effect(
        &Timetable { fold: DstFold::Both, ..at_half_past },
        SUMMER,
        "the firing of 01:30 comes twice",
    );
    let hourly = new_york("@hourly");
    assert_effect(&hourly, SUMMER, "the firing of 01:00 comes twice, it goes on in real time");
}

#[test]
fn a_change_that_touches_no_firing_says_so() {
    let morning = new_york("0 9 * * *");
    assert_effect(&morning, WINTER, "no firing is touched: local times stay the same, 1 hour earlier in UTC");
    assert_effect(&morning, SUMMER, "no firing is touched: local times stay the same, 1 hour later in UTC");
    let interval = new_york("@every 1h");
    assert_effect(&interval, WINTER, "the interval goes on in real time, 1 hour later on the local clock");
}

#[test]
fn a_missing_day_is_told_with_its_dates() {
    let apia = Timetable { zone: Zone::named("Pacific/Apia").expect("a zone"), ..new_york("0 9 * * *") };
    let change = next_zone_change(&apia, Timestamp::from_millis(1_324_000_000_000)).expect("a change");
    assert_eq!(
        change.effect,
        "the clock goes from 2011-12-30 00:00 to 2011-12-31 00:00: the firing of 09:00 comes right after it, at 00:00"
    );
}

#[test]
fn there_is_no_change_where_clocks_stay_or_after_the_end() {
    let daily = new_york("30 2 * * *");
    assert_eq!(next_zone_change(&Timetable { zone: Zone::utc(), ..daily }, WINTER), None);
    let ended = Timetable { end_at: Some(Timestamp::from_millis(1_772_953_199_999)), ..daily };
    assert_eq!(next_zone_change(&ended, WINTER), None);
    let later = Timetable { start_at: Some(SUMMER), ..daily };
    let change = next_zone_change(&later, WINTER).expect("the one after its start");
    assert_eq!(change.kind, ClockChange::Fold);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn every_expression_can_be_said(expr in expressions(true), policies in policies(), winter: bool) {
        let recurrence = Recurrence::parse(&expr.text()).expect("the model writes what can be read");
        let said = explain(&recurrence, policies.day_logic);
        prop_assert!(said.starts_with("at ") || said.starts_with("every "), "{}", said);
        prop_assert!(!said.contains("  ") && said.trim() == said, "{}", said);
        let timetable = Timetable { gap: policies.gap, fold: policies.fold, ..new_york("@daily") };
        let change = next_zone_change(&Timetable { recurrence, ..timetable }, if winter { WINTER } else { SUMMER });
        prop_assert!(change.is_some_and(|change| change.effect.starts_with("the clock goes from 2026-")));
    }
}
