//! Callbacks: an end that somebody wants to hear of is written with the end, and told until it is over.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::change::Change;
use tickwheel_core::ports::{Callback, CallbackResult, Store};
use tickwheel_core::settle::Settlement;
use tickwheel_core::{Job, State};
use tokio::task::JoinSet;

use super::bench::{Bench, answered, completes, fails, goes_again, is_cancelled};
use crate::fixtures::{JobBuilder, at, job};

const URL: &str = "https://example.com/done?of='this'&ü";

fn told() -> JobBuilder {
    job().callback_url(URL)
}

/// What has to be told of an ended job.
fn callback_of(ended: &Job, id: i64) -> Callback {
    Callback {
        id,
        job_id: ended.id,
        url: URL.into(),
        state: ended.state,
        attempt: ended.attempt,
        completed_at: ended.completed_at.expect("it has ended"),
        result: ended.result.clone(),
        error: ended.error.clone(),
        tries: 0,
        document: None,
    }
}

async fn is_told(bench: &Bench, ended: &Job, state: State) {
    assert_eq!(ended.state, state);
    let taken = bench.take_callbacks(at(100_000)).await;
    let id = taken.first().map_or(0, |callback| callback.id);
    assert_eq!(taken, [callback_of(ended, id)]);
    answered(bench.store.settle_callback(id, CallbackResult::Over).await);
}

pub async fn every_end_is_told(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    is_told(&bench, &bench.settled(told(), completes).await, State::Completed).await;
    is_told(&bench, &bench.settled(told(), fails).await, State::Failed).await;
    is_told(&bench, &bench.settled(told(), is_cancelled).await, State::Cancelled).await;
    let waiting = bench.submit(told()).await;
    let cancelled = bench.changed(waiting.id, Change::Cancel, at(2_000)).await;
    is_told(&bench, &cancelled, State::Cancelled).await;
    let retrying = bench.settled(told(), goes_again).await;
    let cancelled = bench.changed(retrying.id, Change::Cancel, at(2_000)).await;
    is_told(&bench, &cancelled, State::Cancelled).await;
}

pub async fn nothing_is_told_unless_a_job_ended_and_somebody_wants_to_know(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for end in [completes, fails, is_cancelled] {
        bench.settled(job(), end).await;
    }
    let unheard = bench.submit(job()).await;
    bench.changed(unheard.id, Change::Cancel, at(1)).await;
    bench.submit(told()).await;
    bench.settled(told(), goes_again).await;
    let running = bench.running(told()).await;
    bench.changed(running.id, Change::Cancel, at(1)).await;
    let stale = Settlement { attempt: 7, ..completes(&running) };
    bench.settle(stale).await;
    assert_eq!(bench.take_callbacks(at(100_000)).await, []);
}

pub async fn a_callback_is_due_when_the_job_ended(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let done = bench.settled(told(), |job| Settlement { ended_at: at(7_000), ..completes(job) }).await;
    assert_eq!(bench.take_callbacks(at(6_999)).await, []);
    assert_eq!(bench.take_callbacks(at(7_000)).await.len(), 1);
    assert_eq!(bench.job(done.id).await, done);
}

pub async fn a_callback_that_was_taken_is_not_given_to_another_before_its_time(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    let taken = answered(bench.store.take_callbacks(at(10_000), at(20_000), 10).await);
    assert_eq!(answered(bench.store.take_callbacks(at(19_999), at(30_000), 10).await), []);
    // Whoever took it did not live to say what became of it.
    let again = answered(bench.store.take_callbacks(at(20_000), at(30_000), 10).await);
    assert_eq!(again, taken);
}

pub async fn a_callback_is_tried_again_when_told_so(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    let mut expected = bench.take_callbacks(at(10_000)).await;
    for tries in 1..4 {
        let due_at = at(10_000 + i64::from(tries) * 100);
        let again = CallbackResult::Again { due_at };
        answered(bench.store.settle_callback(expected[0].id, again).await);
        assert_eq!(bench.take_callbacks(due_at - Duration::from_millis(1)).await, []);
        expected[0].tries = tries;
        assert_eq!(bench.take_callbacks(due_at).await, expected);
    }
}

pub async fn a_callback_that_is_over_is_never_taken_again(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    let taken = bench.take_callbacks(at(10_000)).await;
    answered(bench.store.settle_callback(taken[0].id, CallbackResult::Over).await);
    assert_eq!(bench.take_callbacks(at(1_000_000)).await, []);
    // A sender that comes late finds nothing to change.
    let again = CallbackResult::Again { due_at: at(0) };
    answered(bench.store.settle_callback(taken[0].id, again).await);
    answered(bench.store.settle_callback(1 << 40, CallbackResult::Over).await);
    assert_eq!(bench.take_callbacks(at(1_000_000)).await, []);
}

/// The longest due go first, so that none starves.
pub async fn no_more_callbacks_are_taken_than_asked_for(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let mut jobs = Vec::new();
    for ended_ms in [5_000, 3_000, 4_000] {
        let end = |job: &Job| Settlement { ended_at: at(ended_ms), ..completes(job) };
        jobs.push(bench.settled(told(), end).await.id);
    }
    let first = answered(bench.store.take_callbacks(at(9_000), at(99_000), 2).await);
    let mut ids: Vec<_> = first.iter().map(|callback| callback.job_id).collect();
    ids.sort();
    assert_eq!(ids, [jobs[1], jobs[2]]);
    let rest = answered(bench.store.take_callbacks(at(9_000), at(99_000), 2).await);
    assert_eq!(rest.iter().map(|callback| callback.job_id).collect::<Vec<_>>(), [jobs[0]]);
}

pub async fn no_callback_goes_to_two_takers(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = bench.submit_all((0..30).map(|_| told())).await;
    for job in &jobs {
        bench.changed(job.id, Change::Cancel, at(1)).await;
    }
    let mut takers = JoinSet::new();
    for _ in 0..6 {
        let store = bench.store.clone();
        takers.spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..6 {
                mine.extend(answered(store.take_callbacks(at(10), at(99_000), 7).await));
            }
            mine
        });
    }
    let taken: Vec<Callback> = takers.join_all().await.into_iter().flatten().collect();
    let mut ids: Vec<_> = taken.iter().map(|callback| callback.job_id).collect();
    ids.sort();
    assert_eq!(ids, super::bench::sorted_ids(&jobs), "each goes to exactly one");
}

/// The first end is still told; the second is another story.
pub async fn a_revived_job_that_ends_again_has_another_callback(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let failed = bench.settled(told(), fails).await;
    let revived = bench.changed(failed.id, Change::Revive { payload: None }, at(5_000)).await;
    let running = bench.start(&revived).await;
    bench.settle(completes(&running)).await;
    let mut taken = bench.take_callbacks(at(100_000)).await;
    taken.sort_by_key(|callback| callback.attempt);
    assert_eq!(taken.len(), 2);
    assert_eq!(taken[0], callback_of(&failed, taken[0].id));
    assert_eq!(taken[1], callback_of(&bench.job(failed.id).await, taken[1].id));
    assert_ne!(taken[0].id, taken[1].id);
}
