//! Has the store cleared of dead rows before they are in anybody's way. A store that needs none of it answers at once.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::Store;

use crate::metrics;
use crate::store_watch::StoreWatch;

/// How often it is seen whether there is something to clear.
const INTERVAL: Duration = Duration::from_secs(2);
/// After a vacuum, so many times its duration passes until the next one: it takes a quarter of the time at the most.
const PAUSE_FACTOR: u32 = 3;

/// Looks for ever; `dead_rows_min` is how many dead rows of a table are worth a vacuum. Zero: none ever are.
pub async fn run(store: Arc<dyn Store>, watch: StoreWatch, dead_rows_min: u64) {
    if dead_rows_min == 0 {
        return std::future::pending().await;
    }
    let mut pause = INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        pause = match store.vacuum(dead_rows_min).await {
            Ok(done) => {
                watch.succeeded("vacuum");
                if done.tables > 0 {
                    metrics::vacuumed(done.tables);
                    tracing::debug!(tables = done.tables, dead_rows = done.dead_rows, took = ?done.took, "vacuumed");
                }
                INTERVAL.max(done.took * PAUSE_FACTOR)
            }
            Err(error) => watch.failed("vacuum", &error).max(INTERVAL),
        };
    }
}
