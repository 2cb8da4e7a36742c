//! What is due and waits for its turn, by who can run it.

use crate::fair_queue::FairQueue;
use crate::job::Priority;
use crate::matching::{Class, Matching};
use crate::ports::DueJob;

/// The queue of the built-in executors, and those of the workers.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub built_in: FairQueue,
    pub workers: Matching,
}

impl Backlog {
    pub fn push(&mut self, job: DueJob) {
        match job.class {
            Class::BuiltIn => self.built_in.push(job),
            Class::Worker(route) => {
                let is_known = self.workers.push(route, job);
                debug_assert!(is_known, "only jobs that somebody could run are held");
            }
        }
    }

    pub fn remove(&mut self, job: &DueJob) {
        match job.class {
            Class::BuiltIn => drop(self.built_in.remove(job)),
            Class::Worker(route) => drop(self.workers.remove(route, job)),
        }
    }

    pub fn evict_for(&mut self, job: &DueJob) -> Option<DueJob> {
        match job.class {
            Class::BuiltIn => self.built_in.evict_for(job),
            Class::Worker(route) => self.workers.evict_for(route, job),
        }
    }

    /// How many jobs of a class and priority wait.
    pub fn len_of(&self, class: Class, priority: Priority) -> usize {
        let queue = match class {
            Class::BuiltIn => Some(&self.built_in),
            Class::Worker(route) => self.workers.queue(route),
        };
        queue.map_or(0, |queue| queue.len_of(priority))
    }
}
