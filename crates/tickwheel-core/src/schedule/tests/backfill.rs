//! Making up for the past: what is made, what is left alone, how fast.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::fixtures::{MINUTE, MONDAY, with};
use crate::id::JobId;
use crate::job::Priority;
use crate::schedule::backfill::{self, BackfillRequest, NoBackfill};
use crate::schedule::edit::{ScheduleEdit, edited};
use crate::schedule::plan::{Calendars, PlanContext, plan};
use crate::schedule::{
    Backfill, BackfillState, Fire, FireOutcome, FireReason, MissedPolicy, OnExcluded, Overlap, Schedule,
};
use crate::time::Timestamp;

/// A schedule, its ledger and its time, stepped by hand.
struct Bench {
    schedule: Schedule,
    ledger: BTreeMap<Timestamp, Fire>,
    now: Timestamp,
    active: Vec<JobId>,
    /// Nominal time and start of every job, in the order they were made.
    jobs: Vec<(Timestamp, Timestamp)>,
    ids: u128,
}

impl Bench {
    fn new(schedule: Schedule) -> Self {
        Self { schedule, ledger: BTreeMap::new(), now: MONDAY, active: Vec::new(), jobs: Vec::new(), ids: 0 }
    }

    fn step(&mut self) {
        let timetable = self.schedule.spec.timetable().unwrap();
        let calendars = Calendars::new();
        let span = backfill::span(&self.schedule, &timetable, &calendars, self.now);
        let ledger: Vec<Fire> = match span.and_then(|span| Some((span.after, *span.firings.last()?))) {
            None => Vec::new(),
            Some((after, last)) => {
                let touches = |fire: &&Fire| fire.last_at > after && fire.nominal_at <= last;
                self.ledger.values().filter(touches).cloned().collect()
            }
        };
        let queued = self.ledger.values().filter(|fire| fire.is_queued()).map(|fire| fire.nominal_at);
        let queued: Vec<Timestamp> = queued.collect();
        let active = &self.active;
        let context =
            PlanContext { now: self.now, active, calendars: &calendars, ledger: &ledger, queued: &queued };
        let ids = &mut self.ids;
        let step = plan(&self.schedule, &timetable, context).into_step(&self.schedule, self.now, || {
            *ids += 1;
            JobId::from_uuid(Uuid::from_u128(*ids))
        });
        for fire in step.fires {
            let former = self.ledger.insert(fire.nominal_at, fire.clone());
            assert!(!former.is_some_and(|former| former.has_own_job()), "a second job for {fire:?}");
        }
        self.jobs.extend(step.jobs.iter().map(|job| (job.execute_at, self.now)));
        self.schedule.progress = step.progress;
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.catch_up();
    }

    /// As whoever wants it up to date does.
    fn catch_up(&mut self) {
        loop {
            let cursor = self.schedule.progress.cursor;
            self.step();
            if self.schedule.progress.cursor == cursor {
                return;
            }
        }
    }

    fn edit(&mut self, edit: &ScheduleEdit) {
        self.step();
        self.schedule = edited(self.schedule.clone(), edit, &Calendars::new(), self.now).unwrap().unwrap();
    }

    fn ask(&mut self, from: Timestamp, to: Timestamp, per_second: u32) {
        self.edit(&ScheduleEdit::Backfill(BackfillRequest { from, to, per_second, priority: None }));
    }

    /// Steps whenever it wants to be woken, until the backfill is over.
    fn run(&mut self) {
        for _ in 0..10_000 {
            self.step();
            if !self.backfill().is_running() {
                return;
            }
            self.now = self.now.max(self.schedule.progress.wake_at.expect("a running backfill wakes"));
            self.active.clear();
        }
        panic!("it does not end: {:?}", self.backfill());
    }

    fn backfill(&self) -> Backfill {
        self.schedule.progress.backfill.expect("one was asked for")
    }

