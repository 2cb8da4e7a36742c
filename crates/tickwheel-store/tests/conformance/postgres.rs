//! PostgreSQL, a fresh database a test.

use std::sync::Arc;

use tickwheel_core::ports::Store;
use tickwheel_store::postgres::{PostgresOptions, PostgresStore};
use tickwheel_testkit::TestDatabase;

/// A busy machine may let a test stand still for longer than a server may keep a transaction open.
const PATIENT: &str = "options=-c%20idle_in_transaction_session_timeout%3D30s";

async fn fresh() -> (Arc<dyn Store>, TestDatabase) {
    let database = TestDatabase::create().await;
    let options = PostgresOptions { pool_size: 4, ..PostgresOptions::default() };
    let url = format!("{}?{PATIENT}", database.url());
    let store = PostgresStore::connect(&url, options).await.expect("an empty database");
    (Arc::new(store), database)
}

tickwheel_testkit::schedule_conformance!(fresh);
tickwheel_testkit::store_conformance!(fresh);
tickwheel_testkit::workflow_conformance!(fresh);
