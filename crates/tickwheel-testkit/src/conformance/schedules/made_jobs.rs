//! The jobs that schedules make are jobs like any other, and name their schedule for ever.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_core::change::Change;
use tickwheel_core::ports::{Advanced, DueJob, JobQuery, Store};
use tickwheel_core::{Job, JobId, ScheduleId, State};

use super::super::store::bench::{self, answered, completes, fails, goes_again, list_all};
use super::bench::{ScheduleBench, fired, job_of, minute, step};
use crate::fixtures::{JobInTest as _, at, job, schedule, schedule_id};

pub async fn a_job_that_a_schedule_made_runs_like_any_other(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench
        .create(schedule("* * * * *").tenant("acme").queue("reports").spec(|spec| {
            spec.job.tags = vec!["nightly".into()];
        }))
        .await;
    let job = bench.fire(schedule.id, minute(1)).await;
    assert_eq!(bench.jobs.job(job.id).await, job);
    assert_eq!(bench.jobs.due(bench::load_all()).await, [DueJob::from(&job)]);
    let running = bench.jobs.start(&job).await;
    assert_eq!((running.schedule_id, running.attempt), (Some(schedule.id), 1));
    bench.jobs.settle(completes(&running)).await;
    let ended = bench.jobs.job(job.id).await;
    assert_eq!((ended.state(), ended.schedule_id), (State::Completed, Some(schedule.id)));
    let tagged = JobQuery { tags: ["nightly".into()].into(), ..list_all() };
    assert_eq!(bench.jobs.list(tagged).await, [ended]);
}

pub async fn a_queue_is_known_once_a_schedule_fired_into_it(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.create(schedule("* * * * *").queue("reports")).await;
    assert!(bench.queue_names().await.is_empty());
    bench.fire(schedule.id, minute(1)).await;
    assert_eq!(bench.queue_names().await, ["reports"]);
}

pub async fn a_firing_into_a_paused_queue_leaves_it_paused(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    answered(bench.jobs.store.set_queue_paused("default", true).await);
    bench.fire(schedule.id, minute(1)).await;
    let queues = answered(bench.jobs.store.list_queues().await);
    assert!(queues[0].paused);
    assert_eq!(bench.jobs.due(bench::load_all()).await, []);
}

pub async fn the_jobs_of_a_schedule_are_listed_live_and_finished(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (one, other) = (bench.minutely().await, bench.minutely().await);
    bench.jobs.submit(job()).await;
    let mut made = Vec::new();
    for count in 1..=4 {
        made.push(bench.fire(one.id, minute(count)).await);
        bench.fire(other.id, minute(count)).await;
    }
    let running = bench.jobs.start(&made[0]).await;
    bench.jobs.settle(completes(&running)).await;
    let running = bench.jobs.start(&made[2]).await;
    bench.jobs.settle(fails(&running)).await;
    let newest_first: Vec<JobId> = made.iter().rev().map(|job| job.id).collect();
    for limit in [1, 3, 100] {
        let query = JobQuery { schedule_id: Some(one.id), limit, ..list_all() };
        assert_eq!(bench.jobs.list_ids(query).await, newest_first, "pages of {limit}");
    }
    let failed = JobQuery { schedule_id: Some(one.id), states: [State::Failed].into(), ..list_all() };
    assert_eq!(bench.jobs.list_ids(failed).await, [made[2].id]);
}

async fn active(bench: &ScheduleBench, ids: &[ScheduleId]) -> BTreeSet<(ScheduleId, JobId)> {
    let found = answered(bench.store.active_jobs(ids.to_vec()).await);
    let count = found.len();
    let active: BTreeSet<_> = found.into_iter().collect();
    assert_eq!(active.len(), count, "none twice");
    active
}

pub async fn jobs_that_are_not_over_are_active(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let mut jobs = Vec::new();
    for count in 1..=7 {
        jobs.push(bench.fire(schedule.id, minute(count)).await);
    }
    let mut expected: BTreeSet<_> = jobs.iter().map(|job| (schedule.id, job.id)).collect();
    let mut end = |job: &Job| expected.remove(&(schedule.id, job.id));
    // The first waits, the second runs, the third is paused, the fourth waits for a retry.
    bench.jobs.start(&jobs[1]).await;
    bench.jobs.changed(jobs[2].id, Change::Pause, minute(8)).await;
    let running = bench.jobs.start(&jobs[3]).await;
    bench.jobs.settle(goes_again(&running)).await;
    let running = bench.jobs.start(&jobs[4]).await;
    bench.jobs.settle(completes(&running)).await;
    let running = bench.jobs.start(&jobs[5]).await;
    bench.jobs.settle(fails(&running)).await;
    bench.jobs.changed(jobs[6].id, Change::Cancel, minute(8)).await;
    jobs[4..].iter().for_each(|job| assert!(end(job)));
    assert_eq!(active(&bench, &[schedule.id]).await, expected);
    bench.jobs.changed(jobs[5].id, Change::Retry { payload: None }, minute(9)).await;
    expected.insert((schedule.id, jobs[5].id));
    assert_eq!(active(&bench, &[schedule.id]).await, expected);
}

pub async fn a_job_in_every_waiting_state_is_active(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let waiting = [State::Pending, State::Scheduled, State::Paused, State::Blocked];
    let jobs: Vec<Job> =
        (1..).zip(waiting).map(|(count, state)| job_of(&schedule, minute(count)).in_state(state)).collect();
    let fires = jobs.iter().map(|job| fired(&schedule, job)).collect();
    let decided = step(&schedule, minute(4), fires, jobs.clone());
    assert_eq!(bench.advance(decided).await, Advanced::Done);
    let expected = jobs.iter().map(|job| (schedule.id, job.id)).collect();
    assert_eq!(active(&bench, &[schedule.id]).await, expected);
}

pub async fn active_jobs_are_those_of_the_schedules_asked_for(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedules = bench.create_all((0..3).map(|_| schedule("* * * * *"))).await;
    bench.jobs.submit(job().due_at(at(1))).await;
    let mut made = Vec::new();
    for schedule in &schedules {
        made.push((schedule.id, bench.fire(schedule.id, minute(1)).await.id));
    }
    let ids = [schedules[0].id, schedules[2].id, schedule_id(u64::from(u32::MAX))];
    assert_eq!(active(&bench, &ids).await, BTreeSet::from([made[0], made[2]]));
    assert_eq!(active(&bench, &[]).await, BTreeSet::new());
}
