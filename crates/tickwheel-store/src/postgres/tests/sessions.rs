//! Liveness by lock: a dead process is noticed at once, a living one is never mistaken for dead.

use std::time::Duration;

use tickwheel_core::ports::{ControlStore, SessionStore, StoreError};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{at, session, session_id};

use super::{connect, eventually, number, open_session};
use crate::postgres::{PostgresOptions, PostgresStore};

#[tokio::test]
async fn the_session_of_a_living_process_is_left_alone() {
    let database = TestDatabase::create().await;
    let (one, other) = (connect(&database).await, connect(&database).await);
    let (of_one, of_other) = (open_session(&one, 1).await, open_session(&other, 2).await);
    assert_eq!(one.expire_sessions(of_one, at(0)).await.expect("asked").len(), 0);
    assert_eq!(other.expire_sessions(of_other, at(0)).await.expect("asked").len(), 0);
}

#[tokio::test]
async fn a_process_that_is_gone_loses_its_session_at_once() {
    let database = TestDatabase::create().await;
    let (one, other) = (connect(&database).await, connect(&database).await);
    open_session(&one, 1).await;
    let of_other = open_session(&other, 2).await;
    drop(one);
    eventually("the session ends long before its lease", async || {
        other.expire_sessions(of_other, at(0)).await.expect("asked").len() == 1
    })
    .await;
    assert!(other.renew_session(of_other, at(1)).await.expect("asked"), "ours goes on");
}

#[tokio::test]
async fn a_session_that_was_ended_by_lease_or_by_hand_gives_its_lock_back() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let (ended, expired) = (open_session(&store, 1).await, open_session(&store, 2).await);
    store.end_session(ended).await.expect("ended");
    assert_eq!(store.expire_sessions(session_id(3), at(4_000_000)).await.expect("asked").len(), 1);
    assert!(!store.renew_session(expired, at(5_000_000)).await.expect("asked"));
    let locks = "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database \
                 WHERE locktype = 'advisory' AND datname = current_database()";
    assert_eq!(number(&store, locks).await, 0);
}

#[tokio::test]
async fn a_session_is_opened_once() {
    let database = TestDatabase::create().await;
    let (one, other) = (connect(&database).await, connect(&database).await);
    let id = open_session(&one, 1).await;
    for store in [&one, &other] {
        let again = store.open_session(session(1, at(1))).await;
        assert!(matches!(again, Err(StoreError::Aborted(_))), "{again:?}");
    }
    let of_other = open_session(&other, 2).await;
    assert_eq!(other.expire_sessions(of_other, at(0)).await.expect("asked").len(), 0, "it is still locked");
    assert!(one.renew_session(id, at(2)).await.expect("asked"));
}

#[tokio::test]
async fn a_living_process_that_lost_its_connection_takes_its_lock_again() {
    let database = TestDatabase::create().await;
    let (one, other) = (connect(&database).await, connect(&database).await);
    let of_one = open_session(&one, 1).await;
    let of_other = open_session(&other, 2).await;
    cut_session_connection(&one).await;
    // Nobody asked in between, so the row is still there, and with the answer the lock is back.
    eventually("the lease is renewed again", async || {
        matches!(one.renew_session(of_one, at(3_600_000)).await, Ok(true))
    })
    .await;
    assert_eq!(other.expire_sessions(of_other, at(0)).await.expect("asked").len(), 0);
}

#[tokio::test]
async fn a_process_whose_session_was_ended_while_it_was_cut_off_learns_it() {
    let database = TestDatabase::create().await;
    let one = connect(&database).await;
    let of_one = open_session(&one, 1).await;
    one.write("DELETE FROM sessions", &[]).await.expect("as another would");
    cut_session_connection(&one).await;
    eventually("the renewal is refused", async || {
        matches!(one.renew_session(of_one, at(3_600_000)).await, Ok(false))
    })
    .await;
}

#[tokio::test]
async fn a_lease_is_renewed_while_the_pool_is_exhausted() {
    let database = TestDatabase::create().await;
    let options =
        PostgresOptions { pool_size: 1, pool_wait: Duration::from_millis(10), ..PostgresOptions::default() };
    let store = PostgresStore::connect(&database.url(), options).await.expect("connected");
    let id = open_session(&store, 1).await;
    let _the_only_one = store.client().await.expect("a connection");
    let refused = store.ping().await;
    assert!(matches!(refused, Err(StoreError::Aborted(_))), "{refused:?}");
    assert!(store.renew_session(id, at(1)).await.expect("asked"));
}

async fn cut_session_connection(store: &PostgresStore) {
    let connection = store.session_connection.connection().await.expect("a connection");
    let row = connection.client.query_one("SELECT pg_backend_pid()", &[]).await.expect("its number");
    let pid: i32 = row.get(0);
    store.read("SELECT pg_terminate_backend($1::integer)", &[&pid]).await.expect("ended");
}
