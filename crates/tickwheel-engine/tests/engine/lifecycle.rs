//! What becomes of a job when everything works.

use std::time::Duration;

use tickwheel_core::change::Change;
use tickwheel_core::ports::{Changed, Heartbeat, JobStore as _, ReportOutcome};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{AttemptOutcome, State};
use tickwheel_testkit::model::Verb;
use tickwheel_testkit::{Fault, job};

use crate::bench::{Act, Bench, due_now, eventually, options, quick_retries};

/// A test that waits longer waits in vain.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_job_that_is_due_runs_once_and_completes() {
    let bench = Bench::start([]).await;
    let id = bench.submit(job()).await;
    bench.reaches(id, State::Completed).await;
    assert_eq!(bench.calls(), [(id, 1)]);
}

#[tokio::test]
async fn a_failed_attempt_is_tried_again_and_remembered() {
    let bench = Bench::start([Act::Fail, Act::Fail]).await;
    let id = bench.submit(quick_retries()).await;
    bench.reaches(id, State::Completed).await;
    let attempts = bench.store.attempts(id).await.unwrap().unwrap();
    let outcomes: Vec<_> = attempts.iter().map(|attempt| attempt.outcome.unwrap()).collect();
    assert_eq!(outcomes, [AttemptOutcome::Failed, AttemptOutcome::Failed, AttemptOutcome::Completed]);
}

#[tokio::test]
async fn an_attempt_that_panics_is_lost_and_the_job_is_tried_again() {
    let bench = Bench::start([Act::Panic]).await;
    let id = bench.submit(quick_retries()).await;
    bench.reaches(id, State::Completed).await;
    let attempts = bench.store.attempts(id).await.unwrap().unwrap();
    let outcomes: Vec<_> = attempts.iter().map(|attempt| attempt.outcome.unwrap()).collect();
    assert_eq!(outcomes, [AttemptOutcome::Lost, AttemptOutcome::Completed]);
}

#[tokio::test]
async fn cancelling_a_running_job_stops_its_attempt() {
    let bench = Bench::start([Act::Hold]).await;
    let id = bench.submit(job()).await;
    eventually("it starts", || async { (!bench.calls().is_empty()).then_some(()) }).await;
    bench.scheduler.change(id, Change::Cancel).await.unwrap();
    bench.reaches(id, State::Cancelled).await;
    assert_eq!(*bench.target.dropped.lock().unwrap(), [id]);
}

#[tokio::test]
async fn a_target_that_accepted_reports_and_may_say_it_again() {
    let bench = Bench::start([Act::Accept]).await;
    let id = bench.submit(job()).await;
    eventually("it is parked", || async {
        let job = bench.get(id).await;
        (job.state() == State::Running && job.session.is_none()).then_some(())
    })
    .await;
    let attempt = AttemptRef { job_id: id, attempt: 1 };
    let beat = bench.scheduler.heartbeat(attempt).await.unwrap();
    assert!(matches!(beat, Heartbeat::Current { cancel_requested: false, .. }), "{beat:?}");
    let done = || Outcome::Completed { result: None };
    assert_eq!(bench.scheduler.report(attempt, done()).await.unwrap(), ReportOutcome::Recorded);
    assert_eq!(bench.scheduler.report(attempt, done()).await.unwrap(), ReportOutcome::Recorded, "said again");
    let other = Outcome::Cancelled;
    assert_eq!(bench.scheduler.report(attempt, other).await.unwrap(), ReportOutcome::Stale);
    assert_eq!(bench.scheduler.heartbeat(attempt).await.unwrap(), Heartbeat::Stale);
    assert_eq!(bench.get(id).await.state(), State::Completed);
}

#[tokio::test]
async fn a_target_that_accepted_and_never_reports_is_timed_out_by_the_server() {
    let mut options = options();
    options.deadline_grace = Duration::from_millis(10);
    let bench = Bench::start_on(Default::default(), [Act::Accept], options).await;
    let id = bench.submit(quick_retries().timeout(Duration::from_millis(50))).await;
    bench.reaches(id, State::Completed).await;
    let attempts = bench.store.attempts(id).await.unwrap().unwrap();
    assert_eq!(attempts[0].outcome, Some(AttemptOutcome::TimedOut));
}

