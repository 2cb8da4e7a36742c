//! Runs that are paused: none of their jobs is loaded or claimed, and all else goes on.

use std::sync::Arc;

use tickwheel_core::change::Change;
use tickwheel_core::ports::{Claim, RunAdvanced, RunStart, Store};
use tickwheel_core::workflow::{RunProgress, RunStatus, RunStep};
use tickwheel_core::{RunId, State};
use tokio::task::JoinSet;

use super::super::store::bench::{LATER, answered, completes, fails, goes_again, load_all};
use super::bench::{RunBench, STEP_AT, task};
use crate::fixtures::{at, job, run};

async fn set_status(bench: &RunBench, id: RunId, status: RunStatus) {
    let paused_at = (status == RunStatus::Paused).then_some(STEP_AT);
    let progress = RunProgress { status, paused_at, ..bench.run(id).await.progress };
    bench.done(RunStep { progress: Some(progress), ..bench.step(id).await }).await;
}

async fn pause(bench: &RunBench, start: &RunStart) {
    set_status(bench, start.run.id, RunStatus::Paused).await;
}

async fn resume(bench: &RunBench, start: &RunStart) {
    set_status(bench, start.run.id, RunStatus::Running).await;
}

/// Runs before and after it have nothing to do with it, nor have jobs of no run.
pub async fn nothing_of_a_paused_run_is_loaded_or_claimed_until_it_is_resumed(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(bench.start(run().task([]).task([])).await);
    }
    let plain = bench.jobs.submit(job()).await.id;
    let session = bench.jobs.open_session().await;
    pause(&bench, &runs[1]).await;
    let mut others = vec![plain];
    others.extend([0, 2].into_iter().flat_map(|n| [task(&runs[n], 1), task(&runs[n], 2)]));
    let mut loaded = bench.jobs.due_ids(load_all()).await;
    loaded.sort_unstable();
    others.sort_unstable();
    assert_eq!(loaded, others);
    let held = [task(&runs[1], 1), task(&runs[1], 2)];
    assert_eq!(bench.jobs.claim(session, &held, LATER).await, []);
    assert_eq!(bench.jobs.claim(session, &others, LATER).await.len(), others.len());
    assert_eq!(bench.jobs.job(held[0]).await.attempt, 0);

    assert_eq!(answered(bench.store.controls().await).paused_runs, [runs[1].run.id]);
    resume(&bench, &runs[1]).await;
    assert_eq!(answered(bench.store.controls().await).paused_runs, []);
    assert_eq!(bench.jobs.due_ids(load_all()).await, held);
    assert_eq!(bench.jobs.claim(session, &held, LATER).await.len(), 2);
}

pub async fn what_a_paused_run_releases_waits_for_its_resume(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    let session = bench.jobs.open_session().await;
    let running = bench.running(task(&start, 1)).await;
    pause(&bench, &start).await;
    let batch = bench.settle_all(vec![completes(&running)]).await;
    let second = task(&start, 2);
    assert_eq!(batch.released.iter().map(|job| job.due.id).collect::<Vec<_>>(), [second]);
    bench.assert_stands(second, State::Scheduled, 0, 0).await;
    assert_eq!(bench.jobs.claim(session, &[second], LATER).await, []);
    resume(&bench, &start).await;
    assert_eq!(bench.jobs.claim(session, &[second], LATER).await.len(), 1);
}

pub async fn a_retry_of_a_paused_run_waits_for_its_resume(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    let session = bench.jobs.open_session().await;
    let only = task(&start, 1);
    let running = bench.running(only).await;
    pause(&bench, &start).await;
    bench.settle_all(vec![goes_again(&running)]).await;
    bench.assert_stands(only, State::Scheduled, 0, 0).await;
    bench.jobs.changed(only, Change::RunNow, at(5)).await;
    assert_eq!(bench.jobs.claim(session, &[only], LATER).await, []);
    resume(&bench, &start).await;
    assert_eq!(bench.jobs.claim(session, &[only], LATER).await[0].attempt, 2);
}

pub async fn a_paused_run_that_has_ended_is_paused_no_more(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    let running = bench.running(task(&start, 1)).await;
    pause(&bench, &start).await;
    bench.settle_all(vec![fails(&running)]).await;
    set_status(&bench, start.run.id, RunStatus::Failed).await;
    assert_eq!(answered(bench.store.controls().await).paused_runs, []);
}

pub async fn a_task_that_is_brought_back_leaves_its_run_paused(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([])).await;
    let session = bench.jobs.open_session().await;
    let first = task(&start, 1);
    bench.end(first, fails).await;
    pause(&bench, &start).await;
    let before = bench.run(start.run.id).await;
    bench.jobs.changed(first, Change::Retry { payload: None }, at(5)).await;
    let after = bench.run(start.run.id).await;
    assert_eq!((after.progress, after.open), (before.progress, 2));
    assert_eq!(bench.jobs.claim(session, &[first], LATER).await, []);
}

pub async fn a_pause_of_another_revision_pauses_nothing(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    let progress = RunProgress { status: RunStatus::Paused, paused_at: Some(STEP_AT), ..start.run.progress };
    let step = bench.step(start.run.id).await;
    let stale = RunStep { progress: Some(progress), revision: step.revision + 1, ..step };
    assert_eq!(bench.advance(stale).await, RunAdvanced::Stale);
    let session = bench.jobs.open_session().await;
    assert_eq!(bench.jobs.claim(session, &[task(&start, 1)], LATER).await.len(), 1);
}

/// While others claim its tasks one by one: what they take after the answer is nothing.
pub async fn nothing_is_claimed_after_a_pause_was_acknowledged(store: Arc<dyn Store>) {
    const TASKS: u32 = 60;
    let bench = RunBench::new(store);
    let start = bench.start((0..TASKS).fold(run(), |builder, _| builder.task([]))).await;
    let session = bench.jobs.open_session().await;
    let mut claimants = JoinSet::new();
    for part in 0..3 {
        let (store, start) = (bench.store.clone(), start.clone());
        claimants.spawn(async move {
            for index in (1..=TASKS).filter(|index| index % 3 == part) {
                let claim = Claim { claimed_by: None, session, jobs: vec![task(&start, index)], now: LATER };
                answered(store.claim(claim).await);
                tokio::task::yield_now().await;
            }
        });
    }
    pause(&bench, &start).await;
    let running = async || {
        let tasks = bench.tasks(start.run.id).await;
        tasks.iter().filter(|task| task.state == State::Running).count()
    };
    let before = running().await;
    claimants.join_all().await;
    assert_eq!(running().await, before);
}
