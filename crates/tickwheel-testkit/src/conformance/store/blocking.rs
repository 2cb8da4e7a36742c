//! A parent that ended badly blocks its children, and whoever is run again takes up its place among the others.

use std::sync::Arc;

use tickwheel_core::State;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{Changed, Store};

use super::bench::{Bench, answered, completes, fails, is_cancelled, sorted_ids};
use super::dependencies::{assert_stands, child, released_by};
use crate::fixtures::{at, job};

const RETRY: Change = Change::Retry { payload: None };

pub async fn one_that_completes_and_one_that_fails_in_one_batch_block(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (good, bad) = (bench.running(job()).await, bench.running(job()).await);
    let waiting = child(&bench, job().depends_on([good.id, bad.id])).await;
    assert_eq!(released_by(&bench, vec![completes(&good), fails(&bad)]).await, []);
    assert_stands(&bench, waiting.id, State::Blocked, 0, 1).await;
}

pub async fn a_parent_that_has_ended_badly_blocks_from_the_start(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let failed = bench.settled(job(), fails).await;
    let stopped = bench.settled(job(), is_cancelled).await;
    let open = bench.submit(job()).await;
    let blocked = child(&bench, job().depends_on([failed.id])).await;
    assert_stands(&bench, blocked.id, State::Blocked, 0, 1).await;
    let blocked = child(&bench, job().depends_on([open.id, stopped.id, failed.id])).await;
    assert_stands(&bench, blocked.id, State::Blocked, 1, 2).await;
}

pub async fn a_parent_that_fails_or_is_stopped_blocks_its_children(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for end in [fails, is_cancelled] {
        let (parent, other) = (bench.running(job()).await, bench.running(job()).await);
        let waiting = child(&bench, job().depends_on([parent.id, other.id])).await;
        assert_eq!(released_by(&bench, vec![end(&parent)]).await, []);
        assert_stands(&bench, waiting.id, State::Blocked, 1, 1).await;
        assert_eq!(
            released_by(&bench, vec![completes(&other)]).await,
            [],
            "one that completes does not help"
        );
        assert_stands(&bench, waiting.id, State::Blocked, 0, 1).await;
    }
}

pub async fn a_parent_cancelled_while_it_waits_blocks_its_children_and_no_further(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.submit(job()).await;
    let blocked = child(&bench, job().depends_on([parent.id])).await;
    let grandchild = child(&bench, job().depends_on([blocked.id])).await;
    bench.changed(parent.id, Change::Cancel, at(10)).await;
    assert_stands(&bench, blocked.id, State::Blocked, 0, 1).await;
    assert_stands(&bench, grandchild.id, State::Pending, 1, 0).await;
    bench.changed(blocked.id, Change::Cancel, at(20)).await;
    assert_stands(&bench, grandchild.id, State::Blocked, 0, 1).await;
}

pub async fn a_retried_parent_is_waited_for_again(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let before = child(&bench, job().depends_on([parent.id])).await.id;
    released_by(&bench, vec![fails(&parent)]).await;
    let since = child(&bench, job().depends_on([parent.id])).await.id;
    for blocked in [before, since] {
        assert_stands(&bench, blocked, State::Blocked, 0, 1).await;
    }
    let retried = bench.changed(parent.id, RETRY, at(9_000)).await;
    for pending in [before, since] {
        assert_stands(&bench, pending, State::Pending, 1, 0).await;
    }
    let running = bench.start(&retried).await;
    assert_eq!(sorted_ids(&released_by(&bench, vec![completes(&running)]).await), [before, since]);
}

pub async fn of_two_failed_parents_both_have_to_be_retried(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (first, second) = (bench.running(job()).await, bench.running(job()).await);
    let waiting = child(&bench, job().depends_on([first.id, second.id])).await;
    released_by(&bench, vec![fails(&first), fails(&second)]).await;
    assert_stands(&bench, waiting.id, State::Blocked, 0, 2).await;
    let first = bench.changed(first.id, RETRY, at(9_000)).await;
    assert_stands(&bench, waiting.id, State::Blocked, 1, 1).await;
    let first = bench.start(&first).await;
    assert_eq!(released_by(&bench, vec![completes(&first)]).await, []);
    assert_stands(&bench, waiting.id, State::Blocked, 0, 1).await;
    let second = bench.changed(second.id, RETRY, at(9_000)).await;
    assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
    let second = bench.start(&second).await;
    assert_eq!(sorted_ids(&released_by(&bench, vec![completes(&second)]).await), [waiting.id]);
}

