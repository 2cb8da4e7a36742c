//! How much of a priority's future is known, and when to read more.
//!
//! `known_until` is the promise: every waiting job up to there is held, claimed or on its way through the shell. When
//! memory is full the promise is taken back to before the first job that found no room.
//!
//! The sweep checks the promise against what a lost hint left behind. Most of those are due about now, so it looks at
//! the last few seconds; only now and then it looks at everything. On a store that cannot clean up (a transaction of
//! days is open) the past is a long walk over rows that are gone, and the longer that took the rarer it is repeated.

use std::time::Duration;

use super::windows::Scope;
use super::{Load, LoadPurpose, MachineOptions};
use crate::id::JobId;
use crate::job::Priority;
use crate::ports::{DueCursor, LoadDue};
use crate::time::Timestamp;

/// How far behind the present a sweep begins: longer than a hint, a commit or a clock is late in ordinary times.
const SWEEP_MARGIN: Duration = Duration::from_secs(10);
/// A sweep of everything may take this part of the time at the most.
const WHOLE_SWEEP_DUTY: u32 = 20;
/// What seems to have taken longer than this did not: the clock was set, or the process stood still.
const WHOLE_SWEEP_TIME_MAX: Duration = Duration::from_secs(60);

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
    sweep: Sweep,
    next_whole_sweep: Timestamp,
}

/// A sweep, under way or to come.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    /// Where it goes on.
    from: DueCursor,
    /// When it began, if it has.
    began: Option<Timestamp>,
    /// It began at the very start.
    whole: bool,
}

impl Sweep {
    const WHOLE: Self = Self { from: DueCursor::START, began: None, whole: true };

    fn since(moment: Timestamp) -> Self {
        Self { from: DueCursor { due_at: moment, id: JobId::LAST }, began: None, whole: false }
    }
}

impl Window {
    pub fn new(now: Timestamp) -> Self {
        Self {
            known_until: DueCursor::START,
            held: 0,
            loading: false,
            come_back_to: None,
            next_sweep: now,
            sweep: Sweep::WHOLE,
            next_whole_sweep: now,
        }
    }

    pub fn start_over(&mut self, now: Timestamp) {
        self.give_up_after(DueCursor::START);
        self.next_sweep = now;
        self.next_whole_sweep = now;
    }

    /// The clock was set back to `now`: a sweep that goes on from where it was would look into the future.
    pub fn rewind(&mut self, now: Timestamp) {
        self.start_over(now);
        self.sweep = Sweep::WHOLE;
    }

    /// There is no room for the job at `cursor`: what is known ends before it.
    pub fn give_up_from(&mut self, cursor: DueCursor) {
        self.give_up_after(cursor.just_before());
    }

    fn give_up_after(&mut self, cursor: DueCursor) {
        self.known_until = self.known_until.min(cursor);
        if self.loading {
            self.come_back_to = Some(self.come_back_to.map_or(cursor, |earlier| earlier.min(cursor)));
        }
    }

    /// A load has ended: with `last` there is more behind that place, without it everything up to `load.until` was
    /// read.
    pub fn conclude_load(&mut self, load: &LoadDue, last: Option<DueCursor>) {
        self.known_until = last.unwrap_or(DueCursor { due_at: load.until, id: JobId::LAST });
        if let Some(cursor) = self.come_back_to.take() {
            self.known_until = self.known_until.min(cursor);
        }
    }

    /// A page of the sweep was read: with `last` there is more behind that place. What is behind the end of what is
    /// known was given up and not lost, and may be a million jobs: walking over them, a sweep would miss what becomes
    /// due in the meantime.
    pub fn conclude_sweep(&mut self, last: Option<DueCursor>, options: &MachineOptions, now: Timestamp) {
        if let Some(last) = last.filter(|last| *last < self.known_until) {
            self.sweep.from = last;
            return;
        }
        let began = self.sweep.began.unwrap_or(now);
        if self.sweep.whole {
            let took = now.since(began).min(WHOLE_SWEEP_TIME_MAX);
            self.next_whole_sweep = now + options.whole_sweep_interval.max(took * WHOLE_SWEEP_DUTY);
        }
        self.sweep = Sweep::since(began.min(now) - SWEEP_MARGIN);
    }

    pub fn next_load(
        &mut self,
        priority: Priority,
        scope: Scope,
        options: &MachineOptions,
        now: Timestamp,
    ) -> Option<Load> {
        if self.loading {
            return None;
        }
        let Scope { class, partitions, room } = scope;
        let near_end = now + options.near_window;
        let (purpose, due) = if self.wants_more(room, options, now) {
            let limit = options.load_len_max.min(room - self.held);
            let after = self.known_until;
            (LoadPurpose::Window, LoadDue { class, priority, partitions, after, until: near_end, limit })
        } else if now >= self.next_sweep {
            self.next_sweep = now + options.sweep_interval;
            if self.sweep.began.is_none() && now >= self.next_whole_sweep {
                self.sweep = Sweep::WHOLE;
            }
            self.sweep.began.get_or_insert(now);
            let (after, limit) = (self.sweep.from, options.load_len_max);
            (LoadPurpose::Sweep, LoadDue { class, priority, partitions, after, until: now, limit })
        } else {
            return None;
        };
        self.loading = true;
        Some(Load { purpose, due })
    }

    /// Reading again starts when half of the window is used up, and only with room for a good part of it.
    fn wants_more(&self, room: usize, options: &MachineOptions, now: Timestamp) -> bool {
        self.known_until.due_at < now + options.near_window / 2 && self.held * 4 < room * 3
    }
}
