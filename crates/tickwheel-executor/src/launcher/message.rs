//! What the server and the supervisor tell each other: a line of JSON each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the supervisor is to run. The standard input of the command follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// The program, as a path.
    pub program: String,
    /// What it is called and its arguments.
    pub command: Vec<String>,
    /// All of its environment.
    pub env: BTreeMap<String, String>,
    /// The directory it runs in.
    pub cwd: String,
    /// Bytes of its standard input that follow this line.
    pub stdin_len: usize,
    /// How long it may take to end once it was asked to.
    pub grace_ms: u64,
    /// As whom it runs, if not as the server.
    pub user: Option<UserIds>,
    /// What it may use.
    pub limits: Limits,
}

/// A user and groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserIds {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}

/// What each process of a command may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Seconds of processor time.
    pub cpu_seconds: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
}

/// What the supervisor tells the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// The command runs in the process group of this number.
    Started(i32),
    /// The command cannot be run by anybody: no such file, no such directory.
    CannotRun(String),
    /// This machine could not start it.
    NotStarted(String),
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
}

/// What a supervisor tells the starter, in its command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    /// The process that is to be its parent.
    pub supervisor: i32,
    pub program: String,
    pub cwd: String,
    pub user: Option<UserIds>,
    pub limits: Limits,
}
