//! A whole cluster in one thread, from a seed: the real engine on every node, the model as the store, and everything
//! that goes wrong. Time is the runtime's, paused: it passes when nobody has anything to do.
//!
//! Nodes crash, freeze and come back; each has a clock of its own that is off and is set forwards and back; their ideas
//! of who owns which partition overlap; each reaches the store over a network on which requests and answers are lost,
//! late and doubled, and from which it is cut off now and then; some jobs are poison. Workers, which take jobs over a
//! network of the same kind, crash, freeze and leave. Clients submit twice, cancel,
//! pause, edit and turn the stop switch, do the same to schedules, and have their past made up for; they start runs of
//! workflows, pause, resume, cancel, retry and skip. Every commit and every start is checked against the invariants of
//! the system (I1–I10), and when the faults are over everything has to come to its end, with all slots free. Every kind
//! of fault is counted: a run of many worlds in which one is rare fails.
//!
//! The same seed gives the same world: `TICKWHEEL_SIM_SEED=<seed>` replays a failure.
//!
//! ```text
//!  world: what happens when ──▶ clients, faults ──▶ nodes: engine + host + clock ──▶ network ──▶ commits ──▶ model
//!                                                            └──▶ target                           └──▶ checks
//! ```
//! Deliberately not here: SQL, sockets and threads. What this proves is the protocol between engine and store, not the
//! stores.

#![allow(clippy::unwrap_used)]

mod checks;
mod client;
mod cluster;
mod commits;
mod dependencies;
mod faults;
mod injected;
mod network;
mod node;
mod schedule_checks;
mod schedules;
mod store;
mod target;
mod tasks;
mod workers;
mod workflow_checks;
mod workflows;
mod world;

use std::time::Duration;

use injected::FaultKind;
use world::{Report, World};

/// How many nodes there are.
const NODES: usize = 3;
/// How many workers there are.
const WORKERS: usize = 2;
/// How long an attempt may take in the simulated world: longer than two leases, so that a dead owner is not found by
/// the deadline.
const TIMEOUT: Duration = Duration::from_millis(5_000);
/// How long a session lives without renewal.
const LEASE: Duration = Duration::from_millis(1_500);
/// How far past its deadline an attempt counts as abandoned.
const GRACE: Duration = Duration::from_millis(200);
/// When clients stop asking for things, in milliseconds after the start.
const CLIENTS_STOP_MS: u64 = 9_000;
/// When faults stop.
const FAULTS_STOP_MS: u64 = 11_000;
/// When everything must have come to its end.
const END_MS: u64 = 180_000;

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
fn run(seed: u64) -> Result<Report, Violation> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a thread can have a runtime");
    runtime.block_on(async { World::new(seed).run().await })
}

/// Worlds a test run goes through; `TICKWHEEL_SIM_SEEDS` asks for more.
const SEEDS: u64 = 2_000;
/// In a thousand worlds every kind of fault is met at least so often.
const PER_THOUSAND_MIN: usize = 100;

#[test]
fn every_invariant_holds_in_every_world() {
    if let Some(seed) = number_from_env("TICKWHEEL_SIM_SEED") {
        println!("{:?}", run(seed).unwrap_or_else(|violation| panic!("seed {seed}: {violation}")));
        return;
    }
    let seeds = number_from_env("TICKWHEEL_SIM_SEEDS").unwrap_or(SEEDS);
    let mut all = Report::default();
    for seed in 0..seeds {
        let report = run(seed).unwrap_or_else(|violation| {
            panic!("{violation}\nreplay with TICKWHEEL_SIM_SEED={seed}");
        });
        all.add(&report);
    }
    // Not captured: everybody who runs the tests is to see how much went wrong.
    announce(&format!("{seeds} worlds, {all}\nfaults:\n{}", all.injected));
    let worlds = seeds as usize;
    assert!(all.attempts > all.jobs, "a world without retries tests nothing");
    assert!(worlds < 100 || all.backfills > 0, "worlds without backfills test none");
    assert!(worlds < 100 || all.runs > worlds / 2, "worlds without workflows test none");
    assert!(worlds < 100 || all.run_pauses > worlds / 20, "worlds in which no run is paused test no pause");
    for fault in FaultKind::all() {
        let (count, least) = (all.injected.of(fault), worlds * PER_THOUSAND_MIN / 1_000);
        assert!(count >= least, "{fault:?} was injected {count} times, {least} are the least");
    }
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for seed in 0..50 {
        assert_eq!(run(seed).unwrap(), run(seed).unwrap(), "seed {seed}");
    }
}

/// Writes past the capture of the test harness.
fn announce(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn number_from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}
