//! Dead rows are cleared before they are in anybody's way, by whoever may do so.

use tickwheel_core::ports::{Claim, ControlStore, JobStore, Vacuumed};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{at, job};

use super::{connect, eventually, number, open_session, submit};
use crate::postgres::{PostgresOptions, PostgresStore};

const DEAD: &str = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'jobs'";

/// A thousand jobs are claimed, and each leaves the row it was before. Updates within a page are cleared in passing, so
/// there are never quite as many dead rows.
async fn make_dead_rows(store: &PostgresStore) {
    let session = open_session(store, 1).await;
    let ids = submit(store, (0..1_000).map(|_| job())).await;
    store.claim(Claim { claimed_by: None, session, jobs: ids, now: at(0) }).await.expect("claimed");
    eventually("the server counts dead rows", async || number(store, DEAD).await >= 400).await;
}

#[tokio::test]
async fn tables_with_many_dead_rows_are_cleared() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    make_dead_rows(&store).await;
    assert_eq!(store.vacuum(1_000_000).await.expect("looked"), Vacuumed::default(), "not worth it");
    let done = store.vacuum(300).await.expect("vacuumed");
    assert!(done.tables == 1 && done.dead_rows >= 400, "{done:?}");
    eventually("the dead rows to be gone", async || number(&store, DEAD).await == 0).await;
    assert_eq!(store.vacuum(300).await.expect("looked").tables, 0);
}

#[tokio::test]
async fn a_table_that_somebody_has_locked_is_left_for_another_time() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    make_dead_rows(&store).await;
    let mut other = store.client().await.expect("a connection");
    let lock = other.transaction().await.expect("a transaction");
    lock.batch_execute("LOCK TABLE jobs IN SHARE UPDATE EXCLUSIVE MODE").await.expect("locked");
    store.vacuum(300).await.expect("it does not wait");
    assert!(number(&store, DEAD).await > 0);
}

#[tokio::test]
async fn tables_of_somebody_else_are_left_to_the_server() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    make_dead_rows(&store).await;
    let owner = store.client().await.expect("a connection");
    let role = format!("guest_{}", uuid::Uuid::now_v7().simple());
    let rights = format!("CREATE ROLE {role} LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}");
    owner.batch_execute(&rights).await.expect("a role that may read and write");
    let url = database.url().replacen("postgres://postgres@", &format!("postgres://{role}@"), 1);
    let guest = PostgresStore::connect(&url, PostgresOptions::default()).await.expect("connected");
    assert_eq!(number(&guest, "SELECT (current_user LIKE 'guest%')::int::bigint").await, 1);
    assert_eq!(guest.vacuum(300).await.expect("looked"), Vacuumed::default());
    drop(guest);
    assert!(number(&store, DEAD).await > 0);
    owner.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await.expect("tidied up");
}
