//! What becomes of firings: missed, overlapping, excluded, spread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::fixtures::{MINUTE, MONDAY, spec, with};
use crate::id::{JobId, ScheduleId};
use crate::schedule::edit::{ScheduleEdit, edited};
use crate::schedule::plan::{Calendars, Plan, PlanContext, PlannedFire, PlannedJob, plan, spread};
use crate::schedule::{
    Calendar, FireOutcome, FireReason, MissedPolicy, MissedRule, OnExcluded, Overlap, Schedule,
};
use crate::time::Timestamp;

use FireOutcome as Outcome;
use FireReason as Reason;

fn job(number: u128) -> JobId {
    JobId::from_uuid(Uuid::from_u128(number))
}

fn planned(schedule: &Schedule, now: Timestamp, active: &[JobId]) -> Plan {
    planned_with_queue(schedule, now, active, &[])
}

fn planned_with_queue(schedule: &Schedule, now: Timestamp, active: &[JobId], queued: &[Timestamp]) -> Plan {
    let calendars = Calendars::new();
    plan(
        schedule,
        &schedule.spec.timetable().unwrap(),
        PlanContext { now, active, calendars: &calendars, ledger: &[], queued },
    )
}

/// The outcomes as "minutes after Monday: outcome".
fn told(plan: &Plan) -> Vec<(u64, Outcome, Reason)> {
    let minute = |at: Timestamp| at.since(MONDAY).as_secs() / 60;
    plan.fires.iter().map(|fire| (minute(fire.nominal_at), fire.outcome, fire.reason)).collect()
}

fn jobs(plan: &Plan) -> usize {
    plan.fires.iter().filter(|fire| matches!(fire.job, PlannedJob::New { .. })).count()
}

#[test]
fn a_firing_on_time_makes_its_job_and_the_next_one_counts_from_its_nominal_time() {
    let schedule = with("*/10 * * * *", |_| ());
    assert_eq!(schedule.progress.wake_at, Some(MONDAY + 10 * MINUTE));
    let plan = planned(&schedule, MONDAY + 10 * MINUTE + Duration::from_secs(59), &[]);
    assert_eq!(told(&plan), [(10, Outcome::Fired, Reason::OnTime)]);
    assert_eq!(plan.fires[0].job, PlannedJob::New { due_at: MONDAY + 10 * MINUTE });
    assert_eq!(plan.progress.cursor, MONDAY + 10 * MINUTE);
    assert_eq!(plan.progress.next_at, Some(MONDAY + 20 * MINUTE));
}

#[test]
fn nothing_is_decided_before_its_time() {
    let schedule = with("*/10 * * * *", |_| ());
    let plan = planned(&schedule, MONDAY + 9 * MINUTE, &[]);
    assert_eq!((plan.fires.len(), plan.progress), (0, schedule.progress));
}

#[test]
fn one_job_stands_for_all_that_were_missed() {
    let plan = planned(&with("*/10 * * * *", |_| ()), MONDAY + 35 * MINUTE, &[]);
    assert_eq!(
        told(&plan),
        [
            (10, Outcome::Coalesced, Reason::CaughtUp),
            (20, Outcome::Coalesced, Reason::CaughtUp),
            (30, Outcome::Fired, Reason::CaughtUp),
        ]
    );
    assert!(plan.fires[..2].iter().all(|fire| fire.job == PlannedJob::OfFiring(2)));
    // If the latest is on time, it is the one that stands for the others.
    let plan = planned(&with("*/10 * * * *", |_| ()), MONDAY + 30 * MINUTE, &[]);
    assert_eq!(told(&plan)[2], (30, Outcome::Fired, Reason::OnTime));
    assert_eq!(jobs(&plan), 1);
}

#[test]
fn a_short_hiccup_misses_nothing() {
    let schedule = with("* * * * * *", |spec| spec.missed.policy = MissedPolicy::Skip);
    let plan = planned(&schedule, MONDAY + Duration::from_millis(2_900), &[]);
    assert!(plan.fires.iter().all(|fire| fire.outcome == Outcome::Fired), "{plan:?}");
    assert_eq!(plan.fires.len(), 2);
}

