//! The store fails before or after it did what was asked, or while that is on its way: nothing is lost, nothing is sent
//! twice.

use std::time::Duration;

use tickwheel_core::change::{Change, Edit};
use tickwheel_core::ports::{Changed, Clock as _, JobStore as _, NewJob, SchedulerError, SessionStore as _};
use tickwheel_core::{SessionId, State};
use tickwheel_engine::{EngineOptions, SystemClock};
use tickwheel_testkit::model::Verb;
use tickwheel_testkit::{Fault, job};

use crate::bench::{Act, Bench, HOUR, NEVER_ENDS, due_now, eventually, options, without_sweeps};

#[tokio::test]
async fn a_submission_that_was_not_stored_is_answered_as_an_error() {
    let bench = Bench::start([]).await;
    bench.store.fail(Verb::SubmitJobs, Fault::Aborted);
    let new = NewJob { job: due_now(job()), idempotency: None };
    let id = new.job.id;
    let refused = bench.scheduler.submit(vec![new]).await.unwrap_err();
    assert!(matches!(refused, SchedulerError::Store(error) if error.is_certainly_aborted()));
    assert_eq!(bench.store.get_job(id).await.unwrap(), None);
}

#[tokio::test]
async fn a_job_whose_submission_lost_its_answer_runs_once_all_the_same() {
    let bench = Bench::start([]).await;
    bench.store.fail(Verb::SubmitJobs, Fault::LostReply);
    let new = NewJob { job: due_now(job()), idempotency: None };
    let id = new.job.id;
    let in_doubt = bench.scheduler.submit(vec![new]).await.unwrap_err();
    assert!(matches!(in_doubt, SchedulerError::Store(error) if !error.is_certainly_aborted()));
    bench.reaches(id, State::Completed).await;
    assert_eq!(bench.calls(), [(id, 1)]);
}

/// Whoever took it for aborted would leave the job to its deadline.
#[tokio::test]
async fn a_job_whose_claim_lost_its_answer_is_run_at_once() {
    let bench = Bench::start([]).await;
    bench.store.fail(Verb::Claim, Fault::LostReply);
    let id = bench.submit(job().timeout(HOUR)).await;
    bench.reaches(id, State::Completed).await;
    assert_eq!(bench.store.faults_left(Verb::Claim), 0);
    assert_eq!(bench.calls(), [(id, 1)], "what was taken is what is run");
}

/// The answer is lost and the job is read again before it is taken. Nobody sweeps here: only a second look finds it.
#[tokio::test]
async fn a_claim_that_takes_effect_late_is_found_and_given_back() {
    let bench = Bench::start_on(Default::default(), [], without_sweeps()).await;
    bench.store.fail(Verb::Claim, Fault::Late);
    let id = bench.submit(job().timeout(HOUR)).await;
    eventually("the claim is lost and its slots are free again", || async {
        let snapshot = bench.scheduler.snapshot().await;
        (bench.store.faults_left(Verb::Claim) == 0 && snapshot.slots_free == snapshot.slots).then_some(())
    })
    .await;
    assert_eq!(bench.store.release(), 1);
    assert_eq!(bench.get(id).await.state(), State::Running, "taken, and nobody knows");
    bench.reaches(id, State::Completed).await;
    assert_eq!(bench.calls(), [(id, 2)], "what was taken late was never sent");
}

/// The process stands still between asking for a job and starting it, for longer than its lease.
#[tokio::test]
async fn what_was_taken_is_not_started_when_the_lease_is_over() {
    let bench = Bench::start([]).await;
    bench.store.fail(Verb::Claim, Fault::Stalled);
    let id = bench.submit(job()).await;
    eventually("the claim is on its way", || async { bench.store.is_stalled(Verb::Claim).then_some(()) })
        .await;
    (0..1_000).for_each(|_| bench.store.fail(Verb::RenewSession, Fault::Aborted));
    // sleep: the lease runs out by the monotonic clock, which no test can set
    tokio::time::sleep(options().lease + Duration::from_millis(50)).await;
    bench.store.release();
    eventually("the job is taken and given back", || async {
        let job = bench.get(id).await;
        (job.state() == State::Scheduled && job.attempt == 1).then_some(())
    })
    .await;
    assert_eq!(bench.calls(), [], "somebody else may be running it by now");
    bench.store.forgive(Verb::RenewSession);
    bench.reaches(id, State::Completed).await;
    assert_eq!(bench.calls(), [(id, 2)]);
}

