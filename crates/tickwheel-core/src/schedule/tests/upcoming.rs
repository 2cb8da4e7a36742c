//! Firings that are to come, excluded days taken into account.

use std::sync::Arc;

use proptest::prelude::*;

use super::fixtures::{MINUTE, MONDAY, with};
use crate::Timestamp;
use crate::schedule::open_days::OpenDays;
use crate::schedule::plan::{Calendars, PlanContext, plan};
use crate::schedule::{Calendar, DstFold, DstGap, FireOutcome, OnExcluded, Schedule, ScheduleSpec, Upcoming};

fn weekends() -> Calendars {
    let weekends = Calendar {
        name: "weekends".into(),
        tenant: "default".into(),
        days: [].into(),
        weekdays: [0, 6].into(),
        updated_at: MONDAY,
    };
    [(weekends.name.clone(), weekends)].into()
}

fn upcoming(schedule: &Schedule, after: Timestamp, count: usize) -> Vec<String> {
    let (spec, timetable, calendars) = (&schedule.spec, schedule.spec.timetable().unwrap(), weekends());
    let firings = Upcoming::of(spec, &timetable, &calendars, after, None).take(count);
    firings.map(|at| timetable.zone.civil_at(at).to_string()[5..16].to_owned()).collect()
}

fn excluding(days: &[&str], on_excluded: OnExcluded) -> impl Fn(&mut ScheduleSpec) {
    let exclude: Vec<_> = days.iter().map(|day| day.parse().unwrap()).collect();
    move |spec| (spec.exclude, spec.on_excluded) = (exclude.clone(), on_excluded)
}

#[test]
fn excluded_days_are_passed_over_however_often_the_schedule_fires_on_them() {
    let days = ["2026-11-17", "2026-11-19/2026-11-20", "calendar:weekends"];
    let daily = with("0 9 * * *", excluding(&days, OnExcluded::Skip));
    assert_eq!(upcoming(&daily, MONDAY, 4), ["11-16T09:00", "11-18T09:00", "11-23T09:00", "11-24T09:00"]);
    let every_second = with("* * * * * *", |spec| {
        excluding(&["2026-11-16/2027-10-31"], OnExcluded::Skip)(spec);
        spec.timezone = "Asia/Tokyo".into();
    });
    assert_eq!(upcoming(&every_second, MONDAY, 1), ["11-01T00:00"]);
}

#[test]
fn firings_move_to_the_next_open_day_unless_the_schedule_fires_then_anyway() {
    let saturdays =
        with("0 9,17 * * SAT", excluding(&["calendar:weekends", "2026-11-23"], OnExcluded::NextDay));
    assert_eq!(
        upcoming(&saturdays, MONDAY, 4),
        ["11-24T09:00", "11-24T17:00", "11-30T09:00", "11-30T17:00"],
        "all of a day move"
    );
    let daily = with("0 9 * * *", excluding(&["calendar:weekends"], OnExcluded::NextDay));
    assert_eq!(
        upcoming(&daily, MONDAY + 4 * 1440 * MINUTE, 3),
        ["11-20T09:00", "11-23T09:00", "11-24T09:00"]
    );
}

#[test]
fn what_moved_from_before_is_there_for_a_schedule_that_has_always_been() {
    let saturdays = with("0 9,17 * * SAT", excluding(&["calendar:weekends"], OnExcluded::NextDay));
    let (timetable, calendars) = (saturdays.spec.timetable().unwrap(), weekends());
    let after = |minutes: u32| {
        let after = MONDAY + minutes * MINUTE;
        let mut firings = Upcoming::within(&saturdays.spec, &timetable, &calendars, after);
        firings.next().unwrap().since(MONDAY).as_secs() / 3600
    };
    assert_eq!((after(0), after(9 * 60), after(17 * 60)), (9, 17, 7 * 24 + 9));
}

#[test]
fn a_search_among_excluded_days_ends() {
    for on_excluded in [OnExcluded::Skip, OnExcluded::NextDay] {
        let never = with("* * * * * *", excluding(&["2026-01-01/9999-12-31"], on_excluded));
        assert_eq!(upcoming(&never, MONDAY, 1), [""; 0], "{on_excluded:?}");
    }
}

fn steps_until_next(
    spec: impl FnOnce(&mut ScheduleSpec),
    cron: &str,
    calendars: &Calendars,
) -> (Option<Timestamp>, u64) {
    let schedule = with(cron, spec);
    let timetable = schedule.spec.timetable().unwrap();
    let mut upcoming = Upcoming::of(&schedule.spec, &timetable, calendars, MONDAY, None);
    (upcoming.next(), upcoming.steps())
}

#[test]
fn a_calendar_of_all_weekdays_is_known_to_leave_no_day_without_a_search() {
    let mut calendars = weekends();
    calendars.values_mut().for_each(|calendar| calendar.weekdays = (0..7).collect());
    for on_excluded in [OnExcluded::Skip, OnExcluded::NextDay] {
        for cron in ["@every 1s", "* * * * * *", "0 9 * * *"] {
            let found = steps_until_next(excluding(&["calendar:weekends"], on_excluded), cron, &calendars);
            assert_eq!(found, (None, 0), "{cron} {on_excluded:?}");
        }
    }
}

