//! A whole server inside a program: for tests of programs that use one, and for programs that bring their own.
//!
//! ```
//! use std::time::Duration;
//!
//! use serde_json::json;
//! use tickwheel::embedded::{Embedded, EmbeddedOptions};
//! use tickwheel_client::NewJob;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Embedded::start(EmbeddedOptions::default()).await?;
//! let client = server.client()?;
//! let job = client.submit_job(NewJob::named("send_email", &json!({"to": "a@example.com"}))).await?;
//! assert_eq!(job.job().status.as_str(), "scheduled");
//! server.stop().await?;
//! # Ok(()) }
//! ```
//!
//! For tests there is a clock that stands still until it is told otherwise ([`EmbeddedOptions::manual_clock`],
//! [`Embedded::advance`]). It covers what the server decides by wall-clock time: when jobs are due, when schedules fire,
//! how long retries and snoozes wait, how long idempotency keys are remembered. It does **not** cover what is measured by
//! the machine's own clock:
//!
//! - timeouts of attempts and requests, `wait` in requests, and everything inside a worker;
//! - the loops of the server, which look at the clock a few hundredths of a second after it was moved. A test waits for
//!   what it expects ([`JobHandle::wait`](tickwheel_client::JobHandle::wait)) instead of assuming that it has happened;
//! - callbacks and vacuums, which may take until their loops look again, up to a second or more.
//!
//! A jump that is longer than the lease of a worker (ten minutes here, unless the worker asks for less) ends the
//! worker's session, as hours of silence would: what it runs is lost and starts again.
//!
//! Deliberately not here: a log, metrics and signals. They belong to the program around it. A panic inside the server
//! ends the loop it is in and, with it, the server; the program lives.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tickwheel_client::{Client, ClientOptions};
use tickwheel_core::Timestamp;
use tickwheel_core::ports::Clock;
use tickwheel_engine::SystemClock;
use tickwheel_protocol::Time;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::serve::{Composed, compose, open_store};

/// With a manual clock: the session of the server itself never ends by time.
const LEASE_WITHOUT_END: Duration = Duration::from_secs(100 * 366 * 24 * 3600);
/// With a manual clock: how soon the loops notice that it was moved.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How the server is to be.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// Where jobs are kept. Default: in a temporary directory, which goes with the server.
    pub data_dir: Option<PathBuf>,
    /// The address of the API. Default: a free port of the loopback address. `None`: no API, and no client; what is in
    /// the data directory runs.
    pub listen: Option<SocketAddr>,
    /// Lets jobs call targets on loopback and private networks. Default: yes, as tests need it.
    pub allow_private_targets: bool,
    /// A clock that stands at this time until it is told otherwise. Default: the machine's clock.
    pub manual_clock: Option<Time>,
    /// How long running jobs may take to end when it stops.
    pub drain_timeout: Duration,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            data_dir: None,
            listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            allow_private_targets: true,
            manual_clock: None,
            drain_timeout: Duration::from_secs(5),
        }
    }
}

/// A server that runs in this process, on the runtime that started it. Dropped, it stops in the background.
#[derive(Debug)]
pub struct Embedded {
    address: Option<SocketAddr>,
    clock: Option<ManualClock>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<anyhow::Result<()>>,
    /// Lives as long as the server.
    _directory: Option<Arc<TempDir>>,
}

impl Embedded {
    /// Starts a server. When this returns, it answers.
    pub async fn start(options: EmbeddedOptions) -> anyhow::Result<Self> {
        let directory = match &options.data_dir {
            Some(_) => None,
            None => Some(Arc::new(tempfile::tempdir().context("cannot create a temporary directory")?)),
        };
        let config = config(&options, directory.as_deref());
        let listener = match options.listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let clock = options.manual_clock.map(ManualClock::at);
        let for_engine: Arc<dyn Clock> = match &clock {
            Some(clock) => Arc::new(clock.clone()),
            None => Arc::new(SystemClock),
        };
        let opened = open_store(&config.store).await?;
        let at = address.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let composed = compose(&config, at, opened, for_engine, None, Arc::new(String::new)).await?;
        let (stop, stopped) = oneshot::channel();
        let running =
            tokio::spawn(run(composed, listener, config.server.connections_max, stopped, directory.clone()));
        Ok(Self { address, clock, stop, running, _directory: directory })
    }

    /// Where the API is.
    pub fn url(&self) -> Option<String> {
        self.address.map(|address| format!("http://{address}"))
    }

    /// A client of it.
    pub fn client(&self) -> anyhow::Result<Client> {
        let url = self.url().context("this server has no API: it was started without `listen`")?;
        Ok(Client::with_options(ClientOptions { servers: vec![url], ..ClientOptions::default() })?)
    }

    /// Moves the manual clock on, and returns what it shows then.
    ///
    /// # Panics
    ///
    /// If the server has the machine's clock.
    pub fn advance(&self, by: Duration) -> Time {
        let clock = self.clock.as_ref().expect("the server was started with a manual clock");
        clock.advance(by)
    }

    /// Stops it: requests under way are answered, running jobs end or are given back.
    pub async fn stop(self) -> anyhow::Result<()> {
        let Self { stop, running, _directory, .. } = self;
        drop(stop);
        running.await.context("the server has panicked")?
    }
}

fn config(options: &EmbeddedOptions, directory: Option<&TempDir>) -> Config {
    let mut config = Config::default();
    if let Some(path) = options.data_dir.clone().or_else(|| directory.map(|made| made.path().to_owned())) {
        config.store.data_dir = path;
    }
    config.http.allow_private_targets = options.allow_private_targets;
    config.engine.drain_timeout = options.drain_timeout;
    if options.manual_clock.is_some() {
        config.engine.lease = LEASE_WITHOUT_END;
        config.engine.sweep_interval = LOOK_INTERVAL;
    }
    config
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// Serves until it is told to stop, or nobody can tell it any more.
async fn run(
    composed: Composed,
    listener: Option<TcpListener>,
    connections_max: usize,
    stopped: oneshot::Receiver<()>,
    directory: Option<Arc<TempDir>>,
) -> anyhow::Result<()> {
    let Composed { engine, state, ready, opened } = composed;
    let scheduler = engine.scheduler();
    let stop = async move {
        let _ = stopped.await;
        ready.store(false, Ordering::Release);
        scheduler.wake_waiting();
    };
    let served = match listener {
        Some(listener) => {
            tickwheel_api::serve(listener, tickwheel_api::router(state), connections_max, stop).await
        }
        None => {
            drop(state);
            stop.await;
            Ok(())
        }
    };
    engine.shutdown().await;
    drop(opened);
    drop(directory);
    Ok(served?)
}

/// A clock that stands still until it is told otherwise.
#[derive(Clone, Debug)]
struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    fn at(time: Time) -> Self {
        Self(Arc::new(AtomicI64::new(time.as_millis())))
    }

    fn advance(&self, by: Duration) -> Time {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Time::from_millis(self.0.fetch_add(ms, Ordering::SeqCst).saturating_add(ms))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
