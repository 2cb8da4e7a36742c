//! Schedules on a running engine: fired at their time, once, whatever the store does.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{Clock as _, Creation, ScheduleCreated, ScheduleEdited, Trigger};
use tickwheel_core::schedule::backfill::BackfillRequest;
use tickwheel_core::schedule::edit::ScheduleEdit;
use tickwheel_core::schedule::plan::begin;
use tickwheel_core::schedule::{Fire, FireOutcome, FireReason, MissedPolicy, Overlap, Rule, Schedule};
use tickwheel_core::{JobId, ScheduleId, State, Timestamp};
use tickwheel_engine::SystemClock;
use tickwheel_testkit::fixtures::schedule_numbered;
use tickwheel_testkit::model::Verb;
use tickwheel_testkit::{Fault, ModelStore};
use uuid::Uuid;

use crate::bench::{Act, Bench, eventually, options, without_sweeps};

/// Fires every second, from now on.
pub fn every_second(number: u64, overlap: Overlap) -> Schedule {
    let mut schedule = schedule_numbered(number, "* * * * *")
        .overlap(overlap)
        .spec(|spec| spec.rule = Rule::Every { every_ms: 1_000, anchor: Timestamp::EPOCH })
        .build();
    let timetable = schedule.spec.timetable().unwrap();
    schedule.progress = begin(schedule.id, &schedule.spec, &timetable, SystemClock.now());
    schedule
}

pub fn fires(bench: &Bench, id: ScheduleId) -> Vec<Fire> {
    bench.store.with_model(|model| {
        let mut fires: Vec<Fire> = model.fires_of(id).cloned().collect();
        fires.sort_by_key(|fire| fire.nominal_at);
        fires
    })
}

async fn until_fired(bench: &Bench, id: ScheduleId, count: usize) -> Vec<Fire> {
    eventually("the schedule fires", || async { Some(fires(bench, id)).filter(|fires| fires.len() >= count) })
        .await
}

#[tokio::test]
async fn a_firing_that_could_not_be_written_is_tried_again_and_the_schedule_goes_on() {
    for fault in Fault::ERRORS {
        let bench = Bench::start([]).await;
        let schedule = every_second(1, Overlap::Allow);
        bench.engine.schedules().create(schedule.clone()).await.unwrap();
        for count in 1..=2 {
            bench.store.fail(Verb::AdvanceSchedules, fault);
            eventually("a firing meets the fault", || async {
                (bench.store.faults_left(Verb::AdvanceSchedules) == 0).then_some(())
            })
            .await;
            bench.store.release();
            let before = fires(&bench, schedule.id).len();
            let fires = until_fired(&bench, schedule.id, before + 2).await;
            let seconds = fires.windows(2).map(|two| two[1].nominal_at.since(two[0].nominal_at).as_secs());
            assert!(seconds.into_iter().all(|seconds| seconds == 1), "after {count} faults: {fires:?}");
            let jobs: BTreeSet<JobId> = fires.iter().filter_map(|fire| fire.job_id).collect();
            assert_eq!(jobs.len(), fires.len(), "each second has a job of its own");
        }
    }
}

/// One schedule wakes up on time with 40 firings to make up for, and five others were missed: those wait until the 40
/// are paid for.
#[tokio::test]
async fn jobs_for_missed_firings_hold_up_what_else_was_missed() {
    const PER_SECOND: u32 = 10;
    let store = ModelStore::default();
    let now = SystemClock.now();
    let behind = |number, seconds, wake_at| {
        let mut schedule = every_second(number, Overlap::Allow);
        schedule.name = format!("s{number}").into();
        schedule.progress.cursor = now - Duration::from_secs(seconds);
        schedule.progress.wake_at = Some(wake_at);
        schedule
    };
    let mut burst = behind(1, 40, now);
    Arc::make_mut(&mut burst.spec).missed.policy = MissedPolicy::Backfill;
    let hour_ago = now - Duration::from_secs(3_600);
    let missed: Vec<Schedule> = (2..7).map(|number| behind(number, 60, hour_ago)).collect();
    store.with_model(|model| {
        for schedule in missed.iter().chain([&burst]) {
            assert_eq!(model.create_schedule(schedule.clone()).unwrap(), ScheduleCreated::Created);
        }
    });
    let mut options = options();
    options.schedule_timer.catch_up_per_second = PER_SECOND;
    let bench = Bench::start_on(store, [], options).await;
    let mut first_recorded = Vec::new();
    for schedule in &missed {
        first_recorded.push(until_fired(&bench, schedule.id, 1).await[0].recorded_at);
    }
    let burst = fires(&bench, burst.id);
    let late = burst.iter().filter(|fire| fire.reason == FireReason::CaughtUp && fire.has_own_job()).count();
    assert!(late >= 30, "{late}");
    let last = first_recorded.iter().max().unwrap();
    let waited = last.since(burst[0].recorded_at);
    assert!(
        waited > Duration::from_secs(3),
        "{late} jobs at {PER_SECOND} a second, and they waited {waited:?}"
    );
}

