//! Waiting without sleeping for a guessed time: look again until it is true, or fail with what was waited for.

use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Looks until `look` finds something.
///
/// # Panics
/// If it finds nothing within `patience`; `what` says what was waited for.
pub async fn eventually<T>(what: &str, patience: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < patience, "waited {patience:?} in vain: {what}");
        // sleep: the pause between two looks
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
