//! Tells outcomes to callback URLs: three tries, each wait twice the one before. What comes of it never changes a job.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tickwheel_core::Timestamp;
use tickwheel_core::ports::{Callback, CallbackResult, CallbackSender, Clock, Store, StoreResult};
use tokio::sync::Notify;

use crate::metrics;

const TAKE_LEN_MAX: usize = 64;
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// See the module.
pub struct Callbacks {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub sender: Arc<dyn CallbackSender>,
    pub tries_max: u32,
    pub delay: Duration,
    pub lease: Duration,
    pub written: Arc<Notify>,
}

impl Callbacks {
    /// Delivers for ever.
    pub async fn run(self) {
        loop {
            match self.run_once(self.clock.now()).await {
                Ok(TAKE_LEN_MAX) => continue,
                Ok(_) => {}
                Err(error) => {
                    metrics::store_error("callbacks");
                    tracing::warn!(%error, "could not deliver callbacks");
                }
            }
            // A hint saves waiting; retries and lost hints are found by looking.
            let _ = tokio::time::timeout(POLL_INTERVAL, self.written.notified()).await;
        }
    }

    /// Tries everything that is due once; says how many that were.
    async fn run_once(&self, now: Timestamp) -> StoreResult<usize> {
        let due = self.store.take_callbacks(now, now + self.lease, TAKE_LEN_MAX).await?;
        let count = due.len();
        for tried in join_all(due.iter().map(|callback| self.deliver(callback))).await {
            tried?;
        }
        Ok(count)
    }

    async fn deliver(&self, callback: &Callback) -> StoreResult<()> {
        let job = match &callback.document {
            Some(_) => None,
            None => self.store.get_job(callback.job_id).await?,
        };
        if job.is_none() && callback.document.is_none() {
            return self.store.settle_callback(callback.id, CallbackResult::Over).await;
        }
        let sent = self.sender.send(callback, job.as_ref(), self.clock.now()).await;
        let tries = callback.tries + 1;
        let result = match sent {
            Ok(()) => {
                metrics::callback("delivered");
                CallbackResult::Over
            }
            Err(why) if tries >= self.tries_max => {
                metrics::callback("given_up");
                tracing::warn!(job_id = %callback.job_id, tries, why, "callback given up");
                CallbackResult::Over
            }
            Err(why) => {
                metrics::callback("retried");
                tracing::info!(job_id = %callback.job_id, tries, why, "callback failed, trying again");
                CallbackResult::Again { due_at: self.clock.now() + self.delay * 2u32.pow(tries - 1) }
            }
        };
        self.store.settle_callback(callback.id, result).await
    }
}
