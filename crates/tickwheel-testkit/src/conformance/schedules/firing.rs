//! Firing: progress, records and jobs together or not at all, on the revision it was decided on.

use std::sync::Arc;

use tickwheel_core::ports::{Advanced, ScheduleStep, Store};
use tickwheel_core::schedule::{Schedule, ScheduleProgress};
use tokio::task::JoinSet;

use super::super::store::bench::answered;
use super::bench::{Picture, ScheduleBench, fires_at, job_of, minute, skipped, skips_at, step};
use crate::fixtures::{backfill, schedule};

pub async fn a_step_writes_progress_records_and_jobs(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let before = bench.create(schedule("* * * * *").tenant("acme")).await;
    let decided = fires_at(&before, minute(1));
    let progress = ScheduleProgress {
        rolled_at: Some(minute(3)),
        held_at: Some(minute(1)),
        wake_at: Some(minute(2)),
        backfill: Some(backfill()),
        ..decided.progress
    };
    let mut decided = ScheduleStep { progress, ..decided };
    decided.fires.insert(0, skipped(&before, minute(0)));
    assert_eq!(bench.advance(decided.clone()).await, Advanced::Done);
    let expected = Picture {
        schedule: Some(Schedule { progress, revision: before.revision + 1, ..before.clone() }),
        ledger: decided.fires.into_iter().rev().collect(),
        jobs: decided.jobs,
    };
    assert_eq!(bench.picture(before.id).await, expected);
}

pub async fn a_step_without_firings_moves_the_schedule(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let before = bench.minutely().await;
    let decided = step(&before, minute(4), Vec::new(), Vec::new());
    assert_eq!(bench.advance(decided.clone()).await, Advanced::Done);
    let after = Schedule { progress: decided.progress, revision: before.revision + 1, ..before };
    assert_eq!(bench.schedule(after.id).await, after);
}

pub async fn a_decision_is_carried_out_once(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let decided = fires_at(&schedule, minute(1));
    assert_eq!(bench.advance(decided.clone()).await, Advanced::Done);
    let before = bench.picture(schedule.id).await;
    assert_eq!(bench.advance(decided).await, Advanced::Stale, "the same again");
    assert_eq!(bench.picture(schedule.id).await, before);
}

pub async fn a_step_of_another_revision_changes_nothing(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let first = bench.minutely().await;
    bench.fire(first.id, minute(1)).await;
    let before = bench.picture(first.id).await;
    for revision in [0, first.revision, first.revision + 2, u64::from(u32::MAX)] {
        let decided = ScheduleStep { revision, ..fires_at(&first, minute(2)) };
        assert_eq!(bench.advance(decided).await, Advanced::Stale, "revision {revision}");
        assert_eq!(bench.picture(first.id).await, before);
    }
}

pub async fn a_step_of_an_unknown_schedule_is_stale(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let unknown = schedule("* * * * *").build();
    assert_eq!(bench.advance(fires_at(&unknown, minute(1))).await, Advanced::Stale);
    let nothing = Picture { schedule: None, ledger: Vec::new(), jobs: Vec::new() };
    assert_eq!(bench.picture(unknown.id).await, nothing);
}

/// Two nodes that both believe they own a schedule.
pub async fn of_many_who_advance_one_schedule_at_once_one_wins(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let mut runners = JoinSet::new();
    for _ in 0..16 {
        let (store, decided) = (bench.store.clone(), fires_at(&schedule, minute(1)));
        runners.spawn(async move {
            let answers = answered(store.advance_schedules(vec![decided.clone()]).await);
            (answers == [Advanced::Done]).then_some(decided)
        });
    }
    let winners: Vec<ScheduleStep> = runners.join_all().await.into_iter().flatten().collect();
    let [winner] = winners.as_slice() else { panic!("one wins: {winners:?}") };
    let expected = Picture {
        schedule: Some(Schedule { progress: winner.progress, revision: schedule.revision + 1, ..schedule }),
        ledger: winner.fires.clone(),
        jobs: winner.jobs.clone(),
    };
    assert_eq!(bench.picture(winner.id).await, expected);
}

