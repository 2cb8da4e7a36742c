//! The thread that talks to the server: polls, heartbeats, reports, logs. No user code runs on it, so no handler can
//! starve it.
//!
//! ```text
//! connecting ─registered─▶ polling ⇄ full ──stop──▶ draining ─25 s or idle─▶ cancelling ─3 s or idle─▶ leaving
//!     ▲                       │ 404 unknown_worker: all attempts are lost
//!     └───────────────────────┘
//! ```

mod away;
mod dispatch;
mod drain;
mod health;
mod heartbeat;
mod lease;
mod logs;
mod poll;
mod register;
mod report;
mod watchdog;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_client::Client;
use tickwheel_protocol::ExecutorKind;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use crate::attempt::Attempt;
use crate::error::Error;
use crate::options::Options;
use crate::session::{Registration, Session};

pub(crate) use away::Away;
pub(crate) use dispatch::{Dispatch, Dispatcher, Functions};
pub(crate) use drain::{Stop, StopHandle};

/// How long a request that is no poll may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait after the server has refused the worker in mid-life.
const REFUSED_DELAY: Duration = Duration::from_secs(30);

/// Everything the loops share.
pub(crate) struct Io {
    pub options: Options,
    pub types: Vec<String>,
    pub executors: Vec<ExecutorKind>,
    pub session: Arc<Session>,
    /// For polls, reports and logs.
    pub client: Client,
    /// Heartbeats have connections of their own.
    pub heartbeat_client: Client,
    pub dispatch: Arc<dyn Dispatch>,
    /// Until when the lease can be proven.
    pub provable_until: watch::Sender<Option<Instant>>,
    pub away: Away,
    pub stop: Stop,
    /// Where signals go, if the worker handles them.
    pub signals: Option<StopHandle>,
    pub started: Instant,
}

impl Io {
    /// Starts the thread. The receiver gets the end of it.
    pub fn spawn(self) -> Result<oneshot::Receiver<Result<(), Error>>, Error> {
        let (sender, receiver) = oneshot::channel();
        let system =
            |error: std::io::Error| Error::System(format!("cannot start the worker's thread: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
        let thread = std::thread::Builder::new().name("tickwheel-worker".into()).spawn(move || {
            let ended = runtime.block_on(Arc::new(self).run());
            let _ = sender.send(ended);
        });
        thread.map_err(system)?;
        Ok(receiver)
    }

    async fn run(self: Arc<Self>) -> Result<(), Error> {
        let health = self.health_listener().await?;
        let io = &*self;
        let work = async {
            io.register_first().await?;
            let endless = async {
                tokio::join!(
                    self.poll_loop(),
                    io.heartbeat_loop(),
                    io.report_loop(),
                    io.logs_loop(),
                    io.lease_loop(),
                    io.watchdog_loop(),
                    io.register_loop(),
                )
            };
            tokio::select! {
                biased;
                () = io.drain_to_the_end() => Ok(()),
                _ = endless => Err(Error::System("the loops of the worker have ended".into())),
            }
        };
        tokio::select! {
            biased;
            ended = work => ended,
            // Before there is a session there is nothing to drain.
            () = io.stop.before_registration(&io.session) => Ok(()),
            () = drain::forward_signals_to(io.signals.clone()) => Ok(()),
            () = self.serve_health(health) => Err(Error::System("the health port has closed".into())),
        }
    }

    async fn health_listener(&self) -> Result<Option<TcpListener>, Error> {
        let Some(port) = self.options.health_port else { return Ok(None) };
        let listener = TcpListener::bind(("0.0.0.0", port)).await;
        listener
            .map(Some)
            .map_err(|error| Error::System(format!("cannot listen on the health port {port}: {error}")))
    }

    /// The current session. Waits while there is none.
    async fn registered(&self) -> Arc<Registration> {
        let mut registration = self.session.registration.subscribe();
        let known = registration.wait_for(Option::is_some).await;
        let known = known.expect("the sender is in the session, which outlives this").clone();
        known.expect("it was waited for")
    }

    /// The server does not know this session any more: everything it had is lost, and a new one is needed.
    fn session_is_gone(&self, registration: &Registration) {
        let is_current = |known: &Option<Arc<Registration>>| {
            known.as_ref().is_some_and(|known| known.worker_id == registration.worker_id)
        };
        let was_current = self.session.registration.send_if_modified(|known| {
            let is_current = is_current(known);
            if is_current {
                *known = None;
            }
            is_current
        });
        if was_current {
            tracing::error!(
                worker_id = registration.worker_id,
                "lease lost: the server has ended this session"
            );
            let tokens = self.session.tokens();
            self.lose(&tokens);
        }
    }

    /// These attempts are not ours any more.
    fn lose(&self, tokens: &[String]) {
        let dispatch = &self.dispatch;
        for attempt in self.session.lose(tokens, |attempt| dispatch.continues(attempt)) {
            let (job_id, number) = (attempt.job.id, attempt.number);
            tracing::error!(%job_id, "type" = attempt.job_type(), attempt = number, "lease lost: the attempt is somebody else's now");
            self.dispatch.lost(&attempt);
        }
    }

    /// What polls and heartbeats hear beside jobs.
    fn hear(&self, cancel: &[String], lost: &[String], drain: bool) {
        self.session.cancel(cancel, crate::attempt::CancelReason::Requested);
        if !lost.is_empty() {
            self.lose(lost);
        }
        if self.session.set_told_to_drain(drain) {
            let what =
                if drain { "draining: the server asked for it" } else { "the server wants work done again" };
            tracing::info!("{what}");
        }
    }

    /// Gives an attempt back that no handler has started.
    fn release(&self, attempt: &Arc<Attempt>) {
        if attempt.give_back() {
            let report = crate::outcome::Outcome::released().into_report(attempt.token.clone(), None);
            self.session.finish(attempt, Some(report));
        }
    }
}
