//! PostgreSQL, a fresh database a test.

use std::sync::Arc;

use tickwheel_core::ports::Store;
use tickwheel_store::postgres::{PostgresOptions, PostgresStore};
use tickwheel_testkit::TestDatabase;

async fn fresh() -> (Arc<dyn Store>, TestDatabase) {
    let database = TestDatabase::create().await;
    let options = PostgresOptions { pool_size: 4, ..PostgresOptions::default() };
    let store = PostgresStore::connect(&database.url(), options).await.expect("an empty database");
    (Arc::new(store), database)
}

tickwheel_testkit::schedule_conformance!(fresh);
tickwheel_testkit::store_conformance!(fresh);
tickwheel_testkit::workflow_conformance!(fresh);
