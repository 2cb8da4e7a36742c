//! Which schedules to wake, when, and in which order: the near future of a node's schedules.
//!
//! Synchronous and pure, like the machine for jobs, and on the same kind of timing wheel. What is due goes at once,
//! also when so much is due that it takes a while. What was missed (it came due while nobody looked: see `outages`)
//! goes through a limiter that lets a certain number of jobs through each second, the most urgent first: after an
//! outage neither the store nor the workers are flooded, and what is on time stays on time.
//!
//! Everything here is derived from the store and may be wrong: the store refuses a step that was decided on an old
//! revision.
//!
//! Like the machine's, its window reads on from where it has come, a page at a time, so that a million schedules of one
//! minute are read once and are not all in memory; and a sweep looks for overdue ones that nobody told of. Like the
//! machine it follows a clock that is set back.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::outages::Outages;
use crate::id::{IdMap, ScheduleId};
use crate::job::Priority;
use crate::machine::LoadPurpose;
use crate::ports::{DueSchedule, LoadSchedules, PartitionSet, WakeCursor};
use crate::time::Timestamp;
use crate::wheel::{TimerKey, Wheel};

/// Bounds and rhythms of a schedule timer.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleTimerOptions {
    /// How far ahead schedules are held in memory.
    pub near_window: Duration,
    /// How many are loaded at once.
    pub load_len_max: usize,
    /// How often the store is asked for overdue ones that nobody told of; more rarely while many are overdue.
    pub sweep_interval: Duration,
    /// How many are taken at once.
    pub take_len_max: usize,
    /// How many jobs a second are made for missed firings.
    pub catch_up_per_second: u32,
}

impl Default for ScheduleTimerOptions {
    fn default() -> Self {
        Self {
            near_window: Duration::from_secs(10),
            load_len_max: 5_000,
            sweep_interval: Duration::from_secs(1),
            take_len_max: 500,
            catch_up_per_second: 50,
        }
    }
}

/// How many jobs a step made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobsMade {
    /// All of them.
    pub all: u32,
    /// Those for missed firings.
    pub late: u32,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Not due yet.
    Wheel(TimerKey),
    /// Due, on time.
    Ready,
    /// Due, and was missed.
    CatchUp,
    /// Somebody is at it.
    Taken {
        /// It changed meanwhile: this is when to wake it again.
        update: Option<DueSchedule>,
        /// It came through the gate.
        paid: bool,
    },
}

#[derive(Debug)]
struct Entry {
    due: DueSchedule,
    phase: Phase,
}

/// See the module.
#[derive(Debug)]
pub struct ScheduleTimer {
    options: ScheduleTimerOptions,
    /// When it was last asked.
    now: Timestamp,
    partitions: PartitionSet,
    entries: IdMap<ScheduleId, Entry>,
    wheel: Wheel<ScheduleId>,
    ready: VecDeque<ScheduleId>,
    catch_up: BTreeSet<(Priority, WakeCursor)>,
    limiter: CatchUpLimiter,
    outages: Outages,
    /// Everything that wakes up to here was read.
    known_until: WakeCursor,
    next_sweep: Timestamp,
    /// What was asked for last.
    asked_for: LoadPurpose,
}

impl ScheduleTimer {
    /// A schedule timer that knows nothing yet.
    pub fn new(options: ScheduleTimerOptions, partitions: PartitionSet, now: Timestamp) -> Self {
        Self {
            options,
            now,
            partitions,
            entries: IdMap::default(),
            wheel: Wheel::new(now),
            ready: VecDeque::new(),
            catch_up: BTreeSet::new(),
            limiter: CatchUpLimiter {
                per_second: options.catch_up_per_second.max(1),
                ms_owed: 0,
                open_at: now,
                given_back: 0,
            },
            outages: Outages::before(now),
            known_until: WakeCursor::START,
            next_sweep: now,
            asked_for: LoadPurpose::Window,
        }
    }

    /// How many schedules are known here.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many missed ones wait for the gate.
    pub fn catching_up(&self) -> usize {
        self.catch_up.len()
    }

    /// Somebody looks at what is due, and will go on doing so. To be said more often than once in two seconds: what
    /// comes due while it is not was missed.
    pub fn watch(&mut self, now: Timestamp) {
        if self.outages.watch(now) {
            for id in std::mem::take(&mut self.ready) {
                self.put_in_line(id);
            }
        }
    }

    /// Somebody was busy with what is due up to now.
    pub fn kept_watch(&mut self, now: Timestamp) {
        self.outages.kept_watch(now);
    }

