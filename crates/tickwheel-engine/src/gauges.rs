//! Keeps the gauges of waiting and running jobs current.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::Store;

use crate::metrics;
use crate::planner::PlannerHandle;
use crate::running::Running;

const INTERVAL: Duration = Duration::from_secs(1);
/// The store is asked for its queues once in this many rounds.
const ROUNDS_A_LISTING: u32 = 10;

/// Updates for ever.
pub async fn run(store: Arc<dyn Store>, planner: PlannerHandle, running: Running) {
    let mut shown: BTreeSet<Arc<str>> = BTreeSet::new();
    for round in (0..ROUNDS_A_LISTING).cycle() {
        if round == 0 {
            let known = store.list_queues().await.unwrap_or_default();
            shown.extend(known.into_iter().map(|queue| queue.name.into()));
        }
        let waiting = planner.snapshot().await.waiting;
        let running = running.by_queue();
        // A queue that has become empty is shown as zero, not left at its last figure.
        shown.extend(waiting.keys().chain(running.keys()).cloned());
        for queue in &shown {
            let count = |counts: &HashMap<Arc<str>, u64>| counts.get(queue).copied().unwrap_or(0);
            metrics::queue(queue, count(&waiting), count(&running));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
