//! Pause and halt are exact: what was acknowledged is in force for every claim that comes after, on every node.

use std::sync::Arc;

use tickwheel_core::ports::{Claim, ControlStore, JobStore, RunAdvanced, RunStore};
use tickwheel_core::workflow::{RunProgress, RunStatus, RunStep};
use tickwheel_core::{JobId, SessionId};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{at, job, run};

use super::{connect, eventually, number, open_session, submit};
use crate::postgres::PostgresStore;
use crate::postgres::locks::{BEGIN_CLAIM, BEGIN_CONTROL};

const ROUNDS: usize = 20;
const JOBS_A_ROUND: usize = 60;
const RUNNING: &str = "SELECT count(*) FROM jobs WHERE state = 3";

async fn claim_one_by_one(store: Arc<PostgresStore>, session: SessionId, jobs: Vec<JobId>) -> usize {
    let mut taken = 0;
    for id in jobs {
        taken += store
            .claim(Claim { claimed_by: None, session, jobs: vec![id], now: at(0) })
            .await
            .expect("answered")
            .len();
    }
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_claimed_after_an_acknowledged_pause() {
    let database = TestDatabase::create().await;
    let claiming = Arc::new(connect(&database).await);
    let pausing = connect(&database).await;
    let session = open_session(&claiming, 1).await;
    let mut rounds_cut_short = 0;
    for _ in 0..ROUNDS {
        let before = number(&pausing, RUNNING).await;
        let jobs = submit(&claiming, (0..JOBS_A_ROUND).map(|_| job().queue("mail"))).await;
        let halves = jobs.chunks(JOBS_A_ROUND / 2);
        let claims = halves.map(|half| claim_one_by_one(Arc::clone(&claiming), session, half.to_vec()));
        let claims: Vec<_> = claims.map(tokio::spawn).collect();
        // Lets some through, so that the pause meets others that are under way.
        eventually("claims go on", async || number(&pausing, RUNNING).await > before + 4).await;
        pausing.set_queue_paused("mail", true).await.expect("paused");
        let at_pause = number(&pausing, RUNNING).await;

        let mut taken = 0;
        for claim in claims {
            taken += claim.await.expect("the claims end");
        }
        assert_eq!(
            number(&pausing, RUNNING).await,
            at_pause,
            "something started after the acknowledged pause"
        );
        rounds_cut_short += usize::from(taken < JOBS_A_ROUND);
        pausing.set_queue_paused("mail", false).await.expect("resumed");
    }
    assert!(rounds_cut_short > 0, "every round was over before its pause: nothing was tested");
}

#[tokio::test]
async fn a_claim_that_began_before_a_pause_was_committed_obeys_it() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let session = open_session(&store, 1).await;
    let jobs = submit(&store, [job().queue("mail")]).await;
    let pausing = store.client().await.expect("a connection");
    pausing.batch_execute(BEGIN_CONTROL).await.expect("begun");
    pausing.batch_execute("UPDATE queues SET paused = true").await.expect("not yet committed");

    let claim = tokio::spawn(claim_one_by_one(Arc::clone(&store), session, jobs));
    eventually("the claim waits", async || number(&store, WAITING).await == 1).await;
    pausing.batch_execute("COMMIT").await.expect("committed");
    assert_eq!(claim.await.expect("it ends"), 0);
}

const WAITING: &str = "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database \
                       WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()";

#[tokio::test]
async fn a_claim_that_began_before_the_pause_of_a_run_was_committed_obeys_it() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let session = open_session(&store, 1).await;
    let start = run().task([]).build();
    let jobs = vec![start.jobs[0].id];
    assert!(store.start_run(start).await.expect("stored").as_new().is_some());
    let pausing = store.client().await.expect("a connection");
    pausing.batch_execute(BEGIN_CONTROL).await.expect("begun");
    pausing.batch_execute("UPDATE workflow_runs SET status = 4").await.expect("not yet committed");

    let claim = tokio::spawn(claim_one_by_one(Arc::clone(&store), session, jobs));
    eventually("the claim waits", async || number(&store, WAITING).await == 1).await;
    pausing.batch_execute("COMMIT").await.expect("committed");
    assert_eq!(claim.await.expect("it ends"), 0);
}

/// Otherwise a claim that is under way could commit after the pause was acknowledged.
#[tokio::test]
async fn the_pause_of_a_run_waits_for_the_claims_under_way() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let start = run().task([]).build();
    let run = start.run.clone();
    assert!(store.start_run(start).await.expect("stored").as_new().is_some());
    let claiming = store.client().await.expect("a connection");
    claiming.batch_execute(BEGIN_CLAIM).await.expect("begun");

    let progress = RunProgress { status: RunStatus::Paused, paused_at: Some(at(1)), ..run.progress };
    let step = RunStep { progress: Some(progress), ..RunStep::nothing(&run, at(1)) };
    let pausing = Arc::clone(&store);
    let paused = tokio::spawn(async move { pausing.advance_runs(vec![step]).await });
    eventually("the pause waits", async || number(&store, WAITING).await == 1).await;
    claiming.batch_execute("COMMIT").await.expect("committed");
    assert!(matches!(paused.await.expect("it ends").expect("written")[..], [RunAdvanced::Done(_)]));
}
