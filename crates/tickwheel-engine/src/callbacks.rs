//! Tells outcomes to callback URLs: three tries, each wait twice the one before. What comes of it never changes a job.
//!
//! ```text
//!  store ──who is due──▶ slots (core): how many for whom ──▶ take under our session ──▶ send, a task each ──▶ settle
//! ```
//! A callback that was taken belongs to this node's session. When the session ends, in order or not, whoever lives gives its callbacks back, and they are due
//! at once.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::callback::{CallbackSlots, Receiver};
use tickwheel_core::containment::contained;
use tickwheel_core::ports::{
    Callback, CallbackResult, CallbackSender, CallbackTry, Clock, Store, StoreError, StoreResult,
    TakeCallbacks, Undelivered,
};
use tickwheel_core::{Job, SessionId};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout};

use crate::lease::Lease;
use crate::metrics;
use crate::store_watch::StoreWatch;
use crate::supervisor::Tasks;
use crate::wake_up::WakeUpReceiver;

/// How often the store is asked without a hint.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How many receivers are looked at in one go.
const RECEIVERS_LEN_MAX: usize = 256;
/// What this machine lacked will not be there at once.
const NOT_SENT_PAUSE: Duration = Duration::from_secs(1);
/// How long a stop waits for the callbacks under way. What has not ended by then is sent again by the next process.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// See the module.
pub struct Callbacks {
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub sender: Arc<dyn CallbackSender>,
    pub lease: Arc<Lease>,
    pub tasks: Tasks,
    pub tries_max: u32,
    pub delay: Duration,
    pub written: WakeUpReceiver,
    pub handle: CallbacksHandle,
}

/// Stops the loop.
#[derive(Clone, Default)]
pub struct CallbacksHandle {
    stop: Arc<Notify>,
    stopped: Arc<Notify>,
}

impl CallbacksHandle {
    /// Nothing more is taken from now on. Returns when nothing is under way, or the loop does not wait for it any longer.
    pub async fn stop(&self) {
        self.stop.notify_one();
        self.stopped.notified().await;
    }
}

/// A try that is over.
struct Tried {
    id: i64,
    is_delivered: bool,
}

impl Callbacks {
    /// Delivers until it is told to stop.
    pub async fn run(self: Arc<Self>, mut slots: CallbackSlots) {
        let (tried_tx, mut tried_rx) = mpsc::channel(slots.free());
        let mut after = None;
        let mut poll_at = Instant::now();
        loop {
            let is_polling = Instant::now() >= poll_at;
            if is_polling {
                poll_at = Instant::now() + POLL_INTERVAL;
            }
            if let Err(error) = self.send_due(&mut slots, &mut after, is_polling, &tried_tx).await {
                let wait = self.watch.failed("callbacks", &error);
                (after, poll_at) = (None, Instant::now() + wait.max(POLL_INTERVAL));
            } else {
                self.watch.succeeded("callbacks");
                if after.is_some() && slots.free() > 0 {
                    continue;
                }
            }
            tokio::select! {
                () = self.handle.stop.notified() => break,
                // A hint saves waiting; retries and lost hints are found by looking.
                () = self.written.received() => {}
                () = tokio::time::sleep_until(poll_at) => {}
                () = self.until_there_may_be_more(&mut slots, &mut tried_rx) => {}
            }
        }
        let idle = async {
            while !slots.is_idle() {
                self.end_next(&mut slots, &mut tried_rx).await;
            }
        };
        let _ = timeout(STOP_GRACE, idle).await;
        self.handle.stopped.notify_one();
        std::future::pending().await
    }

