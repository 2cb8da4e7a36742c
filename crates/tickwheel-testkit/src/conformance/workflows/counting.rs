//! Counts: what the end of a task means to those that wait for it, and to its run. They decide nothing that the
//! reconciler has to decide, and a reconcile is requested for all of that.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_core::State;
use tickwheel_core::ports::{Settled, Store};
use tickwheel_core::settle::Settlement;

use super::super::store::bench::{answered, completes, fails, goes_again, is_cancelled};
use super::super::store::dependencies::child;
use super::bench::{RunBench, STEP_AT, ends, only, task, whole};
use crate::fixtures::{job, run};

pub async fn the_last_parent_that_completes_lets_a_task_go(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([1, 2])).await;
    let (first, last) = (task(&start, 1), task(&start, 3));
    let batch = bench.end(first, completes).await;
    assert_eq!((batch.released.len(), batch.reconcile_requested), (0, false));
    bench.assert_stands(last, State::Pending, 1, 0).await;
    let batch = bench.end(task(&start, 2), completes).await;
    assert_eq!(
        (batch.released[0].due.id, batch.reconcile_requested),
        (last, false),
        "nobody has to decide anything"
    );
    bench.assert_stands(last, State::Scheduled, 0, 0).await;
    assert_eq!(bench.reconcile_requests().await, []);
}

pub async fn a_task_of_the_reconciler_is_requested_when_none_of_its_parents_is_open(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).reconciled([1, 2])).await;
    let batch = bench.end(task(&start, 1), completes).await;
    assert!(!batch.reconcile_requested);
    let batch = bench.end(task(&start, 2), completes).await;
    assert_eq!((batch.released.len(), batch.reconcile_requested), (0, true));
    bench.assert_stands(task(&start, 3), State::Pending, 0, 0).await;
    assert_eq!(bench.requested_ids().await, only([task(&start, 3)]));
}

pub async fn a_watched_task_is_requested_whenever_a_parent_ends(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).watched([1, 2])).await;
    for index in [1, 2] {
        assert!(bench.end(task(&start, index), completes).await.reconcile_requested);
        assert_eq!(bench.requested_ids().await, only([task(&start, 3)]));
        bench.assert_stands(task(&start, 3), State::Pending, 2 - index, 0).await;
        bench.clear_reconcile_requests().await;
    }
}

/// It is not blocked by its counts, as a job outside of workflows would be.
pub async fn a_failed_parent_leaves_a_task_pending_and_requests_a_reconcile_of_the_run(
    store: Arc<dyn Store>,
) {
    let bench = RunBench::new(store);
    for end in [fails, is_cancelled] {
        let start = bench.start(run().task([]).task([]).task([1, 2])).await;
        let batch = bench.end(task(&start, 1), end).await;
        assert_eq!((batch.released.len(), batch.reconcile_requested), (0, true));
        bench.assert_stands(task(&start, 3), State::Pending, 1, 1).await;
        assert_eq!(bench.requested_ids().await, only([whole(&start)]));
        bench.clear_reconcile_requests().await;
        assert!(bench.end(task(&start, 2), completes).await.reconcile_requested, "now none is open");
        bench.assert_stands(task(&start, 3), State::Pending, 0, 1).await;
        assert_eq!(bench.requested_ids().await, only([task(&start, 3)]));
        bench.clear_reconcile_requests().await;
    }
}

pub async fn open_jobs_are_counted_down_and_the_last_one_requests_a_reconcile(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([])).await;
    for (index, open) in [(1, 2), (2, 1), (3, 0)] {
        let reconcile_requests = bench.end(task(&start, index), completes).await.reconcile_requested;
        assert_eq!((bench.run(start.run.id).await.open, reconcile_requests), (open, open == 0));
    }
    assert_eq!(bench.requested_ids().await, only([whole(&start)]));
    assert_eq!(bench.run(start.run.id).await.revision, start.run.revision, "counting decides nothing");
}

pub async fn a_run_with_nothing_but_blocked_jobs_open_is_reconciled(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let blocked = run().task([]).task([]).task([]).with(|run| run.progress.blocked = 1);
    let start = bench.start(blocked).await;
    assert!(!bench.end(task(&start, 1), completes).await.reconcile_requested);
    assert!(bench.end(task(&start, 2), completes).await.reconcile_requested);
    assert_eq!(bench.requested_ids().await, only([whole(&start)]));
}

pub async fn a_batch_counts_all_its_ends_and_every_run_for_itself(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let one = bench.start(run().task([]).task([]).reconciled([1, 2])).await;
    let other = bench.start(run().task([]).task([])).await;
    let plain = bench.jobs.running(job()).await;
    let mut ends = vec![completes(&plain)];
    for id in [task(&one, 1), task(&one, 2), task(&other, 2)] {
        ends.push(completes(&bench.running(id).await));
    }
    assert!(bench.settle_all(ends).await.reconcile_requested);
    assert_eq!(bench.run(one.run.id).await.open, 1);
    assert_eq!(bench.run(other.run.id).await.open, 1);
    assert_eq!(bench.requested_ids().await, only([task(&one, 3)]));
}

