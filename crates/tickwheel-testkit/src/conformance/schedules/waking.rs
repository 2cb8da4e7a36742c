//! Loading what is to be woken: in order, in pages, and only what ever wakes.

use std::sync::Arc;

use tickwheel_core::ports::{Advanced, DueSchedule, LoadSchedules, PartitionSet, Store, WakeCursor};
use tickwheel_core::schedule::{Schedule, ScheduleProgress};
use tickwheel_core::{Partition, Priority, ScheduleId, Timestamp};

use super::bench::{BEFORE_ALL, ScheduleBench, fires_at, load_all, minute, step};
use crate::fixtures::{ScheduleBuilder, at, schedule};

fn wakes_at(at: Timestamp) -> ScheduleBuilder {
    schedule("* * * * *").wake_at(Some(at))
}

fn due(schedule: &Schedule) -> DueSchedule {
    DueSchedule {
        id: schedule.id,
        partition: schedule.partition,
        wake_at: schedule.progress.wake_at.expect("it wakes"),
        priority: schedule.spec.job.priority,
    }
}

pub async fn schedules_wake_in_the_order_of_time_then_id(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedules = bench.create_all([30, 10, 20, 10].map(|ms| wakes_at(at(ms)))).await;
    let expected = [1, 3, 2, 0].map(|index: usize| due(&schedules[index]));
    assert_eq!(bench.load(load_all()).await, expected);
}

pub async fn a_cursor_and_a_limit_give_every_schedule_once(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedules = bench.create_all((0..23).map(|n| wakes_at(at(n / 5)))).await;
    let mut expected: Vec<WakeCursor> = schedules.iter().map(|schedule| due(schedule).cursor()).collect();
    expected.sort();
    let mut found: Vec<WakeCursor> = Vec::new();
    // Six pages of four, and an empty one.
    for _ in 0..7 {
        let after = found.last().copied().unwrap_or(BEFORE_ALL);
        let page = bench.load(LoadSchedules { after, limit: 4, ..load_all() }).await;
        assert!(page.len() <= 4);
        found.extend(page.iter().map(DueSchedule::cursor));
    }
    assert_eq!(found, expected);
}

pub async fn what_wakes_after_the_horizon_stays_in_the_store(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedules = bench.create_all([99, 100, 101].map(|ms| wakes_at(at(ms)))).await;
    let found = bench.load_ids(LoadSchedules { until: at(100), ..load_all() }).await;
    assert_eq!(found, [schedules[0].id, schedules[1].id]);
}

pub async fn only_the_partitions_asked_for_are_loaded(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let in_partition = |n| wakes_at(at(1)).partition(Partition(n));
    let schedules = bench.create_all([0, 31, 32, 63].map(in_partition)).await;
    let load = |partitions| LoadSchedules { partitions, ..load_all() };
    for schedule in &schedules {
        let only = PartitionSet::NONE.with(schedule.partition);
        assert_eq!(bench.load_ids(load(only)).await, [schedule.id]);
        let others: Vec<ScheduleId> =
            schedules.iter().map(|other| other.id).filter(|id| *id != schedule.id).collect();
        assert_eq!(bench.load_ids(load(PartitionSet::ALL.without(schedule.partition))).await, others);
    }
    assert_eq!(bench.load_ids(load(PartitionSet::NONE)).await, []);
}

pub async fn schedules_of_every_priority_are_loaded_together(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let of = |priority| wakes_at(at(1)).priority(priority);
    let schedules = bench.create_all(Priority::ALL.map(of)).await;
    assert_eq!(bench.load(load_all()).await, schedules.iter().map(due).collect::<Vec<_>>());
}

pub async fn a_schedule_that_never_wakes_is_never_loaded(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    bench.create(schedule("* * * * *").wake_at(None)).await;
    assert_eq!(bench.load(LoadSchedules { until: Timestamp::MAX, ..load_all() }).await, []);
}

/// A paused schedule writes down what it skips, so it wakes like any other.
pub async fn a_paused_schedule_is_loaded(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let paused = bench.create(wakes_at(at(1)).paused("for now")).await;
    assert_eq!(bench.load_ids(load_all()).await, [paused.id]);
}

pub async fn the_time_to_wake_follows_every_step(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let first = bench.create(wakes_at(at(1))).await;
    let mut last = step(&first, minute(1), Vec::new(), Vec::new());
    last.progress.wake_at = Some(minute(5));
    assert_eq!(bench.advance(last).await, Advanced::Done);
    let second = bench.schedule(first.id).await;
    assert_eq!(bench.load(load_all()).await, [DueSchedule { wake_at: minute(5), ..due(&first) }]);
    let mut last = fires_at(&second, minute(2));
    last.progress = ScheduleProgress { next_at: None, wake_at: None, ..last.progress };
    assert_eq!(bench.advance(last).await, Advanced::Done);
    assert_eq!(bench.load(load_all()).await, []);
}

pub async fn the_time_to_wake_and_the_priority_follow_every_change(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let mut schedule = bench.create(schedule("* * * * *").wake_at(None)).await;
    schedule.progress.wake_at = Some(at(7));
    Arc::make_mut(&mut schedule.spec).job.priority = Priority::High;
    assert_eq!(bench.change(schedule.clone(), Vec::new()).await, Advanced::Done);
    assert_eq!(bench.load(load_all()).await, [due(&schedule)]);
}
