//! Runs begin: all of a run is there, or nothing; and the same request starts it once.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_core::job::Priority;
use tickwheel_core::ports::{Creation, DueJob, JobQuery, LoadDue, Store};
use tickwheel_core::workflow::{RunProgress, RunStatus, RunTask};
use tickwheel_core::{JobId, JsonText, Partition, State};
use tokio::task::JoinSet;

use super::super::store::bench::{LATER, ODD_TEXT, answered, completes, list_all, load_all};
use super::bench::{RunBench, only, task, whole};
use crate::fixtures::{at, job_id, run, run_id};

pub async fn every_field_of_a_run_survives(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench
        .start(run().task([]).with(|run| {
            run.partition = Partition(63);
            run.tenant = ODD_TEXT.into();
            run.workflow = format!("workflow of {ODD_TEXT}").into();
            run.version = 7;
            run.input = JsonText::from_checked(r#"{"a":"\u0000 漢字"}"#);
            run.job_id = Some(job_id(at(3), 4));
            run.created_at = at(11);
            run.revision = u64::from(u32::MAX) + 7;
            run.progress = RunProgress {
                status: RunStatus::Cancelled,
                cancel_requested: true,
                ended_at: Some(at(1)),
                paused_at: Some(at(2)),
                next_index: 1_000_000,
                after_first: Some(3),
                blocked: 4,
                stalled: 5,
                stalls_at: Some(at(6)),
                data_bytes: u64::from(u32::MAX) + 8,
            };
        }))
        .await;
    assert_eq!(bench.run(start.run.id).await, start.run);
    let (read, _) = answered(bench.store.read_run(start.run.id).await).expect("it exists");
    assert_eq!(read, start.run);
}

/// Jobs, edges and reconcile requests; jobs that wait for nobody run like any other.
pub async fn all_of_a_run_is_there_once_it_has_started(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let builder = run().task([]).reconciled([]).task([1, 2]).with_job(|job| job.tags = vec!["x".into()]);
    let start = builder.build();
    assert_eq!(answered(bench.store.start_run(start.clone()).await), Creation::created(start.run.clone()));
    for job in &start.jobs {
        assert_eq!(bench.jobs.job(job.id).await, *job);
    }
    let tasks: Vec<RunTask> = start.jobs.iter().filter_map(RunTask::of).collect();
    assert_eq!(bench.tasks(start.run.id).await, tasks);
    assert_eq!(
        bench.requested_ids().await,
        only([task(&start, 2)]),
        "only what the reconciler has to release"
    );
    assert_eq!(bench.jobs.due(load_all()).await, [DueJob::from(&start.jobs[0])]);
    let tagged = JobQuery { tags: ["x".into()].into(), ..list_all() };
    assert_eq!(bench.jobs.list_ids(tagged).await, [task(&start, 3)]);
}

pub async fn the_queues_of_a_run_become_known(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    bench.start(run().task([]).with_job(|job| job.queue = "etl".into())).await;
    let names: Vec<_> =
        answered(bench.store.list_queues().await).into_iter().map(|queue| queue.name).collect();
    assert_eq!(names, ["etl"]);
}

pub async fn a_run_that_exists_is_not_started_again(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    bench.end(task(&start, 1), completes).await;
    let before = bench.picture(start.run.id).await;
    let again = answered(bench.store.start_run(start.clone()).await);
    assert_eq!(again, Creation::existing(bench.run(start.run.id).await));
    assert_eq!(bench.picture(start.run.id).await, before);
}

pub async fn the_same_request_again_is_answered_with_its_run(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let first = bench.start(run().task([]).idempotency("once", 1)).await;
    let again = run().task([]).idempotency("once", 1).build();
    let answer = answered(bench.store.start_run(again.clone()).await);
    assert_eq!(answer, Creation::existing(first.run.clone()));
    assert_eq!(bench.find(again.run.id).await, None);
    assert_eq!(answered(bench.store.get_job(again.jobs[0].id).await), None);
    let other = run().task([]).idempotency("once", 2).build();
    assert_eq!(answered(bench.store.start_run(other).await), Creation::Conflict(first.run.id));
    let elsewhere = run().task([]).idempotency("once", 2).with(|run| run.tenant = "zoo".into());
    bench.start(elsewhere).await;
}

pub async fn many_who_start_under_one_key_start_one_run(store: Arc<dyn Store>) {
    let mut starters = JoinSet::new();
    for _ in 0..12 {
        let (store, start) = (store.clone(), run().task([]).task([1]).idempotency("once", 1).build());
        starters.spawn(async move { (start.run.id, answered(store.start_run(start.clone()).await)) });
    }
    let answers = starters.join_all().await;
    let made: Vec<_> = answers.iter().filter(|(_, answer)| answer.as_new().is_some()).collect();
    let [(made, _)] = made[..] else { panic!("one of them: {answers:?}") };
    for (_, answer) in answers.iter().filter(|(id, _)| id != made) {
        assert!(matches!(answer, Creation::Existing(run) if run.id == *made), "{answer:?}");
    }
    let bench = RunBench::new(store);
    assert_eq!(bench.jobs.list(list_all()).await.len(), 2);
}

pub async fn a_run_whose_job_exists_already_leaves_no_trace(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let mut start = run().task([]).reconciled([]).build();
    let taken = bench.start(run().task([])).await;
    start.jobs[1].id = taken.jobs[0].id;
    let refused = bench.store.start_run(start.clone()).await.expect_err("the id is taken");
    assert!(refused.is_certainly_aborted(), "{refused}");
    assert_eq!(bench.find(start.run.id).await, None);
    assert_eq!(answered(bench.store.get_job(start.jobs[0].id).await), None);
    assert_eq!(bench.reconcile_requests().await, []);
}

pub async fn only_runs_that_exist_are_found(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let known = [bench.start(run().task([])).await, bench.start(run().task([])).await];
    let ids = vec![known[0].run.id, run_id(at(5), 1 << 30), known[1].run.id];
    let found = answered(bench.store.get_runs(ids).await);
    let found: BTreeSet<_> = found.into_iter().map(|run| run.id).collect();
    assert_eq!(found, known.iter().map(|start| start.run.id).collect());
    assert_eq!(answered(bench.store.get_runs(Vec::new()).await), []);
    assert_eq!(answered(bench.store.read_run(run_id(at(5), 1 << 30)).await), None);
}

/// A thousand tasks, each of which waits for ten before it, each as it was requested.
pub async fn a_large_run_is_stored_whole(store: Arc<dyn Store>) {
    const TASKS: u32 = 1_000;
    let bench = RunBench::new(store);
    let mut builder = run();
    for index in 1..=TASKS {
        builder = match index {
            ..=10 => builder.task([]),
            _ => builder.task(std::array::from_fn::<u32, 10, _>(|back| index - 1 - back as u32)),
        };
    }
    let start = bench.start(builder).await;
    let tasks = bench.tasks(start.run.id).await;
    assert_eq!(tasks, start.jobs.iter().filter_map(RunTask::of).collect::<Vec<_>>());
    assert_eq!(bench.run(start.run.id).await.open, TASKS);
    let load = LoadDue { priority: Priority::Normal, until: LATER, ..load_all() };
    let due: BTreeSet<JobId> = bench.jobs.due_ids(load).await.into_iter().collect();
    assert_eq!(due, (1..=10).map(|index| task(&start, index)).collect());
    let pending = tasks.iter().filter(|task| task.state == State::Pending).count();
    assert_eq!(pending, TASKS as usize - 10);
    assert!(!bench.requested_ids().await.contains(&whole(&start)));
}
