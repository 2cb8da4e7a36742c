//! File descriptors: as many as the system grants, and who gets how many of them.
//!
//! Connections of clients are the only ones that others decide about. They get what is left when the store and the
//! targets have theirs: a server that is full refuses clients, it does not stop running jobs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// More than anybody needs; some systems grant a thousand million, and whoever sizes a table by it regrets it.
const OPEN_FILES_MAX: u64 = 1 << 20;
/// Listener, standard streams, the runtime, timers, the lock of the data directory, the demo, and some to spare.
const OWN: usize = 48;
/// Descriptors of a connection to the embedded store: the database, its log and its index.
const FILES_A_CONNECTION: usize = 3;
/// Descriptors of a command that runs: a socket, two streams, the process, and those of its start.
const FILES_A_PROCESS: usize = 8;
/// Callbacks that are sent at once.
const CALLBACKS: usize = 64;

/// Raises the limit of open files as far as the system lets us, and says where it is.
pub fn raise_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let granted = limit.maximum.unwrap_or(OPEN_FILES_MAX).min(OPEN_FILES_MAX);
    let current = limit.current.unwrap_or(OPEN_FILES_MAX);
    if current >= granted {
        return to_usize(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(granted), maximum: limit.maximum }) {
        Ok(()) => to_usize(granted),
        Err(error) => {
            tracing::warn!(%error, current, granted, "could not raise the limit of open files");
            to_usize(current)
        }
    }
}

/// How many clients may be connected when this many files may be open.
pub fn connections_max(config: &Config, open_files_max: usize) -> usize {
    let files_a_job = if config.server.allow_process_targets { FILES_A_PROCESS } else { 2 };
    let reserved = OWN
        + tickwheel_api::REFUSALS_MAX
        // Two more: for sessions and for vacuums.
        + FILES_A_CONNECTION * (config.store.pool_size + 2)
        // A connection for each running job, and one that is kept for the next; or what a process takes. On a tight
        // budget targets get half of it.
        + (files_a_job * config.engine.slots + CALLBACKS).min(open_files_max / 2);
    let left = open_files_max.saturating_sub(reserved).max(1);
    if left < config.server.connections_max {
        tracing::info!(
            open_files_max,
            connections_max = left,
            "the limit of open files leaves fewer connections than configured"
        );
    }
    left.min(config.server.connections_max)
}

fn to_usize(files: u64) -> usize {
    usize::try_from(files.min(OPEN_FILES_MAX)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_store_and_targets_leave() {
        let config = Config::default();
        assert_eq!(connections_max(&config, 1 << 20), 10_000, "as configured");
        assert_eq!(connections_max(&config, 1_024), 1_024 - 48 - 16 - 54 - 512);
        assert_eq!(connections_max(&config, 4_096), 4_096 - 48 - 16 - 54 - (1_024 + 64));
        assert_eq!(connections_max(&config, 64), 1, "one at least");
    }
}
