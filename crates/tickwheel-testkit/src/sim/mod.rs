//! A whole cluster in one thread, from a seed: nodes with the real machine, the model as the store, and everything that
//! goes wrong.
//!
//! Nodes crash, freeze and come back; each has a clock of its own that is off and is set forwards and back; their ideas
//! of who owns which partition overlap; requests and answers are lost, late and doubled; some jobs are poison. Clients
//! submit twice, cancel, pause, edit and turn the stop switch, do the same to schedules, and have their past made up
//! for; they start runs of workflows, pause, resume, cancel, retry and skip. Every step is checked against the
//! invariants of the system (I1–I10), and when the faults are over everything has to come to its end, with all slots
//! free. Every kind of fault is counted: a run of many worlds in which one is rare fails.
//!
//! The same seed gives the same run: `TICKWHEEL_SIM_SEED=<seed>` replays a failure.
//!
//! Deliberately not here: SQL, sockets and threads. What this proves is the protocol between machine and store, not the
//! stores.

mod attempts;
mod checks;
mod client;
mod controls;
mod dependencies;
mod faults;
mod graphs;
mod injected;
mod lease;
#[cfg(test)]
mod naive;
mod node;
mod requests;
mod schedule_checks;
mod schedules;
mod workflow_checks;
mod workflows;
mod world;

use std::time::Duration;

pub use injected::{FaultKind, Injected, RequestKind};
pub use world::Report;

/// How long an attempt may take in the simulated world: longer than two leases, so that a dead owner is not found by
/// the deadline.
const TIMEOUT: Duration = Duration::from_millis(5_000);
/// How long a session lives without renewal.
const LEASE: Duration = Duration::from_millis(1_500);
/// How far past its deadline an attempt counts as abandoned.
const GRACE: Duration = Duration::from_millis(200);
/// When clients stop asking for things, in milliseconds after the start.
const CLIENTS_STOP_MS: i64 = 9_000;
/// When faults stop.
const FAULTS_STOP_MS: i64 = 11_000;
/// When everything must have come to its end.
const END_MS: i64 = 180_000;

/// The life of a node that nobody lives: an answer to it is heard by nobody.
const NOBODY: u32 = u32::MAX;

/// An invariant that did not hold.
#[derive(Debug, thiserror::Error)]
#[error("{invariant} violated at {at_ms} ms: {what}")]
pub struct Violation {
    /// Its number: `I1` …
    pub invariant: &'static str,
    /// When, in milliseconds after the start.
    pub at_ms: i64,
    /// What was seen.
    pub what: String,
}

/// Runs one world to its end.
pub fn run(seed: u64) -> Result<Report, Violation> {
    world::World::new(seed).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worlds a test run goes through; `TICKWHEEL_SIM_SEEDS` asks for more.
    const SEEDS: u64 = 4_000;
    /// In a thousand worlds every kind of fault is met at least so often.
    const PER_THOUSAND_MIN: usize = 100;

    #[test]
    fn every_invariant_holds_in_every_world() {
        if let Some(seed) = number_from_env("TICKWHEEL_SIM_SEED") {
            println!("{:?}", run(seed).unwrap_or_else(|violation| panic!("seed {seed}: {violation}")));
            return;
        }
        let seeds = number_from_env("TICKWHEEL_SIM_SEEDS").unwrap_or(SEEDS);
        let (mut jobs, mut attempts, mut backfills, mut runs, mut pauses) = (0, 0, 0, 0, 0);
        let mut injected = Injected::default();
        for seed in 0..seeds {
            let report = run(seed).unwrap_or_else(|violation| {
                panic!("{violation}\nreplay with TICKWHEEL_SIM_SEED={seed}");
            });
            jobs += report.jobs;
            attempts += report.attempts;
            injected.add(&report.injected);
            backfills += report.backfills;
            runs += report.runs;
            pauses += report.run_pauses;
        }
        println!(
            "{seeds} worlds, {jobs} jobs, {attempts} attempts, {backfills} backfills, {runs} runs, {pauses} paused"
        );
        println!("faults:\n{injected}");
        assert!(attempts > jobs, "a world without retries tests nothing");
        assert!(seeds < 100 || backfills > 0, "worlds without backfills test none");
        assert!(seeds < 100 || runs > seeds as usize / 2, "worlds without workflows test none");
        assert!(
            seeds < 100 || pauses > seeds as usize / 20,
            "worlds in which no run is paused test no pause"
        );
        for fault in FaultKind::all() {
            let (count, least) = (injected.of(fault), seeds as usize * PER_THOUSAND_MIN / 1_000);
            assert!(count >= least, "{fault:?} was injected {count} times, {least} are the least");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_world() {
        let report = |seed| run(seed).map(|report| (report.jobs, report.attempts, report.steps)).unwrap();
        assert_eq!(report(7), report(7));
    }

    fn number_from_env(name: &str) -> Option<u64> {
        std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
    }
}
