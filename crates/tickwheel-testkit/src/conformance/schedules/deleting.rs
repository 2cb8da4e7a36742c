//! Deletion: nothing fires after the answer, the ledger is gone, the jobs stay.

use std::sync::Arc;

use tickwheel_core::ports::{Advanced, Creation, NoSuchSchedule, ScheduleQuery, Store};
use tokio::task::JoinSet;

use super::super::store::bench::{answered, completes};
use super::bench::{Picture, ScheduleBench, fires_at, load_all, minute, skips_at};
use super::triggering::triggered;
use crate::fixtures::{schedule, schedule_id};

const NOTHING: Picture = Picture { schedule: None, ledger: Vec::new(), jobs: Vec::new() };

pub async fn a_deleted_schedule_is_found_nowhere(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let kept = bench.minutely().await;
    let deleted = bench.minutely().await;
    assert_eq!(bench.advance(skips_at(&kept, minute(1))).await, Advanced::Done);
    assert_eq!(bench.advance(skips_at(&deleted, minute(1))).await, Advanced::Done);
    let before = bench.picture(kept.id).await;
    assert!(answered(bench.store.delete_schedule(deleted.id).await));
    assert_eq!(bench.picture(deleted.id).await, NOTHING);
    assert_eq!(answered(bench.store.find_schedule(&deleted.tenant, &deleted.name).await), None);
    assert_eq!(answered(bench.store.latest_fires(vec![deleted.id], 9).await), []);
    assert_eq!(bench.load_ids(load_all()).await, [kept.id]);
    let listed = bench.list(ScheduleQuery { limit: 9, ..ScheduleQuery::default() }).await;
    assert_eq!(listed.len(), 1);
    assert_eq!(bench.picture(kept.id).await, before, "another one is not touched");
}

pub async fn what_does_not_exist_cannot_be_deleted(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    assert!(!answered(bench.store.delete_schedule(schedule_id(u64::from(u32::MAX))).await));
    assert!(answered(bench.store.delete_schedule(schedule.id).await));
    assert!(!answered(bench.store.delete_schedule(schedule.id).await), "it was deleted before");
}

pub async fn nothing_fires_after_a_delete(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    answered(bench.store.delete_schedule(schedule.id).await);
    assert_eq!(bench.advance(fires_at(&schedule, minute(1))).await, Advanced::Stale);
    assert_eq!(bench.change(schedule.clone(), Vec::new()).await, Advanced::Stale);
    let (job, fire) = triggered(&schedule, minute(1));
    assert_eq!(bench.trigger(job, fire).await, Creation::Refused(NoSuchSchedule));
    assert_eq!(bench.picture(schedule.id).await, NOTHING);
}

pub async fn the_jobs_of_a_deleted_schedule_stay_and_name_it(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let ended = bench.fire(schedule.id, minute(1)).await;
    let running = bench.jobs.start(&ended).await;
    bench.jobs.settle(completes(&running)).await;
    bench.fire(schedule.id, minute(2)).await;
    let before = bench.picture(schedule.id).await;
    answered(bench.store.delete_schedule(schedule.id).await);
    let after = bench.picture(schedule.id).await;
    assert_eq!(after, Picture { jobs: before.jobs, ..NOTHING });
    assert_eq!(after.jobs.len(), 2, "the live one and the finished one");
    bench.jobs.start(&after.jobs[0]).await;
}

pub async fn a_name_is_free_again_after_a_delete(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let first = bench.create(schedule("@daily").name("report")).await;
    bench.fire(first.id, minute(1)).await;
    answered(bench.store.delete_schedule(first.id).await);
    let second = bench.create(schedule("@hourly").name("report")).await;
    assert_eq!(bench.picture(second.id).await, Picture { schedule: Some(second), ..NOTHING });
    assert_eq!(bench.find(first.id).await, None);
}

/// Whoever fires, changes or triggers while the schedule is deleted comes before or finds nothing: no record outlives
/// it, and once the answer is there no job is made.
pub async fn a_delete_amid_firings_leaves_no_record(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    for _ in 0..10 {
        let schedule = bench.minutely().await;
        let mut busy = JoinSet::new();
        for count in 1..=3 {
            let (store, step) = (bench.store.clone(), fires_at(&schedule, minute(count)));
            busy.spawn(
                async move { answered(store.advance_schedules(vec![step]).await)[0] == Advanced::Done },
            );
            let (store, (job, fire)) = (bench.store.clone(), triggered(&schedule, minute(10 + count)));
            busy.spawn(async move { answered(store.trigger_schedule(job, fire).await).as_new().is_some() });
        }
        assert!(answered(bench.store.delete_schedule(schedule.id).await));
        let jobs_at_the_answer = bench.picture(schedule.id).await.jobs;
        let made = busy.join_all().await.into_iter().filter(|made| *made).count();
        let after = bench.picture(schedule.id).await;
        assert_eq!(after, Picture { jobs: jobs_at_the_answer, ..NOTHING });
        assert_eq!(after.jobs.len(), made, "who was told so made a job, and nobody else");
    }
}
