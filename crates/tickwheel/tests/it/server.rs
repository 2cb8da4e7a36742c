//! The real program as a server, on a store of its own, to be started, killed, frozen, stopped and started again.
//!
//! A server is killed when its handle is dropped; what it logged is printed if the test is failing then.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::{NamedTempFile, TempDir};
use tickwheel_testkit::TestDatabase;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use url::Url;

use crate::api::Api;
use crate::eventually::{PATIENCE, eventually};
use crate::own_postgres::small_disks_are_possible;
use crate::program::{Run, tickwheel};
use crate::proxy::Proxy;
use crate::wall_clock::WallClock;

const ANNOUNCEMENT: &str = "tickwheel listens on ";
const LOG_LINES_SHOWN_MAX: usize = 400;

/// Which store a server runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// The embedded one, in a temporary directory.
    Sqlite,
    /// A fresh database on the test server.
    Postgres,
}

/// Where a server's log goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogTo {
    /// To a file that the test can look into.
    #[default]
    File,
    /// To a disk that has been full from the start.
    FullDisk,
    /// To a pipe; see [`Server::take_log`].
    Pipe,
}

/// Where the data of one or more servers is. It goes away with the last of them.
struct Home {
    directory: TempDir,
    database: Option<TestDatabase>,
}

/// How a server is to be started.
#[derive(Clone)]
pub struct ServerBuilder {
    kind: StoreKind,
    home: Option<Arc<Home>>,
    store_url: Option<String>,
    env: Vec<(String, String)>,
    args: Vec<String>,
    config: Option<String>,
    private_targets: bool,
    log_to: LogTo,
    open_files_max: Option<u32>,
    disk_size: Option<String>,
}

/// A server that was started; it may have been killed since.
pub struct Server {
    builder: ServerBuilder,
    home: Arc<Home>,
    log: NamedTempFile,
    process: Option<Process>,
    address: Ipv4Addr,
    url: String,
}

struct Process {
    child: Child,
    pid: Pid,
    /// Kept open: a server that prints something must not die of it.
    stdout: BufReader<ChildStdout>,
}

impl ServerBuilder {
    /// Sets an environment variable, such as `TICKWHEEL_ENGINE_LEASE`.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets it live this much ahead of everybody else. Only its idea of the time of day: what it waits, it waits for
    /// real.
    pub fn clock_ahead(self, by: Duration) -> Self {
        self.env("LD_PRELOAD", &faketime())
            .env("FAKETIME", &format!("+{}.{:03}", by.as_secs(), by.subsec_millis()))
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }

    /// Lets it look at `clock` for the time of day.
    pub fn wall_clock(self, clock: &WallClock) -> Self {
        self.env("LD_PRELOAD", &faketime())
            .env("FAKETIME_TIMESTAMP_FILE", clock.file().to_str().expect("a plain path"))
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }

    /// Lets it have this many files open and no more.
    pub fn open_files_max(self, open_files_max: u32) -> Self {
        Self { open_files_max: Some(open_files_max), ..self }
    }

    /// Adds an argument of `serve`.
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// Starts it with this configuration file.
    pub fn config(self, toml: &str) -> Self {
        Self { config: Some(toml.to_owned()), ..self }
    }

    /// As a server is unless told otherwise: without leave to call private addresses, those of the tests among them.
    pub fn guarded(self) -> Self {
        Self { private_targets: false, ..self }
    }

    /// Lets it log somewhere else.
    pub fn log_to(self, log_to: LogTo) -> Self {
        Self { log_to, ..self }
    }