    fn own_jobs(&self, from: Timestamp, to: Timestamp) -> usize {
        self.ledger.range(from..=to).filter(|(_, fire)| fire.has_own_job()).count()
    }
}

#[test]
fn every_firing_of_the_range_gets_its_job_before_the_schedule_existed_too() {
    let mut bench = Bench::new(with("0 * * * *", |_| ()));
    let from = MONDAY - 1440 * MINUTE;
    bench.ask(from, MONDAY - MINUTE, 10);
    bench.run();
    let backfill = bench.backfill();
    assert_eq!((backfill.state, backfill.total, backfill.made), (BackfillState::Completed, 24, 24));
    assert_eq!(bench.jobs.iter().map(|(nominal, _)| *nominal).min(), Some(from), "both ends belong to it");
    assert_eq!(bench.own_jobs(from, MONDAY), 24);
    let record = &bench.ledger[&from];
    assert_eq!((record.outcome, record.reason), (FireOutcome::Backfilled, FireReason::ByRequest));
}

#[test]
fn what_has_its_own_job_is_left_alone_and_what_others_stood_for_is_made_up_for() {
    let mut bench = Bench::new(with("*/10 * * * *", |_| ()));
    bench.pass(10 * MINUTE);
    bench.pass(45 * MINUTE); // 20, 30 and 40 are coalesced into 50
    assert_eq!(bench.jobs.len(), 2);
    bench.ask(MONDAY, bench.now, 1_000);
    bench.run();
    let backfill = bench.backfill();
    assert_eq!((backfill.total, backfill.made, backfill.passed_over), (6, 4, 2), "midnight too");
    assert_eq!(bench.own_jobs(MONDAY, bench.now), 6);
}

#[test]
fn it_never_goes_beyond_what_the_schedule_has_dealt_with() {
    let mut bench = Bench::new(with("*/10 * * * *", |spec| spec.jitter_ms = 540_000));
    bench.now = MONDAY + 10 * MINUTE + Duration::from_millis(1);
    bench.ask(MONDAY - 60 * MINUTE, MONDAY + 600 * MINUTE, 1_000);
    assert_eq!(bench.backfill().to, bench.schedule.progress.cursor);
    bench.run();
    (0..100).for_each(|_| bench.pass(MINUTE));
    let mut nominal: Vec<Timestamp> = bench.jobs.iter().map(|(nominal, _)| *nominal).collect();
    nominal.sort_unstable();
    nominal.dedup();
    assert_eq!(nominal.len(), bench.jobs.len(), "nothing was made twice");
}

#[test]
fn it_makes_no_more_jobs_a_second_than_it_was_asked_to() {
    let mut bench = Bench::new(with("* * * * *", |_| ()));
    bench.ask(MONDAY - 600 * MINUTE, MONDAY, 20);
    bench.run();
    let starts: Vec<Timestamp> = bench.jobs.iter().map(|(_, start)| *start).collect();
    assert_eq!(starts.len(), 601);
    for start in &starts {
        let within = |other: &&Timestamp| **other >= *start && other.since(*start) < Duration::from_secs(1);
        let count = starts.iter().filter(within).count();
        assert!(count <= 25, "{count} jobs within a second");
    }
    assert!(starts[600].since(starts[0]) < Duration::from_secs(31), "and not much fewer");
}

#[test]
fn where_jobs_may_not_overlap_it_makes_one_after_the_other() {
    for overlap in [Overlap::Skip, Overlap::Queue, Overlap::Replace] {
        let mut bench = Bench::new(with("0 0 * * *", |spec| spec.overlap = overlap));
        bench.ask(MONDAY - 3 * 1440 * MINUTE, MONDAY - MINUTE, 1_000);
        bench.step();
        assert_eq!(bench.jobs.len(), 1, "{overlap:?}");
        bench.active = vec![JobId::from_uuid(Uuid::from_u128(1))];
        bench.pass(MINUTE);
        assert_eq!(bench.jobs.len(), 1, "{overlap:?}");
        assert!(bench.schedule.progress.waits_for_a_job());
        bench.active.clear();
        bench.step();
        assert_eq!(bench.jobs.len(), 2, "it goes on when the job ends, not at the next look");
        bench.run();
        assert_eq!(bench.jobs.len(), 3);
    }
}

