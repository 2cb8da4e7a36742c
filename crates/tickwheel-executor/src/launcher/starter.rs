//! Becomes the command: takes on user, limits and directory, then execs. What goes wrong is told as shells tell it: a
//! line on standard error, and 127 for a program that does not exist or 126 for one that cannot be run.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::process::{Gid, Uid};
use rustix::process::{
    Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::message::{Limits, Start, UserIds};

const CANNOT_BE_RUN: u8 = 126;
const DOES_NOT_EXIST: u8 = 127;
/// Seconds between the signal that asks a process to stop using the processor and the one that ends it.
const CPU_GRACE_SECONDS: u64 = 2;

/// Runs with the options as the first argument, and the command as the others.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(start) = args.next().and_then(|text| serde_json::from_str(text.to_str()?).ok()) else {
        return complain("this command is for Tickwheel itself", "", CANNOT_BE_RUN);
    };
    become_command(&start, args)
}

/// Returns only if it did not work out.
fn become_command(start: &Start, mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut command = Command::new(&start.program);
    if let Some(called) = words.next() {
        command.arg0(called);
    }
    command.args(words);
    if let Err(error) = start.limits.apply_before_user() {
        return complain("cannot set its limits", error, CANNOT_BE_RUN);
    }
    if let Some(user) = &start.user
        && let Err(error) = user.take_on()
    {
        return complain("cannot run as its user", error, CANNOT_BE_RUN);
    }
    if let Err(error) = std::env::set_current_dir(&start.cwd) {
        return complain(&format!("cannot enter {}", start.cwd), error, CANNOT_BE_RUN);
    }
    // After the change of user, which would undo it.
    let dies_with_parent = set_parent_process_death_signal(Some(Signal::KILL));
    let is_orphan = getppid().is_none_or(|parent| parent.as_raw_nonzero().get() != start.supervisor);
    if let Err(error) = dies_with_parent {
        return complain("cannot be bound to its supervisor", error, CANNOT_BE_RUN);
    }
    if is_orphan {
        return complain("its supervisor is gone", "", CANNOT_BE_RUN);
    }
    // What the exec itself needs has to be there before memory is limited.
    keep_memory_at_hand();
    if let Err(error) = start.limits.apply_memory() {
        return complain("cannot limit its memory", error, CANNOT_BE_RUN);
    }
    let error = command.exec();
    let code = if error.kind() == ErrorKind::NotFound { DOES_NOT_EXIST } else { CANNOT_BE_RUN };
    complain(&format!("cannot run {}", start.program), error, code)
}

fn complain(what: &str, why: impl fmt::Display, code: u8) -> ExitCode {
    let why = why.to_string();
    let separator = if why.is_empty() { "" } else { ": " };
    eprintln!("tickwheel: {what}{separator}{why}");
    ExitCode::from(code)
}

impl Limits {
    fn apply_before_user(&self) -> io::Result<()> {
        set(Resource::Nofile, self.open_files, 0)?;
        set(Resource::Cpu, self.cpu_seconds, CPU_GRACE_SECONDS)
    }

    fn apply_memory(&self) -> io::Result<()> {
        set(Resource::As, self.memory_bytes, 0)
    }
}

/// Nobody may raise it again. If the system allows less already, that remains.
fn set(resource: Resource, limit: Option<u64>, grace: u64) -> io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let new = Rlimit { current: Some(limit.min(ceiling)), maximum: Some((limit + grace).min(ceiling)) };
    Ok(setrlimit(resource, new)?)
}

impl UserIds {
    /// For this thread, which is the only one: the exec makes it the process.
    fn take_on(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        set_thread_groups(&groups)?;
        let gid = Gid::from_raw(self.gid);
        set_thread_res_gid(gid, gid, gid)?;
        let uid = Uid::from_raw(self.uid);
        Ok(set_thread_res_uid(uid, uid, uid)?)
    }
}

/// Memory that was given back is used first when some is needed again.
fn keep_memory_at_hand() {
    let pieces: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 16 << 10]).collect();
    let environment: Vec<_> = std::env::vars_os().chain(std::env::vars_os()).collect();
    std::hint::black_box((&pieces, &environment));
}