/// When the first has fired, everything there was is read, and the second is not among it.
#[tokio::test]
async fn a_schedule_and_its_jobs_are_heard_of_and_not_found() {
    let bench = Bench::start_on(ModelStore::default(), [], without_sweeps()).await;
    for number in 1..=2 {
        let name = format!("s{number}").into();
        let schedule = Schedule { name, ..every_second(number, Overlap::Allow) };
        bench.engine.schedules().create(schedule.clone()).await.unwrap();
        let fires = until_fired(&bench, schedule.id, 1).await;
        bench.reaches(fires[0].job_id.unwrap(), State::Completed).await;
    }
}

/// Nobody looks at it before tomorrow, but whoever changes it does.
#[tokio::test]
async fn what_came_due_before_an_edit_is_recorded_before_it() {
    let bench = Bench::start([]).await;
    let mut schedule = every_second(1, Overlap::Allow);
    let now = SystemClock.now();
    schedule.progress.cursor = now - Duration::from_secs(3);
    schedule.progress.wake_at = Some(now + Duration::from_secs(86_400));
    bench.store.with_model(|model| model.create_schedule(schedule.clone()).unwrap());
    edited(&bench, schedule.id, ScheduleEdit::Pause { note: None }).await;
    let recorded = fires(&bench, schedule.id);
    assert!(recorded.len() >= 3, "{recorded:?}");
}

/// They fired on time for all that this engine could see, but nobody looked.
#[tokio::test]
async fn what_came_due_while_schedules_could_not_be_read_goes_through_the_gate() {
    const PER_SECOND: u32 = 10;
    let mut options = options();
    options.schedule_timer.catch_up_per_second = PER_SECOND;
    let bench = Bench::start_on(ModelStore::default(), [], options).await;
    (0..10_000).for_each(|_| bench.store.fail(Verb::LoadSchedules, Fault::Aborted));
    let due = SystemClock.now() + Duration::from_millis(200);
    let missed: Vec<Schedule> = (1..=30)
        .map(|number| {
            let mut schedule = every_second(number, Overlap::Allow);
            schedule.name = format!("s{number}").into();
            schedule.progress.wake_at = Some(due);
            schedule
        })
        .collect();
    bench.store.with_model(|model| {
        for schedule in &missed {
            assert_eq!(model.create_schedule(schedule.clone()).unwrap(), ScheduleCreated::Created);
        }
    });
    // sleep: an outage, longer than a hiccup
    tokio::time::sleep(Duration::from_secs(4)).await;
    bench.store.forgive(Verb::LoadSchedules);
    let mut first = Vec::new();
    for schedule in &missed {
        first.push(until_fired(&bench, schedule.id, 1).await[0].recorded_at);
    }
    let took = first.iter().max().unwrap().since(*first.iter().min().unwrap());
    assert!(took > Duration::from_secs(2), "30 at {PER_SECOND} a second took {took:?}");
}

#[tokio::test]
async fn the_end_of_a_job_lets_the_next_one_go_at_once() {
    let bench = Bench::start([Act::Hold]).await;
    let schedule = every_second(1, Overlap::Queue);
    bench.engine.schedules().create(schedule.clone()).await.unwrap();
    until_fired(&bench, schedule.id, 1).await;
    eventually("the next one is held", || async {
        bench.store.with_model(|model| model.get_schedules(&[schedule.id])[0].progress.held_at)
    })
    .await;
    let queued = until_fired(&bench, schedule.id, 2).await;
    assert!(queued[1].is_queued() && queued[1].job_id.is_none(), "{queued:?}");
    let released = SystemClock.now();
    bench.target.gate.add_permits(1);
    let fired = eventually("its turn has come", || async {
        fires(&bench, schedule.id).into_iter().nth(1).filter(|fire| fire.job_id.is_some())
    })
    .await;
    assert_eq!((fired.outcome, fired.reason), (FireOutcome::Fired, FireReason::Overlap));
    assert!(fired.recorded_at.since(released) < Duration::from_secs(4), "it was told, it did not look");
}

