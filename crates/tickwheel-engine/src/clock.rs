//! The machine's wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tickwheel_core::Timestamp;
use tickwheel_core::ports::Clock;

/// The operating system's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX))
    }

    fn until(&self, at: Timestamp) -> Duration {
        let at = Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or(0));
        at.saturating_sub(since_epoch())
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
