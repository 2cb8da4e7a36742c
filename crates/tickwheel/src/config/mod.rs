//! Every setting of a server: what there is, its default, and how it is found.
//!
//! A setting comes from its flag, else from the environment, else from the one TOML file, else it has its default.
//! [`settings`] lists them all once; reading, `config show` and the reference page follow from that list. A [`Config`]
//! that [`load`] returns has passed every check: nothing behind it needs to look again. What a setting does is not
//! here.

mod checks;
mod load;
mod problem;
mod settings;
mod show;
mod value;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tickwheel_executor::outbound::SigningSecret;
use tickwheel_protocol::Limits;

pub use load::{Flag, Sources, load};
pub use problem::{ConfigProblem, Origin, Problems};
pub use settings::{SETTINGS, Setting};
pub use show::show;
pub use value::{
    CommandNames, HostNames, LogFilter, LogFormat, Role, Roles, StoreUrl, UserName, VariableNames,
};

/// All settings of a server.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// How it is reached.
    pub server: Server,
    /// Where jobs are kept.
    pub store: Store,
    /// How jobs are timed and run.
    pub engine: Engine,
    /// How HTTP targets are called.
    pub http: Http,
    /// How commands are run.
    pub process: Process,
    /// What a request may contain.
    pub limits: Limits,
    /// When a job is given up as poisonous.
    pub poison: Poison,
    /// What the server writes about itself.
    pub log: Log,
}

/// How the server is reached, and which parts of it run.
#[derive(Clone, Debug)]
pub struct Server {
    /// Address and port of the API.
    pub listen: SocketAddr,
    /// Names under which clients reach the API, beside its addresses and `localhost`.
    pub allowed_hosts: HostNames,
    /// Open connections at once; more wait to be accepted.
    pub connections_max: usize,
    /// The parts that run in this process.
    pub roles: Roles,
    /// Serves addresses beyond loopback although no key protects them.
    pub allow_open_access: bool,
    /// Lets jobs start programs.
    pub allow_process_targets: bool,
    /// Submits a handful of visible jobs to begin with.
    pub demo: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7180)),
            allowed_hosts: HostNames::default(),
            connections_max: 10_000,
            roles: Roles::default(),
            allow_open_access: false,
            allow_process_targets: false,
            demo: false,
        }
    }
}

/// Where jobs are kept.
#[derive(Clone, Debug)]
pub struct Store {
    /// The embedded store or a PostgreSQL database.
    pub url: StoreUrl,
    /// Directory of the embedded store.
    pub data_dir: PathBuf,
    /// Connections to the database.
    pub pool_size: usize,
    /// Dead rows of a table after which the server vacuums it.
    pub vacuum_dead_rows: u64,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            url: StoreUrl::Sqlite,
            data_dir: PathBuf::from("./tickwheel-data"),
            pool_size: 16,
            vacuum_dead_rows: 10_000,
        }
    }
}

/// How jobs are timed and run.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Jobs that run at once.
    pub slots: usize,
    /// How far into the future jobs are held in memory.
    pub near_window: Duration,
    /// How many jobs are held in memory.
    pub near_jobs_max: usize,
    /// How often the store is searched for due jobs nobody announced.
    pub sweep_interval: Duration,
    /// How long a silent process keeps the jobs it runs.
    pub lease: Duration,
    /// How long running jobs may take to end when the server is asked to stop.
    pub drain_timeout: Duration,
    /// Submissions that may wait for their commit before new ones are turned away.
    pub intake_queue_max: usize,
    /// Jobs a second that are made for firings schedules have missed.
    pub catch_up_per_second: u32,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            slots: 512,
            near_window: Duration::from_secs(30),
            near_jobs_max: 200_000,
            sweep_interval: Duration::from_secs(1),
            lease: Duration::from_secs(15),
            drain_timeout: Duration::from_secs(30),
            intake_queue_max: 20_000,
            catch_up_per_second: 50,
        }
    }
}

/// How HTTP targets are called.
#[derive(Clone, Debug)]
pub struct Http {
    /// Allows targets on loopback, private and link-local addresses.
    pub allow_private_targets: bool,
    /// Bytes of a response that are kept as the result.
    pub response_bytes_max: usize,
    /// Signs calls and callbacks (Standard Webhooks).
    pub signing_secret: Option<SigningSecret>,
}

impl Default for Http {
    fn default() -> Self {
        Self { allow_private_targets: false, response_bytes_max: 64 * 1024, signing_secret: None }
    }
}

/// How commands are run, where jobs may start programs.
#[derive(Clone, Debug)]
pub struct Process {
    /// What may be run.
    pub commands: CommandNames,
    /// Which variables of the server commands get.
    pub env: VariableNames,
    /// As whom they run, if not as the server.
    pub user: Option<UserName>,
    /// Bytes of memory that each process may use. 0: any.
    pub memory_max: u64,
    /// Seconds of processor time that each process may use. 0: any.
    pub cpu_seconds_max: u64,
    /// Files that each process may have open. 0: as many as the server.
    pub open_files_max: u64,
    /// Bytes of each stream that are kept.
    pub output_bytes_max: usize,
    /// How long a command may take to end when it is asked to.
    pub stop_grace: Duration,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            commands: CommandNames::default(),
            env: VariableNames::default(),
            user: None,
            memory_max: 0,
            cpu_seconds_max: 0,
            open_files_max: 1024,
            output_bytes_max: 64 * 1024,
            stop_grace: Duration::from_secs(1),
        }
    }
}

/// When a job is given up although it has retries left.
#[derive(Clone, Debug)]
pub struct Poison {
    /// This many failures …
    pub failures: u32,
    /// … within this time make a job poisonous.
    pub window: Duration,
    /// So do this many attempts whose process died.
    pub lost: u32,
}

impl Default for Poison {
    fn default() -> Self {
        Self { failures: 10, window: Duration::from_secs(60), lost: 5 }
    }
}

/// What the server writes about itself, to standard error.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// For people or for machines.
    pub format: LogFormat,
    /// What is written.
    pub level: LogFilter,
}
