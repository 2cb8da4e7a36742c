//! Sessions: who is alive, and whose attempts are abandoned.
//!
//! An embedded store may end every other session at once, because nobody else can be alive; therefore no rule here
//! expects a session other than the caller's own to survive `expire_sessions`.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{FindAbandoned, Store};
use tickwheel_core::{Job, SessionId};

use super::bench::{Bench, LATER, answered, completes, goes_again};
use crate::fixtures::{JobBuilder, at, job, session_id};

const GRACE: Duration = Duration::from_secs(5);

pub async fn a_session_is_renewed_until_it_ends(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let id = bench.open_session().await;
    assert!(answered(bench.store.renew_session(id, LATER).await));
    answered(bench.store.end_session(id).await);
    assert!(!answered(bench.store.renew_session(id, LATER).await));
    assert!(!answered(bench.store.renew_session(session_id(1 << 40), LATER).await));
}

pub async fn ending_a_session_twice_is_harmless(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let id = bench.open_session().await;
    answered(bench.store.end_session(id).await);
    answered(bench.store.end_session(id).await);
    answered(bench.store.end_session(session_id(1 << 40)).await);
}

pub async fn a_session_whose_lease_is_over_is_ended_by_another(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let own = bench.open_session().await;
    let silent = bench.open_session_until(at(1_000)).await;
    assert_eq!(answered(bench.store.expire_sessions(own, at(1_001)).await).len(), 1);
    assert!(
        !answered(bench.store.renew_session(silent, LATER).await),
        "it has no right to its jobs any more"
    );
    assert!(answered(bench.store.renew_session(own, LATER).await));
    assert_eq!(answered(bench.store.expire_sessions(own, at(1_002)).await).len(), 0);
}

/// Not even when its own lease is over: whoever asks is alive.
pub async fn nobody_ends_his_own_session_by_expiry(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let own = bench.open_session_until(at(1_000)).await;
    assert_eq!(answered(bench.store.expire_sessions(own, at(2_000)).await).len(), 0);
    assert!(answered(bench.store.renew_session(own, LATER).await));
}

pub async fn a_renewed_lease_counts_from_its_new_end(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let own = bench.open_session().await;
    let other = bench.open_session().await;
    assert!(answered(bench.store.renew_session(other, at(500)).await));
    assert_eq!(answered(bench.store.expire_sessions(own, at(501)).await).len(), 1);
}

async fn running_under(bench: &Bench, session: SessionId, builder: JobBuilder) -> Job {
    let job = bench.submit(builder).await;
    bench.claim(session, &[job.id], at(0)).await.remove(0)
}

pub async fn the_attempts_of_an_ended_session_are_abandoned(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (alive, dead) = (bench.open_session().await, bench.open_session().await);
    let kept = running_under(&bench, alive, job()).await;
    let left = running_under(&bench, dead, job()).await;
    bench.submit(job()).await;
    assert_eq!(bench.abandoned(at(1), GRACE).await, []);
    answered(bench.store.end_session(dead).await);
    let find = FindAbandoned { now: at(1), grace: GRACE, limit: 10 };
    assert_eq!(answered(bench.store.find_abandoned(find).await), [left]);
    assert_eq!(bench.job(kept.id).await, kept);
}

pub async fn the_attempts_of_an_expired_session_are_abandoned(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (own, silent) = (bench.open_session().await, bench.open_session_until(at(100)).await);
    let left = running_under(&bench, silent, job()).await;
    answered(bench.store.expire_sessions(own, at(101)).await);
    assert_eq!(bench.abandoned(at(101), GRACE).await, [left.id]);
}

pub async fn an_attempt_past_its_deadline_and_the_grace_is_abandoned(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let late = running_under(&bench, session, job().timeout(Duration::from_secs(10))).await;
    running_under(&bench, session, job().timeout(Duration::from_secs(1_000))).await;
    assert_eq!(bench.abandoned(at(14_999), GRACE).await, []);
    assert_eq!(bench.abandoned(at(15_001), GRACE).await, [late.id]);
}

/// A target that answered 202 needs no session, but has to keep its deadline.
pub async fn an_attempt_that_awaits_a_report_is_abandoned_only_past_its_deadline(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let parked = running_under(&bench, session, job().timeout(Duration::from_secs(10))).await;
    answered(bench.store.await_report(parked.id, 1).await);
    answered(bench.store.end_session(session).await);
    assert_eq!(bench.abandoned(at(14_999), GRACE).await, []);
    assert_eq!(bench.abandoned(at(15_001), GRACE).await, [parked.id]);
}

pub async fn an_attempt_that_is_over_is_not_abandoned(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let done = running_under(&bench, session, job()).await;
    let again = running_under(&bench, session, job()).await;
    answered(bench.store.settle(vec![completes(&done), goes_again(&again)]).await);
    answered(bench.store.end_session(session).await);
    assert_eq!(bench.abandoned(LATER, Duration::ZERO).await, []);
}

pub async fn abandoned_attempts_of_every_priority_are_found_up_to_the_limit(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let mut left = Vec::new();
    for priority in tickwheel_core::Priority::ALL {
        left.push(running_under(&bench, session, job().priority(priority)).await.id);
    }
    answered(bench.store.end_session(session).await);
    left.sort();
    assert_eq!(bench.abandoned(at(1), GRACE).await, left);
    let find = FindAbandoned { now: at(1), grace: GRACE, limit: 3 };
    assert_eq!(answered(bench.store.find_abandoned(find).await).len(), 3);
}