    /// A schedule is to be woken then: created, edited, stepped, or heard of.
    pub fn learn(&mut self, due: DueSchedule, now: Timestamp) {
        if !self.partitions.contains(due.partition) {
            return;
        }
        if let Some(Entry { phase: Phase::Taken { update, .. }, .. }) = self.entries.get_mut(&due.id) {
            *update = Some(due);
            return;
        }
        self.forget(due.id);
        if due.wake_at <= now + self.options.near_window {
            self.hold(due, now);
        }
    }

    /// A schedule is gone, or nothing will wake it again.
    pub fn forget(&mut self, id: ScheduleId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        match entry.phase {
            Phase::Wheel(key) => drop(self.wheel.remove(key)),
            Phase::Ready => self.ready.retain(|other| *other != id),
            Phase::CatchUp => drop(self.catch_up.remove(&(entry.due.priority, entry.due.cursor()))),
            Phase::Taken { .. } => {}
        }
    }

    /// These partitions are ours from now on.
    pub fn change_ownership(&mut self, partitions: PartitionSet, now: Timestamp) {
        self.partitions = partitions;
        let lost: Vec<ScheduleId> = self
            .entries
            .values()
            .filter(|entry| !partitions.contains(entry.due.partition))
            .map(|entry| entry.due.id)
            .collect();
        lost.into_iter().for_each(|id| self.forget(id));
        self.outages.all_before(now);
        self.known_until = WakeCursor::START;
        self.next_sweep = now;
    }

    /// What to ask the store for now, if anything.
    pub fn wants(&mut self, now: Timestamp) -> Option<LoadSchedules> {
        self.follow_clock(now);
        let load = |after, until, limit| LoadSchedules { partitions: self.partitions, after, until, limit };
        let load_len_max = self.options.load_len_max;
        if self.wants_more(now) {
            self.asked_for = LoadPurpose::Window;
            return Some(load(self.known_until, now + self.options.near_window, load_len_max));
        }
        if now < self.next_sweep {
            return None;
        }
        // What is overdue and known comes again: there must be room for something new behind it.
        let overdue = self.ready.len() + self.catch_up.len();
        let sweep = load(WakeCursor::START, now, load_len_max + self.entries.len());
        let pages = 1 + u32::try_from(overdue / load_len_max).unwrap_or(u32::MAX);
        self.next_sweep = now + self.options.sweep_interval.saturating_mul(pages);
        self.asked_for = LoadPurpose::Sweep;
        Some(sweep)
    }

    /// Reading goes on when half of the window is used up and what was read is near its end. What waits for the gate
    /// does not count: it must not keep the others from being known in time.
    fn wants_more(&self, now: Timestamp) -> bool {
        let near = self.entries.len() - self.catch_up.len();
        self.known_until.wake_at < now + self.options.near_window / 2 && near < self.options.load_len_max
    }

    /// The answer to what it [`wants`](Self::wants).
    pub fn loaded(&mut self, load: &LoadSchedules, found: Vec<DueSchedule>, now: Timestamp) {
        if let LoadPurpose::Window = self.asked_for {
            let all = WakeCursor { wake_at: load.until, id: ScheduleId::LAST };
            let last = found.last().filter(|_| found.len() >= load.limit);
            self.known_until = last.map_or(all, DueSchedule::cursor);
        }
        for due in found {
            // What was read may be older than what we were told meanwhile: a step on it would only be stale.
            if self.entries.get(&due.id).is_none_or(|known| due.wake_at < known.due.wake_at) {
                self.learn(due, now);
            }
        }
    }

    /// Takes what is due: all that is on time, and of the missed ones as many as the gate lets through.
    pub fn take(&mut self, now: Timestamp) -> Vec<ScheduleId> {
        self.take_up_to(self.options.take_len_max, now)
    }

