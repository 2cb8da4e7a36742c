//! Backfills: kept with the progress they are part of; the ledger of a range is read at once, and what has no job of
//! its own gives way.

use std::sync::Arc;

use tickwheel_core::ports::{Advanced, ScheduleQuery, ScheduleStep, Store};
use tickwheel_core::schedule::{
    Backfill, BackfillState, Fire, FireOutcome, FireReason, Schedule, ScheduleProgress,
};
use tickwheel_core::{Job, Priority};

use super::super::store::bench::answered;
use super::bench::{Picture, ScheduleBench, fired, job_of, minute, skipped, skips_at, step};
use crate::fixtures::{at, backfill, schedule, schedule_id};

/// In every state, with and without what is optional.
fn some_backfills() -> Vec<Option<Backfill>> {
    let ended = |state| Backfill { state, held: false, ended_at: Some(at(30)), ..backfill() };
    vec![
        Some(backfill()),
        Some(Backfill { priority: None, held: false, total: u64::from(u32::MAX) + 5, ..backfill() }),
        Some(Backfill { priority: Some(Priority::Critical), ..ended(BackfillState::Completed) }),
        Some(ended(BackfillState::Cancelled)),
        None,
    ]
}

fn with_backfill(schedule: &Schedule, backfill: Option<Backfill>) -> ScheduleProgress {
    ScheduleProgress { backfill, ..schedule.progress }
}

/// Minutes that were missed, written as one record.
fn run(schedule: &Schedule, from: i64, to: i64) -> Fire {
    Fire {
        last_at: minute(to),
        count: to.abs_diff(from) + 1,
        outcome: FireOutcome::Missed,
        reason: FireReason::OverCap,
        ..skipped(schedule, minute(from))
    }
}

/// A missed firing that the job of another one stands for.
fn coalesced(schedule: &Schedule, count: i64, job: &Job) -> Fire {
    Fire {
        outcome: FireOutcome::Coalesced,
        reason: FireReason::CaughtUp,
        job_id: Some(job.id),
        ..skipped(schedule, minute(count))
    }
}

/// The firing of that minute, made up for.
fn made_up_for(schedule: &Schedule, count: i64) -> (Fire, Job) {
    let job = job_of(schedule, minute(count));
    let (outcome, reason) = (FireOutcome::Backfilled, FireReason::ByRequest);
    (Fire { outcome, reason, ..fired(schedule, &job) }, job)
}

/// Three minutes that came to one job, that of the last; the schedule as it is then.
async fn caught_up(bench: &ScheduleBench) -> (Schedule, Job) {
    let schedule = bench.minutely().await;
    let job = job_of(&schedule, minute(3));
    let fires = vec![coalesced(&schedule, 1, &job), coalesced(&schedule, 2, &job), fired(&schedule, &job)];
    let decided = step(&schedule, minute(3), fires, vec![job.clone()]);
    assert_eq!(bench.advance(decided).await, Advanced::Done);
    (bench.schedule(schedule.id).await, job)
}

/// Whichever way the schedule is read.
pub async fn a_backfill_is_kept_as_it_was_written(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    for backfill in some_backfills() {
        let builder = schedule("* * * * *");
        let progress = with_backfill(&builder.clone().build(), backfill);
        let created = bench.create(builder.progress(progress)).await;
        assert_eq!(bench.schedule(created.id).await, created);
        let found = answered(bench.store.find_schedule(&created.tenant, &created.name).await);
        assert_eq!(found.as_ref(), Some(&created));
        let listed = bench.list(ScheduleQuery { limit: 10, ..ScheduleQuery::default() }).await;
        assert!(listed.contains(&created), "{listed:?}");
    }
}

pub async fn every_step_and_every_change_writes_the_backfill(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let id = bench.minutely().await.id;
    for backfill in some_backfills() {
        let before = bench.schedule(id).await;
        let progress = with_backfill(&before, backfill);
        let decided = ScheduleStep { progress, ..skips_at(&before, minute(1)) };
        assert_eq!(bench.advance(decided).await, Advanced::Done);
        assert_eq!(bench.schedule(id).await.progress, progress);
    }
    for backfill in some_backfills() {
        let before = bench.schedule(id).await;
        let wanted = Schedule { progress: with_backfill(&before, backfill), ..before };
        assert_eq!(bench.change(wanted.clone(), Vec::new()).await, Advanced::Done);
        assert_eq!(bench.schedule(id).await.progress, wanted.progress);
    }
}

pub async fn a_write_of_another_revision_leaves_the_backfill_alone(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let builder = schedule("* * * * *");
    let progress = with_backfill(&builder.clone().build(), Some(backfill()));
    let first = bench.create(builder.progress(progress)).await;
    assert_eq!(bench.change(first.clone(), Vec::new()).await, Advanced::Done);
    let before = bench.picture(first.id).await;
    let cancelled = with_backfill(&first, Some(backfill().cancelled(at(40))));
    let decided = ScheduleStep { progress: cancelled, ..skips_at(&first, minute(1)) };
    assert_eq!(bench.advance(decided).await, Advanced::Stale);
    let wanted = Schedule { progress: cancelled, ..first.clone() };
    assert_eq!(bench.change(wanted, Vec::new()).await, Advanced::Stale);
    assert_eq!(bench.picture(first.id).await, before);
}