/// The same schedules in other orders: nobody waits for another who waits for him, and each schedule fires once.
pub async fn many_who_advance_the_same_schedules_at_once_fire_each_once(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedules = bench.create_all((0..30).map(|_| schedule("* * * * *"))).await;
    let mut runners = JoinSet::new();
    for turn in 0..8 {
        let mut steps: Vec<_> = schedules.iter().map(|schedule| fires_at(schedule, minute(1))).collect();
        steps.rotate_left(turn * 7 % 30);
        if turn % 2 == 0 {
            steps.reverse();
        }
        let store = bench.store.clone();
        runners.spawn(async move { answered(store.advance_schedules(steps).await) });
    }
    let answers = runners.join_all().await.concat();
    let done = answers.iter().filter(|answer| **answer == Advanced::Done).count();
    assert_eq!(done, schedules.len(), "each is won by one");
    for schedule in schedules {
        let picture = bench.picture(schedule.id).await;
        assert_eq!((picture.ledger.len(), picture.jobs.len()), (1, 1));
        assert_eq!(picture.ledger[0].job_id, Some(picture.jobs[0].id));
    }
}

pub async fn a_stale_step_leaves_the_others_alone(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let first = bench.minutely().await;
    let moved = bench.create(schedule("* * * * *").queue("never-seen")).await;
    let gone = schedule("* * * * *").queue("never-seen-either").build();
    let last = bench.minutely().await;
    let stale = fires_at(&moved, minute(1));
    bench.record(moved.id, Vec::new()).await;
    let before = bench.picture(moved.id).await;
    let steps =
        vec![fires_at(&first, minute(1)), stale, fires_at(&gone, minute(1)), skips_at(&last, minute(1))];
    let answers = answered(bench.store.advance_schedules(steps).await);
    assert_eq!(answers, [Advanced::Done, Advanced::Stale, Advanced::Stale, Advanced::Done]);
    assert_eq!(bench.picture(moved.id).await, before);
    assert_eq!(bench.picture(gone.id).await.jobs, []);
    assert_eq!(bench.queue_names().await, ["default"], "nor does a stale step make a queue known");
    for (schedule, jobs) in [(first, 1), (last, 0)] {
        let picture = bench.picture(schedule.id).await;
        assert_eq!((picture.ledger.len(), picture.jobs.len()), (1, jobs));
    }
}

pub async fn of_two_steps_on_one_revision_in_one_batch_one_is_written(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let steps = vec![fires_at(&schedule, minute(1)), fires_at(&schedule, minute(2))];
    let made = steps[0].jobs.clone();
    let answers = answered(bench.store.advance_schedules(steps).await);
    assert_eq!(answers, [Advanced::Done, Advanced::Stale]);
    let picture = bench.picture(schedule.id).await;
    assert_eq!((picture.ledger.len(), picture.jobs), (1, made));
}

pub async fn an_empty_batch_is_answered_with_nothing(store: Arc<dyn Store>) {
    assert_eq!(answered(store.advance_schedules(Vec::new()).await), []);
}

pub async fn a_large_batch_is_carried_out_whole(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedules = bench.create_all((0..300).map(|_| schedule("* * * * *"))).await;
    let steps: Vec<_> = schedules.iter().map(|schedule| fires_at(schedule, minute(1))).collect();
    let answers = answered(bench.store.advance_schedules(steps.clone()).await);
    assert_eq!(answers, vec![Advanced::Done; steps.len()]);
    let ids = steps.iter().map(|step| step.jobs[0].id).collect();
    let mut stored = answered(bench.jobs.store.get_jobs(ids).await);
    stored.sort_by_key(|job| job.id);
    assert_eq!(stored, steps.iter().flat_map(|step| step.jobs.clone()).collect::<Vec<_>>());
}

/// As after an outage: a thousand records and a hundred jobs of one schedule.
pub async fn a_step_of_many_firings_is_written_whole(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let mut decided = step(&schedule, minute(1_000), Vec::new(), Vec::new());
    for count in 1..=1_000 {
        let mut fire = skipped(&schedule, minute(count));
        if count > 900 {
            let job = job_of(&schedule, minute(count));
            fire.job_id = Some(job.id);
            decided.jobs.push(job);
        }
        decided.fires.push(fire);
    }
    assert_eq!(bench.advance(decided.clone()).await, Advanced::Done);
    let picture = bench.picture(schedule.id).await;
    decided.fires.reverse();
    decided.jobs.reverse();
    assert_eq!(picture.ledger, decided.fires);
    assert_eq!(picture.jobs, decided.jobs);
}
