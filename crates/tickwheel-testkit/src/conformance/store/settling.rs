//! Settling: an attempt ends once, with everything that follows from it.

use std::sync::Arc;

use tickwheel_core::change::Change;
use tickwheel_core::job::WorkflowTarget;
use tickwheel_core::ports::{Settled, Store};
use tickwheel_core::settle::{Burst, DeadReason, Next, Settlement};
use tickwheel_core::{AttemptOutcome, Failure, Job, JsonText, State, Target};
use tokio::task::JoinSet;

use super::bench::{
    Bench, answered, broken, completes, fails, fails_because, goes_again, goes_again_at, is_cancelled,
    is_given_back, load_all,
};
use crate::fixtures::{JobInTest as _, at, job, job_id};

/// The job as a settlement that ends it has to leave it.
fn ended(running: &Job, by: &Settlement) -> Job {
    running.clone().in_state(by.next.state()).with(|job| {
        job.session = None;
        job.deadline = None;
        job.cancel_requested = false;
        job.burst = Burst::default();
        job.started_at = Some(by.started_at);
        job.completed_at = Some(by.ended_at);
        job.last_outcome = Some(by.outcome);
        job.error = by.error.clone();
    })
}

pub async fn a_completed_job_keeps_its_result_and_the_real_start(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let end = completes(&running);
    assert_ne!(running.started_at, Some(end.started_at), "the claim is not the start");
    assert_eq!(bench.settle(end.clone()).await, Settled::Applied);
    let result = Some(JsonText::from_checked(r#"{"sent":true}"#));
    assert_eq!(bench.job(running.id).await, ended(&running, &end).with(|job| job.result = result));
}

pub async fn a_job_may_complete_without_a_result(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let end = Settlement { next: Next::Complete { result: None }, ..completes(&running) };
    assert_eq!(bench.settle(end.clone()).await, Settled::Applied);
    assert_eq!(bench.job(running.id).await, ended(&running, &end));
}

pub async fn completion_clears_the_error_of_earlier_attempts(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.settled(job(), goes_again).await;
    let second = bench.start(&waiting).await;
    bench.settle(completes(&second)).await;
    let done = bench.job(waiting.id).await;
    assert_eq!((done.state(), done.error, done.retries), (State::Completed, None, 1));
}

pub async fn a_failed_job_is_a_dead_letter_with_its_reason(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for reason in DeadReason::ALL {
        let running = bench.running(job()).await;
        let end = fails_because(&running, reason);
        assert_eq!(bench.settle(end.clone()).await, Settled::Applied);
        let failed = bench.job(running.id).await;
        assert_eq!(failed, ended(&running, &end));
        let letter = answered(bench.store.get_dead_letter(running.id).await).expect("it is on the list");
        assert_eq!((letter.job, letter.failed_at, letter.reason), (failed, end.ended_at, reason));
    }
}

pub async fn a_running_job_can_end_cancelled(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let end = is_cancelled(&running);
    assert_eq!(bench.settle(end.clone()).await, Settled::Applied);
    assert_eq!(bench.job(running.id).await, ended(&running, &end));
}

pub async fn a_job_that_goes_again_waits_for_its_retry(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let burst = Burst { started_at: Some(at(3)), failures: 4 };
    let next = Next::Again { due_at: at(77_000), retries: 2, lost: 3, burst };
    let end = Settlement { next, ..goes_again(&running) };
    assert_eq!(bench.settle(end.clone()).await, Settled::Applied);
    let waiting = running.in_state(State::Scheduled).with(|job| {
        job.due_at = at(77_000);
        job.retries = 2;
        job.lost = 3;
        job.burst = burst;
        job.session = None;
        job.deadline = None;
        job.started_at = Some(end.started_at);
        job.error = Some(broken());
    });
    assert_eq!(bench.job(waiting.id).await, waiting);
    assert_eq!(bench.due_ids(load_all()).await, [waiting.id]);
}

pub async fn an_attempt_that_was_never_sent_leaves_no_trace(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.running(job()).await;
    assert_eq!(bench.settle(is_given_back(&first, at(50_000))).await, Settled::Applied);
    let as_before = |running: &Job, started_at| {
        running.clone().in_state(State::Scheduled).with(|job| {
            job.due_at = at(50_000);
            job.session = None;
            job.deadline = None;
            job.started_at = started_at;
        })
    };
    assert_eq!(bench.job(first.id).await, as_before(&first, None));
    assert!(attempt_numbers(&bench, &first).await.is_empty());
    assert_eq!(
        bench.settle(is_given_back(&first, at(1))).await,
        Settled::Stale,
        "it is not running any more"
    );

    let second = bench.start(&bench.job(first.id).await).await;
    assert_eq!(second.attempt, 2, "a fencing token is used once");
    assert_eq!(bench.settle(is_given_back(&first, at(1))).await, Settled::Stale, "that was the first");
    let failure = goes_again(&second);
    assert_eq!(bench.settle(failure.clone()).await, Settled::Applied);
    let third = bench.start(&bench.job(first.id).await).await;
    assert_eq!(bench.settle(is_given_back(&third, at(50_000))).await, Settled::Applied);
    assert_eq!(bench.job(first.id).await, as_before(&third, Some(failure.started_at)));
    assert_eq!(bench.job(first.id).await.error, Some(broken()), "of the attempt that was made");
    assert_eq!(attempt_numbers(&bench, &first).await, [2]);

    let fourth = bench.start(&bench.job(first.id).await).await;
    bench.changed(fourth.id, Change::Cancel, at(1)).await;
    assert_eq!(bench.settle(is_given_back(&fourth, at(1))).await, Settled::CancelRequested);
}

pub async fn every_outcome_is_kept_as_it_was(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for outcome in AttemptOutcome::ALL {
        let failed = bench.settled(job(), |job| Settlement { outcome, ..fails(job) }).await;
        assert_eq!(failed.last_outcome, Some(outcome));
        let again = bench.settled(job(), |job| Settlement { outcome, ..goes_again(job) }).await;
        let attempts = answered(bench.store.attempts(again.id).await).expect("the job exists");
        assert_eq!(attempts[0].outcome, Some(outcome));
    }
}

pub async fn a_settlement_of_another_attempt_changes_nothing(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.settled(job(), goes_again).await;
    let second = bench.start(&waiting).await;
    for attempt in [0, 1, 3] {
        for end in [completes(&second), fails(&second), is_cancelled(&second), goes_again(&second)] {
            assert_eq!(bench.settle(Settlement { attempt, ..end }).await, Settled::Stale);
        }
    }
    assert_eq!(bench.job(second.id).await, second);
    assert_eq!(answered(bench.store.count_dead_letters().await), 0);
    assert_eq!(attempt_numbers(&bench, &second).await, [1, 2]);
}

pub async fn a_settlement_of_a_job_that_is_not_running_changes_nothing(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let started = |job: Job| job.with(|job| job.started_at = Some(at(0)));
    let waiting = bench.submit(job()).await;
    let paused = bench.submit(job().state(State::Paused)).await;
    let again = bench.settled(job(), goes_again).await;
    let done = bench.settled(job().callback_url("http://example.com"), completes).await;
    for idle in [waiting, paused, again, done] {
        let claim_to_run = started(idle.clone());
        for end in [completes(&claim_to_run), fails(&claim_to_run), goes_again(&claim_to_run)] {
            assert_eq!(bench.settle(end).await, Settled::Stale);
        }
        assert_eq!(bench.job(idle.id).await, idle);
    }
    assert_eq!(bench.take_callbacks(at(100_000)).await.len(), 1, "only the real end is told");
}

pub async fn a_settlement_of_an_unknown_job_is_stale(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let end = Settlement { job_id: job_id(at(0), u64::from(u32::MAX)), ..completes(&running) };
    assert_eq!(bench.settle(end).await, Settled::Stale);
}

pub async fn a_second_settlement_is_stale(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job().callback_url("http://example.com")).await;
    assert_eq!(bench.settle(completes(&running)).await, Settled::Applied);
    let done = bench.job(running.id).await;
    for end in [completes(&running), fails(&running), goes_again(&running), is_cancelled(&running)] {
        assert_eq!(bench.settle(end).await, Settled::Stale);
    }
    assert_eq!(bench.job(running.id).await, done);
    assert_eq!(answered(bench.store.count_dead_letters().await), 0);
    assert_eq!(bench.take_callbacks(at(100_000)).await.len(), 1);
}

/// A report and the reaper can meet in one batch.
pub async fn of_two_settlements_in_one_batch_one_is_applied(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let ends: [fn(&Job) -> Settlement; 3] = [completes, fails, goes_again];
    for first in ends {
        for second in ends {
            let running = bench.running(job().callback_url("http://example.com")).await;
            let batch = vec![first(&running), second(&running)];
            let answers = answered(bench.store.settle(batch.clone()).await).settled;
            let applied: Vec<usize> = (0..2).filter(|n| answers[*n] == Settled::Applied).collect();
            assert_eq!(applied.len(), 1, "{answers:?}");
            let now = bench.job(running.id).await;
            assert_eq!(now.state(), batch[applied[0]].next.state(), "the one that was applied decides");
            let told = bench.take_callbacks(at(100_000)).await.len();
            assert_eq!(told, usize::from(now.state().is_terminal()), "and an end is told once");
            assert_eq!(attempt_numbers(&bench, &now).await, [1]);
        }
    }
}

pub async fn many_who_settle_one_attempt_at_once_end_it_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job().callback_url("http://example.com")).await;
    let mut settlers = JoinSet::new();
    for turn in 0..12 {
        let end = [completes, fails, goes_again][turn % 3](&running);
        let store = bench.store.clone();
        settlers.spawn(async move { answered(store.settle(vec![end]).await).settled[0] });
    }
    let answers = settlers.join_all().await;
    let applied = answers.iter().filter(|answer| **answer == Settled::Applied).count();
    assert_eq!(applied, 1, "{answers:?}");
    assert_eq!(attempt_numbers(&bench, &running).await, [1]);
}

