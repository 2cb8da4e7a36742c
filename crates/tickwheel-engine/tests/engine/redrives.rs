//! Dead letters that are run again by the many.

use std::time::Duration;

use tickwheel_core::State;
use tickwheel_core::ports::{Clock as _, Redrive, RedriveProgress, RedriveStatus};
use tickwheel_core::retry::RetryPolicy;
use tickwheel_engine::SystemClock;
use tickwheel_testkit::model::Verb;
use tickwheel_testkit::{Fault, job};

use crate::bench::{Act, Bench, eventually};

fn all() -> Redrive {
    let failed_before = SystemClock.now() + Duration::from_secs(1);
    Redrive { job_type: None, queue: None, failed_before, limit: None }
}

/// Jobs that are given up at their first failure.
async fn given_up(bench: &Bench, count: usize) {
    let never_again = RetryPolicy { max_retries: 0, ..RetryPolicy::default() };
    for _ in 0..count {
        let id = bench.submit(job().retry(never_again.clone())).await;
        bench.reaches(id, State::Failed).await;
    }
}

fn assert_done(progress: &RedriveProgress, redriven: u64) {
    assert!(matches!(progress.status, RedriveStatus::Completed), "{progress:?}");
    assert_eq!((progress.redriven, progress.remaining), (redriven, 0));
}

#[tokio::test]
async fn dead_letters_run_again_once() {
    let bench = Bench::start([Act::Fail, Act::Fail, Act::Fail]).await;
    given_up(&bench, 3).await;
    let asked = all();
    let redriven = bench.engine.redrives().redrive(asked.clone(), Duration::from_secs(10)).await.unwrap();
    assert_done(&redriven, 3);
    eventually("they run again", || async { (bench.calls().len() == 6).then_some(()) }).await;
    assert_done(&bench.engine.redrives().redrive(asked, Duration::from_secs(10)).await.unwrap(), 0);
}

/// Whoever asked has an answer before it is over, and can ask again how far it is.
#[tokio::test]
async fn a_redrive_goes_on_while_the_store_fails_and_nobody_waits() {
    let bench = Bench::start([Act::Fail]).await;
    given_up(&bench, 1).await;
    bench.store.fail(Verb::ListDeadLetters, Fault::Aborted);
    let redrives = bench.engine.redrives();
    let begun = redrives.redrive(all(), Duration::ZERO).await.unwrap();
    assert!(begun.is_running(), "{begun:?}");
    let over = eventually("it is over", || async {
        redrives.progress(begun.id).filter(|progress| !progress.is_running())
    });
    assert_done(&over.await, 1);
}
