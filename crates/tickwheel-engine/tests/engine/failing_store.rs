//! The store fails before or after it did what was asked: nothing is lost, nothing is sent twice.

use tickwheel_core::State;
use tickwheel_core::ports::{NewJob, SchedulerError, Store as _};
use tickwheel_testkit::{Fault, job};

use crate::bench::{Act, Bench, due_now, eventually, quick_retries};

#[tokio::test]
async fn a_submission_that_was_not_stored_is_answered_as_an_error() {
    let bench = Bench::start([]).await;
    bench.scheduler.set_halted(true).await.unwrap();
    // A loop of the engine may meet the fault first; then the next submission gets the next one.
    for _ in 0..100 {
        bench.store.fail_next(Fault::Aborted);
        let new = NewJob { job: due_now(job()), idempotency: None };
        let id = new.job.id;
        if let Err(refused) = bench.scheduler.submit(vec![new]).await {
            assert!(matches!(refused, SchedulerError::Store(error) if error.is_certainly_aborted()));
            assert_eq!(bench.store.get_job(id).await.unwrap(), None);
            return;
        }
    }
    panic!("a hundred submissions and none of them met its fault");
}

#[tokio::test]
async fn a_job_whose_submission_lost_its_answer_runs_once_all_the_same() {
    let bench = Bench::start([]).await;
    bench.store.fail_next(Fault::LostReply);
    let new = NewJob { job: due_now(job()), idempotency: None };
    let id = new.job.id;
    // Another write (a renewal of the lease) may have met the fault; the job is stored either way.
    let _ = bench.scheduler.submit(vec![new]).await;
    bench.reaches(id, State::Completed).await;
    assert_eq!(bench.calls(), [(id, 1)]);
}

#[tokio::test]
async fn whatever_write_fails_in_whatever_way_each_attempt_is_sent_once() {
    for fault in [Fault::Aborted, Fault::LostReply] {
        let bench = Bench::start([Act::Fail, Act::Complete, Act::Fail]).await;
        let mut ids = Vec::new();
        for _ in 0..20 {
            bench.store.fail_next(fault);
            let new = NewJob { job: due_now(quick_retries()), idempotency: None };
            let id = new.job.id;
            if bench.scheduler.submit(vec![new]).await.is_ok() {
                ids.push(id);
            }
        }
        for id in ids {
            bench.reaches(id, State::Completed).await;
        }
        let mut calls = bench.calls();
        calls.sort_unstable();
        let sent = calls.len();
        calls.dedup();
        assert_eq!(calls.len(), sent, "an attempt was sent twice");
    }
}

#[tokio::test]
async fn a_session_that_was_ended_by_others_is_replaced() {
    let bench = Bench::start([]).await;
    let session = bench.store.with_model(|model| *model.sessions().keys().next().unwrap());
    bench.store.end_session(session).await.unwrap();
    eventually("there is a new session", || async {
        bench.store.with_model(|model| model.sessions().keys().any(|id| *id != session)).then_some(())
    })
    .await;
    let id = bench.submit(job()).await;
    bench.reaches(id, State::Completed).await;
}

#[tokio::test]
async fn whatever_write_fails_in_whatever_way_every_callback_is_told() {
    for fault in [Fault::Aborted, Fault::LostReply] {
        let bench = Bench::start([]).await;
        let mut told = Vec::new();
        for _ in 0..20 {
            let new =
                NewJob { job: due_now(job().callback_url("http://127.0.0.1:9/told")), idempotency: None };
            let id = new.job.id;
            if bench.scheduler.submit(vec![new]).await.is_ok() {
                told.push(id);
            }
            bench.store.fail_next(fault);
        }
        for id in told {
            eventually("it is told", || async {
                bench.receiver.seen.lock().unwrap().iter().any(|(seen, _)| *seen == id).then_some(())
            })
            .await;
        }
        eventually("every callback is over", || async {
            bench.store.with_model(|model| model.callbacks().count() == 0).then_some(())
        })
        .await;
    }
}
