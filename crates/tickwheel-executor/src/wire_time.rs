//! Moments as they are written into headers and bodies. How that looks, the protocol says.

use tickwheel_core::Timestamp;
use tickwheel_protocol::time::Time;

/// The moment on the wire.
pub(crate) fn time(at: Timestamp) -> Time {
    Time::from_millis(at.as_millis())
}
