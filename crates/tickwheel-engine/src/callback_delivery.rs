//! One try to deliver a callback, and its record.
//!
//! A callback that was taken belongs to this node's session. When the session ends, in order or not, whoever lives
//! gives its callbacks back, and they are due at once.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::catch_panic::catch_panic_async;
use tickwheel_core::ports::{
    Callback, CallbackResult, CallbackSender, CallbackSubject, CallbackTry, Clock, Store, StoreError,
    Undelivered,
};
use tickwheel_core::{Job, SessionId};
use tokio::time::sleep;

use crate::metrics;

/// How deliveries behave.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryOptions {
    /// How often a callback is tried.
    pub tries_max: u32,
    /// The wait before the second try; it doubles.
    pub delay: Duration,
    /// What this machine lacked to send one will not be there at once.
    pub not_sent_pause: Duration,
    /// The wait before a store that failed is asked again.
    pub store_pause: Duration,
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            tries_max: 3,
            delay: Duration::from_secs(1),
            not_sent_pause: Duration::from_secs(1),
            store_pause: Duration::from_millis(500),
        }
    }
}

/// See the module.
pub struct CallbackDelivery {
    pub options: DeliveryOptions,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub sender: Arc<dyn CallbackSender>,
}

impl CallbackDelivery {
    /// One try and its record. Says whether the receiver can be relied on: nothing speaks against it.
    pub async fn deliver(&self, callback: Callback, session: SessionId) -> bool {
        let sent = match self.read_job(&callback).await {
            Ok(job) => {
                let sent =
                    catch_panic_async(self.sender.send(&callback, job.as_ref(), self.clock.now())).await;
                sent.unwrap_or_else(|_| {
                    Err(Undelivered::Failed("sending it broke something inside the server".into()))
                })
            }
            Err(why) => {
                self.settle(session, callback.id, CallbackResult::GivenUp, why).await;
                return true;
            }
        };
        if let Err(Undelivered::NotSent(why)) = &sent {
            // It stays taken, and is given back with the next look at what nobody sends. The receiver has nothing to do
            // with it.
            tracing::debug!(subject = %callback.subject, why, "callback not sent, goes back");
            sleep(self.options.not_sent_pause).await;
            return true;
        }
        let result = self.judge(&callback, &sent);
        let answer = sent.as_ref().map_or_else(ToString::to_string, Clone::clone);
        self.settle(session, callback.id, result, answer).await;
        sent.is_ok()
    }

    /// The job that the callback is about, if it is about one; or what follows from there being none.
    async fn read_job(&self, callback: &Callback) -> Result<Option<Job>, String> {
        let CallbackSubject::Job(id) = callback.subject else { return Ok(None) };
        loop {
            match self.store.get_job(id).await {
                Ok(Some(job)) => return Ok(Some(job)),
                Ok(None) => return Err("the job is gone".into()),
                Err(error @ StoreError::Corrupt(_)) => {
                    tracing::error!(subject = %callback.subject, %error, "callback given up");
                    return Err(error.to_string());
                }
                Err(_) => sleep(self.options.store_pause).await,
            }
        }
    }

    fn judge(&self, callback: &Callback, sent: &Result<String, Undelivered>) -> CallbackResult {
        let tries = callback.tries + 1;
        match sent {
            Ok(_) => {
                metrics::callback("delivered");
                CallbackResult::Delivered
            }
            Err(why) if tries >= self.options.tries_max => {
                metrics::callback("given_up");
                tracing::warn!(subject = %callback.subject, tries, %why, "callback given up");
                CallbackResult::GivenUp
            }
            Err(why) => {
                metrics::callback("retried");
                tracing::info!(subject = %callback.subject, tries, %why, "callback failed, trying again");
                CallbackResult::Again { due_at: self.clock.now() + self.options.delay * 2u32.pow(tries - 1) }
            }
        }
    }

    /// Asks until the store answers: what was sent is on record, or it would be sent once too often. Asking twice is
    /// harmless.
    async fn settle(&self, session: SessionId, id: i64, result: CallbackResult, answer: String) {
        let tried = CallbackTry { at: self.clock.now(), answer, result };
        while self.store.settle_callback(session, id, tried.clone()).await.is_err() {
            metrics::store_error("callbacks");
            sleep(self.options.store_pause).await;
        }
    }
}