pub async fn a_settlement_that_is_repeated_counts_once(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).reconciled([1])).await;
    let running = bench.running(task(&start, 1)).await;
    let end = completes(&running);
    let twice = answered(bench.store.settle(vec![end.clone(), end.clone()]).await);
    assert_eq!(
        (&twice.settled[..], twice.reconcile_requested),
        (&[Settled::Applied, Settled::Stale][..], true)
    );
    bench.clear_reconcile_requests().await;
    let again = answered(bench.store.settle(vec![end]).await);
    assert_eq!((&again.settled[..], again.reconcile_requested), (&[Settled::Stale][..], false));
    assert_eq!(bench.run(start.run.id).await.open, 2);
    assert_eq!(bench.reconcile_requests().await, []);
}

pub async fn an_attempt_that_goes_again_counts_nothing(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).watched([1])).await;
    assert!(!bench.end(task(&start, 1), goes_again).await.reconcile_requested);
    assert_eq!(bench.run(start.run.id).await.open, 2);
    assert_eq!(bench.reconcile_requests().await, []);
}

pub async fn jobs_outside_of_workflows_request_no_reconcile(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let parent = bench.jobs.running(job()).await;
    child(&bench.jobs, job().depends_on([parent.id])).await;
    let batch = bench.settle_all(vec![fails(&parent)]).await;
    assert!(!batch.reconcile_requested);
    assert_eq!(bench.reconcile_requests().await, []);
}

/// A job outside of workflows may depend on a task like on any other job.
pub async fn a_job_that_depends_on_a_task_is_released_by_it(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).reconciled([])).await;
    let by_settlement = child(&bench.jobs, job().depends_on([task(&start, 1)])).await;
    let by_step = child(&bench.jobs, job().depends_on([task(&start, 2)])).await;
    let batch = bench.end(task(&start, 1), completes).await;
    assert_eq!(batch.released.iter().map(|job| job.due.id).collect::<Vec<_>>(), [by_settlement.id]);
    let effects = bench.change(start.run.id, [(task(&start, 2), ends(State::Completed))]).await;
    assert_eq!(effects.scheduled.iter().map(|job| job.due.id).collect::<Vec<_>>(), [by_step.id]);
    assert_eq!(effects.scheduled[0].due.due_at, STEP_AT);
}

pub async fn a_task_and_a_job_outside_of_its_run_are_released_by_the_same_end(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    let outside = child(&bench.jobs, job().depends_on([task(&start, 1)])).await;
    let batch = bench.end(task(&start, 1), completes).await;
    let released: BTreeSet<_> = batch.released.iter().map(|job| job.due.id).collect();
    assert_eq!(released, [task(&start, 2), outside.id].into());
}

pub async fn an_end_that_is_refused_releases_nobody_and_is_not_counted(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([1]).task([1, 2])).await;
    let (first, second) = (bench.running(task(&start, 1)).await, bench.running(task(&start, 2)).await);
    let refused = Settlement { attempt: second.attempt + 1, ..completes(&second) };
    let ends = vec![completes(&first), refused];
    let batch = answered(bench.store.settle(ends.clone()).await);
    assert_eq!(batch.settled, [Settled::Applied, Settled::Stale]);
    assert_eq!(batch.released.iter().map(|job| job.due.id).collect::<Vec<_>>(), [task(&start, 3)]);
    bench.assert_stands(task(&start, 4), State::Pending, 1, 0).await;
    let again = answered(bench.store.settle(ends).await);
    assert_eq!((again.settled, again.released), (vec![Settled::Stale; 2], vec![]));
    assert_eq!(bench.run(start.run.id).await.open, 3);
}

pub async fn after_a_failure_elsewhere_what_waits_for_completed_tasks_still_goes(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([2]).task([1, 2])).await;
    bench.end(task(&start, 1), fails).await;
    bench.clear_reconcile_requests().await;
    let batch = bench.end(task(&start, 2), completes).await;
    assert_eq!(batch.released.iter().map(|job| job.due.id).collect::<Vec<_>>(), [task(&start, 3)]);
    assert_eq!(bench.requested_ids().await, only([task(&start, 4)]), "that is the reconciler's to decide");
    assert_eq!(bench.run(start.run.id).await.open, 2);
}

/// Many batches at once on the parents of one child: nothing is lost and nothing counted twice.
pub async fn parents_that_end_at_the_same_moment_are_all_counted(store: Arc<dyn Store>) {
    const PARENTS: u32 = 24;
    let mut builder = run();
    for _ in 0..PARENTS {
        builder = builder.task([]);
    }
    let parents: [u32; PARENTS as usize] = std::array::from_fn(|n| n as u32 + 1);
    let bench = RunBench::new(store);
    let start = bench.start(builder.reconciled(parents).task(parents)).await;
    let batches = bench.complete_at_once(parents.map(|index| task(&start, index))).await;
    let released: Vec<_> = batches.iter().flat_map(|batch| &batch.released).map(|job| job.due.id).collect();
    assert_eq!(released, [task(&start, PARENTS + 2)]);
    assert_eq!(batches.iter().filter(|batch| batch.reconcile_requested).count(), 1, "the last of them");
    bench.assert_stands(task(&start, PARENTS + 1), State::Pending, 0, 0).await;
    assert_eq!(bench.run(start.run.id).await.open, 2);
    assert_eq!(bench.requested_ids().await, only([task(&start, PARENTS + 1)]));
}
