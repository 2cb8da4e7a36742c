//! Shutting down: what runs may end, what does not end in time is given back, and the session says goodbye.

use tickwheel_core::ports::JobStore as _;
use tickwheel_core::{AttemptOutcome, State};
use tickwheel_testkit::job;

use crate::bench::{Act, Bench, eventually, options};

#[tokio::test]
async fn a_running_attempt_may_end() {
    let bench = Bench::start([Act::Hold]).await;
    let id = bench.submit(job()).await;
    eventually("it starts", || async { (!bench.calls().is_empty()).then_some(()) }).await;
    bench.target.gate.add_permits(1);
    bench.engine.shutdown().await;
    assert_eq!(bench.store.get_job(id).await.unwrap().unwrap().state(), State::Completed);
    bench.store.with_model(|model| assert!(model.sessions().is_empty(), "the session has ended"));
}

#[tokio::test]
async fn an_attempt_that_does_not_end_in_time_is_given_back_and_runs_elsewhere() {
    let bench = Bench::start([Act::Hold]).await;
    let id = bench.submit(job()).await;
    eventually("it starts", || async { (!bench.calls().is_empty()).then_some(()) }).await;
    let store = bench.store.clone();
    bench.engine.shutdown().await;
    assert_eq!(store.get_job(id).await.unwrap().unwrap().state(), State::Scheduled);
    let next = Bench::start_on(store, [], options()).await;
    next.reaches(id, State::Completed).await;
    let attempts = next.store.attempts(id).await.unwrap().unwrap();
    assert_eq!(attempts[0].outcome, Some(AttemptOutcome::Released));
    assert_eq!(next.calls(), [(id, 2)]);
}