/// Fails, is retried and fails again, and again: the child's counts come back to the same every time.
pub async fn a_parent_can_fail_and_be_retried_any_number_of_times(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let mut parent = bench.running(job()).await;
    let waiting = child(&bench, job().depends_on([parent.id])).await;
    for turn in 0..3 {
        assert_eq!(released_by(&bench, vec![fails(&parent)]).await, []);
        assert_stands(&bench, waiting.id, State::Blocked, 0, 1).await;
        let retried = bench.changed(parent.id, RETRY, at(10_000 * (turn + 1))).await;
        assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
        parent = bench.start(&retried).await;
    }
    assert_eq!(sorted_ids(&released_by(&bench, vec![completes(&parent)]).await), [waiting.id]);
}

pub async fn a_retried_child_counts_its_parents_as_they_stand_then(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for end in [completes, fails] {
        let parent = bench.running(job()).await;
        let waiting = child(&bench, job().depends_on([parent.id])).await;
        bench.changed(waiting.id, Change::Cancel, at(10)).await;
        bench.changed(waiting.id, RETRY, at(20)).await;
        assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
        bench.changed(waiting.id, Change::Cancel, at(30)).await;
        let end = end(&parent);
        released_by(&bench, vec![end.clone()]).await;
        let retried = bench.changed(waiting.id, RETRY, at(40)).await;
        if end.next.state() == State::Completed {
            assert_stands(&bench, waiting.id, State::Scheduled, 0, 0).await;
            assert_eq!(retried.due_at, at(40));
        } else {
            assert_stands(&bench, waiting.id, State::Blocked, 0, 1).await;
        }
    }
}

/// Both were out of the way at some time; in the end the one waits for the other.
pub async fn a_retried_child_of_a_retried_parent_is_released_by_it(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let waiting = child(&bench, job().depends_on([parent.id])).await;
    bench.changed(waiting.id, Change::Cancel, at(10)).await;
    released_by(&bench, vec![fails(&parent)]).await;
    let parent = bench.changed(parent.id, RETRY, at(9_000)).await;
    bench.changed(waiting.id, RETRY, at(9_001)).await;
    assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
    let running = bench.start(&parent).await;
    assert_eq!(sorted_ids(&released_by(&bench, vec![completes(&running)]).await), [waiting.id]);
}

/// Blocked, because its own parent failed, and cancelled by hand; retried, it waits as long as its parents are not
/// done.
pub async fn a_chain_is_taken_up_where_it_broke(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.running(job()).await;
    let second = child(&bench, job().depends_on([first.id])).await;
    let third = child(&bench, job().depends_on([second.id])).await;
    released_by(&bench, vec![fails(&first)]).await;
    bench.changed(second.id, Change::Cancel, at(5_000)).await;
    assert_stands(&bench, third.id, State::Blocked, 0, 1).await;
    bench.changed(second.id, RETRY, at(6_000)).await;
    assert_stands(&bench, second.id, State::Blocked, 0, 1).await;
    assert_stands(&bench, third.id, State::Pending, 1, 0).await;
    let first = bench.changed(first.id, RETRY, at(7_000)).await;
    for (running, next) in [(first.id, second.id), (second.id, third.id)] {
        let running = bench.start(&bench.job(running).await).await;
        assert_eq!(sorted_ids(&released_by(&bench, vec![completes(&running)]).await), [next]);
    }
}

/// Whichever comes first, the child waits for it.
pub async fn a_parent_that_is_retried_while_its_child_is_submitted_is_waited_for(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for _ in 0..20 {
        let parent = bench.settled(job(), fails).await;
        let new = job().depends_on([parent.id]).build_new();
        let id = new.job.id;
        let (submitted, retried) = tokio::join!(
            bench.store.submit_jobs(vec![new]),
            bench.store.change_job(parent.id, RETRY, at(9_000)),
        );
        answered(submitted);
        let Changed::Done(retried) = answered(retried) else { panic!("a failed job can be retried") };
        assert_stands(&bench, id, State::Pending, 1, 0).await;
        let running = bench.start(&retried).await;
        assert_eq!(sorted_ids(&released_by(&bench, vec![completes(&running)]).await), [id]);
    }
}

/// A child comes back while its parent ends: it is never left waiting for one that is done.
pub async fn a_child_that_is_retried_while_its_parent_ends_is_told_of_it(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for _ in 0..20 {
        let parent = bench.running(job()).await;
        let waiting = child(&bench, job().depends_on([parent.id])).await;
        bench.changed(waiting.id, Change::Cancel, at(10)).await;
        let (retried, batch) = tokio::join!(
            bench.store.change_job(waiting.id, RETRY, at(20)),
            bench.store.settle(vec![completes(&parent)]),
        );
        answered(retried);
        answered(batch);
        assert_stands(&bench, waiting.id, State::Scheduled, 0, 0).await;
    }
}
