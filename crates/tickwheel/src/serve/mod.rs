//! Composes a server from its parts and runs it until it is asked to stop.
//!
//! The only place that sees store, engine, workers and API at once. Starting goes inside out (store, engine, API),
//! stopping outside in: no new requests, no new attempts, the last writes, goodbye.

mod demo;
mod descriptors;
pub(crate) mod executors;
pub mod log;
mod open_store;
mod panics;
pub(crate) mod processes;
pub(crate) mod telemetry;

use std::collections::HashMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use tickwheel_api::{AllowedHosts, ApiState, Memory, Permissions};
use tickwheel_core::TargetKind;
use tickwheel_core::machine::MachineOptions;
use tickwheel_core::ports::{Clock, Executor, Store};
use tickwheel_core::schedule::timer::ScheduleTimerOptions;
use tickwheel_core::settle::PoisonRule;
use tickwheel_core::token::TokenKey;
use tickwheel_core::worker::{LEASE_MAX, LEASE_MIN};
use tickwheel_engine::{Engine, EngineOptions, EngineParts, SystemClock};
use tickwheel_executor::executor::NoSink;
use tickwheel_executor::outbound::{AddressGuard, CallbackSenderOptions, WebhookCallbackSender};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Config, Role};
pub use open_store::{OpenStore, open_store};

/// Runs a server until it is asked to stop.
pub async fn run(config: Config) -> anyhow::Result<()> {
    require_all_roles(&config)?;
    let log = telemetry::start_log(&config.log).context("cannot start the thread that writes the log")?;
    panics::end_process_on_panic(log.clone());
    let ended = serve(config).await;
    log.flush_for(telemetry::LAST_LINES_TIME_MAX);
    ended
}

async fn serve(config: Config) -> anyhow::Result<()> {
    survive_file_size_limit()?;
    let open_files_max = descriptors::raise_limit();
    let metrics = telemetry::start_metrics()?;
    let listener = TcpListener::bind(config.server.listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.server.listen))?;
    let address = listener.local_addr()?;
    let opened = open_store(&config.store).await?;
    let demo = if config.server.demo { Some(demo::Echo::start().await?) } else { None };
    let exception = demo.as_ref().map(demo::Echo::address);
    let metrics = Arc::new(move || metrics.render());
    let Composed { engine, state, ready, opened } =
        compose(&config, address, opened, Arc::new(SystemClock), exception, metrics).await?;
    announce(address, &config);
    if let Some(demo) = &demo {
        tokio::spawn(demo.submit_jobs(opened.store.clone(), address));
    }
    let scheduler = engine.scheduler();
    let stop = async move {
        asked_to_stop().await;
        ready.store(false, Ordering::Release);
        scheduler.wake_waiting();
    };
    let connections_max = descriptors::connections_max(&config, open_files_max);
    tickwheel_api::serve(listener, tickwheel_api::router(state), connections_max, stop).await?;
    engine.shutdown().await;
    Ok(())
}

/// A server in parts: all of it runs, except that nobody serves its API yet.
pub struct Composed {
    /// Times and runs jobs.
    pub engine: Engine,
    /// What the API works on.
    pub state: ApiState,
    /// Whether it takes requests that wait.
    pub ready: Arc<AtomicBool>,
    /// Where jobs are kept.
    pub opened: OpenStore,
}

/// Composes a server that will be reached at `address`. Jobs may call `exception` whatever the configuration says.
pub async fn compose(
    config: &Config,
    address: SocketAddr,
    opened: OpenStore,
    clock: Arc<dyn Clock>,
    exception: Option<SocketAddr>,
    metrics: Arc<dyn Fn() -> String + Send + Sync>,
) -> anyhow::Result<Composed> {
    let tokens = TokenKey::new(opened.store.installation_secret(rand::random()).await?);
    let guard = executors::address_guard(config, exception);
    let parts = engine_parts(config, &opened.store, &clock, &tokens, guard.clone())?;
    let engine = Engine::start(parts, engine_options(config, address)).await?;
    let ready = Arc::new(AtomicBool::new(true));
    let state = ApiState {
        scheduler: engine.scheduler(),
        schedules: engine.schedules(),
        workflows: engine.workflows(),
        redrives: engine.redrives(),
        workers: engine.workers(),
        notes: engine.notes(),
        worker_lease: config.engine.lease.clamp(LEASE_MIN, LEASE_MAX),
        store: opened.store.clone(),
        clock,
        tokens,
        hosts: Arc::new(AllowedHosts::new(address, config.server.allowed_hosts.names())),
        memory: Memory::new(config.limits.bodies_bytes_max),
        limits: Arc::new(config.limits.clone()),
        permissions: Permissions {
            address_allowed: Arc::new(move |address| guard.allows(address)),
            processes_allowed: config.server.allow_process_targets,
            process_refused: Arc::new(processes::refusal(config)),
        },
        metrics,
        ready: Arc::new({
            let ready = ready.clone();
            move || ready.load(Ordering::Acquire)
        }),
    };
    Ok(Composed { engine, state, ready, opened })
}