#[tokio::test]
async fn a_hanging_executor_is_ended_by_the_server() {
    let mut options = options();
    options.deadline_grace = Duration::from_millis(10);
    let bench = Bench::start_on(Default::default(), [Act::Hold], options).await;
    let id = bench.submit(quick_retries().timeout(Duration::from_millis(30))).await;
    bench.reaches(id, State::Completed).await;
    assert_eq!(*bench.target.dropped.lock().unwrap(), [id]);
}

#[tokio::test]
async fn nothing_starts_after_an_acknowledged_halt_and_everything_after_the_resume() {
    let bench = Bench::start([]).await;
    bench.scheduler.set_halted(true).await.unwrap();
    let halted = bench.submit(job()).await;
    bench.scheduler.set_queue_paused("other", true).await.unwrap();
    let paused = bench.submit(job().queue("other")).await;
    assert!(bench.scheduler.snapshot().await.halted);
    assert!(bench.calls().is_empty());
    bench.scheduler.set_halted(false).await.unwrap();
    bench.reaches(halted, State::Completed).await;
    assert_eq!(bench.get(paused).await.state(), State::Scheduled);
    bench.scheduler.set_queue_paused("other", false).await.unwrap();
    bench.reaches(paused, State::Completed).await;
}

#[tokio::test]
async fn a_callback_is_tried_three_times_and_changes_nothing() {
    let bench = Bench::start([]).await;
    *bench.receiver.refusals.lock().unwrap() = 10;
    let id = bench.submit(job().callback_url("http://127.0.0.1:9/told")).await;
    eventually("it is given up", || async {
        let over = bench.store.with_model(|model| model.callbacks().count() == 0);
        (over && !bench.receiver.seen.lock().unwrap().is_empty()).then_some(())
    })
    .await;
    assert_eq!(*bench.receiver.seen.lock().unwrap(), [(id, State::Completed); 3]);
    assert_eq!(bench.get(id).await.state(), State::Completed);
}

/// From whoever writes it: the look at what others have ended stands still.
#[tokio::test]
async fn somebody_who_waits_hears_of_the_end() {
    let bench = Bench::start([Act::Hold]).await;
    bench.store.fail(Verb::EndedAmong, Fault::Stalled);
    let id = bench.submit(job()).await;
    let waiting = bench.scheduler.end_of(id);
    bench.target.gate.add_permits(1);
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    bench.reaches(id, State::Completed).await;
}

#[tokio::test]
async fn somebody_who_waits_hears_that_a_waiting_job_was_cancelled() {
    let bench = Bench::start([]).await;
    bench.store.fail(Verb::EndedAmong, Fault::Stalled);
    bench.scheduler.set_halted(true).await.unwrap();
    let id = bench.submit(job()).await;
    let waiting = bench.scheduler.end_of(id);
    bench.scheduler.change(id, Change::Cancel).await.unwrap();
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(bench.get(id).await.state(), State::Cancelled);
}

#[tokio::test]
async fn jobs_that_were_waiting_before_the_start_are_found() {
    let store = tickwheel_testkit::ModelStore::default();
    let new = tickwheel_core::ports::NewJob { job: due_now(job()), idempotency: None };
    let id = new.job.id;
    store.submit_jobs(vec![new]).await.unwrap();
    let bench = Bench::start_on(store, [], options()).await;
    bench.reaches(id, State::Completed).await;
}

#[tokio::test]
async fn a_waiting_job_that_is_run_now_runs_now() {
    let bench = Bench::start([]).await;
    let mut later = due_now(job());
    later.due_at = later.due_at + Duration::from_secs(3_600);
    let id = later.id;
    bench
        .scheduler
        .submit(vec![tickwheel_core::ports::NewJob { job: later, idempotency: None }])
        .await
        .unwrap();
    assert!(matches!(bench.scheduler.change(id, Change::RunNow).await.unwrap(), Changed::Done(_)));
    bench.reaches(id, State::Completed).await;
}
