//! The list of what is to be looked at: nothing is taken off it that was asked for after somebody had looked.

use std::sync::Arc;

use tickwheel_core::ports::Store;
use tickwheel_core::workflow::RunStep;
use tickwheel_core::{JobId, RunId};

use super::super::store::bench::{answered, completes, fails};
use super::bench::{RunBench, only, task, whole};
use crate::fixtures::run;

pub async fn looking_takes_nothing_off_the_list(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    bench.end(task(&start, 1), completes).await;
    let looks = bench.looks().await;
    assert_eq!(looks.len(), 1);
    assert!(looks[0].is_whole() && looks[0].run() == start.run.id);
    assert_eq!(bench.looks().await, looks);
}

pub async fn what_was_looked_at_is_off_the_list(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).watched([1])).await;
    bench.end(task(&start, 1), fails).await;
    let looks = bench.looks().await;
    assert_eq!(looks.len(), 2);
    bench.done(RunStep { looked: vec![looks[0]], ..bench.step(start.run.id).await }).await;
    assert_eq!(bench.looks().await, [looks[1]]);
}

pub async fn what_was_asked_for_meanwhile_stays_on_the_list(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).watched([1, 2])).await;
    bench.end(task(&start, 1), completes).await;
    let seen = bench.looks().await;
    bench.end(task(&start, 2), completes).await;
    bench.done(RunStep { looked: seen.clone(), ..bench.step(start.run.id).await }).await;
    let left = bench.looks().await;
    assert_eq!(left.iter().map(|look| look.at).collect::<Vec<_>>(), [task(&start, 3)]);
    assert_ne!(left, seen);
    bench.done(RunStep { looked: left, ..bench.step(start.run.id).await }).await;
    assert_eq!(bench.looks().await, []);
}

/// Two look, one of them is done first; then it is asked for once more, and the other one comes with what he saw before.
pub async fn a_look_that_was_done_and_asked_for_again_is_another_one(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).watched([1, 2])).await;
    bench.end(task(&start, 1), completes).await;
    let seen = bench.looks().await;
    bench.look_away().await;
    bench.end(task(&start, 2), completes).await;
    bench.done(RunStep { looked: seen, ..bench.step(start.run.id).await }).await;
    assert_eq!(bench.places().await, only([task(&start, 3)]));
}

pub async fn a_step_can_ask_for_looks(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    let looks = vec![whole(&start), task(&start, 2)];
    bench.done(RunStep { looks, ..bench.step(start.run.id).await }).await;
    assert_eq!(bench.places().await, only([whole(&start), task(&start, 2)]));
    let looked = bench.looks().await;
    let again = RunStep { looks: vec![task(&start, 2)], looked, ..bench.step(start.run.id).await };
    bench.done(again).await;
    assert_eq!(bench.places().await, only([task(&start, 2)]), "asked for by the very step that had looked");
}

pub async fn no_more_looks_are_told_than_asked_for(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    for _ in 0..5 {
        let start = bench.start(run().task([]).task([])).await;
        bench.done(RunStep { looks: vec![whole(&start)], ..bench.step(start.run.id).await }).await;
        bench.end(task(&start, 1), fails).await;
        let looks = answered(bench.store.looks(None, 1).await);
        assert_eq!(looks.len(), 1);
        bench.look_away().await;
    }
    for _ in 0..5 {
        let start = run().conducted([]).build();
        answered(bench.store.start_run(start).await);
    }
    assert_eq!(answered(bench.store.looks(None, 3).await).len(), 3);
    assert_eq!(answered(bench.store.looks(None, 100).await).len(), 5);
}

/// Whoever has looked at so many goes on behind them: those of a run follow each other, and runs take turns.
pub async fn looks_are_told_in_the_order_of_their_runs(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let mut runs = Vec::new();
    for _ in 0..3 {
        let start = run().conducted([]).conducted([]).build();
        answered(bench.store.start_run(start.clone()).await);
        runs.push(start.run.id);
    }
    runs.sort_unstable();
    let all = answered(bench.store.looks(None, 100).await);
    let told: Vec<RunId> = all.iter().map(|look| look.run()).collect();
    assert_eq!(told, [runs[0], runs[0], runs[1], runs[1], runs[2], runs[2]]);
    let after = |at| bench.store.looks(Some(at), 2);
    assert_eq!(answered(after(all[0].at).await), all[1..3]);
    assert_eq!(answered(after(JobId::of_task(runs[0], RunId::TASK_INDEX_MAX)).await), all[2..4]);
    assert_eq!(answered(after(all[5].at).await), []);
}