    /// Takes so many at the most.
    pub fn take_up_to(&mut self, len_max: usize, now: Timestamp) -> Vec<ScheduleId> {
        self.follow_clock(now);
        self.move_due(now);
        let mut taken: Vec<ScheduleId> = Vec::new();
        while taken.len() < len_max {
            let on_time = self.ready.pop_front();
            let paid = on_time.is_none();
            let Some(id) = on_time.or_else(|| self.pop_catch_up(now)) else { break };
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.phase = Phase::Taken { update: None, paid };
                taken.push(id);
            }
        }
        taken
    }

    /// A schedule that was taken has been dealt with: it is to be woken again then, or never. What it made counts
    /// against the limiter: the jobs for missed firings, and whatever it made if it came through the limiter.
    pub fn done(&mut self, id: ScheduleId, again: Option<DueSchedule>, made: JobsMade, now: Timestamp) {
        let (update, paid) = match self.entries.remove(&id) {
            Some(Entry { phase: Phase::Taken { update, paid }, .. }) => (update, paid),
            _ => (None, false),
        };
        // One was paid for when it was let through.
        match (paid, made.all) {
            (true, 0) => self.limiter.refund(),
            (true, all) => self.limiter.charge(all - 1, now),
            (false, _) => self.limiter.charge(made.late, now),
        }
        if let Some(due) = update.or(again) {
            self.learn(due, now);
        }
    }

    /// When to come back if nothing happens before.
    pub fn next_wake(&self) -> Timestamp {
        let limiter = (!self.catch_up.is_empty()).then(|| self.limiter.opens_at());
        let ready = (!self.ready.is_empty()).then_some(Timestamp::from_millis(i64::MIN));
        let known = self.wheel.next_wake().into_iter().chain(limiter).chain(ready);
        known.min().map_or(self.next_sweep, |wake| wake.min(self.next_sweep))
    }

    /// If the clock was set back, what was due may not be so any more, and the wheel's time does not go back:
    /// everything is held anew.
    fn follow_clock(&mut self, now: Timestamp) {
        let is_back = now < self.now;
        self.now = now;
        if !is_back {
            return;
        }
        let is_waiting = |entry: &&Entry| !matches!(entry.phase, Phase::Taken { .. });
        let waiting: Vec<DueSchedule> =
            self.entries.values().filter(is_waiting).map(|entry| entry.due).collect();
        waiting.iter().for_each(|due| self.forget(due.id));
        self.wheel = Wheel::new(now);
        waiting.into_iter().for_each(|due| self.hold(due, now));
        self.limiter.open_at = self.limiter.open_at.min(now);
        self.known_until = WakeCursor::START;
        self.next_sweep = now;
    }

    fn hold(&mut self, due: DueSchedule, now: Timestamp) {
        if due.wake_at > now {
            let phase = Phase::Wheel(self.wheel.insert(due.wake_at, due.id));
            self.entries.insert(due.id, Entry { due, phase });
        } else {
            self.entries.insert(due.id, Entry { due, phase: Phase::Ready });
            self.put_in_line(due.id);
        }
    }

    /// One that is due waits for its turn, or for the gate.
    fn put_in_line(&mut self, id: ScheduleId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if self.outages.contains(entry.due.wake_at) {
            entry.phase = Phase::CatchUp;
            self.catch_up.insert((entry.due.priority, entry.due.cursor()));
        } else {
            entry.phase = Phase::Ready;
            self.ready.push_back(id);
        }
    }

    fn move_due(&mut self, now: Timestamp) {
        if self.wheel.next_wake().is_none_or(|wake| wake > now) {
            return;
        }
        let mut due = Vec::new();
        self.wheel.advance(now, &mut due);
        due.into_iter().for_each(|(_, id)| self.put_in_line(id));
    }

    fn pop_catch_up(&mut self, now: Timestamp) -> Option<ScheduleId> {
        if self.catch_up.is_empty() || !self.limiter.let_one_through(now) {
            return None;
        }
        self.catch_up.pop_first().map(|(_, cursor)| cursor.id)
    }
}

/// Lets so many a second through; whoever takes more at once makes the others wait for it.
#[derive(Clone, Copy, Debug)]
struct CatchUpLimiter {
    per_second: u32,
    /// Parts of a millisecond that add up.
    ms_owed: u64,
    open_at: Timestamp,
    /// So many were let through and made no job.
    given_back: u32,
}

impl CatchUpLimiter {
    fn let_one_through(&mut self, now: Timestamp) -> bool {
        if self.given_back > 0 {
            self.given_back -= 1;
            return true;
        }
        if now < self.open_at {
            return false;
        }
        self.charge(1, now);
        true
    }

    const fn refund(&mut self) {
        self.given_back += 1;
    }

    fn opens_at(&self) -> Timestamp {
        if self.given_back > 0 { Timestamp::from_millis(i64::MIN) } else { self.open_at }
    }

    fn charge(&mut self, count: u32, now: Timestamp) {
        self.ms_owed += u64::from(count) * 1_000;
        let ms = self.ms_owed / u64::from(self.per_second);
        self.ms_owed %= u64::from(self.per_second);
        self.open_at = self.open_at.max(now) + Duration::from_millis(ms);
    }
}

#[cfg(test)]
mod tests;
