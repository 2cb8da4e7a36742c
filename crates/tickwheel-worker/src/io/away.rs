//! Says that the server is away once, then every half minute, and when it is back.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tickwheel_client::Error;

const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Since when the server does not answer, and when that was last said.
#[derive(Default)]
pub(crate) struct Away(Mutex<Option<(Instant, Instant)>>);

impl Away {
    /// A call failed.
    pub fn note(&self, error: &Error) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match &mut *since {
            None => {
                tracing::warn!(%error, "server away");
                *since = Some((now, now));
            }
            Some((since, said)) if now.duration_since(*said) >= LOG_INTERVAL => {
                tracing::warn!(%error, seconds = since.elapsed().as_secs(), "server away");
                *said = now;
            }
            Some(_) => {}
        }
    }

    /// A call was answered.
    pub fn is_back(&self) {
        let since = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((since, _)) = since {
            tracing::info!(after_ms = since.elapsed().as_millis(), "reconnected");
        }
    }
}