pub async fn the_records_of_a_range_are_read_the_oldest_first(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, other) = (bench.minutely().await, bench.minutely().await);
    // Written in another order than that of their times.
    let ledger = |schedule: &Schedule| -> Vec<Fire> {
        [5, 1, 9, 3, 7].map(|count| skipped(schedule, minute(count))).to_vec()
    };
    bench.record(schedule.id, ledger(&schedule)).await;
    bench.record(other.id, ledger(&other)).await;
    let job = bench.fire(schedule.id, minute(6)).await;
    let mut expected = ledger(&schedule);
    expected.push(fired(&schedule, &job));
    expected.sort_by_key(|fire| fire.nominal_at);
    assert_eq!(bench.fires_within(schedule.id, minute(0), minute(10)).await, expected);
    let unknown = schedule_id(u64::from(u32::MAX));
    assert_eq!(bench.fires_within(unknown, minute(0), minute(10)).await, []);
}

pub async fn a_range_begins_after_its_first_border_and_ends_with_its_last(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let fires: Vec<Fire> = (1..=5).map(|count| skipped(&schedule, minute(count))).collect();
    bench.record(schedule.id, fires.clone()).await;
    assert_eq!(bench.fires_within(schedule.id, minute(2), minute(4)).await, fires[2..4]);
    assert_eq!(bench.fires_within(schedule.id, at(119_999), at(239_999)).await, fires[1..3]);
    assert_eq!(bench.fires_within(schedule.id, minute(2), at(179_999)).await, []);
    assert_eq!(bench.fires_within(schedule.id, minute(5), minute(9)).await, []);
}

/// Once, wherever it begins; not if it ends before.
pub async fn a_run_that_reaches_into_a_range_is_among_its_records(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, other) = (bench.minutely().await, bench.minutely().await);
    let ledger =
        [run(&schedule, 1, 4), run(&schedule, 5, 20), skipped(&schedule, minute(21)), run(&schedule, 22, 30)];
    bench.record(schedule.id, ledger.to_vec()).await;
    bench.record(other.id, vec![run(&other, 1, 30)]).await;
    let within = async |after, until| bench.fires_within(schedule.id, minute(after), minute(until)).await;
    assert_eq!(within(10, 12).await, ledger[1..2], "it lies around the range");
    assert_eq!(within(4, 12).await, ledger[1..2], "it begins in it, and the one before ends too early");
    assert_eq!(within(3, 12).await, ledger[..2]);
    assert_eq!(within(5, 12).await, ledger[1..2], "it begins where the range does");
    assert_eq!(within(19, 22).await, ledger[1..]);
    assert_eq!(within(20, 21).await, ledger[2..3], "its last firing is not after the border");
    assert_eq!(within(0, 4).await, ledger[..1]);
    assert_eq!(within(30, 40).await, []);
}

pub async fn a_coalesced_record_gives_way_to_one_with_its_own_job(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, job) = caught_up(&bench).await;
    let (fire, made) = made_up_for(&schedule, 1);
    let decided = step(&schedule, minute(3), vec![fire.clone()], vec![made.clone()]);
    assert_eq!(bench.advance(decided).await, Advanced::Done);
    let after = bench.picture(schedule.id).await;
    assert_eq!(after.ledger, [fired(&schedule, &job), coalesced(&schedule, 2, &job), fire]);
    assert_eq!(after.jobs.len(), 2);
    assert!(after.jobs.contains(&made));
}

pub async fn a_coalesced_record_gives_way_to_one_without_a_job(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, job) = caught_up(&bench).await;
    let written = skipped(&schedule, minute(1));
    assert_eq!(bench.change(schedule.clone(), vec![written.clone()]).await, Advanced::Done);
    let expected = [fired(&schedule, &job), coalesced(&schedule, 2, &job), written];
    assert_eq!(bench.ledger(schedule.id).await, expected);
}

/// A firing that made its job is never made up for; whoever tries has decided on something else, and nothing of it is
/// written.
pub async fn a_step_that_meets_one_job_replaces_no_other_record(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, _) = caught_up(&bench).await;
    let before = bench.picture(schedule.id).await;
    let (fires, jobs): (Vec<Fire>, Vec<Job>) =
        [1, 2, 3].map(|count| made_up_for(&schedule, count)).into_iter().unzip();
    let progress = with_backfill(&schedule, Some(backfill()));
    let decided = ScheduleStep { progress, ..step(&schedule, minute(3), fires.clone(), jobs) };
    assert_eq!(bench.advance(decided).await, Advanced::Stale);
    assert_eq!(bench.change(schedule.clone(), fires).await, Advanced::Stale);
    assert_eq!(bench.picture(schedule.id).await, before);
    // What was made up for is a job of its own from then on.
    let (fire, job) = made_up_for(&schedule, 2);
    assert_eq!(bench.advance(step(&schedule, minute(3), vec![fire], vec![job])).await, Advanced::Done);
    let (now, before) = (bench.schedule(schedule.id).await, bench.picture(schedule.id).await);
    let (fire, job) = made_up_for(&now, 2);
    assert_eq!(bench.advance(step(&now, minute(3), vec![fire], vec![job])).await, Advanced::Stale);
    assert_eq!(bench.picture(schedule.id).await, before);
}

pub async fn nothing_of_a_backfill_outlives_its_schedule(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let builder = schedule("* * * * *").name("report");
    let progress = with_backfill(&builder.clone().build(), Some(backfill()));
    let deleted = bench.create(builder.progress(progress)).await;
    assert_eq!(bench.change(deleted.clone(), vec![run(&deleted, 1, 9)]).await, Advanced::Done);
    assert!(answered(bench.store.delete_schedule(deleted.id).await));
    assert_eq!(bench.fires_within(deleted.id, minute(5), minute(9)).await, []);
    // Even one of the same id begins with nothing.
    let again =
        bench.create(schedule("* * * * *").name("report").with(|schedule| schedule.id = deleted.id)).await;
    let expected = Picture { schedule: Some(again), ledger: Vec::new(), jobs: Vec::new() };
    assert_eq!(bench.picture(deleted.id).await, expected);
    assert_eq!(bench.fires_within(deleted.id, minute(5), minute(9)).await, []);
}
