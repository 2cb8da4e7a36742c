//! What the loops know together about their store: which of their operations fail, how long to wait before they ask
//! again, and who has to hear of it. A store that is away makes a few lines of log, however many loops ask for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tickwheel_core::failure_streak::FailureStreak;
use tickwheel_core::ports::StoreError;
use tokio::time::Instant;

use crate::host::Host;
use crate::metrics;

/// See the module. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct StoreWatch(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    host: Host,
    /// Operations that failed the last time: while there are none, a success has nothing to write down.
    failing: AtomicUsize,
    streaks: Mutex<HashMap<&'static str, FailureStreak>>,
}

impl StoreWatch {
    /// Nothing has failed yet.
    pub fn new(host: Host) -> Self {
        Self(Arc::new(Shared { host, ..Shared::default() }))
    }

    /// An operation failed: it is counted, and logged if it was not just now. Answers how long to wait before it is
    /// tried again.
    pub fn failed(&self, operation: &'static str, error: &StoreError) -> Duration {
        metrics::store_error(operation);
        let mut streaks = self.0.streaks.lock().unwrap_or_else(PoisonError::into_inner);
        let streak = streaks.entry(operation).or_default();
        if !streak.is_ongoing() {
            self.0.failing.fetch_add(1, Ordering::Release);
        }
        let said = streak.failed(Instant::now().into_std());
        let wait = streak.wait(self.0.host.jitter());
        drop(streaks);
        if let Some(repeats) = said {
            tracing::warn!(operation, %error, repeats, "the store fails");
        }
        wait
    }

    /// Like [`failed`](Self::failed), and waits.
    pub async fn wait_after(&self, operation: &'static str, error: &StoreError) {
        let wait = self.failed(operation, error);
        tokio::time::sleep(wait).await;
    }

    /// An operation worked.
    pub fn succeeded(&self, operation: &'static str) {
        if self.0.failing.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut streaks = self.0.streaks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(streak) = streaks.get_mut(operation).filter(|streak| streak.is_ongoing()) else { return };
        self.0.failing.fetch_sub(1, Ordering::Release);
        let said = streak.succeeded();
        drop(streaks);
        if let Some(failures) = said {
            tracing::info!(operation, failures, "the store works again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_fails_and_recovers_by_itself() {
        let watch = StoreWatch::default();
        let error = StoreError::Aborted("on purpose".into());
        for _ in 0..10 {
            watch.failed("claim", &error);
        }
        let after_ten = watch.failed("claim", &error);
        assert!(after_ten > watch.failed("settle", &error) * 4);
        watch.succeeded("claim");
        watch.succeeded("claim");
        assert_eq!(watch.0.failing.load(Ordering::Acquire), 1);
        watch.succeeded("settle");
        assert_eq!(watch.0.failing.load(Ordering::Acquire), 0);
        assert!(watch.failed("claim", &error) < after_ten);
    }
}