#[test]
fn nothing_is_made_while_the_schedule_is_paused_nor_after_a_cancel() {
    let mut bench = Bench::new(with("0 * * * *", |_| ()));
    bench.ask(MONDAY - 1440 * MINUTE, MONDAY - MINUTE, 4);
    bench.step();
    assert_eq!(bench.jobs.len(), 1);
    bench.edit(&ScheduleEdit::Pause { note: None });
    let made = bench.jobs.len();
    (0..10).for_each(|_| bench.pass(MINUTE));
    assert_eq!(bench.jobs.len(), made);
    bench.edit(&ScheduleEdit::Resume);
    bench.step();
    assert!(bench.jobs.len() > made, "it goes on");
    bench.edit(&ScheduleEdit::CancelBackfill);
    let made = bench.jobs.len();
    (0..10).for_each(|_| bench.pass(Duration::from_secs(5)));
    assert_eq!(bench.jobs.len(), made);
    assert_eq!(bench.backfill().state, BackfillState::Cancelled);
    assert_eq!(bench.backfill().made as usize, made);
}

#[test]
fn its_jobs_may_stand_back_while_the_schedules_own_do_not() {
    let mut bench = Bench::new(with("0 * * * *", |_| ()));
    let request = BackfillRequest {
        from: MONDAY - 60 * MINUTE,
        to: MONDAY,
        per_second: 10,
        priority: Some(Priority::Low),
    };
    bench.edit(&ScheduleEdit::Backfill(request));
    bench.now = MONDAY + 60 * MINUTE;
    let timetable = bench.schedule.spec.timetable().unwrap();
    let context =
        PlanContext { now: bench.now, active: &[], calendars: &Calendars::new(), ledger: &[], queued: &[] };
    let step = plan(&bench.schedule, &timetable, context)
        .into_step(&bench.schedule, bench.now, || JobId::from_uuid(Uuid::from_u128(1)));
    let priorities: Vec<Priority> = step.jobs.iter().map(|job| job.priority).collect();
    assert_eq!(priorities, [Priority::Normal, Priority::Low, Priority::Low]);
}

#[test]
fn a_record_of_many_firings_gives_up_those_that_are_made_up_for() {
    let mut bench = Bench::new(with("* * * * *", |spec| spec.missed.policy = MissedPolicy::Skip));
    bench.pass(3_000 * MINUTE);
    let run = bench.ledger[&(MONDAY + MINUTE)].clone();
    assert_eq!(run.count, 2_000);
    let (from, to) = (MONDAY + 501 * MINUTE, MONDAY + 700 * MINUTE);
    bench.ask(from, to, 1_000);
    bench.run();
    assert_eq!((bench.backfill().made, bench.own_jobs(from, to)), (200, 200));
    let parts: Vec<(Timestamp, Timestamp, u64)> = bench
        .ledger
        .values()
        .filter(|fire| fire.count > 1)
        .map(|fire| (fire.nominal_at, fire.last_at, fire.count))
        .collect();
    let minute = |minute: u32| MONDAY + minute * MINUTE;
    assert_eq!(parts, [(minute(1), minute(500), 500), (minute(701), minute(2_000), 1_300)]);
}

#[test]
fn firings_of_excluded_days_stay_in_the_record_of_the_others() {
    let day = 86_400;
    let mut bench = Bench::new(with("* * * * * *", |spec| {
        spec.missed.policy = MissedPolicy::Skip;
        spec.exclude = vec!["2026-11-16".parse().unwrap()];
    }));
    bench.pass(Duration::from_secs(3 * day));
    bench.ask(MONDAY + MINUTE, MONDAY + Duration::from_secs(day) + 10 * MINUTE, 1_000);
    bench.run();
    assert_eq!(bench.backfill().made, 601, "from midnight on");
    let firings: u64 = bench.ledger.values().map(|fire| fire.count).sum();
    assert_eq!(firings, 3 * day, "each is in one record");
    let mut covered = MONDAY;
    for fire in bench.ledger.values() {
        assert_eq!(fire.nominal_at, covered + Duration::from_secs(1), "{fire:?}");
        covered = fire.last_at;
    }
}