#[test]
fn a_year_of_excluded_seconds_costs_a_few_steps_a_day() {
    for cron in ["@every 1s", "* * * * * *", "0-59 * 0-23 * * *", "@every 7s"] {
        for zone in ["UTC", "America/New_York"] {
            let year = |spec: &mut ScheduleSpec| {
                excluding(&["2026-01-01/2026-12-31"], OnExcluded::NextDay)(spec);
                spec.timezone = zone.into();
            };
            let (next, steps) = steps_until_next(year, cron, &weekends());
            assert!(next.is_some() && steps < 10_000, "{cron} in {zone}: {next:?} after {steps} steps");
        }
    }
}

#[test]
fn a_search_that_is_too_long_ends_and_says_so() {
    let schedule = with("@every 7s", excluding(&["2026-11-17/2027-10-01"], OnExcluded::NextDay));
    let (timetable, calendars) = (schedule.spec.timetable().unwrap(), weekends());
    let october = MONDAY + 320 * 1440 * MINUTE;
    let all = || Upcoming::within(&schedule.spec, &timetable, &calendars, october);
    let mut bounded = all().steps_max(10_000);
    let found: Vec<Timestamp> = bounded.by_ref().take(1_000).collect();
    assert!(bounded.ran_out() && found.len() < 1_000);
    assert!(all().take(found.len()).eq(found.into_iter()), "as far as it goes, it is the same");
}

/// One firing after the other, the way it is meant.
fn naively_moved(schedule: &Schedule, calendars: &Calendars, at: Timestamp) -> Option<Timestamp> {
    let timetable = schedule.spec.timetable().unwrap();
    let days = OpenDays::new(&schedule.spec, &timetable, calendars);
    let firings = timetable.firings(at - 12 * 1440 * MINUTE, at);
    firings.filter_map(|nominal| days.moved(nominal)).filter(|moved| *moved > at).min()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Passing over firings in step finds what looking at each of them finds.
    #[test]
    fn a_search_in_step_finds_what_a_search_one_by_one_finds(
        cron in prop::sample::select(vec![
            "@every 50m", "@every 1h", "@every 7h", "*/30 * * * *", "15 1,2,3 * * *", "0 */5 * * SAT,SUN", "30 2 * * SAT", "0,30 1-3 * * SUN",
        ]),
        zone in prop::sample::select(vec!["UTC", "America/New_York", "Europe/Berlin", "America/Santiago"]),
        // Around the ends of summer time in the one and the other half of the year.
        day in prop::sample::select(vec![300u32, 301, 302, 306, 307, 308, 309, 112, 113, 114, 115, 131, 132, 133, 142, 143]),
        minute in 0u32..1440,
        excluded in prop::collection::vec(0i64..8, 1..5),
        gap in prop::sample::select(vec![DstGap::RunAfter, DstGap::Skip]),
        fold in prop::sample::select(vec![DstFold::Once, DstFold::Last, DstFold::Both]),
    ) {
        // 2026-01-01, 320 days before that Monday, and the year after it.
        let at = MONDAY - 319 * 1440 * MINUTE + (day * 1440 + minute) * MINUTE;
        let mut schedule = with(cron, |spec| {
            (spec.timezone, spec.dst_gap, spec.dst_fold) = (zone.into(), gap, fold);
            spec.on_excluded = OnExcluded::NextDay;
        });
        let today = schedule.spec.timetable().unwrap().zone.civil_at(at).date();
        let days = excluded.iter().map(|days| today.plus_days(-days).to_string().parse().unwrap());
        Arc::make_mut(&mut schedule.spec).exclude = days.collect();
        let (timetable, calendars) = (schedule.spec.timetable().unwrap(), Calendars::new());
        let found = OpenDays::new(&schedule.spec, &timetable, &calendars).next_moved(at);
        prop_assert_eq!(found, naively_moved(&schedule, &calendars, at));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What people are shown is what happens.
    #[test]
    fn the_plan_fires_what_was_shown(
        cron in prop::sample::select(vec!["0 9,17 * * SAT", "30 4 * * *", "0 */5 * * SUN", "0 0 * * MON,SAT"]),
        on_excluded in prop::sample::select(vec![OnExcluded::Skip, OnExcluded::NextDay]),
        zone in prop::sample::select(vec!["UTC", "America/New_York", "Pacific/Apia"]),
        excluded in prop::collection::btree_set(17u8..30, 0..6),
    ) {
        let days: Vec<String> = excluded.iter().map(|day| format!("2026-11-{day}")).collect();
        let mut days: Vec<&str> = days.iter().map(String::as_str).collect();
        days.push("calendar:weekends");
        let mut schedule = with(cron, |spec| {
            excluding(&days, on_excluded)(spec);
            spec.timezone = zone.into();
        });
        let (timetable, calendars) = (schedule.spec.timetable().unwrap(), weekends());
        let end = MONDAY + 21 * 1440 * MINUTE;
        let shown: Vec<Timestamp> =
            Upcoming::of(&schedule.spec, &timetable, &calendars, MONDAY, None).take_while(|at| *at <= end).collect();
        let mut fired = Vec::new();
        for quarter in 0..=21 * 96 {
            let context = PlanContext { now: MONDAY + 15 * quarter * MINUTE, active: &[], calendars: &calendars, ledger: &[], queued: &[] };
            let plan = plan(&schedule, &timetable, context);
            let jobs = plan.fires.iter().filter(|fire| fire.outcome == FireOutcome::Fired);
            fired.extend(jobs.map(|fire| fire.nominal_at));
            schedule.progress = plan.progress;
        }
        prop_assert_eq!(fired, shown);
    }
}
