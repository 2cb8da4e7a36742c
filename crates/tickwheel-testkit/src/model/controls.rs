//! Queues, the stop switch, the installation's secret.

use tickwheel_core::ports::{Controls, DueCount, Queue};
use tickwheel_core::workflow::RunStatus;
use tickwheel_core::{Job, State, Timestamp};

use super::Model;

impl Model {
    /// Every queue that ever had a job or was paused, by name.
    pub fn list_queues(&self) -> Vec<Queue> {
        self.queues.iter().map(|(name, paused)| Queue { name: name.clone(), paused: *paused }).collect()
    }

    /// How many jobs of each queue wait and are due. Nothing here is too much to look at.
    pub fn count_due(&self, queues: &[String], now: Timestamp) -> Vec<DueCount> {
        let count = |queue: &String| {
            let is_due =
                |job: &&Job| *job.queue == **queue && job.state() == State::Scheduled && job.due_at <= now;
            DueCount { jobs: self.live.values().filter(is_due).count() as u64, more: false }
        };
        queues.iter().map(count).collect()
    }

    /// Pauses or resumes a queue.
    pub fn set_queue_paused(&mut self, queue: &str, paused: bool) {
        self.queues.insert(queue.to_owned(), paused);
    }

    /// All that forbids starts.
    pub fn controls(&self) -> Controls {
        let queues = self.queues.iter().filter(|(_, paused)| **paused).map(|(name, _)| name.clone());
        let runs = self.runs.values().filter(|run| run.progress.status == RunStatus::Paused);
        Controls {
            halted: self.halted,
            paused_queues: queues.collect(),
            paused_runs: runs.map(|run| run.id).collect(),
        }
    }

    /// Whether the stop switch is on.
    pub const fn halted(&self) -> bool {
        self.halted
    }

    /// Turns the stop switch.
    pub const fn set_halted(&mut self, halted: bool) {
        self.halted = halted;
    }

    /// The installation's secret: `candidate` if there was none yet.
    pub fn installation_secret(&mut self, candidate: [u8; 32]) -> [u8; 32] {
        *self.secret.get_or_insert(candidate)
    }
}
