//! A clock that stands still until it is told otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tickwheel_core::Timestamp;
use tickwheel_core::ports::Clock;

/// A [`Clock`] set by hand; all clones show the same time. It may be turned back, as real clocks are.
#[derive(Clone, Debug)]
pub struct ManualClock {
    ms: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that shows `at`.
    pub fn at(at: Timestamp) -> Self {
        Self { ms: Arc::new(AtomicI64::new(at.as_millis())) }
    }

    /// Sets it.
    pub fn set(&self, to: Timestamp) {
        self.ms.store(to.as_millis(), Ordering::SeqCst);
    }

    /// Moves it on; the new time is returned.
    pub fn advance(&self, by: Duration) -> Timestamp {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.ms.fetch_add(ms, Ordering::SeqCst)) + by
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.ms.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clones_show_the_same_time() {
        let clock = ManualClock::at(Timestamp::from_millis(1_000));
        let other = clock.clone();
        assert_eq!(clock.advance(Duration::from_secs(2)), Timestamp::from_millis(3_000));
        assert_eq!(other.now(), Timestamp::from_millis(3_000));
        other.set(Timestamp::EPOCH);
        assert_eq!(clock.now(), Timestamp::EPOCH);
    }
}
