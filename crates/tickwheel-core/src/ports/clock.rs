//! Time, asked only by the outermost loops.

use std::time::Duration;

use crate::time::Timestamp;

/// The wall clock. Waiting is the async runtime's business; this only answers "what time is it".
pub trait Clock: Send + Sync {
    /// The current wall-clock time.
    fn now(&self) -> Timestamp;

    /// How long it is until `at`; zero once it has come. A clock that knows fractions of a millisecond counts them, so
    /// that nobody wakes up a millisecond too late for having rounded down the present.
    fn until(&self, at: Timestamp) -> Duration {
        at.since(self.now())
    }
}
