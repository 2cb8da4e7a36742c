//! Runs one command, tells how it ended, and leaves nothing of it behind.
//!
//! The command leads a process group of its own. Whatever it starts that leaves the group becomes our child when its
//! parent ends, because we are a subreaper. A command that is to end may tidy up; if the server is gone, we read what it
//! prints meanwhile, for a process that prints to nobody is ended by the system. The command is taken off the system's list last, so that the number of its
//! group belongs to nobody else while we send signals to it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process_group, pidfd_open,
    set_child_subreaper, setsid, waitid,
};

use super::message::{Launch, Message, Start};
use super::{START, children};

/// This program, even if its file was replaced meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// Whatever is still there so long after it was killed hangs in the kernel, and nobody can help.
const KILL_WAIT_MAX: Duration = Duration::from_secs(5);
/// How often to see whether what the command left behind has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// How often to see whether the command has ended, on a system that does not tell.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Runs with the socket to the server as standard input.
pub(super) fn run() -> ExitCode {
    match supervise() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tickwheel: {error}");
            ExitCode::FAILURE
        }
    }
}

fn supervise() -> io::Result<()> {
    // Signals of the server's terminal are not for the command.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (launch, stdin) = read_launch(&socket)?;
    if let Some(reason) = why_not(&launch) {
        return tell(&socket, &Message::CannotRun(reason));
    }
    let started = Readers::open().and_then(|readers| Ok((readers, start(&launch, stdin)?)));
    let command = match started {
        Ok((readers, child)) => Supervised::new(&child, &socket, readers, launch.grace_ms),
        Err(error) => return tell(&socket, &Message::NotStarted(error.to_string())),
    };
    // If the server is gone, the socket says so again.
    let _ = tell(&socket, &Message::Started(command.pid.as_raw_nonzero().get()));
    let (end, stop_since) = command.wait()?;
    let _ = tell(&socket, &end);
    command.end_what_is_left(stop_since);
    let _ = waitid(WaitId::Pid(command.pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    Ok(())
}

fn read_launch(socket: &UnixStream) -> io::Result<(Launch, Vec<u8>)> {
    let mut reader = BufReader::new(socket);
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    let launch: Launch = serde_json::from_slice(&line)?;
    let mut stdin = vec![0; launch.stdin_len];
    reader.read_exact(&mut stdin)?;
    Ok((launch, stdin))
}

fn tell(mut socket: &UnixStream, message: &Message) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// What can be seen of a command that cannot be run. Anything else shows when it is started.
fn why_not(launch: &Launch) -> Option<String> {
    let program = &launch.program;
    match std::fs::metadata(program) {
        Err(error) => return Some(format!("cannot run {program}: {error}")),
        Ok(file) if !file.is_file() => return Some(format!("cannot run {program}: it is not a file")),
        Ok(file) if file.permissions().mode() & 0o111 == 0 => {
            return Some(format!("cannot run {program}: it is not executable"));
        }
        Ok(_) => {}
    }
    match std::fs::metadata(&launch.cwd) {
        Err(error) => Some(format!("cannot run in {}: {error}", launch.cwd)),
        Ok(file) => (!file.is_dir()).then(|| format!("cannot run in {}: it is not a directory", launch.cwd)),
    }
}

fn start(launch: &Launch, stdin: Vec<u8>) -> io::Result<Child> {
    let start = Start {
        supervisor: getpid().as_raw_nonzero().get(),
        program: launch.program.clone(),
        cwd: launch.cwd.clone(),
        user: launch.user.clone(),
        limits: launch.limits,
    };
    Command::new(THIS_PROGRAM)
        .arg(START)
        .arg(serde_json::to_string(&start)?)
        .args(&launch.command)
        .env_clear()
        .envs(&launch.env)
        .stdin(input(&stdin)?)
        .process_group(0)
        .spawn()
}

/// The command's standard input, as a file in memory: nobody has to wait until it is read.
fn input(bytes: &[u8]) -> io::Result<Stdio> {
    if bytes.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// A command that was started.
struct Supervised<'s> {
    socket: &'s UnixStream,
    readers: Readers,
    /// Its number, and that of its group.
    pid: Pid,
    /// Readable once it has ended.
    pidfd: Option<OwnedFd>,
    grace: Duration,
}

impl<'s> Supervised<'s> {
    fn new(child: &Child, socket: &'s UnixStream, readers: Readers, grace_ms: u64) -> Self {
        let pid = Pid::from_child(child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok();
        Self { socket, readers, pid, pidfd, grace: Duration::from_millis(grace_ms) }
    }

    /// Waits until the command has ended, and ends it if the server hangs up. Also when it was asked to end.
    fn wait(&self) -> io::Result<(Message, Option<Instant>)> {
        while !self.is_hung_up(PollFlags::IN) {
            if let Some(end) = self.end()? {
                return Ok((end, None));
            }
            self.sleep()?;
        }
        let asked = Instant::now();
        self.ask_to_end();
        loop {
            if let Some(end) = self.end()? {
                return Ok((end, Some(asked)));
            }
            if left(asked, self.grace).is_zero() {
                self.signal_group(Signal::KILL);
            }
            self.sleep_briefly();
        }
    }

    /// Until the command ends or the server hangs up.
    fn sleep(&self) -> io::Result<()> {
        let mut awaited = vec![PollFd::new(self.socket, PollFlags::IN)];
        awaited.extend(self.pidfd.as_ref().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        let patience = self.pidfd.is_none().then_some(&POLL_INTERVAL);
        match poll(&mut awaited, patience) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// While something is to end.
    fn sleep_briefly(&self) {
        if self.is_hung_up(PollFlags::HUP) {
            self.readers.drain();
        }
        std::thread::sleep(LOOK_INTERVAL);
    }

    /// Whether the server asks for the end (it sends nothing after the launch, so whatever there is to read is the
    /// end), or (`HUP`) is gone altogether.
    fn is_hung_up(&self, how: PollFlags) -> bool {
        let mut ready = [PollFd::new(self.socket, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut ready, Some(&now)), Ok(1..)) && ready[0].revents().contains(how)
    }

    /// How it ended, if it has. It stays on the system's list.
    fn end(&self) -> io::Result<Option<Message>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = match waitid(WaitId::Pid(self.pid), options) {
            Ok(status) => status,
            Err(Errno::INTR) => None,
            Err(error) => return Err(error.into()),
        };
        let ended = |status: rustix::process::WaitIdStatus| match status.exit_status() {
            Some(code) => Message::Exited(code),
            None => Message::Signalled(status.terminating_signal().unwrap_or(0)),
        };
        Ok(status.map(ended))
    }

    /// Politely; and awake, if it was stopped.
    fn ask_to_end(&self) {
        self.signal_group(Signal::TERM);
    }

    fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// The command has ended; what it started may go on. Asks it to end, and after the grace ends it.
    fn end_what_is_left(&self, stop_since: Option<Instant>) {
        if children::others_than(self.pid).is_empty() {
            return;
        }
        if stop_since.is_none() {
            self.ask_to_end();
        }
        // What left the group has not heard of it.
        children::signal_each(&children::others_than(self.pid), Signal::TERM);
        let asked = stop_since.unwrap_or_else(Instant::now);
        if self.is_empty_within(asked, self.grace, |_| {}) {
            return;
        }
        let kill = |others: &[Pid]| {
            self.signal_group(Signal::KILL);
            children::signal_each(others, Signal::KILL);
        };
        self.is_empty_within(Instant::now(), KILL_WAIT_MAX, kill);
    }

    fn is_empty_within(&self, since: Instant, time_max: Duration, each_time: impl Fn(&[Pid])) -> bool {
        loop {
            let others = children::others_than(self.pid);
            if others.is_empty() {
                return true;
            }
            each_time(&others);
            if left(since, time_max).is_zero() {
                return false;
            }
            self.sleep_briefly();
        }
    }
}

fn left(since: Instant, of: Duration) -> Duration {
    of.saturating_sub(since.elapsed())
}

/// Our own way to read the streams that the server reads: as long as it is there, printing is possible.
struct Readers([File; 2]);

impl Readers {
    fn open() -> io::Result<Self> {
        let open = |number: u8| {
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            OpenOptions::new().read(true).custom_flags(flags).open(format!("/proc/self/fd/{number}"))
        };
        Ok(Self([open(1)?, open(2)?]))
    }

    /// Reads what there is, for nobody.
    fn drain(&self) {
        let mut buffer = [0; 64 << 10];
        for mut reader in &self.0 {
            let _ = reader.read(&mut buffer);
        }
    }
}