    /// On a PostgreSQL that can be reached only over a wire that can be cut.
    pub async fn behind_a_wire(self) -> (Self, Proxy) {
        let home = self.home().await;
        let mut url: Url = home.database.as_ref().expect("PostgreSQL").url().parse().unwrap();
        let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432));
        let wire = Proxy::start(server).await;
        url.set_host(Some(&wire.address().ip().to_string())).unwrap();
        url.set_port(Some(wire.address().port())).unwrap();
        (Self { home: Some(home), store_url: Some(url.into()), ..self }, wire)
    }

    /// On the database at `url`, which is not the test server's.
    pub fn on_postgres(self, url: &str) -> Self {
        let home = Home { directory: TempDir::new().unwrap(), database: None };
        Self { home: Some(Arc::new(home)), store_url: Some(url.to_owned()), ..self }
    }

    /// With its data on a file system of this size that only it sees, if this user may make one.
    pub fn on_a_small_disk(self, size: &str) -> Option<Self> {
        small_disks_are_possible().then(|| Self { disk_size: Some(size.to_owned()), ..self })
    }

    /// On the data of another server rather than on data of its own.
    pub fn beside(self, other: &Server) -> Self {
        Self { kind: other.builder.kind, home: Some(other.home.clone()), ..self }
    }

    /// Starts it and waits until it is ready.
    pub async fn start(self) -> Server {
        let home = self.home().await;
        let log = NamedTempFile::new().unwrap();
        let address = own_address();
        let mut server = Server { builder: self, home, log, process: None, address, url: String::new() };
        server.restart().await;
        server
    }

    /// Starts a server that is expected not to come up, and says how it ended.
    pub async fn start_refused(self) -> Run {
        let home = self.home().await;
        let output = self.command(&home, own_address()).stderr(Stdio::piped()).output();
        let output = tokio::time::timeout(PATIENCE, output).await.expect("the server came up").unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
        Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    async fn home(&self) -> Arc<Home> {
        if let Some(home) = &self.home {
            return home.clone();
        }
        let database = match self.kind {
            StoreKind::Sqlite => None,
            StoreKind::Postgres => Some(TestDatabase::create().await),
        };
        Arc::new(Home { directory: TempDir::new().unwrap(), database })
    }

    fn command(&self, home: &Home, address: Ipv4Addr) -> Command {
        let mut command = tickwheel(&["serve", "--listen", &format!("{address}:0")]);
        if self.private_targets {
            command.arg("--allow-private-targets");
        }
        command.arg("--data-dir").arg(home.data_dir());
        if let Some(url) = self.store_url.clone().or_else(|| Some(home.database.as_ref()?.url())) {
            command.args(["--store", &url]);
        }
        if let Some(config) = &self.config {
            let path = home.directory.path().join("tickwheel.toml");
            std::fs::write(&path, config).unwrap();
            command.arg("--config").arg(path);
        }
        command.args(&self.args).envs(self.env.iter().cloned());
        if let Some(open_files_max) = self.open_files_max {
            command = with_open_files(&command, open_files_max);
        }
        if let Some(size) = &self.disk_size {
            command = on_disk_of(size, &home.data_dir(), &command);
        }
        let mut command = Command::from(command);
        command.stdout(Stdio::piped()).kill_on_drop(true);
        command
    }
}

/// The same command with a limit of open files.
fn with_open_files(command: &std::process::Command, open_files_max: u32) -> std::process::Command {
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {open_files_max} && exec \"$0\" \"$@\"")]);
    wrapped(limited, command)
}

/// The same command in a namespace of its own, where `directory` is a file system of this size.
fn on_disk_of(size: &str, directory: &Path, command: &std::process::Command) -> std::process::Command {
    std::fs::create_dir_all(directory).unwrap();
    let script = format!("mount -t tmpfs -o size={size} tmpfs \"$0\" && exec \"$@\"");
    let mut apart = std::process::Command::new("unshare");
    apart.args(["-rm", "sh", "-c", &script]).arg(directory);
    wrapped(apart, command)
}

/// `outer`, which runs what it gets as its last arguments, with `command` as these.
fn wrapped(mut outer: std::process::Command, command: &std::process::Command) -> std::process::Command {
    outer.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// The library that changes a process's clock: Debian's package `faketime`.
fn faketime() -> String {
    let directories = std::fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path());
    let mut libraries = directories.map(|directory| directory.join("faketime/libfaketimeMT.so.1"));
    let library = libraries.find(|path| path.exists()).expect("faketime is installed by scripts/setup.sh");
    library.to_str().expect("a plain path").to_owned()
}

/// A loopback address nobody else uses: whoever still talks to a server that is gone does not reach another one that
/// was given the same port.
fn own_address() -> Ipv4Addr {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let byte = |value: u32| u8::try_from(1 + value % 250).expect("at most 250");
    Ipv4Addr::new(127, byte(process / 250), byte(process), byte(number))
}

impl Home {
    fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }
}

impl Server {
    /// A server in the making.
    pub fn builder(kind: StoreKind) -> ServerBuilder {
        ServerBuilder {
            kind,
            home: None,
            store_url: None,
            env: Vec::new(),
            args: Vec::new(),
            config: None,
            private_targets: true,
            log_to: LogTo::File,
            open_files_max: None,
            disk_size: None,
        }
    }

    /// One with nothing out of the ordinary.
    pub async fn start(kind: StoreKind) -> Self {
        Self::builder(kind).start().await
    }

    /// Starts it again on the same data, killing it first if need be, and waits until it is ready. Its port changes.
    pub async fn restart(&mut self) {
        self.launch().await;
        self.announced().await;
    }

    /// The second half of a restart: waits until it is ready.
    pub async fn announced(&mut self) {
        let process = self.process.as_mut().expect("it was just started");
        let mut line = String::new();
        let announced = tokio::time::timeout(PATIENCE, process.stdout.read_line(&mut line)).await;
        announced.expect("a server says where it listens").unwrap();
        let url = line.trim_end().strip_prefix(ANNOUNCEMENT);
        self.url = url.unwrap_or_else(|| panic!("the server did not come up, it said {line:?}")).to_owned();
        self.ready().await;
    }