pub async fn a_batch_is_answered_in_order(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = [
        bench.running(job()).await,
        bench.running(job()).await,
        bench.running(job()).await,
        bench.running(job()).await,
        bench.running(job()).await,
    ];
    bench.changed(jobs[3].id, Change::Cancel, at(1)).await;
    let batch = vec![
        goes_again(&jobs[0]),
        Settlement { attempt: 9, ..completes(&jobs[1]) },
        fails(&jobs[2]),
        goes_again(&jobs[3]),
        completes(&jobs[4]),
        is_cancelled(&jobs[1]),
    ];
    let expected = [
        Settled::Applied,
        Settled::Stale,
        Settled::Applied,
        Settled::CancelRequested,
        Settled::Applied,
        Settled::Applied,
    ];
    assert_eq!(answered(bench.store.settle(batch).await).settled, expected);
    assert_eq!(answered(bench.store.settle(Vec::new()).await).settled, []);
}

pub async fn a_large_batch_is_settled_whole(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let jobs = bench.submit_all((0..1_000).map(|_| job())).await;
    let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
    let running = bench.claim(session, &ids, at(0)).await;
    let answers = answered(bench.store.settle(running.iter().map(completes).collect()).await).settled;
    assert_eq!(answers, vec![Settled::Applied; running.len()]);
    let done = answered(bench.store.get_jobs(ids).await);
    assert_eq!(super::bench::in_state(&done, State::Completed), 1_000);
}

