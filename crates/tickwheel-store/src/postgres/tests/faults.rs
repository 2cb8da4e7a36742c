//! What the caller is told when something breaks: certainly not done, or nobody knows.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{Claim, JobStore, StoreError};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{at, job};

use super::{END_STUCK, STUCK, claimed, completed, connect, eventually, number, open_session, submit};
use crate::postgres::{PostgresOptions, PostgresStore};

#[tokio::test]
async fn a_server_that_cannot_be_reached_has_done_nothing() {
    let nowhere =
        PostgresStore::connect("postgres://nobody@127.0.0.1:1/none", PostgresOptions::default()).await;
    assert!(matches!(nowhere, Err(StoreError::Aborted(_))), "{nowhere:?}");
}

#[tokio::test]
async fn an_address_that_makes_no_sense_is_not_repeated_in_the_error() {
    let url = "postgres://me:secret@host:not-a-port/db";
    let error = PostgresStore::connect(url, PostgresOptions::default()).await.expect_err("not an address");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_write_the_server_gave_up_is_certainly_not_done() {
    let database = TestDatabase::create().await;
    let options =
        PostgresOptions { statement_timeout: Duration::from_millis(100), ..PostgresOptions::default() };
    let store = PostgresStore::connect(&database.url(), options).await.expect("connected");
    let job = claimed(&store).await;
    let blocker = connect(&database).await.client().await.expect("a connection");
    blocker.batch_execute("BEGIN; SELECT FROM jobs FOR UPDATE").await.expect("locked");
    let settled = store.settle(vec![completed(&job)]).await;
    assert!(matches!(settled, Err(StoreError::Aborted(_))), "{settled:?}");
}

#[tokio::test]
async fn a_write_whose_connection_ends_under_way_is_unknown_and_the_next_one_works() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let session = open_session(&store, 1).await;
    let claim = Claim { claimed_by: None, session, jobs: submit(&store, [job()]).await, now: at(0) };
    let blocker = connect(&database).await.client().await.expect("a connection");
    blocker.batch_execute("BEGIN; SELECT FROM jobs FOR UPDATE").await.expect("locked");

    let (claiming, jobs) = (Arc::clone(&store), claim.clone());
    let claimed = tokio::spawn(async move { claiming.claim(jobs).await });
    eventually("the claim waits", async || number(&store, STUCK).await == 1).await;
    store.read(END_STUCK, &[]).await.expect("ended");
    let claimed = claimed.await.expect("it answers");
    assert!(matches!(claimed, Err(StoreError::Unknown(_))), "{claimed:?}");

    blocker.batch_execute("ROLLBACK").await.expect("unlocked");
    // The pool may hand out the ended connection until that is noticed: then the answer is "unknown" again, and so is
    // what to do.
    let served = async || store.claim(claim.clone()).await.is_ok();
    eventually("another connection serves it", served).await;
}

/// The commit of a settlement is sent when its first half was answered.
#[tokio::test]
async fn a_settlement_whose_connection_ends_before_its_commit_changed_nothing() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let job = claimed(&store).await;
    let blocker = connect(&database).await.client().await.expect("a connection");
    blocker.batch_execute("BEGIN; SELECT FROM jobs FOR UPDATE").await.expect("locked");

    let (settling, settlement) = (Arc::clone(&store), completed(&job));
    let settled = tokio::spawn(async move { settling.settle(vec![settlement]).await });
    eventually("the settlement waits", async || number(&store, STUCK).await == 1).await;
    store.read(END_STUCK, &[]).await.expect("ended");
    let settled = settled.await.expect("it answers");
    assert!(matches!(settled, Err(StoreError::Aborted(_))), "{settled:?}");
}

#[tokio::test]
async fn a_read_whose_connection_ends_changed_nothing() {
    let database = TestDatabase::create().await;
    let store = Arc::new(connect(&database).await);
    let job = claimed(&store).await;
    let blocker = connect(&database).await.client().await.expect("a connection");
    blocker.batch_execute("BEGIN; LOCK TABLE jobs").await.expect("locked");

    let reading = Arc::clone(&store);
    let read = tokio::spawn(async move { reading.get_job(job.id).await });
    eventually("the read waits", async || number(&store, STUCK).await == 1).await;
    store.read(END_STUCK, &[]).await.expect("ended");
    let read = read.await.expect("it answers");
    assert!(matches!(read, Err(StoreError::Aborted(_))), "{read:?}");
}
