//! Effects that happen once.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::once::{OnceAnswer, OnceCall, OnceOutcome, OnceReport, OnceReported, OnceScope};
use tickwheel_core::ports::Store;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{Job, JsonText, Timestamp};

use super::bench::{Bench, ODD_TEXT, answered, completes, goes_again};
use crate::fixtures::{at, job};

const TTL: Duration = Duration::from_secs(60);
const EXPIRED: Timestamp = at(60_000);

fn attempt_of(job: &Job) -> AttemptRef {
    AttemptRef { job_id: job.id, attempt: job.attempt }
}

fn call(job: &Job, scope: OnceScope) -> OnceCall {
    OnceCall { caller: attempt_of(job), key: "k".into(), scope, ttl: TTL, now: at(0) }
}

fn report(job: &Job, scope: Option<OnceScope>, outcome: OnceOutcome) -> OnceReport {
    OnceReport { caller: attempt_of(job), key: "k".into(), scope, outcome, now: at(0) }
}

fn result(text: &str) -> JsonText {
    JsonText::from_checked(text)
}

impl Bench {
    async fn ask(&self, job: &Job, scope: OnceScope) -> OnceAnswer {
        self.ask_with(call(job, scope)).await
    }

    async fn ask_with(&self, call: OnceCall) -> OnceAnswer {
        answered(self.store.ask_once(call).await)
    }

    async fn done(&self, job: &Job, text: &str) -> OnceReported {
        answered(self.store.report_once(report(job, None, OnceOutcome::Done(result(text)))).await)
    }

    async fn abandon(&self, job: &Job) -> OnceReported {
        answered(self.store.report_once(report(job, None, OnceOutcome::Abandoned)).await)
    }

    async fn next_attempt(&self, running: &Job) -> Job {
        self.settle(goes_again(running)).await;
        self.start(&self.job(running.id).await).await
    }
}

pub async fn the_first_who_asks_is_first_and_later_attempts_get_the_result(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.running(job()).await;
    assert_eq!(bench.ask(&first, OnceScope::Job).await, OnceAnswer::First);
    assert_eq!(bench.ask(&first, OnceScope::Job).await, OnceAnswer::First, "the answer may have been lost");
    assert_eq!(bench.done(&first, "7").await, OnceReported::Recorded);
    assert_eq!(bench.done(&first, "8").await, OnceReported::Recorded, "and this one");
    let second = bench.next_attempt(&first).await;
    assert_eq!(bench.ask(&second, OnceScope::Job).await, OnceAnswer::Done(result("7")));
    let odd = OnceCall { key: ODD_TEXT.into(), ..call(&second, OnceScope::Job) };
    assert_eq!(bench.ask_with(odd).await, OnceAnswer::First, "another key");
    let other = bench.running(job()).await;
    assert_eq!(bench.ask(&other, OnceScope::Job).await, OnceAnswer::First, "another job");
}

pub async fn who_dies_before_it_is_done_leaves_the_key_in_doubt(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.running(job()).await;
    assert_eq!(bench.ask(&first, OnceScope::Job).await, OnceAnswer::First);
    let second = bench.next_attempt(&first).await;
    assert_eq!(bench.ask(&second, OnceScope::Job).await, OnceAnswer::InDoubt);
    assert_eq!(
        bench.ask(&second, OnceScope::Job).await,
        OnceAnswer::InDoubt,
        "the answer may have been lost"
    );
    assert_eq!(bench.abandon(&second).await, OnceReported::Recorded);
    assert_eq!(bench.ask(&second, OnceScope::Job).await, OnceAnswer::InDoubt, "the first may have done it");
    let third = bench.next_attempt(&second).await;
    assert_eq!(bench.ask(&third, OnceScope::Job).await, OnceAnswer::InDoubt);
    assert_eq!(bench.done(&third, "null").await, OnceReported::Recorded);
    let fourth = bench.next_attempt(&third).await;
    assert_eq!(bench.ask(&fourth, OnceScope::Job).await, OnceAnswer::Done(result("null")));
}

pub async fn what_did_not_happen_is_up_to_the_next(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.running(job()).await;
    bench.ask(&first, OnceScope::Job).await;
    assert_eq!(bench.abandon(&first).await, OnceReported::Recorded);
    assert_eq!(bench.abandon(&first).await, OnceReported::Recorded);
    assert_eq!(bench.done(&first, "7").await, OnceReported::NotHeld);
    let second = bench.next_attempt(&first).await;
    assert_eq!(bench.ask(&second, OnceScope::Job).await, OnceAnswer::First);
    bench.done(&second, "7").await;
    assert_eq!(bench.abandon(&second).await, OnceReported::NotHeld, "too late");
    assert_eq!(bench.ask(&second, OnceScope::Job).await, OnceAnswer::Done(result("7")));
}

pub async fn an_attempt_that_is_over_has_no_say(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.running(job()).await;
    bench.ask(&first, OnceScope::Job).await;
    let second = bench.next_attempt(&first).await;
    assert_eq!(bench.ask(&first, OnceScope::Job).await, OnceAnswer::Stale);
    assert_eq!(bench.done(&first, "7").await, OnceReported::Stale);
    assert_eq!(bench.abandon(&first).await, OnceReported::Stale);
    assert_eq!(bench.ask(&second, OnceScope::Job).await, OnceAnswer::InDoubt);
    bench.settle(completes(&second)).await;
    assert_eq!(bench.ask(&second, OnceScope::Job).await, OnceAnswer::Stale);
    let waiting = bench.submit(job()).await;
    assert_eq!(bench.ask(&waiting, OnceScope::Job).await, OnceAnswer::Stale, "it does not run");
}

