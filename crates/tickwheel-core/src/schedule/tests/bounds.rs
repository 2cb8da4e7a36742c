//! Start, end, intervals, and the edges of the calendar.

use proptest::prelude::*;

use super::super::{BadInterval, DstGap, Interval, Recurrence, Timetable, Zone};
use super::{at, firings, timetable};
use crate::Timestamp;

#[test]
fn the_next_firing_is_strictly_after() {
    let hourly = timetable("@hourly", "UTC");
    let noon = at("2026-01-01T12:00:00Z");
    assert_eq!(hourly.next_after(noon), Some(at("2026-01-01T13:00:00Z")));
    assert_eq!(hourly.next_after(at("2026-01-01T11:59:59.999Z")), Some(noon));
    assert_eq!(hourly.next_after(at("2026-01-01T12:00:00.001Z")), Some(at("2026-01-01T13:00:00Z")));
}

#[test]
fn start_and_end_may_be_firings_themselves() {
    let bounded = Timetable {
        start_at: Some(at("2026-01-01T02:00:00Z")),
        end_at: Some(at("2026-01-01T04:00:00Z")),
        ..timetable("@hourly", "UTC")
    };
    let all = ["2026-01-01T02:00+00:00", "2026-01-01T03:00+00:00", "2026-01-01T04:00+00:00"];
    assert_eq!(firings(&bounded, "1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z"), all);
    assert_eq!(bounded.next_after(at("2026-01-01T04:00:00Z")), None);
    let interval = Timetable { recurrence: Recurrence::parse("@every 1h").expect("an interval"), ..bounded };
    assert_eq!(firings(&interval, "1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z"), all);
    assert_eq!(interval.count_between(Timestamp::EPOCH, Timestamp::MAX, 100), 3);
}

#[test]
fn a_range_leaves_out_its_beginning_and_takes_in_its_end() {
    let daily = timetable("0 0 * * *", "UTC");
    let found = firings(&daily, "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z");
    assert_eq!(found, ["2026-01-02T00:00+00:00", "2026-01-03T00:00+00:00"]);
    assert_eq!(daily.count_between(at("2026-01-01T00:00:00Z"), at("2026-01-03T00:00:00Z"), 10), 2);
    assert_eq!(daily.count_between(at("2026-01-03T00:00:00Z"), at("2026-01-01T00:00:00Z"), 10), 0);
}

#[test]
fn counting_stops_where_it_is_told_to() {
    let every_second = timetable("* * * * * *", "UTC");
    assert_eq!(every_second.count_between(Timestamp::EPOCH, Timestamp::MAX, 1000), 1000);
    let interval = timetable("@every 1s", "UTC");
    assert_eq!(interval.count_between(Timestamp::EPOCH, Timestamp::MAX, 1000), 1000);
}

#[test]
fn an_interval_keeps_its_distance_in_real_time_through_a_gap() {
    let every = timetable("@every 1h30m", "America/New_York");
    let found = firings(&every, "2026-03-08T05:00:00Z", "2026-03-08T09:30:00Z");
    assert_eq!(found, ["2026-03-08T01:00-05:00", "2026-03-08T03:30-04:00", "2026-03-08T05:00-04:00"]);
}

#[test]
fn an_interval_is_counted_from_the_second_of_its_anchor_in_both_directions() {
    let anchor = at("2026-01-01T00:00:07.250Z");
    let every =
        Timetable::new(Recurrence::Every(Interval::new(60_000, anchor).expect("a minute")), Zone::utc());
    assert_eq!(every.next_after(anchor), Some(at("2026-01-01T00:01:07Z")));
    assert_eq!(every.next_after(at("2025-12-31T23:58:00Z")), Some(at("2025-12-31T23:58:07Z")));
}

#[test]
fn an_interval_is_a_second_to_a_leap_year_long() {
    let new = |ms| Interval::new(ms, Timestamp::EPOCH);
    assert_eq!(new(0), Err(BadInterval::TooShort(0)));
    assert_eq!(new(999), Err(BadInterval::TooShort(999)));
    assert_eq!(new(1_500), Err(BadInterval::NotWholeSeconds(1_500)));
    assert!(new(1_000).is_ok() && new(Interval::EVERY_MS_MAX).is_ok());
    assert_eq!(
        new(Interval::EVERY_MS_MAX + 1_000),
        Err(BadInterval::TooLong(Interval::EVERY_MS_MAX + 1_000))
    );
}

#[test]
fn every_is_read_with_its_units_or_refused_with_words() {
    let every_ms = |text: &str| match Recurrence::parse(text) {
        Ok(Recurrence::Every(interval)) => Ok(interval.every_ms()),
        Ok(Recurrence::Cron(_)) => panic!("{text} is no interval"),
        Err(error) => Err(error.to_string()),
    };
    assert_eq!(every_ms("@every 90s"), Ok(90_000));
    assert_eq!(every_ms("  @EVERY   1H30M "), Ok(5_400_000));
    assert_eq!(every_ms("@every 2d"), Ok(172_800_000));
    assert_eq!(
        every_ms("@every 1s500ms"),
        Err("@every 1s500ms: the interval is 1500 ms; it must be whole seconds".into())
    );
    assert_eq!(
        every_ms("@every 10ms"),
        Err("@every 10ms: the interval is 10 ms; it must be at least 1 second".into())
    );
    assert_eq!(
        every_ms("@every 400d"),
        Err("@every 400d: the interval is 34560000000 ms; it must be at most 366 days".into())
    );
    for text in ["@every", "@every x", "@every 5", "@every -5s", "@every 5 m", "@every 99999999999999999999s"]
    {
        let refusal = every_ms(text).expect_err(text);
        assert_eq!(refusal, format!("{text} needs a duration, such as @every 90s, 5m, 1h30m or 2d"));
    }
}

#[test]
fn nothing_fires_beyond_the_calendar() {
    let daily = timetable("0 0 * * *", "Pacific/Kiritimati");
    let last = at("9999-12-30T10:00:00Z");
    assert_eq!(daily.next_after(at("9999-12-30T09:59:59Z")), Some(last));
    assert_eq!(daily.next_after(last), None);
    assert_eq!(timetable("@every 1d", "UTC").next_after(at("9999-12-30T00:00:00Z")), None);
}

#[test]
fn a_time_that_every_change_of_the_clocks_jumps_over_never_comes() {
    let always_in_the_gap =
        Timetable { gap: DstGap::Skip, ..timetable("30 2 * 3 SUN#2", "America/New_York") };
    assert_eq!(always_in_the_gap.next_after(at("2026-01-01T00:00:00Z")), None);
    let right_after_it = Timetable { gap: DstGap::RunAfter, ..always_in_the_gap };
    assert_eq!(right_after_it.next_after(at("2026-01-01T00:00:00Z")), Some(at("2026-03-08T07:00:00Z")));
}

proptest! {
    #[test]
    fn any_moment_at_all_can_be_asked_about(ms: i64, zone in prop::sample::select(vec!["UTC", "America/New_York"])) {
        for expr in ["0 2 * * *", "*/7 * * * * *", "0 0 29 2 *", "@every 7h"] {
            let after = Timestamp::from_millis(ms);
            if let Some(next) = timetable(expr, zone).next_after(after) {
                prop_assert!(next > after && next >= Timestamp::EPOCH);
            } else {
                prop_assert!(after > at("9991-01-01T00:00:00Z"));
            }
        }
    }
}
