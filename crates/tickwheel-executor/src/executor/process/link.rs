//! The server's side of an attempt under way: the supervisor, the socket to it, and the two streams of the command.
//!
//! Dropping the link closes the socket, and the supervisor ends the command: that is how an attempt is stopped, also by
//! the death of the server.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::launcher::{Launch, Message, SUPERVISE};

/// See the module.
pub(super) struct Link {
    /// What comes from the supervisor.
    messages: BufReader<OwnedReadHalf>,
    /// Open as long as the command may run.
    open: Option<OwnedWriteHalf>,
    /// The command's group, from its start to the news of its end.
    group: Option<Pid>,
    /// Taken off the system's list by the runtime, even after the link is dropped.
    _supervisor: Child,
}

/// What a command prints.
pub(super) struct Streams {
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

impl Link {
    /// Starts a supervisor. The command is not started yet.
    pub(super) fn open(launcher: &Path) -> io::Result<(Self, Streams)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut supervisor = Command::new(launcher)
            .arg(SUPERVISE)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let lacks = || io::Error::other("a stream of the process is missing");
        let streams = Streams {
            stdout: supervisor.stdout.take().ok_or_else(lacks)?,
            stderr: supervisor.stderr.take().ok_or_else(lacks)?,
        };
        let (read, write) = UnixStream::from_std(ours)?.into_split();
        let messages = BufReader::new(read);
        Ok((Self { messages, open: Some(write), group: None, _supervisor: supervisor }, streams))
    }

    /// Tells the supervisor what to run.
    pub(super) async fn launch(&mut self, launch: &Launch, stdin: &[u8]) -> io::Result<()> {
        let Some(socket) = &mut self.open else { return Ok(()) };
        let mut line = serde_json::to_vec(launch)?;
        line.push(b'\n');
        socket.write_all(&line).await?;
        socket.write_all(stdin).await
    }

    /// The next message; none if the supervisor is gone.
    pub(super) async fn next(&mut self) -> io::Result<Option<Message>> {
        let mut line = Vec::new();
        if self.messages.read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        let message = serde_json::from_slice(&line)?;
        match message {
            Message::Started(pid) => self.group = Pid::from_raw(pid),
            _ => self.group = None,
        }
        Ok(Some(message))
    }

    /// Asks the command to end.
    pub(super) fn hang_up(&mut self) {
        self.open = None;
    }

    /// Until the supervisor has ended, and with it everything that the command started.
    pub(super) async fn closed(&mut self) {
        while let Ok(Some(_)) = self.next().await {}
    }

    /// The supervisor died and cannot clean up any more: ends at least the command's group.
    pub(super) fn end_orphans(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
