//! Loading what is due: in order, in pages, and only what may ever start.

use std::sync::Arc;

use tickwheel_core::job::{ProcessTarget, WorkflowTarget};
use tickwheel_core::matching::{Class, Label, Labels, Route};
use tickwheel_core::ports::{DueCursor, DueJob, LoadDue, PartitionSet, Store};
use tickwheel_core::{Job, JobId, Partition, Priority, State, Target, TargetKind};

use super::bench::{Bench, answered, completes, goes_again, load_all};
use crate::fixtures::{JobBuilder, at, job};

pub async fn due_jobs_come_in_the_order_of_time_then_id(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = bench.submit_all([30, 10, 20, 10].map(|ms| job().due_at(at(ms)))).await;
    let expected: Vec<DueJob> = [1, 3, 2, 0].map(|index| DueJob::from(&jobs[index])).to_vec();
    assert_eq!(bench.due(load_all()).await, expected);
}

pub async fn a_cursor_and_a_limit_give_every_due_job_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = bench.submit_all((0..23).map(|n| job().due_at(at(n / 5)))).await;
    let mut expected: Vec<DueCursor> = jobs.iter().map(|job| DueJob::from(job).cursor()).collect();
    expected.sort();
    let mut found: Vec<DueCursor> = Vec::new();
    // Six pages of four, and an empty one.
    for _ in 0..7 {
        let after = found.last().copied().unwrap_or(DueCursor::START);
        let page = bench.due(LoadDue { after, limit: 4, ..load_all() }).await;
        assert!(page.len() <= 4);
        found.extend(page.iter().map(DueJob::cursor));
    }
    assert_eq!(found, expected);
}

pub async fn what_is_due_after_the_horizon_stays_in_the_store(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = bench.submit_all([99, 100, 101].map(|ms| job().due_at(at(ms)))).await;
    let found = bench.due_ids(LoadDue { until: at(100), ..load_all() }).await;
    assert_eq!(found, [jobs[0].id, jobs[1].id]);
}

pub async fn each_priority_is_loaded_by_itself(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for priority in Priority::ALL {
        let job = bench.submit(job().priority(priority)).await;
        assert_eq!(bench.due_ids(LoadDue { priority, ..load_all() }).await, [job.id]);
    }
}

pub async fn only_the_partitions_asked_for_are_loaded(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = bench.submit_all([0, 31, 32, 63].map(|n| job().partition(Partition(n)))).await;
    let load = |partitions| LoadDue { partitions, ..load_all() };
    for job in &jobs {
        let only = PartitionSet::NONE.with(job.partition);
        assert_eq!(bench.due_ids(load(only)).await, [job.id]);
        let others: Vec<JobId> = jobs.iter().map(|job| job.id).filter(|id| *id != job.id).collect();
        assert_eq!(bench.due_ids(load(PartitionSet::ALL.without(job.partition))).await, others);
    }
    assert_eq!(bench.due_ids(load(PartitionSet::NONE)).await, []);
}

pub async fn only_the_kinds_of_target_asked_for_are_loaded(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let run = Target::Workflow(WorkflowTarget { name: "etl".into() });
    let run = bench.submit(job().target(run)).await;
    let http = bench.submit(job()).await;
    assert_eq!(bench.due_for(load_all(), &[TargetKind::Workflow]).await, [DueJob::from(&run)]);
    assert_eq!(bench.due_for(load_all(), &[TargetKind::Http]).await, [DueJob::from(&http)]);
    assert_eq!(bench.due_for(load_all(), &[]).await, []);
}

/// Which of them is of which type makes no difference to an executor.
pub async fn commands_and_calls_that_require_labels_are_for_workers(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let in_dmz = |builder: JobBuilder| {
        builder.with(|job| {
            Arc::make_mut(&mut job.spec).requires =
                Labels::from([("site".into(), Label::Text("dmz".into()))]);
        })
    };
    let command = || job().target(Target::Process(ProcessTarget::default()));
    let calls = bench.submit_all([in_dmz(job().job_type("a")), in_dmz(job().job_type("b"))]).await;
    let run = bench.submit(in_dmz(command())).await;
    let handled = bench.submit(in_dmz(job().target(Target::Worker))).await;
    let (call_here, run_here) = (bench.submit(job()).await, bench.submit(command()).await);
    let of = |job: &Job| LoadDue { class: Class::of(job), ..load_all() };
    assert_eq!(bench.due_ids(of(&calls[0])).await, [calls[0].id, calls[1].id]);
    assert_eq!(bench.due_ids(of(&run)).await, [run.id]);
    assert_eq!(bench.due_ids(of(&handled)).await, [handled.id]);
    let kinds = [TargetKind::Http, TargetKind::Process];
    assert_eq!(bench.due_for(load_all(), &kinds).await, [DueJob::from(&call_here), DueJob::from(&run_here)]);
    let mut routes = answered(bench.store.routes().await);
    let mut expected: Vec<Route> = [&calls[0], &run, &handled].into_iter().filter_map(Route::of).collect();
    expected.sort_by_key(|route| route.id);
    routes.sort_by_key(|route| route.id);
    assert_eq!(routes, expected);
}

/// A million jobs that wait for a worker are nobody's business but that worker's.
pub async fn jobs_for_workers_are_loaded_by_route_and_no_others(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let gpu = || {
        job().with(|job| {
            Arc::make_mut(&mut job.spec).requires = Labels::from([("gpu".into(), Label::Flag(true))]);
        })
    };
    let builders = [job().queue("a"), job().queue("b"), job().queue("a").job_type("other"), gpu().queue("a")];
    let jobs = bench.submit_all(builders.map(|builder| builder.target(Target::Worker))).await;
    let built_in = bench.submit(job()).await;
    for job in &jobs {
        let load = LoadDue { class: Class::of(job), ..load_all() };
        assert_eq!(bench.due_for(load, &[]).await, [DueJob::from(job)]);
    }
    assert_eq!(bench.due(load_all()).await, [DueJob::from(&built_in)]);
    let mut expected: Vec<_> = jobs.iter().filter_map(Route::of).collect();
    let mut routes = answered(bench.store.routes().await);
    expected.sort_by_key(|route| route.id);
    routes.sort_by_key(|route| route.id);
    assert_eq!(routes, expected);
}

pub async fn only_scheduled_jobs_are_loaded(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for state in [State::Pending, State::Paused, State::Blocked] {
        bench.submit(job().state(state)).await;
    }
    bench.running(job()).await;
    bench.settled(job(), completes).await;
    let again = bench.settled(job(), goes_again).await;
    assert_eq!(bench.due(load_all()).await, [DueJob::from(&again)]);
}

pub async fn a_paused_queue_is_not_loaded_until_it_is_resumed(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let held = bench.submit(job().queue("held")).await;
    let free = bench.submit(job().queue("free")).await;
    answered(bench.store.set_queue_paused("held", true).await);
    assert_eq!(bench.due_ids(load_all()).await, [free.id]);
    answered(bench.store.set_queue_paused("held", false).await);
    assert_eq!(bench.due_ids(load_all()).await, [held.id, free.id]);
}
