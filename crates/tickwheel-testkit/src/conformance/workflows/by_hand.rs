//! What people do to single tasks, beside the reconciler: the run is changed in the same transaction.

use std::sync::Arc;

use tickwheel_core::State;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{Changed, RunAdvanced, Store};
use tickwheel_core::workflow::{Run, RunProgress, RunStatus, RunStep, TaskChange};

use super::super::store::bench::{completes, fails};
use super::bench::{RunBench, STEP_AT, ends, only, task, whole};
use crate::fixtures::{at, run};

const RETRY: Change = Change::Retry { payload: None };

pub async fn a_cancelled_task_is_open_no_more_and_the_run_is_reconciled(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([1]).watched([1])).await;
    bench.jobs.changed(task(&start, 1), Change::Cancel, at(5)).await;
    let run = bench.run(start.run.id).await;
    assert_eq!((run.open, run.revision), (3, start.run.revision));
    bench.assert_stands(task(&start, 3), State::Pending, 0, 1).await;
    assert_eq!(bench.requested_ids().await, only([whole(&start), task(&start, 3), task(&start, 4)]));
    bench.clear_reconcile_requests().await;
    bench.jobs.changed(task(&start, 1), Change::Cancel, at(6)).await;
    assert_eq!(bench.run(start.run.id).await.open, 3, "it was cancelled before");
    assert_eq!(bench.reconcile_requests().await, []);
}

pub async fn a_running_task_that_is_asked_to_stop_is_still_open(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    bench.running(task(&start, 1)).await;
    bench.jobs.changed(task(&start, 1), Change::Cancel, at(5)).await;
    assert_eq!(bench.run(start.run.id).await.open, 1);
    assert_eq!(bench.reconcile_requests().await, []);
}

pub async fn a_fan_out_cannot_be_cancelled_alone(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().reconciled([]).fan_out()).await;
    let refused = bench.jobs.change(task(&start, 1), Change::Cancel, at(5)).await;
    assert!(matches!(refused, Changed::Illegal(_)), "{refused:?}");
    assert_eq!(bench.run(start.run.id).await, start.run);
}

/// Whatever was decided before does not know of it.
pub async fn a_retried_task_makes_its_run_go_on(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    let id = start.run.id;
    bench.end(task(&start, 1), fails).await;
    let progress = RunProgress {
        status: RunStatus::Failed,
        cancel_requested: true,
        ended_at: Some(STEP_AT),
        after_first: Some(3),
        blocked: 1,
        ..start.run.progress
    };
    let changes = vec![(task(&start, 2), TaskChange::Block)];
    bench.done(RunStep { progress: Some(progress), changes, ..bench.step(id).await }).await;
    bench.clear_reconcile_requests().await;
    let before = bench.run(id).await;
    let stale = bench.step(id).await;
    let retried = bench.jobs.changed(task(&start, 1), RETRY, at(90_000)).await;
    assert_eq!((retried.state(), retried.due_at), (State::Scheduled, at(90_000)));
    let expected = Run { open: 2, revision: before.revision + 1, progress: progress.retried(), ..before };
    assert_eq!(bench.run(id).await, expected);
    assert_eq!(bench.requested_ids().await, only([whole(&start)]));
    bench.assert_stands(task(&start, 2), State::Blocked, 1, 0).await;
    assert_eq!(bench.advance(stale).await, RunAdvanced::Stale);
    let batch = bench.end(task(&start, 1), completes).await;
    assert_eq!(batch.released[0].due.id, task(&start, 2), "it was blocked by nothing else");
}

/// The reconciler releases one that has never run.
pub async fn a_retried_task_that_never_ran_waits_for_the_reconciler(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1]).watched([2])).await;
    let id = start.run.id;
    bench.change(id, [(task(&start, 2), ends(State::Skipped))]).await;
    bench.end(task(&start, 1), completes).await;
    bench.clear_reconcile_requests().await;
    bench.jobs.changed(task(&start, 2), RETRY, at(90_000)).await;
    bench.assert_stands(task(&start, 2), State::Pending, 0, 0).await;
    bench.assert_stands(task(&start, 3), State::Pending, 1, 0).await;
    assert_eq!(bench.requested_ids().await, only([whole(&start), task(&start, 3)]));
    assert_eq!(bench.run(id).await.open, 2);
}

pub async fn a_task_that_is_held_or_edited_changes_nothing_for_its_run(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    for change in [Change::Pause, Change::Resume, Change::RunNow] {
        bench.jobs.changed(task(&start, 1), change, at(5)).await;
    }
    assert_eq!(bench.run(start.run.id).await, start.run);
    assert_eq!(bench.reconcile_requests().await, []);
    let batch = bench.end(task(&start, 1), completes).await;
    assert_eq!(batch.released.len(), 1);
}