/// A cluster of nodes with different roles is still to come; until then a server is whole or not at all.
fn require_all_roles(config: &Config) -> anyhow::Result<()> {
    let missing = Role::ALL.into_iter().find(|role| !config.server.roles.has(*role));
    if let Some(role) = missing {
        anyhow::bail!("a server without the role {} is not possible yet: leave out --roles", role.as_str());
    }
    Ok(())
}

fn engine_parts(
    config: &Config,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
    tokens: &TokenKey,
    guard: AddressGuard,
) -> anyhow::Result<EngineParts> {
    let outbound = executors::outbound(config, guard);
    let http: Arc<dyn Executor> = Arc::new(executors::http(config, outbound.clone(), clock.clone()));
    let signing = config.http.signing_secret.clone();
    let callbacks =
        WebhookCallbackSender::new(CallbackSenderOptions { signing, ..CallbackSenderOptions::new(outbound) });
    let mut executors = HashMap::from([(TargetKind::Http, http)]);
    executors
        .extend(processes::executor(config, Arc::new(NoSink))?.map(|process| (TargetKind::Process, process)));
    Ok(EngineParts {
        store: store.clone(),
        clock: clock.clone(),
        executors,
        callback_sender: Arc::new(callbacks),
        tokens: tokens.clone(),
    })
}

/// The engine's options as configured.
pub fn engine_options(config: &Config, address: SocketAddr) -> EngineOptions {
    let engine = &config.engine;
    EngineOptions {
        node: format!("{}-{}", address, std::process::id()),
        machine: MachineOptions {
            near_window: engine.near_window,
            // The bound is for all four priorities together; each has its own share, so that none can crowd out
            // another.
            near_jobs_max: (engine.near_jobs_max / 4).max(1),
            sweep_interval: engine.sweep_interval,
            slots: engine.slots,
            ..MachineOptions::default()
        },
        poison: PoisonRule {
            failures_max: config.poison.failures,
            window: config.poison.window,
            lost_max: config.poison.lost,
        },
        lease: engine.lease,
        drain_timeout: engine.drain_timeout,
        intake_len_max: engine.intake_queue_max,
        vacuum_dead_rows_min: config.store.vacuum_dead_rows,
        schedule_timer: ScheduleTimerOptions {
            catch_up_per_second: engine.catch_up_per_second,
            sweep_interval: engine.sweep_interval,
            ..ScheduleTimerOptions::default()
        },
        ..EngineOptions::default()
    }
}

fn announce(address: SocketAddr, config: &Config) {
    let mut out = std::io::stdout();
    // It serves whether or not somebody reads where.
    if let Err(error) = writeln!(out, "tickwheel listens on http://{address}").and_then(|()| out.flush()) {
        tracing::warn!(%error, "could not write to standard output");
    }
    tracing::info!(%address, store = ?config.store.url, slots = config.engine.slots, "ready");
}

/// A file that may not grow any more is an error like a full disk, not a reason to be killed by the signal that comes
/// with it.
fn survive_file_size_limit() -> std::io::Result<()> {
    const SIGXFSZ: i32 = 25;
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// Completes on SIGTERM and on Ctrl-C.
async fn asked_to_stop() {
    let mut terminate = signal(SignalKind::terminate()).expect("a signal handler can be installed");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    tracing::info!("asked to stop");
}