pub async fn jobs_of_a_tenant_share_a_key(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (first, second) = (bench.running(job()).await, bench.running(job()).await);
    let foreign = bench.running(job().tenant("other")).await;
    assert_eq!(bench.ask(&first, OnceScope::Tenant).await, OnceAnswer::First);
    assert_eq!(bench.ask(&second, OnceScope::Tenant).await, OnceAnswer::Busy);
    assert_eq!(bench.ask(&foreign, OnceScope::Tenant).await, OnceAnswer::First, "another tenant");
    assert_eq!(bench.ask(&second, OnceScope::Job).await, OnceAnswer::First, "another scope");
    let by_other = report(&second, Some(OnceScope::Tenant), OnceOutcome::Done(result("0")));
    assert_eq!(answered(bench.store.report_once(by_other).await), OnceReported::NotHeld);
    assert_eq!(bench.done(&first, "7").await, OnceReported::Recorded);
    assert_eq!(bench.ask(&second, OnceScope::Tenant).await, OnceAnswer::Done(result("7")));
    let own = report(&second, Some(OnceScope::Job), OnceOutcome::Done(result("8")));
    assert_eq!(answered(bench.store.report_once(own).await), OnceReported::Recorded);
    assert_eq!(bench.ask(&second, OnceScope::Job).await, OnceAnswer::Done(result("8")));
}

/// An attempt that waits for a report runs, wherever that is.
pub async fn a_key_is_busy_as_long_as_its_holder_runs(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (first, second) = (bench.running(job()).await, bench.running(job()).await);
    bench.ask(&first, OnceScope::Tenant).await;
    answered(bench.store.await_report(first.id, 1).await);
    let late = OnceCall { now: EXPIRED, ..call(&second, OnceScope::Tenant) };
    assert_eq!(bench.ask_with(late.clone()).await, OnceAnswer::Busy, "however long that takes");
    bench.settle(completes(&first)).await;
    assert_eq!(bench.ask(&second, OnceScope::Tenant).await, OnceAnswer::InDoubt);
}

pub async fn of_many_who_ask_at_once_one_is_first(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(bench.running(job()).await);
    }
    for round in 0..5 {
        let ask =
            |job: &Job| bench.ask_with(OnceCall { key: format!("k{round}"), ..call(job, OnceScope::Tenant) });
        let (a, b, c, d) = tokio::join!(ask(&jobs[0]), ask(&jobs[1]), ask(&jobs[2]), ask(&jobs[3]));
        let answers = [a, b, c, d];
        assert_eq!(answers.iter().filter(|answer| **answer == OnceAnswer::First).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| **answer == OnceAnswer::Busy).count(), 3, "{answers:?}");
    }
}

pub async fn a_key_is_forgotten_after_its_time_and_removed_in_steps(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (holder, other) = (bench.running(job()).await, bench.running(job()).await);
    for number in 0..5 {
        let key = format!("k{number}");
        bench.ask_with(OnceCall { key: key.clone(), ..call(&holder, OnceScope::Tenant) }).await;
        if number > 0 {
            let done = report(&holder, None, OnceOutcome::Done(result("7")));
            let recorded = bench.store.report_once(OnceReport { key, ..done }).await;
            assert_eq!(answered(recorded), OnceReported::Recorded);
        }
    }
    let expire = async |now, limit| answered(bench.store.expire_once(now, limit).await);
    assert_eq!(expire(at(59_999), 10).await, 0);
    let late =
        |number: u32| OnceCall { key: format!("k{number}"), now: EXPIRED, ..call(&other, OnceScope::Tenant) };
    assert_eq!(bench.ask_with(late(1)).await, OnceAnswer::First, "it counts no longer, removed or not");
    assert_eq!(expire(EXPIRED, 2).await, 2);
    assert_eq!(expire(EXPIRED, 2).await, 1);
    assert_eq!(expire(EXPIRED, 2).await, 0, "what may be under way stays");
    assert_eq!(bench.ask_with(late(0)).await, OnceAnswer::Busy);
    bench.settle(completes(&holder)).await;
    assert_eq!(expire(EXPIRED, 2).await, 1, "nobody knows, and nobody asked in time");
}

/// The time counts from when it was done.
pub async fn a_result_is_remembered_for_as_long_as_was_asked_for(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (holder, other) = (bench.running(job()).await, bench.running(job()).await);
    bench.ask(&holder, OnceScope::Tenant).await;
    let done = report(&holder, None, OnceOutcome::Done(result("7")));
    answered(bench.store.report_once(OnceReport { now: at(30_000), ..done }).await);
    let later = |now| OnceCall { now, ..call(&other, OnceScope::Tenant) };
    assert_eq!(bench.ask_with(later(at(89_999))).await, OnceAnswer::Done(result("7")));
    assert_eq!(bench.ask_with(later(at(90_000))).await, OnceAnswer::First);
}
