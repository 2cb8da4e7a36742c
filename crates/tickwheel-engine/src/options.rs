//! How an engine is to behave.

use std::time::Duration;

use tickwheel_core::callback::CallbackLimits;
use tickwheel_core::machine::MachineOptions;
use tickwheel_core::schedule::timer::ScheduleTimerOptions;
use tickwheel_core::settle::PoisonRule;
use tickwheel_core::workflow::DataLimits;

/// Bounds and rhythms of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// A name for people, shown with this node's session.
    pub node: String,
    /// What is held in memory and how much runs at once.
    pub machine: MachineOptions,
    /// When a job counts as poison.
    pub poison: PoisonRule,
    /// How long this node's attempts stay its own if it falls silent.
    pub lease: Duration,
    /// How long a shutdown waits for running attempts before it gives them back.
    pub drain_timeout: Duration,
    /// How far past its deadline an attempt may go before the server ends it, whatever its executor does.
    pub deadline_grace: Duration,
    /// Submissions that may wait to be written; more are refused as overload.
    pub intake_len_max: usize,
    /// Jobs written in one commit.
    pub commit_len_max: usize,
    /// Commits of one kind under way at the same time.
    pub commits_in_flight_max: usize,
    /// How often a callback is tried.
    pub callback_tries_max: u32,
    /// The wait before the second try of a callback; it doubles.
    pub callback_delay: Duration,
    /// How many callbacks are sent at once.
    pub callbacks: CallbackLimits,
    /// Which schedules are held in memory, and how fast missed firings are made up for.
    pub schedule_timer: ScheduleTimerOptions,
    /// How much a step of a run makes at once, and a run in all.
    pub run_data: DataLimits,
    /// How often the reaper runs.
    pub reap_interval: Duration,
    /// So many dead rows of a table are worth a vacuum, where the store needs any. Zero: never.
    pub vacuum_dead_rows_min: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            node: "tickwheel".into(),
            machine: MachineOptions::default(),
            poison: PoisonRule::default(),
            lease: Duration::from_secs(15),
            drain_timeout: Duration::from_secs(30),
            deadline_grace: Duration::from_secs(2),
            intake_len_max: 20_000,
            commit_len_max: 2_000,
            commits_in_flight_max: 2,
            callback_tries_max: 3,
            callback_delay: Duration::from_secs(1),
            callbacks: CallbackLimits::default(),
            schedule_timer: ScheduleTimerOptions::default(),
            run_data: DataLimits::default(),
            reap_interval: Duration::from_secs(1),
            vacuum_dead_rows_min: 10_000,
        }
    }
}
