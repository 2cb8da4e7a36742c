//! What forbids starts, as the machine has heard of it: the stop switch, paused queues, paused runs.
//!
//! What is paused is not held in memory: a pause forgets it, and when something is resumed the windows are read anew.
//! The store leaves out what is paused, so it costs nothing meanwhile.

use std::collections::HashSet;
use std::sync::Arc;

use super::Machine;
use crate::id::{IdSet, RunId};
use crate::ports::{Controls, DueJob, FairShareGroup};
use crate::time::Timestamp;

/// Queues and runs of which nothing starts.
#[derive(Debug, Default)]
pub(super) struct Paused {
    queues: HashSet<Arc<str>>,
    runs: IdSet<FairShareGroup>,
}

impl Paused {
    pub fn of(controls: Controls) -> Self {
        Self {
            queues: controls.paused_queues.into_iter().map(Into::into).collect(),
            runs: controls.paused_runs.into_iter().map(FairShareGroup::of_run).collect(),
        }
    }

    /// Whether the job is not to start.
    pub fn holds(&self, job: &DueJob) -> bool {
        self.queues.contains(&job.queue) || self.runs.contains(&job.group)
    }

    fn is_part_of(&self, other: &Self) -> bool {
        self.queues.is_subset(&other.queues) && self.runs.is_subset(&other.runs)
    }
}

impl Machine {
    pub(super) fn change_halt(&mut self, halted: bool, now: Timestamp) {
        // Claims that met the halt took nothing and their jobs were dropped here: learn them again.
        if self.halted && !halted {
            self.start_over(now);
        }
        self.halted = halted;
    }

    pub(super) fn change_queue_pause(&mut self, queue: &Arc<str>, paused: bool, now: Timestamp) {
        if paused {
            self.paused.queues.insert(queue.clone());
            self.forget_all(|job| job.queue == *queue);
        } else if self.paused.queues.remove(queue) {
            self.start_over(now);
        }
    }

    pub(super) fn change_run_pause(&mut self, run: RunId, paused: bool, now: Timestamp) {
        let group = FairShareGroup::of_run(run);
        if paused {
            self.paused.runs.insert(group);
            self.forget_all(|job| job.group == group);
        } else if self.paused.runs.remove(&group) {
            self.start_over(now);
        }
    }

    pub(super) fn follow_controls(&mut self, controls: Controls, now: Timestamp) {
        self.change_halt(controls.halted, now);
        let paused = Paused::of(controls);
        if !paused.is_part_of(&self.paused) {
            self.forget_all(|job| paused.holds(job));
        }
        if !self.paused.is_part_of(&paused) {
            self.start_over(now);
        }
        self.paused = paused;
    }
}