#[test]
fn a_range_without_firings_and_one_with_too_many_are_refused() {
    let calendars = Calendars::new();
    let year = (MONDAY - 525_600 * MINUTE, MONDAY);
    let survey = |schedule: &Schedule, range| {
        backfill::survey(&schedule.spec, &schedule.spec.timetable().unwrap(), &calendars, range)
    };
    assert_eq!(survey(&with("* * * * *", |_| ()), year), Err(NoBackfill::TooManyFirings));
    assert_eq!(survey(&with("0 0 30 2 *", |_| ()), year), Err(NoBackfill::NoFirings));
    let daily = survey(&with("0 0 * * *", |_| ()), year).unwrap();
    assert_eq!((daily.count, daily.first, daily.last), (366, year.0, year.1));
}

#[test]
fn excluded_days_are_not_made_up_for_and_what_moved_is() {
    let mut bench = Bench::new(with("0 9 * * SUN", |spec| {
        spec.exclude = vec!["2026-11-08".parse().unwrap()];
        spec.on_excluded = OnExcluded::NextDay;
    }));
    // Of the Sundays 1, 8 and 15 the second is a Monday; the range begins after the Sunday it moved from.
    bench.ask(MONDAY - 7 * 1440 * MINUTE, MONDAY, 1_000);
    bench.run();
    let nominal: Vec<Timestamp> = bench.jobs.iter().map(|(nominal, _)| *nominal).collect();
    assert_eq!(nominal, [MONDAY - (7 * 1440 - 540) * MINUTE, MONDAY - (1440 - 540) * MINUTE]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens meanwhile, no firing gets two jobs, and a completed backfill leaves none without.
    #[test]
    fn a_completed_backfill_leaves_no_firing_without_its_job(
        missed in prop::sample::select(MissedPolicy::ALL.to_vec()),
        overlap in prop::sample::select(Overlap::ALL.to_vec()),
        before in prop::collection::vec(0u32..2_000, 1..6),
        (from, len) in (0u32..3_000, 1u32..3_000),
        per_second in 1u32..1_000,
        during in prop::collection::vec((0u32..900, any::<bool>()), 0..20),
    ) {
        let mut bench = Bench::new(with("*/7 * * * *", |spec| (spec.missed.policy, spec.overlap) = (missed, overlap)));
        for minutes in before {
            bench.pass(minutes * MINUTE);
        }
        let range = (MONDAY + from * MINUTE, MONDAY + (from + len) * MINUTE);
        let request = BackfillRequest { from: range.0, to: range.1, per_second, priority: None };
        bench.step();
        let asked = edited(bench.schedule.clone(), &ScheduleEdit::Backfill(request), &Calendars::new(), bench.now).unwrap();
        let Ok(asked) = asked else { return Ok(()) };
        bench.schedule = asked;
        for (seconds, busy) in during {
            bench.active = if busy { vec![JobId::from_uuid(Uuid::from_u128(1))] } else { Vec::new() };
            bench.pass(Duration::from_secs(seconds.into()));
        }
        bench.run();
        let backfill = bench.backfill();
        let timetable = bench.schedule.spec.timetable().unwrap();
        for firing in timetable.firings(range.0 - Duration::from_millis(1), backfill.to) {
            prop_assert!(bench.ledger.get(&firing).is_some_and(Fire::has_own_job), "{:?}", firing);
        }
        prop_assert_eq!(backfill.made + backfill.passed_over, backfill.total);
    }
}