#[test]
fn missed_firings_are_only_recorded_if_the_schedule_wants_it_so() {
    let schedule = with("*/10 * * * *", |spec| spec.missed.policy = MissedPolicy::Skip);
    let plan = planned(&schedule, MONDAY + 25 * MINUTE, &[]);
    assert_eq!(
        told(&plan),
        [(10, Outcome::Missed, Reason::MissedPolicy), (20, Outcome::Missed, Reason::MissedPolicy)]
    );
    assert_eq!(plan.progress.next_at, Some(MONDAY + 30 * MINUTE));
}

#[test]
fn backfill_makes_up_for_the_latest_ones_up_to_its_cap_and_within_its_window() {
    let schedule = with("*/10 * * * *", |spec| {
        spec.missed = MissedRule { policy: MissedPolicy::Backfill, window_ms: 3_600_000, max_backfill: 2 };
    });
    let plan = planned(&schedule, MONDAY + 95 * MINUTE, &[]);
    assert_eq!(
        told(&plan),
        [
            (10, Outcome::Missed, Reason::OutsideWindow),
            (20, Outcome::Missed, Reason::OutsideWindow),
            (30, Outcome::Missed, Reason::OutsideWindow),
            (40, Outcome::Missed, Reason::OverCap),
            (50, Outcome::Missed, Reason::OverCap),
            (60, Outcome::Missed, Reason::OverCap),
            (70, Outcome::Missed, Reason::OverCap),
            (80, Outcome::Backfilled, Reason::CaughtUp),
            (90, Outcome::Backfilled, Reason::CaughtUp),
        ]
    );
}

/// Plans until nothing is due any more; how many steps that took, and all records.
fn caught_up(schedule: &mut Schedule, now: Timestamp) -> (usize, Vec<PlannedFire>) {
    let mut fires = Vec::new();
    for step in 1..1_000 {
        let plan = planned(schedule, now, &[]);
        fires.extend(plan.fires);
        schedule.progress = plan.progress;
        if schedule.progress.wake_at.is_none_or(|wake| wake > now) {
            return (step, fires);
        }
    }
    panic!("a plan that does not get on: {:?}", schedule.progress);
}

#[test]
fn a_day_of_missed_seconds_is_dealt_with_in_a_few_steps_and_one_job_stands_for_all_of_it() {
    let mut schedule = with("* * * * * *", |_| ());
    let now = MONDAY + Duration::from_secs(86_400);
    let (steps, fires) = caught_up(&mut schedule, now);
    assert_eq!((steps, fires.len()), (5, 1_000 + 5));
    assert_eq!(fires.iter().map(|fire| fire.count).sum::<u64>(), 86_400);
    assert!(fires.is_sorted_by(|one, next| one.last_at < next.nominal_at));
    let jobs = fires.iter().filter(|fire| matches!(fire.job, PlannedJob::New { .. }));
    assert_eq!(jobs.map(|fire| fire.nominal_at).collect::<Vec<_>>(), [now]);
    assert_eq!(schedule.progress.next_at, Some(now + Duration::from_secs(1)));
}

#[test]
fn a_little_more_than_is_looked_at_at_once_is_judged_as_one() {
    for seconds in [20_000, 20_001, 20_999, 21_000, 21_001] {
        let mut schedule = with("* * * * * *", |_| ());
        let (_, fires) = caught_up(&mut schedule, MONDAY + Duration::from_secs(seconds));
        assert_eq!(fires.iter().map(|fire| fire.count).sum::<u64>(), seconds);
        let jobs = fires.iter().filter(|fire| matches!(fire.job, PlannedJob::New { .. }));
        assert_eq!(jobs.count(), 1, "{seconds}");
    }
}

