//! The model keeps the promises it is the specification of.

use std::sync::Arc;

use tickwheel_core::ports::Store;
use tickwheel_testkit::ModelStore;

async fn fresh() -> (Arc<dyn Store>, ()) {
    (Arc::new(ModelStore::new()), ())
}

tickwheel_testkit::schedule_conformance!(fresh);
tickwheel_testkit::store_conformance!(fresh);
tickwheel_testkit::workflow_conformance!(fresh);
