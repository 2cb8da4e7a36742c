//! How much of a priority's future is known, and when to read more.
//!
//! `known_until` is the promise: every waiting job up to there is held, claimed or on its way through the shell. When memory is full
//! the promise is taken back to before the first job that found no room.

use std::time::Duration;

use super::{Load, LoadPurpose, MachineOptions};
use crate::id::JobId;
use crate::job::Priority;
use crate::ports::{DueCursor, DueJob, PartitionSet};
use crate::time::Timestamp;

#[derive(Debug)]
pub(super) struct Window {
    /// Everything that waits up to here is known.
    pub known_until: DueCursor,
    /// Jobs of this priority in memory.
    pub held: usize,
    /// One load at a time.
    pub loading: bool,
    /// The earliest place that was given up while a load was under way.
    come_back_to: Option<DueCursor>,
    pub next_sweep: Timestamp,
    pub sweep_from: DueCursor,
}

impl Window {
    pub fn new(now: Timestamp) -> Self {
        Self {
            known_until: DueCursor::START,
            held: 0,
            loading: false,
            come_back_to: None,
            next_sweep: now,
            sweep_from: DueCursor::START,
        }
    }

    pub fn start_over(&mut self, now: Timestamp) {
        self.give_up_after(DueCursor::START);
        self.next_sweep = now;
    }

    /// There was no room for `job`: what is known ends before it.
    pub fn come_back_for(&mut self, job: &DueJob) {
        let just_before = DueCursor { due_at: job.due_at - Duration::from_millis(1), id: JobId::LAST };
        self.give_up_after(just_before);
    }

    fn give_up_after(&mut self, place: DueCursor) {
        self.known_until = self.known_until.min(place);
        if self.loading {
            self.come_back_to = Some(self.come_back_to.map_or(place, |earlier| earlier.min(place)));
        }
    }

    /// A load has ended: with `last` there is more behind that place, without it everything up to `load.until` was read.
    pub fn conclude_load(&mut self, load: &Load, last: Option<DueCursor>) {
        self.known_until = last.unwrap_or(DueCursor { due_at: load.until, id: JobId::LAST });
        if let Some(place) = self.come_back_to.take() {
            self.known_until = self.known_until.min(place);
        }
    }

    pub fn next_load(
        &mut self,
        priority: Priority,
        partitions: PartitionSet,
        options: &MachineOptions,
        now: Timestamp,
    ) -> Option<Load> {
        if self.loading {
            return None;
        }
        let near_end = now + options.near_window;
        let load = if self.wants_more(options, now) {
            let limit = options.load_len_max.min(options.near_jobs_max - self.held);
            Load {
                purpose: LoadPurpose::Window,
                priority,
                partitions,
                after: self.known_until,
                until: near_end,
                limit,
            }
        } else if now >= self.next_sweep {
            self.next_sweep = now + options.sweep_interval;
            let (after, limit) = (self.sweep_from, options.load_len_max);
            Load { purpose: LoadPurpose::Sweep, priority, partitions, after, until: now, limit }
        } else {
            return None;
        };
        self.loading = true;
        Some(load)
    }

    /// Reading again starts when half of the window is used up, and only with room for a good part of it.
    fn wants_more(&self, options: &MachineOptions, now: Timestamp) -> bool {
        self.known_until.due_at < now + options.near_window / 2 && self.held * 4 < options.near_jobs_max * 3
    }
}
