//! Keeps the gauges of waiting and running jobs current.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::metrics;
use crate::planner::PlannerHandle;
use crate::running::Running;

const INTERVAL: Duration = Duration::from_secs(1);

/// Updates for ever.
pub async fn run(planner: PlannerHandle, running: Running) {
    let mut shown: BTreeSet<Arc<str>> = BTreeSet::new();
    loop {
        let waiting = planner.snapshot().await.waiting;
        let running = running.by_queue();
        // A queue that has become empty is shown as zero once more, not left at its last figure.
        shown.extend(waiting.keys().chain(running.keys()).cloned());
        for queue in &shown {
            let count =
                |counts: &std::collections::HashMap<Arc<str>, u64>| counts.get(queue).copied().unwrap_or(0);
            metrics::queue(queue, count(&waiting), count(&running));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
