//! Time, asked only by the outermost loops.

use crate::time::Timestamp;

/// The wall clock. Waiting is the async runtime's business; this only answers "what time is it".
pub trait Clock: Send + Sync {
    /// The current wall-clock time.
    fn now(&self) -> Timestamp;
}