#[test]
fn firings_that_move_by_the_thousand_are_dealt_with_in_steps() {
    let mut schedule = with("@every 7s", |spec| {
        spec.exclude = vec!["2026-11-17/2026-11-18".parse().unwrap()];
        spec.on_excluded = OnExcluded::NextDay;
        spec.missed = MissedRule { policy: MissedPolicy::Skip, window_ms: 3_600_000, max_backfill: 1 };
    });
    // 7 seconds do not divide a day: those of Tuesday and Wednesday have other times than those of Thursday.
    let (thursday, noon_of_thursday) = (MONDAY + 72 * 60 * MINUTE, MONDAY + 84 * 60 * MINUTE);
    caught_up(&mut schedule, MONDAY + 25 * 60 * MINUTE);
    assert!(schedule.progress.rolled_at.is_some_and(|at| at > thursday && at < thursday + MINUTE));
    let (steps, fires) = caught_up(&mut schedule, noon_of_thursday);
    assert!(steps > 5, "{steps}");
    let nominal_times: BTreeSet<Timestamp> = fires.iter().map(|fire| fire.nominal_at).collect();
    assert_eq!(nominal_times.len(), fires.len(), "a moment has one record");
    assert!(schedule.progress.rolled_at > Some(noon_of_thursday));
}

#[test]
fn a_paused_schedule_records_what_it_skips() {
    let schedule = Schedule { paused: true, ..with("* * * * *", |_| ()) };
    let plan = planned(&schedule, MONDAY + 2 * MINUTE, &[]);
    assert_eq!(told(&plan), [(1, Outcome::Skipped, Reason::Paused), (2, Outcome::Skipped, Reason::Paused)]);
    assert_eq!(plan.progress.wake_at, Some(MONDAY + 3 * MINUTE));
}

#[test]
fn overlap_decides_about_a_firing_while_the_last_job_runs() {
    let now = MONDAY + 10 * MINUTE;
    let active = [job(1)];
    let with_overlap = |overlap| with("*/10 * * * *", |spec| spec.overlap = overlap);

    assert_eq!(jobs(&planned(&with_overlap(Overlap::Allow), now, &active)), 1);

    let skipped = planned(&with_overlap(Overlap::Skip), now, &active);
    assert_eq!(told(&skipped), [(10, Outcome::Skipped, Reason::Overlap)]);

    let replaced = planned(&with_overlap(Overlap::Replace), now, &active);
    assert_eq!((jobs(&replaced), replaced.cancel), (1, active.to_vec()));
}

/// A schedule whose firings wait for each other, and its ledger.
struct Queueing {
    schedule: Schedule,
    ledger: BTreeMap<Timestamp, (Outcome, Reason)>,
}

impl Queueing {
    fn every_ten_minutes() -> Self {
        let schedule = with("*/10 * * * *", |spec| spec.overlap = Overlap::Queue);
        Self { schedule, ledger: BTreeMap::new() }
    }

    fn step(&mut self, minutes: u32, active: &[JobId]) -> Plan {
        let is_queued = |record: &(Outcome, Reason)| *record == (Outcome::Skipped, Reason::Queued);
        let queued = self.ledger.iter().filter(|(_, record)| is_queued(record)).map(|(at, _)| *at);
        let queued: Vec<Timestamp> = queued.collect();
        assert_eq!(queued.first().copied(), self.schedule.progress.held_at);
        let plan = planned_with_queue(&self.schedule, MONDAY + minutes * MINUTE, active, &queued);
        self.schedule.progress = plan.progress;
        self.ledger.extend(plan.fires.iter().map(|fire| (fire.nominal_at, (fire.outcome, fire.reason))));
        plan
    }

    fn edit(&mut self, minutes: u32, edit: &ScheduleEdit) {
        let now = MONDAY + minutes * MINUTE;
        self.schedule = edited(self.schedule.clone(), edit, &Calendars::new(), now).unwrap().unwrap();
    }

    fn records(&self) -> Vec<(u64, Outcome, Reason)> {
        let minute = |at: &Timestamp| at.since(MONDAY).as_secs() / 60;
        self.ledger.iter().map(|(at, (outcome, reason))| (minute(at), *outcome, *reason)).collect()
    }
}

