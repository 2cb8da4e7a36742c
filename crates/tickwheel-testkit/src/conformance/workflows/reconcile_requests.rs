//! The list of reconcile requests: nothing is taken off it that was requested after somebody had read it.

use std::sync::Arc;

use tickwheel_core::ports::Store;
use tickwheel_core::workflow::RunStep;
use tickwheel_core::{JobId, RunId};

use super::super::store::bench::{answered, completes, fails};
use super::bench::{RunBench, only, task, whole};
use crate::fixtures::run;

pub async fn reading_takes_nothing_off_the_list(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    bench.end(task(&start, 1), completes).await;
    let reconcile_requests = bench.reconcile_requests().await;
    assert_eq!(reconcile_requests.len(), 1);
    assert!(reconcile_requests[0].is_whole() && reconcile_requests[0].run() == start.run.id);
    assert_eq!(bench.reconcile_requests().await, reconcile_requests);
}

pub async fn what_was_reconciled_is_off_the_list(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).watched([1])).await;
    bench.end(task(&start, 1), fails).await;
    let reconcile_requests = bench.reconcile_requests().await;
    assert_eq!(reconcile_requests.len(), 2);
    bench.done(RunStep { reconciled: vec![reconcile_requests[0]], ..bench.step(start.run.id).await }).await;
    assert_eq!(bench.reconcile_requests().await, [reconcile_requests[1]]);
}

pub async fn what_was_asked_for_meanwhile_stays_on_the_list(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).watched([1, 2])).await;
    bench.end(task(&start, 1), completes).await;
    let seen = bench.reconcile_requests().await;
    bench.end(task(&start, 2), completes).await;
    bench.done(RunStep { reconciled: seen.clone(), ..bench.step(start.run.id).await }).await;
    let left = bench.reconcile_requests().await;
    assert_eq!(left.iter().map(|request| request.id).collect::<Vec<_>>(), [task(&start, 3)]);
    assert_ne!(left, seen);
    bench.done(RunStep { reconciled: left, ..bench.step(start.run.id).await }).await;
    assert_eq!(bench.reconcile_requests().await, []);
}

/// Two read, one of them is done first; then it is requested once more, and the other one comes with what it read
/// before.
pub async fn a_request_that_was_done_and_made_again_is_another_one(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).watched([1, 2])).await;
    bench.end(task(&start, 1), completes).await;
    let seen = bench.reconcile_requests().await;
    bench.clear_reconcile_requests().await;
    bench.end(task(&start, 2), completes).await;
    bench.done(RunStep { reconciled: seen, ..bench.step(start.run.id).await }).await;
    assert_eq!(bench.requested_ids().await, only([task(&start, 3)]));
}

pub async fn a_step_can_request_a_reconcile(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    let reconcile_requests = vec![whole(&start), task(&start, 2)];
    bench.done(RunStep { reconcile_requests, ..bench.step(start.run.id).await }).await;
    assert_eq!(bench.requested_ids().await, only([whole(&start), task(&start, 2)]));
    let reconciled = bench.reconcile_requests().await;
    let again =
        RunStep { reconcile_requests: vec![task(&start, 2)], reconciled, ..bench.step(start.run.id).await };
    bench.done(again).await;
    assert_eq!(
        bench.requested_ids().await,
        only([task(&start, 2)]),
        "requested by the very step that answered it"
    );
}

pub async fn no_more_requests_are_read_than_asked_for(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    for _ in 0..5 {
        let start = bench.start(run().task([]).task([])).await;
        bench
            .done(RunStep { reconcile_requests: vec![whole(&start)], ..bench.step(start.run.id).await })
            .await;
        bench.end(task(&start, 1), fails).await;
        let reconcile_requests = answered(bench.store.reconcile_requests(None, 1).await);
        assert_eq!(reconcile_requests.len(), 1);
        bench.clear_reconcile_requests().await;
    }
    for _ in 0..5 {
        let start = run().reconciled([]).build();
        answered(bench.store.start_run(start).await);
    }
    assert_eq!(answered(bench.store.reconcile_requests(None, 3).await).len(), 3);
    assert_eq!(answered(bench.store.reconcile_requests(None, 100).await).len(), 5);
}

/// Whoever has read so many goes on behind them: those of a run follow each other, and runs take turns.
pub async fn requests_are_read_in_the_order_of_their_runs(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let mut runs = Vec::new();
    for _ in 0..3 {
        let start = run().reconciled([]).reconciled([]).build();
        answered(bench.store.start_run(start.clone()).await);
        runs.push(start.run.id);
    }
    runs.sort_unstable();
    let all = answered(bench.store.reconcile_requests(None, 100).await);
    let told: Vec<RunId> = all.iter().map(|request| request.run()).collect();
    assert_eq!(told, [runs[0], runs[0], runs[1], runs[1], runs[2], runs[2]]);
    let after = |at| bench.store.reconcile_requests(Some(at), 2);
    assert_eq!(answered(after(all[0].id).await), all[1..3]);
    assert_eq!(answered(after(JobId::of_task(runs[0], RunId::TASK_INDEX_MAX)).await), all[2..4]);
    assert_eq!(answered(after(all[5].id).await), []);
}