    /// The first half of a restart: it is started, and nobody knows yet how far it has come.
    pub async fn launch(&mut self) {
        self.kill9().await;
        let append_to = |path: &Path| Stdio::from(File::options().append(true).open(path).unwrap());
        let log = match self.builder.log_to {
            LogTo::File => append_to(self.log.path()),
            LogTo::FullDisk => append_to(Path::new("/dev/full")),
            LogTo::Pipe => Stdio::piped(),
        };
        let mut child = self.builder.command(&self.home, self.address).stderr(log).spawn().unwrap();
        let pid = Pid::from_raw(child.id().expect("it was not waited for").cast_signed()).expect("not zero");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        self.process = Some(Process { child, pid, stdout });
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&self) {
        let api = self.api();
        eventually("the server to be ready", PATIENCE, async || {
            let answer = api.send(http::Method::GET, "/readyz", None).await;
            answer.is_ok_and(|answer| answer.status == 200).then_some(())
        })
        .await;
    }

    /// From its next start on, its clock is this much ahead of everybody else's.
    pub fn put_clock_ahead(&mut self, by: Duration) {
        self.builder = self.builder.clone().clock_ahead(by);
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A client of its own for it. After a restart, ask again.
    pub fn api(&self) -> Api {
        Api::new(&self.url)
    }

    /// Its database, if it has one.
    pub fn database(&self) -> Option<&TestDatabase> {
        self.home.database.as_ref()
    }

    /// The directory of its embedded store.
    pub fn data_dir(&self) -> PathBuf {
        self.home.data_dir()
    }

    /// The same as the server sees it, also if that is a file system of its own.
    pub fn own_data_dir(&self) -> PathBuf {
        let process = self.process.as_ref().expect("a server that was started");
        let root = PathBuf::from(format!("/proc/{}/root", process.pid.as_raw_nonzero()));
        root.join(self.home.data_dir().strip_prefix("/").unwrap())
    }

    /// What it logged so far, over all its starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// The reading end of its log. As long as nobody reads from it, it stands still when it is full.
    pub fn take_log(&mut self) -> ChildStderr {
        let process = self.process.as_mut().expect("a server that was started");
        process.child.stderr.take().expect("it logs to a pipe")
    }

    /// Lets the log of its embedded store not grow any more, as if the disk were full.
    pub fn fill_disk(&self) {
        let log = std::fs::metadata(self.data_dir().join("tickwheel.db-wal")).unwrap();
        self.limit_file_size(Some(log.len()));
    }

    /// There is room again.
    pub fn free_disk(&self) {
        self.limit_file_size(None);
    }

    fn limit_file_size(&self, bytes_max: Option<u64>) {
        let process = self.process.as_ref().expect("a server that was started");
        let limit = Rlimit { current: bytes_max, maximum: None };
        prlimit(Some(process.pid), Resource::Fsize, limit).unwrap();
    }

    /// The most memory it has had since it was started, in bytes.
    pub fn memory_peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// The memory it has now, in bytes, without what is mapped of files.
    pub fn memory_private(&self) -> u64 {
        self.memory("RssAnon:")
    }

    fn memory(&self, kind: &str) -> u64 {
        let process = self.process.as_ref().expect("a server that was started");
        let path = format!("/proc/{}/status", process.child.id().expect("a server that runs"));
        let status = std::fs::read_to_string(path).unwrap();
        let found = status.lines().find_map(|line| line.strip_prefix(kind)).expect("Linux");
        found.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// The number of its process.
    pub fn pid(&self) -> Pid {
        self.process.as_ref().expect("a server that was started").pid
    }

    /// Whether its process is there.
    pub fn is_up(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.child.try_wait().unwrap().is_none())
    }

    /// `kill -9`, if it runs.
    pub async fn kill9(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.child.kill().await.unwrap();
        }
    }

    /// Asks it to stop with SIGTERM and waits until it has.
    pub async fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.exited(PATIENCE).await
    }

    /// Sends SIGTERM without waiting.
    pub fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits until its process has ended.
    pub async fn exited(&mut self, patience: Duration) -> ExitStatus {
        let mut process = self.process.take().expect("a server that was started");
        let ended = tokio::time::timeout(patience, process.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("the server did not end within {patience:?}")).unwrap()
    }

    /// From now on it may open no file or socket with a number beyond this.
    pub fn limit_open_files(&self, open_files_max: u64) {
        let pid = self.process.as_ref().expect("it runs").pid;
        // It has inherited the hard limit, which only root may raise again.
        let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
        let limit = Rlimit { current: Some(open_files_max), maximum };
        prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    }

    /// SIGSTOP: it stands still, and everybody who waits for it waits.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT: it goes on as if nothing had happened.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("a server that was started");
        kill_process(process.pid, signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended by itself; either way it must not outlive its data.
            let _ = process.child.start_kill();
        }
        if std::thread::panicking() {
            let log = self.log();
            let skipped = log.lines().count().saturating_sub(LOG_LINES_SHOWN_MAX);
            let shown: Vec<&str> = log.lines().skip(skipped).collect();
            eprintln!("--- log of {} (without its first {skipped} lines)", self.url);
            eprintln!("{}\n---", shown.join("\n"));
        }
    }
}