pub async fn a_job_that_somebody_wants_cancelled_does_not_go_again(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let stopping = bench.changed(running.id, Change::Cancel, at(1)).await;
    assert_eq!(bench.settle(goes_again(&running)).await, Settled::CancelRequested);
    assert_eq!(bench.job(running.id).await, stopping, "nothing changed");
    assert_eq!(attempt_numbers(&bench, &running).await, [1]);
    assert_eq!(bench.settle(is_cancelled(&running)).await, Settled::Applied);
    assert_eq!(bench.job(running.id).await.state(), State::Cancelled);
}

pub async fn a_job_that_ends_by_itself_ends_so_whatever_was_asked(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for end in [completes, fails] {
        let running = bench.running(job()).await;
        bench.changed(running.id, Change::Cancel, at(1)).await;
        assert_eq!(bench.settle(end(&running)).await, Settled::Applied);
        let now = bench.job(running.id).await;
        assert_eq!((now.state(), now.cancel_requested), (end(&running).next.state(), false));
    }
}

/// With another attempt number a stale request to cancel must not be reported either.
pub async fn a_stale_settlement_is_stale_even_if_a_cancel_is_wanted(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    bench.changed(running.id, Change::Cancel, at(1)).await;
    let other = Settlement { attempt: 2, ..goes_again(&running) };
    assert_eq!(bench.settle(other).await, Settled::Stale);
}

pub async fn an_attempt_that_awaits_a_report_runs_on_without_a_session(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    assert_eq!(answered(bench.store.await_report(running.id, 1).await), Settled::Applied);
    assert_eq!(bench.job(running.id).await, running.clone().with(|job| job.session = None));
    assert_eq!(bench.settle(completes(&running)).await, Settled::Applied, "the report ends it");
}