#[tokio::test]
async fn after_an_acknowledged_pause_or_delete_nothing_fires() {
    let bench = Bench::start([]).await;
    let schedules = bench.engine.schedules();
    let (paused, deleted) = (every_second(1, Overlap::Allow), every_second(2, Overlap::Allow));
    for schedule in [&paused, &deleted] {
        schedules.create(schedule.clone()).await.unwrap();
        until_fired(&bench, schedule.id, 1).await;
    }
    assert!(edited(&bench, paused.id, ScheduleEdit::Pause { note: None }).await.paused);
    assert!(schedules.delete(deleted.id).await.unwrap());
    let jobs = || bench.store.with_model(|model| model.live().len() + model.finished().len());
    let made = jobs();
    // sleep: both would have fired within this time
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(jobs(), made);
    edited(&bench, paused.id, ScheduleEdit::Resume).await;
    let fires = until_fired(&bench, paused.id, 3).await;
    assert!(fires.iter().any(|fire| fire.reason == FireReason::Paused), "{fires:?}");
}

#[tokio::test]
async fn a_trigger_makes_a_job_now_even_of_a_paused_schedule() {
    let bench = Bench::start([]).await;
    let schedule = Schedule { paused: true, ..every_second(1, Overlap::Allow) };
    bench.engine.schedules().create(schedule.clone()).await.unwrap();
    let trigger = Trigger { job_id: JobId::from_uuid(Uuid::now_v7()), payload: None, idempotency: None };
    let Creation::Created(job) = bench.engine.schedules().trigger(schedule.id, trigger).await.unwrap() else {
        panic!("nothing was made");
    };
    assert_eq!(job.schedule_id, Some(schedule.id));
    bench.reaches(job.id, State::Completed).await;
    let triggered =
        fires(&bench, schedule.id).into_iter().find(|fire| fire.outcome == FireOutcome::Triggered);
    assert_eq!(triggered.unwrap().job_id, Some(job.id));
}

#[tokio::test]
async fn the_end_of_a_job_lets_a_backfill_go_on_at_once() {
    let bench = Bench::start([Act::Hold]).await;
    let mut schedule = every_second(1, Overlap::Skip);
    Arc::make_mut(&mut schedule.spec).rule = Rule::Cron("0 0 1 1 *".into());
    let now = SystemClock.now();
    schedule.progress = begin(schedule.id, &schedule.spec, &schedule.spec.timetable().unwrap(), now);
    bench.engine.schedules().create(schedule.clone()).await.unwrap();
    let years = |years: u64| Duration::from_secs(years * 366 * 86_400);
    let request =
        BackfillRequest { from: now - years(3), to: now - years(1), per_second: 1_000, priority: None };
    let asked = edited(&bench, schedule.id, ScheduleEdit::Backfill(request)).await;
    assert!(asked.progress.backfill.unwrap().total >= 2);
    until_fired(&bench, schedule.id, 1).await;
    eventually("the next one waits", || async {
        let progress = bench.store.with_model(|model| model.get_schedules(&[schedule.id])[0].progress);
        progress.waits_for_a_job().then_some(())
    })
    .await;
    let released = SystemClock.now();
    bench.target.gate.add_permits(1);
    let fires = until_fired(&bench, schedule.id, 2).await;
    assert!(fires.iter().all(|fire| fire.outcome == FireOutcome::Backfilled), "{fires:?}");
    let last = fires.iter().map(|fire| fire.recorded_at).max().unwrap();
    assert!(last.since(released) < Duration::from_secs(4), "it was told, it did not look");
}

async fn edited(bench: &Bench, id: ScheduleId, edit: ScheduleEdit) -> Schedule {
    match bench.engine.schedules().edit(id, edit).await.unwrap() {
        ScheduleEdited::Done(schedule) => *schedule,
        other => panic!("{other:?}"),
    }
}