/// Others count the lease from before they were asked: an answer that took longer than the lease is worth nothing.
#[tokio::test]
async fn a_renewal_that_was_answered_too_late_is_not_trusted() {
    let lease = Duration::from_millis(1_500);
    let bench = Bench::start_on(Default::default(), [], EngineOptions { lease, ..options() }).await;
    bench.store.fail(Verb::RenewSession, Fault::Stalled);
    eventually("it is asked for", || async { bench.store.is_stalled(Verb::RenewSession).then_some(()) })
        .await;
    (0..1_000).for_each(|_| bench.store.fail(Verb::RenewSession, Fault::Aborted));
    // sleep: the lease runs out by the monotonic clock, which no test can set
    tokio::time::sleep(lease).await;
    bench.store.release();
    let id = bench.submit(job()).await;
    // sleep: it would have been started within this time
    tokio::time::sleep(lease / 3).await;
    assert_eq!(bench.calls(), []);
    bench.store.forgive(Verb::RenewSession);
    bench.reaches(id, State::Completed).await;
}

/// Its job looks abandoned to everybody, and goes on here.
#[tokio::test]
async fn an_attempt_whose_session_was_ended_by_others_is_not_taken_back_by_its_own_process() {
    let bench = Bench::start([Act::Hold]).await;
    let id = bench.submit(job()).await;
    eventually("it runs", || async { (!bench.calls().is_empty()).then_some(()) }).await;
    bench.store.with_model(|model| {
        let sessions: Vec<SessionId> = model.sessions().keys().copied().collect();
        sessions.into_iter().for_each(|session| model.end_session(session));
    });
    // When somebody looks for the third time, what was found the first time is dealt with.
    for _ in 0..3 {
        bench.store.fail(Verb::FindAbandoned, Fault::Stalled);
        eventually("somebody looks", || async { bench.store.is_stalled(Verb::FindAbandoned).then_some(()) })
            .await;
        bench.store.release();
    }
    let job = bench.get(id).await;
    assert_eq!((job.state(), job.attempt), (State::Running, 1));
    bench.target.gate.add_permits(1);
    bench.reaches(id, State::Completed).await;
    assert_eq!(bench.calls(), [(id, 1)]);
}

/// Nobody sweeps here: what the planner was told during the claim is all it has.
#[tokio::test]
async fn a_job_that_is_moved_while_it_is_being_claimed_runs_at_its_new_time() {
    let bench = Bench::start_on(Default::default(), [], without_sweeps()).await;
    bench.store.fail(Verb::Claim, Fault::Stalled);
    let id = bench.submit(job()).await;
    eventually("the claim is on its way", || async { bench.store.is_stalled(Verb::Claim).then_some(()) })
        .await;
    let later = SystemClock.now() + Duration::from_millis(300);
    let edit = Change::Edit(Edit { execute_at: Some(later), ..Edit::default() });
    assert!(matches!(bench.scheduler.change(id, edit).await.unwrap(), Changed::Done(_)));
    bench.store.release();
    bench.reaches(id, State::Completed).await;
    assert_eq!(bench.calls(), [(id, 1)]);
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

/// The job is taken, but whoever took it does not know yet: there is nothing to stop. The cancel is answered when there
/// is.
#[tokio::test]
async fn a_job_that_is_cancelled_between_its_claim_and_its_start_is_stopped() {
    let bench = Bench::start([]).await;
    bench.store.fail(Verb::Claim, Fault::SlowReply);
    let id = bench.submit(job().job_type(NEVER_ENDS)).await;
    eventually("it is taken", || async { bench.store.is_stalled(Verb::Claim).then_some(()) }).await;
    let scheduler = bench.scheduler.clone();
    let cancel = tokio::spawn(async move { scheduler.change(id, Change::Cancel).await });
    eventually("the store knows", || async { bench.get(id).await.cancel_requested.then_some(()) }).await;
    bench.store.release();
    assert!(matches!(cancel.await.unwrap().unwrap(), Changed::Done(_)));
    bench.reaches(id, State::Cancelled).await;
}

/// Whichever loop finds its store away waits before it asks again.
#[tokio::test]
async fn a_store_that_is_away_is_not_asked_without_a_pause() {
    const LOOPS: [Verb; 10] = [
        Verb::Controls,
        Verb::DueReceivers,
        Verb::ExpireSessions,
        Verb::FindAbandoned,
        Verb::ListQueues,
        Verb::LoadDue,
        Verb::LoadSchedules,
        Verb::ReconcileRequests,
        Verb::RenewSession,
        Verb::StallingRuns,
    ];
    const FAULTS: usize = 1_000;
    let options = EngineOptions { reap_interval: Duration::from_secs(1), ..options() };
    let bench = Bench::start_on(Default::default(), [], options).await;
    for verb in LOOPS {
        (0..FAULTS).for_each(|_| bench.store.fail(verb, Fault::Aborted));
    }
    // sleep: who asks without a pause has asked all of that in much less
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = LOOPS.map(|verb| (verb, FAULTS - bench.store.faults_left(verb)));
    assert!(asked.iter().all(|(_, times)| *times < 100), "{asked:?}");
}
