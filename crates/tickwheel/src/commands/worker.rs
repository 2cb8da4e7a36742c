//! `tickwheel worker`: the flags of a worker. The worker itself is in [`crate::worker`].

use clap::Args;
use tickwheel_client::{Client, ClientOptions};
use tickwheel_protocol::Span;
use tickwheel_worker::{Error, Label, Worker};

use super::config::ConfigFile;
use super::input::label;
use crate::cli::{Connection, whole};
use crate::config::{Config, Flag};
use crate::failure::CommandError;
use crate::serve::telemetry;

/// The most jobs that a worker can run at once.
const CAPACITY_MAX: u32 = 100_000;

/// Options of `worker`. What jobs may do on this machine is a setting, as of a server.
#[derive(Debug, Args)]
#[command(
    after_help = "It runs jobs with an HTTP target or a command whose `requires` it meets with its labels. On SIGTERM it \
finishes what it runs.\n\nSettings of the sections http, process and log apply: docs/reference/configuration.md"
)]
pub struct WorkerArgs {
    #[command(flatten)]
    file: ConfigFile,
    /// A name for people [env: TICKWHEEL_WORKER_NAME] [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A queue to serve; repeatable [env: TICKWHEEL_QUEUES] [default: default]
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// A label that this worker has, such as site=dmz; repeatable [env: TICKWHEEL_LABELS]
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, Label)>,
    /// How many jobs to run at once [env: TICKWHEEL_CAPACITY] [default: 10]
    #[arg(long, value_name = "N", value_parser = whole(1..=CAPACITY_MAX), allow_negative_numbers = true)]
    capacity: Option<u32>,
    /// How long its jobs stay its own when it falls silent, 5s to 10m [env: TICKWHEEL_LEASE] [default: the server's]
    #[arg(long, value_name = "DURATION")]
    lease: Option<Span>,
    /// How long running jobs may go on when it is asked to stop [env: TICKWHEEL_DRAIN_TIMEOUT] [default: 25s]
    #[arg(long, value_name = "DURATION")]
    drain_timeout: Option<Span>,
    /// Port for /healthz and /readyz [env: TICKWHEEL_HEALTH_PORT] [default: none]
    #[arg(long, value_name = "PORT")]
    health_port: Option<u16>,
    /// Allow HTTP targets on loopback and private networks [env: TICKWHEEL_ALLOW_PRIVATE_TARGETS]
    #[arg(long)]
    allow_private_targets: bool,
    /// Allow jobs that start programs on this machine [env: TICKWHEEL_ALLOW_PROCESS_TARGETS]
    #[arg(long)]
    allow_process_targets: bool,
}

impl WorkerArgs {
    fn flags(&self) -> Vec<Flag> {
        let switches = [
            ("--allow-private-targets", self.allow_private_targets),
            ("--allow-process-targets", self.allow_process_targets),
        ];
        let switches = switches.into_iter().filter(|(_, on)| *on);
        switches.map(|(flag, _)| Flag { flag, value: "true".into() }).collect()
    }

    fn worker(self, client: Client) -> Worker {
        let mut worker = Worker::new(client);
        if let Some(name) = self.name {
            worker = worker.name(name);
        }
        if let Some(capacity) = self.capacity {
            worker = worker.capacity(capacity);
        }
        if let Some(lease) = self.lease {
            worker = worker.lease(lease.as_duration());
        }
        if let Some(timeout) = self.drain_timeout {
            worker = worker.drain_timeout(timeout.as_duration());
        }
        if let Some(port) = self.health_port {
            worker = worker.health_port(port);
        }
        let worker = self.queues.into_iter().fold(worker, Worker::queue);
        self.labels.into_iter().fold(worker, |worker, (name, label)| worker.label(name, label))
    }
}

/// Runs jobs until it is asked to stop, and then until they have ended.
pub async fn run(args: WorkerArgs, connection: &Connection) -> Result<(), CommandError> {
    let config: Config = args.file.load(&args.flags())?;
    let log = telemetry::start_log(&config.log).map_err(anyhow::Error::from)?;
    let client = Client::with_options(ClientOptions {
        servers: connection.server().split(',').map(|server| server.trim().to_owned()).collect(),
        api_key: connection.api_key(),
        ..ClientOptions::default()
    })?;
    let worker = crate::worker::with_executors(args.worker(client), &config)?;
    let stats = worker.stats();
    let ended = worker.run().await;
    log.flush_for(telemetry::LAST_LINES_TIME_MAX);
    match ended {
        Ok(()) if stats.get().heartbeat_age.is_some() => Ok(()),
        Ok(()) => Err(CommandError::NoConnection {
            server: connection.server(),
            cause: "it had not answered when the worker was asked to stop".into(),
        }),
        Err(error @ (Error::BadOptions(_) | Error::Refused(_))) => {
            Err(CommandError::BadInput(error.to_string()))
        }
        Err(error) => Err(CommandError::Other(anyhow::Error::new(error))),
    }
}
