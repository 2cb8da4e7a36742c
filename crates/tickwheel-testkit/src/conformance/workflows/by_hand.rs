//! What people do to single tasks, beside the conductor: the run hears of it in the same transaction.

use std::sync::Arc;

use tickwheel_core::State;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{Changed, RunAdvanced, Store};
use tickwheel_core::workflow::{Run, RunProgress, RunStatus, RunStep, TaskChange};

use super::super::store::bench::{completes, fails};
use super::bench::{RunBench, STEP_AT, ends, only, task, whole};
use crate::fixtures::{at, run};

const REVIVE: Change = Change::Revive { payload: None };

pub async fn a_cancelled_task_is_open_no_more_and_the_run_is_looked_at(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([1]).watched([1])).await;
    bench.jobs.changed(task(&start, 1), Change::Cancel, at(5)).await;
    let run = bench.run(start.run.id).await;
    assert_eq!((run.open, run.revision), (3, start.run.revision));
    bench.assert_stands(task(&start, 3), State::Pending, 0, 1).await;
    assert_eq!(bench.places().await, only([whole(&start), task(&start, 3), task(&start, 4)]));
    bench.look_away().await;
    bench.jobs.changed(task(&start, 1), Change::Cancel, at(6)).await;
    assert_eq!(bench.run(start.run.id).await.open, 3, "it was cancelled before");
    assert_eq!(bench.looks().await, []);
}

pub async fn a_running_task_that_is_asked_to_stop_is_still_open(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    bench.running(task(&start, 1)).await;
    bench.jobs.changed(task(&start, 1), Change::Cancel, at(5)).await;
    assert_eq!(bench.run(start.run.id).await.open, 1);
    assert_eq!(bench.looks().await, []);
}

pub async fn what_stands_for_parts_cannot_be_cancelled_alone(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().conducted([]).parts()).await;
    let refused = bench.jobs.change(task(&start, 1), Change::Cancel, at(5)).await;
    assert!(matches!(refused, Changed::Illegal(_)), "{refused:?}");
    assert_eq!(bench.run(start.run.id).await, start.run);
}

/// Whatever was decided before does not know of it.
pub async fn a_revived_task_makes_its_run_go_on(store: Arc<dyn Store>) {
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
    bench.look_away().await;
    let before = bench.run(id).await;
    let stale = bench.step(id).await;
    let revived = bench.jobs.changed(task(&start, 1), REVIVE, at(90_000)).await;
    assert_eq!((revived.state, revived.due_at), (State::Scheduled, at(90_000)));
    let expected = Run { open: 2, revision: before.revision + 1, progress: progress.revived(), ..before };
    assert_eq!(bench.run(id).await, expected);
    assert_eq!(bench.places().await, only([whole(&start)]));
    bench.assert_stands(task(&start, 2), State::Blocked, 1, 0).await;
    assert_eq!(bench.advance(stale).await, RunAdvanced::Stale);
    let batch = bench.end(task(&start, 1), completes).await;
    assert_eq!(batch.released[0].due.id, task(&start, 2), "it was blocked by nothing else");
}

/// One that has never run is for the conductor to let go.
pub async fn a_revived_task_that_never_ran_waits_for_the_conductor(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1]).watched([2])).await;
    let id = start.run.id;
    bench.change(id, [(task(&start, 2), ends(State::Skipped))]).await;
    bench.end(task(&start, 1), completes).await;
    bench.look_away().await;
    bench.jobs.changed(task(&start, 2), REVIVE, at(90_000)).await;
    bench.assert_stands(task(&start, 2), State::Pending, 0, 0).await;
    bench.assert_stands(task(&start, 3), State::Pending, 1, 0).await;
    assert_eq!(bench.places().await, only([whole(&start), task(&start, 3)]));
    assert_eq!(bench.run(id).await.open, 2);
}

pub async fn a_task_that_is_held_or_edited_changes_nothing_for_its_run(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    for change in [Change::Pause, Change::Resume, Change::RunNow] {
        bench.jobs.changed(task(&start, 1), change, at(5)).await;
    }
    assert_eq!(bench.run(start.run.id).await, start.run);
    assert_eq!(bench.looks().await, []);
    let batch = bench.end(task(&start, 1), completes).await;
    assert_eq!(batch.released.len(), 1);
}
