//! Tells outcomes to callback URLs: three tries, each wait twice the one before. What comes of it never changes a job.
//!
//! ```text
//!  store ──who is due──▶ slots (core): how many for whom ──▶ take under our session ──▶ deliver, a task each
//! ```
//! One try is the business of [`CallbackDelivery`]; this loop decides who gets how many, and when.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::callback::{CallbackLimits, CallbackSlots, Receiver};
use tickwheel_core::ports::{CallbackStore, Clock, StoreResult, TakeCallbacks};
use tickwheel_core::{SessionId, Timestamp};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

use crate::callback_delivery::CallbackDelivery;
use crate::host::Host;
use crate::lease::Lease;
use crate::store_watch::StoreWatch;
use crate::wake_up::WakeUpReceiver;

/// How the loop behaves.
#[derive(Clone, Debug)]
pub struct CallbacksOptions {
    /// How many are sent at once.
    pub limits: CallbackLimits,
    /// How often the store is asked without a wake-up.
    pub poll_interval: Duration,
    /// How many receivers are looked at in one go.
    pub receivers_len_max: usize,
    /// How long a stop waits for the callbacks under way. What has not ended by then is sent again by the next process.
    pub stop_grace: Duration,
}

impl Default for CallbacksOptions {
    fn default() -> Self {
        Self {
            limits: CallbackLimits::default(),
            poll_interval: Duration::from_millis(500),
            receivers_len_max: 256,
            stop_grace: Duration::from_secs(1),
        }
    }
}

/// What the loop uses.
pub struct CallbacksParts {
    pub store: Arc<dyn CallbackStore>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub lease: Arc<Lease>,
    pub host: Host,
    pub delivery: Arc<CallbackDelivery>,
    pub wake_ups: WakeUpReceiver,
    pub handle: CallbacksHandle,
}

/// See the module.
pub struct Callbacks {
    options: CallbacksOptions,
    parts: CallbacksParts,
    slots: CallbackSlots,
    /// The receiver whose turn was the last one: the next time it goes on from there.
    after: Option<Receiver>,
    tried_tx: mpsc::Sender<Tried>,
    tried_rx: mpsc::Receiver<Tried>,
}

/// Stops the loop.
#[derive(Clone, Default)]
pub struct CallbacksHandle {
    stop: Arc<Notify>,
    stopped: Arc<Notify>,
}

impl CallbacksHandle {
    /// Nothing more is taken from now on. Returns when nothing is under way, or the loop does not wait for it any
    /// longer.
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
    /// A loop that sends nothing yet.
    pub fn new(options: CallbacksOptions, parts: CallbacksParts) -> Self {
        let slots = CallbackSlots::new(options.limits);
        let (tried_tx, tried_rx) = mpsc::channel(slots.free());
        Self { options, parts, slots, after: None, tried_tx, tried_rx }
    }

    /// Delivers until it is told to stop.
    pub async fn run(mut self) {
        let mut poll_at = Instant::now();
        loop {
            let is_polling = Instant::now() >= poll_at;
            if is_polling {
                poll_at = Instant::now() + self.options.poll_interval;
            }
            if let Err(error) = self.run_once(self.parts.clock.now(), is_polling).await {
                let wait = self.parts.watch.failed("callbacks", &error);
                (self.after, poll_at) = (None, Instant::now() + wait.max(self.options.poll_interval));
            } else {
                self.parts.watch.succeeded("callbacks");
                if self.after.is_some() && self.slots.free() > 0 {
                    continue;
                }
            }
            let handle = self.parts.handle.clone();
            tokio::select! {
                biased;
                () = handle.stop.notified() => break,
                // A wake-up saves waiting; retries and lost wake-ups are found by looking.
                () = self.parts.wake_ups.received() => {}
                () = tokio::time::sleep_until(poll_at) => {}
                () = until_there_may_be_more(&mut self.slots, &mut self.tried_rx, &*self.parts.clock) => {}
            }
        }
        let idle = async {
            while !self.slots.is_idle() {
                end_next(&mut self.slots, &mut self.tried_rx, &*self.parts.clock).await;
            }
        };
        let _ = timeout(self.options.stop_grace, idle).await;
        self.parts.handle.stopped.notify_one();
        std::future::pending().await
    }

    /// Takes what there is room for and begins to send it. `gives_back` says whether to make due what nobody sends.
    pub async fn run_once(&mut self, now: Timestamp, gives_back: bool) -> StoreResult<()> {
        let session = self.parts.lease.session();
        if gives_back {
            self.return_callbacks(session).await?;
        }
        if self.slots.free() == 0 {
            return Ok(());
        }
        let (store, len_max) = (&self.parts.store, self.options.receivers_len_max);
        let page = store.due_receivers(self.after.take(), now, len_max).await?;
        let rooms = self.slots.allot(page.items, now);
        let allotted: usize = rooms.iter().map(|(_, room)| room).sum();
        let goes_on = allotted < self.slots.free();
        self.after = if goes_on { page.next } else { rooms.last().map(|(last, _)| last.clone()) };
        if rooms.is_empty() {
            return Ok(());
        }
        let taken = store.take_callbacks(TakeCallbacks { session, rooms: rooms.clone(), now }).await?;
        self.slots.start(&rooms, taken.iter().map(|callback| (callback.id, Receiver::of(&callback.url))));
        for callback in taken {
            let (delivery, tried) = (self.parts.delivery.clone(), self.tried_tx.clone());
            self.parts.host.spawn(async move {
                let id = callback.id;
                let is_delivered = delivery.deliver(callback, session).await;
                // Nobody listens any more when the process ends.
                let _ = tried.send(Tried { id, is_delivered }).await;
            });
        }
        Ok(())
    }