#[test]
fn a_queued_firing_is_recorded_at_once_and_starts_when_the_job_before_it_is_over() {
    let mut queue = Queueing::every_ten_minutes();
    let held = queue.step(10, &[job(1)]);
    assert_eq!(told(&held), [(10, Outcome::Skipped, Reason::Queued)]);
    assert_eq!((jobs(&held), held.progress.held_at), (0, Some(MONDAY + 10 * MINUTE)));
    assert!(held.progress.wake_at > Some(MONDAY + 10 * MINUTE));
    for minutes in [20, 30, 35] {
        assert_eq!(jobs(&queue.step(minutes, &[job(1)])), 0);
    }

    // The job is over after 36 minutes: the first of the three goes, the others wait for it.
    let first = queue.step(36, &[]);
    assert_eq!(told(&first), [(10, Outcome::Fired, Reason::Overlap)], "late because of an overlap");
    assert_eq!((jobs(&first), first.progress.held_at), (1, Some(MONDAY + 20 * MINUTE)));
    // Another comes meanwhile, and waits behind them.
    assert_eq!(told(&queue.step(40, &[job(2)])), [(40, Outcome::Skipped, Reason::Queued)]);
    for (minutes, nominal) in [(41, 20), (42, 30), (43, 40)] {
        assert_eq!(told(&queue.step(minutes, &[])), [(nominal, Outcome::Fired, Reason::Overlap)]);
    }
    assert_eq!(queue.schedule.progress.held_at, None);
    let next = queue.step(50, &[]);
    assert_eq!(told(&next), [(50, Outcome::Fired, Reason::OnTime)]);
    assert_eq!(queue.records().len(), 5);
}

#[test]
fn what_was_queued_before_a_pause_goes_on_after_it() {
    let mut queue = Queueing::every_ten_minutes();
    queue.step(10, &[job(1)]);
    queue.step(20, &[job(1)]);
    queue.edit(26, &ScheduleEdit::Pause { note: None });
    assert_eq!(jobs(&queue.step(35, &[])), 0, "nothing starts while it is paused");
    queue.step(40, &[]);
    queue.edit(41, &ScheduleEdit::Resume);
    assert_eq!(queue.schedule.progress.wake_at, Some(MONDAY + 41 * MINUTE));
    assert_eq!(jobs(&queue.step(41, &[])), 1);
    assert_eq!(jobs(&queue.step(42, &[])), 1);
    let expected = [
        (10, Outcome::Fired, Reason::Overlap),
        (20, Outcome::Fired, Reason::Overlap),
        (30, Outcome::Skipped, Reason::Paused),
        (40, Outcome::Skipped, Reason::Paused),
    ];
    assert_eq!(queue.records(), expected);
}

#[test]
fn a_new_spec_leaves_what_is_queued_as_it_is() {
    for overlap in [Overlap::Allow, Overlap::Skip, Overlap::Queue, Overlap::Replace] {
        let mut queue = Queueing::every_ten_minutes();
        queue.step(10, &[job(1)]);
        queue.step(20, &[job(1)]);
        let mut spec = spec("0 * * * *");
        spec.overlap = overlap;
        let edit = ScheduleEdit::Spec { spec: spec.into(), instead_of: queue.schedule.spec.clone() };
        queue.edit(26, &edit);
        for minutes in [27, 28, 60] {
            assert_eq!(jobs(&queue.step(minutes, &[])), 1, "{overlap:?}");
        }
        let expected = [
            (10, Outcome::Fired, Reason::Overlap),
            (20, Outcome::Fired, Reason::Overlap),
            (60, Outcome::Fired, Reason::OnTime),
        ];
        assert_eq!(queue.records(), expected, "{overlap:?}");
    }
}

