//! A PostgreSQL server of a test's own, for what nobody would do to one that others use: it is killed, or its disk is
//! full.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio_postgres::NoTls;

use crate::eventually::{PATIENCE, eventually};

/// See the module. It is killed when dropped.
pub struct OwnPostgres {
    programs: PathBuf,
    port: u16,
    postmaster: Option<Child>,
    /// Keeps the file system of a small disk, which goes away with the last process that sees it.
    disk: Option<Child>,
    home: TempDir,
}

impl OwnPostgres {
    /// Starts one.
    pub async fn start() -> Self {
        Self::on(None).await
    }

    /// Starts one whose data is on a file system of this size that only it sees.
    pub async fn on_a_small_disk(size: &str) -> Self {
        Self::on(Some(size)).await
    }

    async fn on(disk_size: Option<&str>) -> Self {
        let home = TempDir::new().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { programs: programs(), port, postmaster: None, disk: None, home };
        if geteuid().is_root() {
            run(Command::new("chown").arg("postgres:").arg(server.home.path())).await;
        }
        fs::create_dir(server.disk_dir()).unwrap();
        match disk_size {
            Some(size) => server.disk = Some(mount(size, &server.disk_dir()).await),
            None => own(&server.disk_dir()).await,
        }
        let mut initdb = server.command("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
        // Small segments, so that a small disk has room for some.
        run(initdb.arg("--wal-segsize=1").arg("--pgdata").arg(server.data_dir())).await;
        server.start_again().await;
        server
    }

    /// The address of its database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts it again on its data.
    pub async fn start_again(&mut self) {
        eventually("PostgreSQL to start", PATIENCE, async || {
            let dead =
                self.postmaster.as_mut().is_none_or(|postmaster| postmaster.try_wait().unwrap().is_some());
            if dead {
                // What is left of the one before may still hold its memory for a moment.
                self.postmaster = Some(self.launch());
            }
            tokio_postgres::connect(&self.url(), NoTls).await.ok().map(drop)
        })
        .await;
    }

    fn launch(&self) -> Child {
        let log = fs::File::options().append(true).create(true).open(self.home.path().join("log")).unwrap();
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data_dir()).args(["-p", &self.port.to_string(), "-c"]);
        postgres.args(["listen_addresses=127.0.0.1", "-c", "max_connections=100", "-c"]);
        postgres.arg(format!("unix_socket_directories={}", self.home.path().display()));
        postgres.args(["-c", "max_wal_size=8MB", "-c", "min_wal_size=2MB"]);
        postgres.stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    /// `kill -9` to all of its processes, as if the machine had lost its power.
    pub async fn kill9(&mut self) {
        let Some(mut postmaster) = self.postmaster.take() else { return };
        let pid = postmaster.id().expect("it was not waited for");
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        postmaster.kill().await.unwrap();
        for child in children.split_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)) {
            // It may have ended by itself.
            let _ = kill_process(child, Signal::KILL);
        }
    }

    /// Makes a standby of it: from now on it can be read and not written.
    pub async fn become_standby(&mut self) {
        self.kill9().await;
        fs::write(self.data_dir().join("standby.signal"), "").unwrap();
        self.start_again().await;
    }

    /// Makes it a server again that can be written.
    pub async fn promote(&self) {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.execute("SELECT pg_promote()", &[]).await.unwrap();
    }

    /// What it logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// A file on its disk, beside its data.
    pub fn file_on_disk(&self, name: &str) -> PathBuf {
        let holder = self.disk.as_ref().and_then(Child::id).expect("it is on a small disk");
        let root = PathBuf::from(format!("/proc/{holder}/root"));
        root.join(self.disk_dir().strip_prefix("/").unwrap()).join(name)
    }

    fn disk_dir(&self) -> PathBuf {
        self.home.path().join("disk")
    }

    fn data_dir(&self) -> PathBuf {
        self.disk_dir().join("data")
    }

    /// One of PostgreSQL's programs, as a user it accepts, where its disk can be seen.
    fn command(&self, program: &str) -> Command {
        let mut words: Vec<String> = Vec::new();
        let is_root = geteuid().is_root();
        if let Some(holder) = self.disk.as_ref().and_then(Child::id) {
            words.extend(["nsenter".into(), "-t".into(), holder.to_string(), "-m".into()]);
            if !is_root {
                // There we are root, who is not welcome; inside of one more namespace we are not.
                let become_nobody = ["-U", "--preserve-credentials", "unshare", "-U", "--map-user=1000"];
                words.extend(become_nobody.map(str::to_owned));
            }
        }
        if is_root {
            let as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"];
            words.extend(as_postgres.map(str::to_owned));
        }
        words.push(self.programs.join(program).to_str().expect("a plain path").to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir("/").kill_on_drop(true).stdin(Stdio::null());
        command
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().rev().take(100).collect();
            eprintln!("--- the end of PostgreSQL's log, last line first\n{}\n---", lines.join("\n"));
        }
    }
}

/// Whether this user may mount a file system that only its own processes see.
pub fn small_disks_are_possible() -> bool {
    let mut tried = std::process::Command::new("unshare");
    tried.args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).stderr(Stdio::null());
    tried.status().is_ok_and(|status| status.success())
}

/// Mounts a file system for the process it answers, which does nothing but keep it.
async fn mount(size: &str, directory: &Path) -> Child {
    let is_root = geteuid().is_root();
    let owner = if is_root { "chown postgres: \"$0\" && " } else { "" };
    let script =
        format!("mount -t tmpfs -o size={size} tmpfs \"$0\" && {owner} echo mounted && exec sleep 3600");
    let mut unshare = Command::new("unshare");
    unshare.args([if is_root { "-m" } else { "-rm" }, "sh", "-c", &script]).arg(directory);
    let mut holder = unshare.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().expect("it is piped")).read_line(&mut line).await.unwrap();
    assert_eq!(line.trim(), "mounted", "no file system of {size}");
    holder
}

async fn own(directory: &Path) {
    if geteuid().is_root() {
        run(Command::new("chown").arg("postgres:").arg(directory)).await;
    }
}

async fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The programs of the newest version that is installed, or of whatever is on the PATH.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = versions.filter_map(|version| version.ok()?.file_name().to_str()?.parse::<u32>().ok()).max();
    if let Some(version) = newest {
        return format!("/usr/lib/postgresql/{version}/bin").into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find(|directory| directory.join("initdb").exists());
    found.expect("PostgreSQL's server is installed by scripts/setup.sh")
}