    /// Makes due what nobody sends: what dead processes left behind, and what was taken for us by a take whose answer
    /// was lost.
    async fn return_callbacks(&self, session: SessionId) -> StoreResult<()> {
        let count = self.parts.store.return_callbacks(session, self.slots.in_flight()).await?;
        if count > 0 {
            tracing::info!(callbacks = count, "callbacks that nobody was sending are due again");
        }
        Ok(())
    }
}

async fn until_there_may_be_more(
    slots: &mut CallbackSlots,
    tried: &mut mpsc::Receiver<Tried>,
    clock: &dyn Clock,
) {
    let was_full = slots.free() == 0;
    while !end_next(slots, tried, clock).await && !was_full {}
}

/// The end of the try that ends next. Says whether there may be another callback for its receiver.
async fn end_next(slots: &mut CallbackSlots, tried: &mut mpsc::Receiver<Tried>, clock: &dyn Clock) -> bool {
    let Some(Tried { id, is_delivered }) = tried.recv().await else { return false };
    slots.end(id, is_delivered, clock.now())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use tickwheel_core::change::Change;
    use tickwheel_core::ports::{Callback, CallbackSender, JobStore, SessionStore, Undelivered};
    use tickwheel_core::{Job, JobId};
    use tickwheel_testkit::fixtures::{at, job_numbered, session, session_id};
    use tickwheel_testkit::{ManualClock, ModelStore};

    use super::*;
    use crate::callback_delivery::DeliveryOptions;
    use crate::wake_up;

    /// Refuses so many callbacks, then takes them.
    struct Sender {
        refusals: usize,
        seen: Mutex<Vec<JobId>>,
    }

    #[async_trait]
    impl CallbackSender for Sender {
        async fn send(
            &self,
            callback: &Callback,
            _: Option<&Job>,
            _: Timestamp,
        ) -> Result<String, Undelivered> {
            let mut seen = self.seen.lock().unwrap();
            seen.push(JobId::from_uuid(callback.subject.id()));
            let is_refused = seen.len() <= self.refusals;
            if is_refused { Err(Undelivered::Failed("not today".into())) } else { Ok("taken".into()) }
        }
    }

    struct Bench {
        clock: ManualClock,
        sender: Arc<Sender>,
        callbacks: Callbacks,
    }

    /// A loop on a store with one job that ended at the start, and wants that told.
    async fn bench(refusals: usize) -> Bench {
        let (store, clock) = (Arc::new(ModelStore::new()), ManualClock::at(at(0)));
        let sender = Arc::new(Sender { refusals, seen: Mutex::default() });
        store.open_session(session(1, at(60_000))).await.unwrap();
        let new = job_numbered(1).callback_url("http://127.0.0.1:9/told").build_new();
        let id = new.job.id;
        store.submit_jobs(vec![new]).await.unwrap();
        store.change_job(id, Change::Cancel, at(0)).await.unwrap();
        let delivery = CallbackDelivery {
            options: DeliveryOptions::default(),
            store: store.clone(),
            clock: Arc::new(clock.clone()),
            sender: sender.clone(),
        };
        let parts = CallbacksParts {
            store,
            watch: StoreWatch::default(),
            clock: Arc::new(clock.clone()),
            lease: Arc::new(Lease::new(session_id(1), Instant::now())),
            host: Host::default(),
            delivery: Arc::new(delivery),
            wake_ups: wake_up::channel().1,
            handle: CallbacksHandle::default(),
        };
        Bench { clock, sender, callbacks: Callbacks::new(CallbacksOptions::default(), parts) }
    }

    impl Bench {
        /// One round at that time, and the end of what it sent. Says how often anything was sent so far.
        async fn run_at(&mut self, ms: i64) -> usize {
            self.clock.set(at(ms));
            self.callbacks.run_once(at(ms), true).await.unwrap();
            let Callbacks { slots, tried_rx, .. } = &mut self.callbacks;
            while !slots.is_idle() {
                end_next(slots, tried_rx, &self.clock).await;
            }
            self.sender.seen.lock().unwrap().len()
        }
    }

    #[tokio::test]
    async fn a_callback_that_failed_is_sent_again_when_it_is_due_again() {
        let mut bench = bench(1).await;
        for (ms, sent) in [(0, 1), (999, 1), (1_000, 2), (60_000, 2)] {
            assert_eq!(bench.run_at(ms).await, sent, "after {ms} ms");
        }
    }

    #[tokio::test]
    async fn a_callback_is_given_up_after_its_last_try_and_each_wait_is_twice_the_one_before() {
        let mut bench = bench(usize::MAX).await;
        for (ms, sent) in [(0, 1), (1_000, 2), (2_999, 2), (3_000, 3), (60_000, 3)] {
            assert_eq!(bench.run_at(ms).await, sent, "after {ms} ms");
        }
    }
}