    /// Takes what there is room for and sends it. `after` is the receiver whose turn was the last one: the next time it goes on from there.
    async fn send_due(
        self: &Arc<Self>,
        slots: &mut CallbackSlots,
        after: &mut Option<Receiver>,
        is_polling: bool,
        tried: &mpsc::Sender<Tried>,
    ) -> StoreResult<()> {
        let (session, now) = (self.lease.session(), self.clock.now());
        if is_polling {
            self.give_back(session, slots).await?;
        }
        if slots.free() == 0 {
            return Ok(());
        }
        let page = self.store.due_receivers(after.take(), now, RECEIVERS_LEN_MAX).await?;
        let rooms = slots.allot(page.items, now);
        let allotted: usize = rooms.iter().map(|(_, room)| room).sum();
        *after = if allotted < slots.free() { page.next } else { rooms.last().map(|(last, _)| last.clone()) };
        if rooms.is_empty() {
            return Ok(());
        }
        let taken = self.store.take_callbacks(TakeCallbacks { session, rooms: rooms.clone(), now }).await?;
        slots.start(&rooms, taken.iter().map(|callback| (callback.id, Receiver::of(&callback.url))));
        for callback in taken {
            let (this, tried) = (self.clone(), tried.clone());
            self.tasks.spawn(async move {
                let id = callback.id;
                let is_delivered = this.deliver(callback, session).await;
                // Nobody listens any more when the process ends.
                let _ = tried.send(Tried { id, is_delivered }).await;
            });
        }
        Ok(())
    }

    /// Makes due what nobody sends: what dead processes left behind, and what was taken for us by a take whose answer was lost.
    async fn give_back(&self, session: SessionId, slots: &CallbackSlots) -> StoreResult<()> {
        let count = self.store.give_back_callbacks(session, slots.in_flight()).await?;
        if count > 0 {
            tracing::info!(callbacks = count, "callbacks that nobody was sending are due again");
        }
        Ok(())
    }

    async fn until_there_may_be_more(&self, slots: &mut CallbackSlots, tried: &mut mpsc::Receiver<Tried>) {
        let was_full = slots.free() == 0;
        while !self.end_next(slots, tried).await && !was_full {}
    }

    /// The end of the try that ends next. Says whether there may be another callback for its receiver.
    async fn end_next(&self, slots: &mut CallbackSlots, tried: &mut mpsc::Receiver<Tried>) -> bool {
        let Some(Tried { id, is_delivered }) = tried.recv().await else { return false };
        slots.end(id, is_delivered, self.clock.now())
    }

    /// One try and its record. Says whether the receiver can be relied on: nothing speaks against it.
    async fn deliver(&self, callback: Callback, session: SessionId) -> bool {
        let sent = match self.read_job(&callback).await {
            Ok(job) => {
                let sent = contained(self.sender.send(&callback, job.as_ref(), self.clock.now())).await;
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
            // It stays taken, and is given back with the next look at what nobody sends. The receiver has nothing to do with it.
            tracing::debug!(job_id = %callback.job_id, why, "callback not sent, goes back");
            sleep(NOT_SENT_PAUSE).await;
            return true;
        }
        let result = self.judge(&callback, &sent);
        let answer = sent.as_ref().map_or_else(ToString::to_string, Clone::clone);
        self.settle(session, callback.id, result, answer).await;
        sent.is_ok()
    }

    /// The job that the callback is about, if its document is not in the callback itself; or what follows from there being none.
    async fn read_job(&self, callback: &Callback) -> Result<Option<Job>, String> {
        if callback.document.is_some() {
            return Ok(None);
        }
        loop {
            match self.store.get_job(callback.job_id).await {
                Ok(Some(job)) => return Ok(Some(job)),
                Ok(None) => return Err("the job is gone".into()),
                Err(error @ StoreError::Corrupt(_)) => {
                    tracing::error!(job_id = %callback.job_id, %error, "callback given up");
                    return Err(error.to_string());
                }
                Err(_) => sleep(POLL_INTERVAL).await,
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
            Err(why) if tries >= self.tries_max => {
                metrics::callback("given_up");
                tracing::warn!(job_id = %callback.job_id, tries, %why, "callback given up");
                CallbackResult::GivenUp
            }
            Err(why) => {
                metrics::callback("retried");
                tracing::info!(job_id = %callback.job_id, tries, %why, "callback failed, trying again");
                CallbackResult::Again { due_at: self.clock.now() + self.delay * 2u32.pow(tries - 1) }
            }
        }
    }

    /// Asks until the store answers: what was sent is on record, or it would be sent once too often. Asking twice is harmless.
    async fn settle(&self, session: SessionId, id: i64, result: CallbackResult, answer: String) {
        let tried = CallbackTry { at: self.clock.now(), answer, result };
        while self.store.settle_callback(session, id, tried.clone()).await.is_err() {
            metrics::store_error("callbacks");
            sleep(POLL_INTERVAL).await;
        }
    }
}
