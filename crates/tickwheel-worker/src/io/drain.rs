//! The end of a worker, in two stages: finish what runs, then cancel it; then leave. What can be given back is never
//! repeated elsewhere at the cost of a retry.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::Io;
use super::dispatch::SHUTDOWN_GRACE;
use crate::attempt::CancelReason;
use crate::session::{Drain, Session};

/// How long the last reports may take.
const LAST_REPORTS_TIME_MAX: Duration = Duration::from_secs(2);
const LEAVE_TIME_MAX: Duration = Duration::from_secs(2);
/// The exit code after the third signal.
const FORCED_EXIT_CODE: i32 = 130;

/// Requests to stop: the first drains, the second cancels, the third exits.
pub(crate) struct Stop {
    requests: watch::Receiver<u32>,
}

/// Asks for it.
#[derive(Clone)]
pub(crate) struct StopHandle(watch::Sender<u32>);

impl Stop {
    pub fn new() -> (StopHandle, Self) {
        let (sender, requests) = watch::channel(0);
        (StopHandle(sender), Self { requests })
    }

    async fn requested(&self, times: u32) {
        let mut requests = self.requests.clone();
        if requests.wait_for(|count| *count >= times).await.is_err() {
            // Nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }

    /// Completes when the worker is asked to stop before it has ever had a session.
    pub async fn before_registration(&self, session: &Session) {
        let mut registration = session.registration.subscribe();
        // What `wait_for` returns is a lock: it must not live on while this waits.
        let registered = async { registration.wait_for(Option::is_some).await.is_ok() };
        tokio::select! {
            biased;
            _ = registered => std::future::pending().await,
            () = self.requested(1) => tracing::info!("asked to stop before the server has answered"),
        }
    }
}

impl StopHandle {
    /// Asks once more.
    pub fn request(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Asks for the second stage at once.
    pub fn request_at_once(&self) {
        self.0.send_modify(|count| *count = (*count).max(2));
    }
}

/// Turns signals into requests, for as long as it is polled.
pub(crate) async fn forward_signals_to(stop: Option<StopHandle>) {
    let Some(stop) = stop else { return std::future::pending().await };
    let (sender, mut signals) = mpsc::unbounded_channel();
    for kind in [tokio::signal::unix::SignalKind::terminate(), tokio::signal::unix::SignalKind::interrupt()] {
        let sender = sender.clone();
        match tokio::signal::unix::signal(kind) {
            Ok(mut signal) => {
                tokio::spawn(
                    async move { while signal.recv().await.is_some() && sender.send(()).is_ok() {} },
                );
            }
            Err(error) => tracing::error!(%error, "a signal cannot be handled"),
        }
    }
    let mut count = 0;
    while signals.recv().await.is_some() {
        count += 1;
        if count >= 3 {
            std::process::exit(FORCED_EXIT_CODE);
        }
        stop.request();
    }
    std::future::pending().await
}

impl Io {
    /// Waits to be asked, then drains and leaves.
    pub async fn drain_to_the_end(&self) {
        self.stop.requested(1).await;
        let drain = &self.session.drain;
        drain.send_replace(Drain::Draining);
        self.session.wake_poll.notify_one();
        self.session.wake_heartbeat.notify_one();
        let (held, _) = self.session.counts();
        tracing::info!(held, "draining");
        tokio::select! {
            () = self.session.idle() => {}
            () = tokio::time::sleep(self.options.drain_timeout) => {}
            () = self.stop.requested(2) => {}
        }
        if !self.session.is_idle() {
            drain.send_replace(Drain::Cancelling);
            let attempts = self.session.attempts();
            tracing::info!(held = attempts.len(), "cancelling what has not ended");
            for attempt in &attempts {
                attempt.cancel(CancelReason::Shutdown);
                self.release(attempt);
            }
            let _ = tokio::time::timeout(SHUTDOWN_GRACE, self.session.idle()).await;
        }
        let _ = tokio::time::timeout(LAST_REPORTS_TIME_MAX, self.session.all_reported()).await;
        self.leave().await;
        let (left, _) = self.session.counts();
        tracing::info!(left, "drained");
    }

    /// What is left goes back at once.
    async fn leave(&self) {
        let Some(registration) = self.session.registration.borrow().clone() else { return };
        let path = ["workers", registration.worker_id.as_str()];
        let call = self.client.delete(&path).query("reason", Some("drained")).within(LEAVE_TIME_MAX);
        if let Err(error) = call.send().await {
            tracing::warn!(%error, "could not say goodbye: what is left goes back when the lease ends");
        }
    }
}