#[test]
fn a_queue_is_bounded_in_length_and_in_time() {
    let mut queue = Queueing::every_ten_minutes();
    Arc::make_mut(&mut queue.schedule.spec).missed.window_ms = 100 * 86_400_000;
    for firings in 1..=1_010 {
        queue.step(firings * 10, &[job(1)]);
    }
    let records = queue.records();
    let over: Vec<u64> = records
        .iter()
        .filter(|(.., reason)| *reason == Reason::OverCap)
        .map(|(minute, ..)| *minute)
        .collect();
    assert_eq!(over, [10, 20, 30, 40, 50, 60, 70, 80, 90, 100], "the oldest");
    Arc::make_mut(&mut queue.schedule.spec).missed.window_ms = 3_600_000;
    queue.step(10_105, &[]);
    let left = queue.records().iter().filter(|(.., reason)| *reason == Reason::Queued).count();
    assert_eq!(left, 5, "of the last hour, but for the one that started");
    assert_eq!(queue.records().len(), 1_010);
}

#[test]
fn what_an_earlier_version_held_without_a_record_is_still_on_time() {
    let mut schedule = with("*/10 * * * *", |spec| spec.overlap = Overlap::Queue);
    let held = MONDAY + 10 * MINUTE;
    schedule.progress.cursor = held - Duration::from_millis(1);
    schedule.progress.held_at = Some(held);
    let plan = planned(&schedule, MONDAY + 35 * MINUTE, &[]);
    assert_eq!(
        told(&plan),
        [
            (10, Outcome::Fired, Reason::OnTime),
            (20, Outcome::Skipped, Reason::Queued),
            (30, Outcome::Skipped, Reason::Queued),
        ]
    );
}

#[test]
fn an_excluded_day_is_skipped_or_moved_to_the_next_open_one() {
    let daily_at_nine = |on_excluded| {
        with("0 9 * * MON", |spec| {
            spec.exclude = vec!["2026-11-16".parse().unwrap(), "calendar:closed".parse().unwrap()];
            spec.on_excluded = on_excluded;
        })
    };
    let closed = Calendar {
        name: "closed".into(),
        tenant: "default".into(),
        days: BTreeSet::from([crate::schedule::calendar::parse_date("2026-11-17").unwrap()]),
        weekdays: BTreeSet::from([3]),
        updated_at: MONDAY,
    };
    let calendars = Calendars::from([(closed.name.clone(), closed)]);
    let nine = MONDAY + 540 * MINUTE;
    let context = |now| PlanContext { now, active: &[], calendars: &calendars, ledger: &[], queued: &[] };

    let schedule = daily_at_nine(OnExcluded::Skip);
    let skipped = plan(&schedule, &schedule.spec.timetable().unwrap(), context(nine));
    assert_eq!(told(&skipped), [(540, Outcome::Skipped, Reason::ExcludedDay)]);
    assert_eq!(skipped.progress.rolled_at, None);

    // Monday by date, Tuesday by calendar, Wednesday by weekday: it moves to Thursday.
    let mut schedule = daily_at_nine(OnExcluded::NextDay);
    let moved = plan(&schedule, &schedule.spec.timetable().unwrap(), context(nine));
    let thursday = nine + 3 * 1440 * MINUTE;
    assert_eq!(moved.progress.rolled_at, Some(thursday));
    assert_eq!(moved.progress.wake_at, Some(thursday));
    schedule.progress = moved.progress;
    let fired = plan(&schedule, &schedule.spec.timetable().unwrap(), context(thursday));
    assert_eq!(told(&fired), [(540 + 3 * 1440, Outcome::Fired, Reason::OnTime)]);
    assert_eq!(fired.progress.rolled_at, None);
    assert_eq!(fired.progress.next_at, Some(nine + 7 * 1440 * MINUTE));
}

