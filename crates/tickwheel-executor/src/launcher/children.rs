//! The processes that this one is the parent of: those it started, and (as it is a subreaper) those that lost theirs.

use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};

/// All children except `main`, also those that have ended. The ended ones are taken off the system's list.
pub(super) fn others_than(main: Pid) -> Vec<Pid> {
    let mut others = all();
    others.retain(|pid| *pid != main && !is_over(*pid));
    others
}

/// Sends a signal to each. They are our children, so their numbers cannot have gone to somebody else.
pub(super) fn signal_each(pids: &[Pid], signal: Signal) {
    for pid in pids {
        let _ = kill_process(*pid, signal);
    }
}

/// Whether a child has ended. If so, nobody sees it again.
fn is_over(pid: Pid) -> bool {
    !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}

fn all() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero();
    match fs::read_to_string(format!("/proc/self/task/{own}/children")) {
        Ok(list) => list.split_ascii_whitespace().filter_map(pid).collect(),
        // Not every kernel keeps that list.
        Err(_) => found_in_proc(&own.to_string()),
    }
}

fn found_in_proc(own: &str) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| parent_of(name).as_deref() == Some(own)).filter_map(|name| pid(&name)).collect()
}

/// The second field after the name, which is in parentheses and may contain anything.
fn parent_of(name: &str) -> Option<String> {
    if !name.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let stat = fs::read_to_string(format!("/proc/{name}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1).map(str::to_owned)
}

fn pid(number: &str) -> Option<Pid> {
    Pid::from_raw(number.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_is_found_either_way() {
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        // The list of this process's first thread has only what that thread started.
        let found = found_in_proc(&std::process::id().to_string());
        assert!(found.contains(&Pid::from_raw(number).unwrap()), "{found:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
