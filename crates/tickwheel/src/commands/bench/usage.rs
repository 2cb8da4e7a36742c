//! What this process takes, processor time and memory, and the processor time that a database server takes for it.
//!
//! Time as the kernel accounts for it, to the nanosecond and by thread: what runs for milliseconds is far below its usual ticks. A
//! thread or server process that ends between the two readings takes its time with it; those that do the work live as long as the engine.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

/// Whose time is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    /// The database server: this process and its children.
    pub database_pid: Option<u32>,
}

/// Processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// By this process.
    pub own: Duration,
    /// By the database server.
    pub database: Duration,
}

impl std::ops::AddAssign for Taken {
    fn add_assign(&mut self, more: Self) {
        self.own += more.own;
        self.database += more.database;
    }
}

/// Processor time since a thread or process began, in nanoseconds, by its id.
type Reading = HashMap<u32, u64>;

/// A measurement that has begun.
pub struct Metering {
    meter: Meter,
    own: Reading,
    database: Reading,
}

impl Meter {
    /// Begins to measure. Looking at the server's processes comes before the time that counts, and at the end after it.
    pub fn start(self) -> anyhow::Result<Metering> {
        let database = self.database()?;
        Ok(Metering { meter: self, own: own()?, database })
    }

    fn database(self) -> anyhow::Result<Reading> {
        let Some(server) = self.database_pid else { return Ok(Reading::new()) };
        let is_of_server = |pid: &u32| *pid == server || parent_of(*pid) == Some(server);
        let pids = ids_in(Path::new("/proc"))?.into_iter().filter(is_of_server);
        Ok(pids.filter_map(|pid| Some((pid, nanoseconds(&format!("/proc/{pid}"))?))).collect())
    }
}

impl Metering {
    /// What was taken since it began.
    pub fn stop(self) -> anyhow::Result<Taken> {
        let own = since(&self.own, &own()?);
        Ok(Taken { own, database: since(&self.database, &self.meter.database()?) })
    }
}

fn own() -> anyhow::Result<Reading> {
    let threads = ids_in(Path::new("/proc/self/task"))?.into_iter();
    Ok(threads.filter_map(|id| Some((id, nanoseconds(&format!("/proc/self/task/{id}"))?))).collect())
}

fn since(before: &Reading, after: &Reading) -> Duration {
    let taken = |(id, now): (&u32, &u64)| now.saturating_sub(before.get(id).copied().unwrap_or(0));
    Duration::from_nanos(after.iter().map(taken).sum())
}

/// The directories that are named by a number.
fn ids_in(directory: &Path) -> anyhow::Result<Vec<u32>> {
    let entries =
        std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// `None` of one that has ended meanwhile.
fn nanoseconds(directory: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("{directory}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn parent_of(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in brackets and may hold anything.
    let (_, after_name) = text.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// The most memory this process has held.
pub fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_another_thread_is_seen() {
        let (tell, told) = std::sync::mpsc::channel();
        let busy = std::thread::spawn(move || {
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_millis(50) {
                std::hint::spin_loop();
            }
            tell.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            std::thread::park();
        });
        let thread = told.recv().unwrap();
        let id: u32 = thread.file_name().and_then(|name| name.to_str()).unwrap().parse().unwrap();
        assert!(own().unwrap()[&id] > 0, "it has been busy");
        busy.thread().unpark();
        busy.join().unwrap();
    }

    #[test]
    fn only_what_came_after_the_beginning_counts_and_newcomers_count_whole() {
        let before = Reading::from([(1, 100), (2, 50)]);
        let after = Reading::from([(1, 150), (3, 7)]);
        assert_eq!(since(&before, &after), Duration::from_nanos(57));
    }

    #[test]
    fn a_process_knows_its_parent() {
        let parent = std::os::unix::process::parent_id();
        assert_eq!(parent_of(std::process::id()), Some(parent));
    }
}