#[test]
fn all_firings_of_an_excluded_day_move_to_the_next_open_one() {
    let mut schedule = with("0 9,17 * * MON", |spec| {
        spec.exclude = vec!["2026-11-16/2026-11-17".parse().unwrap()];
        spec.on_excluded = OnExcluded::NextDay;
    });
    let wednesday = |hour: u32| MONDAY + (2 * 1440 + hour * 60) * MINUTE;
    let mut fired = Vec::new();
    for hour in 0..=72 {
        let plan = planned(&schedule, MONDAY + hour * 60 * MINUTE, &[]);
        fired.extend(
            plan.fires.iter().filter(|fire| fire.outcome == Outcome::Fired).map(|fire| fire.nominal_at),
        );
        schedule.progress = plan.progress;
    }
    assert_eq!(fired, [wednesday(9), wednesday(17)]);
}

proptest! {
    /// Whatever the schedule and however the clock is looked at: every nominal time is in exactly one record, the
    /// cursor only grows, and no job starts before its time.
    #[test]
    fn every_firing_is_recorded_once(
        cron in prop::sample::select(vec!["* * * * *", "*/7 * * * *", "0 * * * *", "*/20 * * * * *", "13 4 * * *", "0 0 30 2 *"]),
        missed in prop::sample::select(MissedPolicy::ALL.to_vec()),
        overlap in prop::sample::select(vec![Overlap::Allow, Overlap::Skip, Overlap::Replace, Overlap::Queue]),
        jitter_ms in prop::sample::select(vec![0u64, 5_000, 600_000]),
        max_backfill in 1u32..5,
        steps in prop::collection::vec((0u64..4_000, any::<bool>(), 0u8..10), 1..20),
    ) {
        let mut schedule = with(cron, |spec| {
            spec.missed = MissedRule { policy: missed, window_ms: 3_600_000, max_backfill };
            spec.overlap = overlap;
            spec.jitter_ms = jitter_ms;
        });
        let timetable = schedule.spec.timetable().unwrap();
        let mut now = MONDAY;
        let mut recorded: BTreeMap<Timestamp, Reason> = BTreeMap::new();
        for (seconds, busy, pause) in steps {
            now = now + Duration::from_secs(seconds);
            schedule.paused = pause == 0;
            let active = if busy { vec![job(1)] } else { Vec::new() };
            let queued = recorded.iter().filter(|(_, reason)| **reason == Reason::Queued).map(|(at, _)| *at);
            let queued: Vec<Timestamp> = queued.collect();
            prop_assert_eq!(queued.first().copied(), schedule.progress.held_at);
            let plan = planned_with_queue(&schedule, now, &active, &queued);
            prop_assert!(plan.progress.cursor >= schedule.progress.cursor);
            for fire in &plan.fires {
                prop_assert_eq!(fire.count, 1);
                let former = recorded.insert(fire.nominal_at, fire.reason);
                prop_assert!(former.is_none_or(|former| former == Reason::Queued && fire.reason != Reason::Queued));
                if let PlannedJob::New { due_at } = fire.job {
                    prop_assert!(due_at >= fire.nominal_at && due_at <= now);
                }
            }
            schedule.progress = plan.progress;
        }
        let expected: Vec<_> = timetable.firings(MONDAY, schedule.progress.cursor).collect();
        prop_assert_eq!(recorded.into_keys().collect::<Vec<_>>(), expected);
        let waits = schedule.progress.held_at.is_some() || schedule.progress.wake_at.is_none_or(|wake| wake > now);
        prop_assert!(waits, "{:?}", schedule.progress);
    }

    /// The spread is the same every time and never reaches the next firing.
    #[test]
    fn jitter_is_steady_and_ends_before_the_next_firing(id in any::<u128>(), jitter_ms in 0u64..10_000_000, minutes in 0u32..5_000) {
        let mut spec = spec("*/30 * * * *");
        spec.jitter_ms = jitter_ms;
        let timetable = spec.timetable().unwrap();
        let nominal = timetable.next_after(MONDAY + minutes * MINUTE).unwrap();
        let id = ScheduleId::from_uuid(Uuid::from_u128(id));
        let by = spread(id, &spec, &timetable, nominal);
        prop_assert_eq!(by, spread(id, &spec, &timetable, nominal + 30 * MINUTE));
        prop_assert!(by <= Duration::from_millis(jitter_ms) && by < 30 * MINUTE);
    }
}
