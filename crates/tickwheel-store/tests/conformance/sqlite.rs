//! SQLite, a fresh file a test.

use std::sync::Arc;

use tempfile::TempDir;
use tickwheel_core::ports::Store;
use tickwheel_store::sqlite::SqliteStore;

async fn fresh() -> (Arc<dyn Store>, TempDir) {
    let directory = TempDir::new().expect("a directory");
    let store = SqliteStore::open(&directory.path().join("tickwheel.db")).expect("a new file");
    (Arc::new(store), directory)
}

tickwheel_testkit::schedule_conformance!(fresh);
tickwheel_testkit::store_conformance!(fresh);
tickwheel_testkit::workflow_conformance!(fresh);