/// Nobody here is at work on it, so it ends at once, with its attempt; whoever reports later comes too late.
pub async fn a_job_that_awaits_a_report_is_cancelled_at_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    answered(bench.store.await_report(running.id, 1).await);
    let cancelled = bench.changed(running.id, Change::Cancel, at(5)).await;
    assert_eq!((cancelled.state(), cancelled.completed_at), (State::Cancelled, Some(at(5))));
    assert_eq!(bench.job(running.id).await, cancelled);
    let attempts = answered(bench.store.attempts(running.id).await).expect("it exists");
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].outcome, attempts[0].ended_at), (Some(AttemptOutcome::Cancelled), Some(at(5))));
    assert_eq!(attempts[0].error.as_ref().map(|error| error.code.as_str()), Some("cancelled"));
    assert_eq!(bench.settle(completes(&running)).await, Settled::Stale);
    bench.changed(running.id, Change::Retry { payload: None }, at(6)).await;
    assert_eq!(answered(bench.store.attempts(running.id).await).expect("it exists"), attempts);
}

pub async fn an_attempt_that_somebody_wants_to_end_does_not_go_on_elsewhere(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let asked = bench.changed(running.id, Change::Cancel, at(1)).await;
    assert_eq!((asked.state(), asked.cancel_requested), (State::Running, true));
    assert_eq!(answered(bench.store.await_report(running.id, 1).await), Settled::CancelRequested);
    assert_eq!(bench.job(running.id).await, asked, "nothing changed");
    let target = Target::Workflow(WorkflowTarget { name: "etl".into() });
    let waits_for_run = bench.running(job().target(target)).await;
    let asked = bench.changed(waits_for_run.id, Change::Cancel, at(1)).await;
    assert_eq!(
        answered(bench.store.await_report(asked.id, 1).await),
        Settled::Applied,
        "it ends with its run"
    );
    let again = bench.changed(asked.id, Change::Cancel, at(2)).await;
    assert_eq!((again.state(), again.cancel_requested), (State::Running, true));
}

pub async fn awaiting_a_report_of_another_attempt_changes_nothing(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let waiting = bench.submit(job()).await;
    let done = bench.settled(job(), completes).await;
    let attempts =
        [(running.id, 0), (running.id, 2), (waiting.id, 0), (done.id, 1), (job_id(at(0), 1 << 40), 1)];
    for (id, attempt) in attempts {
        assert_eq!(answered(bench.store.await_report(id, attempt).await), Settled::Stale);
    }
    for job in [running, waiting, done] {
        assert_eq!(bench.job(job.id).await, job);
    }
}

/// Every attempt has its record: those before, the one under way, the last one; also after the job was retried.
pub async fn the_history_of_attempts_is_complete(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.submit(job()).await;
    assert_eq!(answered(bench.store.attempts(waiting.id).await), Some(Vec::new()));
    let first = bench.start(&waiting).await;
    let timed_out = goes_again_at(&first, at(2_000));
    bench.settle(timed_out.clone()).await;
    let second = bench.start(&bench.job(waiting.id).await).await;
    let failed = Settlement { error: Some(Failure::new("gone", "410")), ..fails(&second) };
    bench.settle(failed.clone()).await;
    assert_eq!(attempt_numbers(&bench, &waiting).await, [1, 2]);

    let retried = bench.changed(waiting.id, Change::Retry { payload: None }, at(9_000)).await;
    assert_eq!(attempt_numbers(&bench, &waiting).await, [1, 2]);
    let third = bench.start(&retried).await;
    let attempts = answered(bench.store.attempts(waiting.id).await).expect("the job exists");
    for (record, end) in attempts.iter().zip([&timed_out, &failed]) {
        assert_eq!(record.number, end.attempt);
        assert_eq!((record.started_at, record.ended_at), (end.started_at, Some(end.ended_at)));
        assert_eq!((record.outcome, &record.error), (Some(end.outcome), &end.error));
    }
    assert_eq!(attempts[2..], [third.current_attempt().expect("it is running")]);
    bench.settle(completes(&third)).await;
    assert_eq!(attempt_numbers(&bench, &waiting).await, [1, 2, 3]);
}

pub async fn an_unknown_job_has_no_history(store: Arc<dyn Store>) {
    assert_eq!(answered(store.attempts(job_id(at(0), 1 << 40)).await), None);
}

async fn attempt_numbers(bench: &Bench, job: &Job) -> Vec<u32> {
    let attempts = answered(bench.store.attempts(job.id).await).expect("the job exists");
    attempts.iter().map(|attempt| attempt.number).collect()
}
