//! One record a nominal time, and one job at the most: whatever crashes or is decided twice.

use std::sync::Arc;

use tickwheel_core::ports::{Advanced, Store};
use tickwheel_core::schedule::{Fire, FireOutcome, FireReason};

use super::super::store::bench::answered;
use super::bench::{ScheduleBench, fired, fires_at, job_of, minute, skipped, skips_at, step};

/// A node that believes in an older cursor decides on the current revision, and still makes no second job.
pub async fn a_nominal_time_has_one_job_whatever_the_revision(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    bench.fire(schedule.id, minute(1)).await;
    bench.fire(schedule.id, minute(2)).await;
    let before = bench.picture(schedule.id).await;
    let now = bench.schedule(schedule.id).await;
    assert_eq!(bench.advance(fires_at(&now, minute(1))).await, Advanced::Stale);
    assert_eq!(bench.picture(schedule.id).await, before);
    bench.fire(schedule.id, minute(3)).await;
}

/// One firing too many, and nothing of the step is written; its neighbours are.
pub async fn a_step_that_would_make_a_second_job_changes_nothing(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, neighbour) = (bench.minutely().await, bench.minutely().await);
    bench.fire(schedule.id, minute(2)).await;
    let before = bench.picture(schedule.id).await;
    let now = bench.schedule(schedule.id).await;
    let jobs: Vec<_> = [1, 2, 3].map(|count| job_of(&now, minute(count))).to_vec();
    let mut fires: Vec<Fire> = jobs.iter().map(|job| fired(&now, job)).collect();
    fires.push(skipped(&now, minute(4)));
    let steps = vec![step(&now, minute(4), fires, jobs), fires_at(&neighbour, minute(2))];
    let answers = answered(bench.store.advance_schedules(steps).await);
    assert_eq!(answers, [Advanced::Stale, Advanced::Done]);
    assert_eq!(bench.picture(schedule.id).await, before);
    assert_eq!(bench.picture(neighbour.id).await.jobs.len(), 1);
}

pub async fn other_schedules_have_jobs_of_the_same_nominal_time(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (one, other) = (bench.minutely().await, bench.minutely().await);
    for schedule in [one, other] {
        let job = bench.fire(schedule.id, minute(1)).await;
        assert_eq!(bench.ledger(schedule.id).await, [fired(&schedule, &job)]);
    }
}

pub async fn a_record_without_a_job_gives_way_to_one_with_a_job(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    assert_eq!(bench.advance(skips_at(&schedule, minute(1))).await, Advanced::Done);
    let job = bench.fire(schedule.id, minute(1)).await;
    let picture = bench.picture(schedule.id).await;
    assert_eq!(picture.ledger, [fired(&schedule, &job)]);
    assert_eq!(picture.jobs, [job]);
}

pub async fn a_record_without_a_job_gives_way_to_a_later_one(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    bench.record(schedule.id, vec![skipped(&schedule, minute(1))]).await;
    let later = Fire {
        outcome: FireOutcome::Missed,
        reason: FireReason::OverCap,
        last_at: minute(9),
        count: 9,
        recorded_at: minute(10),
        ..skipped(&schedule, minute(1))
    };
    bench.record(schedule.id, vec![later.clone()]).await;
    assert_eq!(bench.ledger(schedule.id).await, [later]);
}

/// The step is carried out; the record of the job stays.
pub async fn a_record_with_a_job_stays_whatever_comes_later(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let job = bench.fire(schedule.id, minute(1)).await;
    let now = bench.schedule(schedule.id).await;
    let later = vec![skipped(&now, minute(1)), skipped(&now, minute(2))];
    assert_eq!(bench.advance(step(&now, minute(2), later, Vec::new())).await, Advanced::Done);
    let picture = bench.picture(schedule.id).await;
    assert_eq!(picture.ledger, [skipped(&now, minute(2)), fired(&now, &job)]);
    assert_eq!(picture.jobs, [job]);
    assert_eq!(picture.schedule.map(|schedule| schedule.revision), Some(now.revision + 1));
}

/// Missed firings that one job stands for name it too.
pub async fn several_records_may_name_one_job(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let job = job_of(&schedule, minute(3));
    let coalesced = |count| Fire {
        outcome: FireOutcome::Coalesced,
        reason: FireReason::CaughtUp,
        job_id: Some(job.id),
        ..skipped(&schedule, minute(count))
    };
    let fires = vec![coalesced(1), coalesced(2), fired(&schedule, &job)];
    let decided = step(&schedule, minute(3), fires.clone(), vec![job.clone()]);
    assert_eq!(bench.advance(decided).await, Advanced::Done);
    let picture = bench.picture(schedule.id).await;
    assert_eq!(picture.ledger, fires.into_iter().rev().collect::<Vec<_>>());
    assert_eq!(picture.jobs, [job]);
}

pub async fn a_run_of_firings_is_one_record(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let run = Fire {
        last_at: minute(100_000),
        count: u64::from(u32::MAX) + 5,
        outcome: FireOutcome::Missed,
        reason: FireReason::OverCap,
        recorded_at: minute(100_001),
        ..skipped(&schedule, minute(1))
    };
    bench.record(schedule.id, vec![run.clone()]).await;
    assert_eq!(bench.ledger(schedule.id).await, [run]);
}
