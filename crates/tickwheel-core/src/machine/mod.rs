//! The machine that decides: which jobs to know, which are due, which go next.
//!
//! Synchronous and pure: events and `now` in, effects out. It holds the near future of the partitions a node owns, in a
//! timing wheel until due and in the fair queue afterwards, and asks its shell to load, and to claim within the free
//! slots.
//!
//! ```text
//!            Load ▲   │ Loaded                          Claim ▲   │ Claimed
//!                 │   ▼                                       │   ▼
//!  store ──▶ [ window: what is known ] ──due──▶ [ fair queue ] ──▶ [ claiming ] ──▶ running (the shell's business)
//!                 ▲ Learned: submitted, retried, resumed …
//! ```
//! Everything here is derived from the store and may be wrong: too much (a job that was cancelled meanwhile) costs a
//! claim that takes nothing; too little (a lost hint) is found by the sweep. The store's compare-and-set is what makes
//! a start happen once. Hence a lost, doubled or late event is never worse than late.
//!
//! `now` may go back, as wall clocks do when they are set: then what is held is sorted anew into due and not due, and
//! the windows are read anew. What is due follows the clock as it is; nothing waits until it shows again what it showed
//! before.

mod controls;
mod window;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::fair_queue::FairQueue;
use crate::id::{IdMap, IdSet, JobId, RunId};
use crate::job::Priority;
use crate::ports::{Controls, DueCursor, DueJob, LoadDue, PartitionSet};
use crate::time::Timestamp;
use crate::wheel::{TimerKey, Wheel};
use controls::Paused;
use window::Window;

/// One in so many of the jobs in memory is given up at once, where jobs that are not due take the room of one that is.
const GIVE_UP_PART: usize = 8;
/// There is always room for so many jobs.
const SPARE_ENTRIES: usize = 1_024;

/// Bounds and rhythms of a machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineOptions {
    /// How far ahead jobs are held in memory.
    pub near_window: Duration,
    /// How many waiting jobs are held in memory, per priority.
    pub near_jobs_max: usize,
    /// How many jobs are loaded at once.
    pub load_len_max: usize,
    /// How often the store is searched for jobs that became due lately and nobody told of.
    pub sweep_interval: Duration,
    /// How often it is searched for those that were due at any time.
    pub whole_sweep_interval: Duration,
    /// How many jobs are claimed at once.
    pub claim_len_max: usize,
    /// How many claims are under way at the same time.
    pub claims_max: usize,
    /// How many attempts can run at the same time.
    pub slots: usize,
}

impl Default for MachineOptions {
    fn default() -> Self {
        Self {
            near_window: Duration::from_secs(30),
            near_jobs_max: 50_000,
            load_len_max: 5_000,
            sweep_interval: Duration::from_secs(1),
            whole_sweep_interval: Duration::from_secs(15),
            claim_len_max: 1_000,
            claims_max: 2,
            slots: 512,
        }
    }
}

/// What a load is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadPurpose {
    /// To know what comes next.
    Window,
    /// To find what a lost hint left behind.
    Sweep,
}

/// What happened outside.
#[derive(Clone, Debug)]
pub enum Event {
    /// These jobs are waiting now, or wait differently: submitted, retried, resumed, edited.
    Learned(Vec<DueJob>),
    /// This job does not wait any more: cancelled, paused.
    Forgotten(JobId),
    /// The answer to a load, in order.
    Loaded(LoadPurpose, LoadDue, Vec<DueJob>),
    /// A load came to nothing.
    LoadFailed(LoadDue),
    /// The answer to a claim: what was asked for, and what of it was taken.
    Claimed {
        /// As in the effect.
        asked: Vec<JobId>,
        /// A part of it.
        taken: IdSet<JobId>,
    },
    /// A claim certainly took nothing.
    ClaimFailed(Vec<JobId>),
    /// This many attempts are over.
    SlotsFreed(usize),
    /// The stop switch was turned.
    HaltChanged(bool),
    /// A queue was paused (`true`) or resumed.
    QueuePauseChanged(Arc<str>, bool),
    /// A run was paused (`true`), or goes on.
    RunPauseChanged(RunId, bool),
    /// What forbids starts according to the store: it may have been turned through another server.
    ControlsRead(Controls),
    /// These partitions are ours from now on.
    OwnershipChanged(PartitionSet),
    /// What we believe may be wrong as a whole (a new session): learn it anew.
    StartedOver,
    /// This node is shutting down: nothing more is claimed.
    Closed,
    /// Time has passed.
    Tick,
}

/// What the shell is to do. It reports back with an [`Event`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Load waiting jobs.
    Load(LoadPurpose, LoadDue),
    /// Claim these.
    Claim(Vec<JobId>),
}

#[derive(Debug)]
enum Phase {
    /// Not due yet.
    Wheel(TimerKey),
    /// Due, waiting for its turn.
    Queue,
    /// A claim is under way. If the job changed meanwhile and the claim takes nothing, this is what it became.
    Claiming(Option<DueJob>),
}

#[derive(Debug)]
struct Entry {
    job: DueJob,
    phase: Phase,
}

/// See the module.
#[derive(Debug)]
pub struct Machine {
    options: MachineOptions,
    /// The time of the last event.
    now: Timestamp,
    partitions: PartitionSet,
    halted: bool,
    closed: bool,
    paused: Paused,
    entries: IdMap<JobId, Entry>,
    wheel: Wheel<JobId>,
    queue: FairQueue,
    windows: [Window; Priority::ALL.len()],
    waiting_in_queue: HashMap<Arc<str>, usize>,
    names: HashSet<Arc<str>>,
    slots_free: usize,
    claims: usize,
}

impl Machine {
    /// A machine that knows nothing yet.
    pub fn new(options: MachineOptions, partitions: PartitionSet, now: Timestamp) -> Self {
        Self {
            options,
            now,
            partitions,
            halted: false,
            closed: false,
            paused: Paused::default(),
            entries: IdMap::default(),
            wheel: Wheel::new(now),
            queue: FairQueue::default(),
            windows: std::array::from_fn(|_| Window::new(now)),
            waiting_in_queue: HashMap::new(),
            names: HashSet::new(),
            slots_free: options.slots,
            claims: 0,
        }
    }

    /// Sets what outlives a process, before the first event.
    pub fn restore(&mut self, controls: Controls) {
        self.halted = controls.halted;
        self.paused = Paused::of(controls);
    }

    /// Takes in what happened and says what to do.
    pub fn handle(&mut self, event: Event, now: Timestamp, effects: &mut Vec<Effect>) {
        if now < self.now {
            self.rewind(now);
        }
        self.now = now;
        self.take_in(event, now);
        self.move_due_to_queue(now);
        self.ask_for_loads(now, effects);
        self.ask_for_claims(effects);
    }

    /// When to send a [`Event::Tick`] if nothing else happens before.
    pub fn next_wake(&self) -> Timestamp {
        // A window that is loading will be heard of; waking up for it before would be in vain.
        let sweeps = self.windows.iter().filter(|window| !window.loading).map(|window| window.next_sweep);
        sweeps.chain(self.wheel.next_wake()).min().unwrap_or(Timestamp::MAX)
    }

    /// Places for further attempts.
    pub const fn slots_free(&self) -> usize {
        self.slots_free
    }

    /// Whether the stop switch is on.
    pub const fn is_halted(&self) -> bool {
        self.halted
    }

    /// How many jobs are known here, due or not.
    pub fn known(&self) -> usize {
        self.entries.len()
    }

    /// How many jobs are due and wait for their turn.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Jobs that are due and wait for their turn, by queue.
    pub fn waiting_by_queue(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        self.waiting_in_queue.iter().map(|(queue, waiting)| (queue, *waiting))
    }

    fn take_in(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Learned(jobs) => jobs.into_iter().for_each(|job| self.learn(job, now)),
            Event::Forgotten(id) => self.forget(id),
            Event::Loaded(purpose, load, jobs) => self.take_in_load(purpose, load, jobs, now),
            Event::LoadFailed(load) => self.windows[load.priority as usize].loading = false,
            Event::Claimed { asked, taken } => self.conclude_claim(asked, &taken, now),
            Event::ClaimFailed(asked) => self.put_back(asked, now),
            Event::SlotsFreed(count) => self.free_slots(count),
            Event::HaltChanged(halted) => self.change_halt(halted, now),
            Event::QueuePauseChanged(queue, paused) => self.change_queue_pause(&queue, paused, now),
            Event::RunPauseChanged(run, paused) => self.change_run_pause(run, paused, now),
            Event::ControlsRead(controls) => self.follow_controls(controls, now),
            Event::OwnershipChanged(partitions) => self.change_ownership(partitions, now),
            Event::StartedOver => self.start_over(now),
            Event::Closed => self.closed = true,
            Event::Tick => {}
        }
    }

    fn learn(&mut self, mut job: DueJob, now: Timestamp) {
        if !self.partitions.contains(job.partition) || self.paused.holds(&job) {
            return;
        }
        job.tenant = self.intern(job.tenant);
        job.queue = self.intern(job.queue);
        match self.entries.get_mut(&job.id) {
            Some(Entry { phase: Phase::Claiming(later), .. }) => *later = Some(job),
            Some(entry) if entry.job == job => {}
            Some(_) => {
                self.forget(job.id);
                self.admit(job, now);
            }
            None => self.admit(job, now),
        }
    }

    /// One allocation a name, however many jobs carry it.
    fn intern(&mut self, name: Arc<str>) -> Arc<str> {
        if let Some(known) = self.names.get(&name) {
            return known.clone();
        }
        // Tenants and queues that are long gone must not stay for ever; dropping a name only costs sharing.
        if self.names.len() >= 100_000 {
            self.names.clear();
        }
        self.names.insert(name.clone());
        name
    }

    /// Holds a job that is near, if there is room for it; otherwise the window is to come back for it.
    fn admit(&mut self, job: DueJob, now: Timestamp) {
        let window = &mut self.windows[job.priority as usize];
        if job.due_at > now + self.options.near_window && job.cursor() > window.known_until {
            return;
        }
        if window.held >= self.options.near_jobs_max && !self.make_room_for(&job, now) {
            self.windows[job.priority as usize].give_up_from(job.cursor());
            return;
        }
        self.hold(job, now);
    }

    /// A tenant or a group with few jobs does not wait until one with many has drained: the last one of the many goes
    /// back to the store. And one that is due does not wait for those that are not.
    fn make_room_for(&mut self, job: &DueJob, now: Timestamp) -> bool {
        let Some(evicted) = self.queue.evict_for(job) else {
            return job.due_at <= now && self.give_up_the_latest(job.priority);
        };
        self.entries.remove(&evicted.id);
        self.count_waiting(&evicted.queue, -1);
        let window = &mut self.windows[evicted.priority as usize];
        window.held -= 1;
        window.give_up_from(evicted.cursor());
        true
    }

    /// Forgets the latest of the jobs that are not due yet, many at once: they have to be searched for.
    fn give_up_the_latest(&mut self, priority: Priority) -> bool {
        let held = self.windows[priority as usize].held;
        let count = held.div_ceil(GIVE_UP_PART);
        if held - self.queue.len_of(priority) < count {
            return false;
        }
        let armed = |entry: &&Entry| entry.job.priority == priority && matches!(entry.phase, Phase::Wheel(_));
        let mut later: Vec<DueCursor> =
            self.entries.values().filter(armed).map(|entry| entry.job.cursor()).collect();
        let Some(kept) = later.len().checked_sub(count) else { return false };
        let first = *later.select_nth_unstable(kept).1;
        later.drain(kept..).for_each(|latest| self.forget(latest.id));
        self.windows[priority as usize].give_up_from(first);
        true
    }

    fn hold(&mut self, job: DueJob, now: Timestamp) {
        self.windows[job.priority as usize].held += 1;
        let phase = if job.due_at <= now {
            self.enqueue(job.clone());
            Phase::Queue
        } else {
            Phase::Wheel(self.wheel.insert(job.due_at, job.id))
        };
        self.entries.insert(job.id, Entry { job, phase });
    }

    fn enqueue(&mut self, job: DueJob) {
        self.count_waiting(&job.queue, 1);
        self.queue.push(job);
    }

    fn count_waiting(&mut self, queue: &Arc<str>, by: isize) {
        let waiting = self.waiting_in_queue.entry(queue.clone()).or_default();
        *waiting = waiting.saturating_add_signed(by);
        if *waiting == 0 {
            self.waiting_in_queue.remove(queue);
        }
    }

    fn forget(&mut self, id: JobId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        match &mut entry.phase {
            Phase::Claiming(later) => {
                *later = None;
                return;
            }
            Phase::Wheel(key) => {
                self.wheel.remove(*key);
            }
            Phase::Queue => {
                let queue = entry.job.queue.clone();
                self.queue.remove(&entry.job);
                self.count_waiting(&queue, -1);
            }
        }
        if let Some(entry) = self.entries.remove(&id) {
            self.windows[entry.job.priority as usize].held -= 1;
        }
    }

    fn take_in_load(&mut self, purpose: LoadPurpose, load: LoadDue, jobs: Vec<DueJob>, now: Timestamp) {
        let full = jobs.len() >= load.limit;
        let last = jobs.last().map(DueJob::cursor);
        let window = &mut self.windows[load.priority as usize];
        window.loading = false;
        match purpose {
            LoadPurpose::Window => window.conclude_load(&load, last.filter(|_| full)),
            LoadPurpose::Sweep => {
                window.conclude_sweep(last.filter(|_| full), &self.options, now);
                self.give_memory_back();
            }
        }
        for job in jobs {
            // What was read may be older than what we were told meanwhile, so being told wins; except that a job may
            // have been moved forward by somebody who could not tell us. If that is old news, its claim takes nothing.
            if self.entries.get(&job.id).is_none_or(|known| job.due_at < known.job.due_at) {
                self.learn(job, now);
            }
        }
    }

    /// A map keeps the room for all it ever held.
    fn give_memory_back(&mut self) {
        let needed = 2 * self.entries.len() + SPARE_ENTRIES;
        if self.entries.capacity() > 2 * needed {
            self.entries.shrink_to(needed);
        }
    }

    fn move_due_to_queue(&mut self, now: Timestamp) {
        if self.wheel.next_wake().is_none_or(|wake| wake > now) {
            return;
        }
        let mut due = Vec::new();
        self.wheel.advance(now, &mut due);
        for (_, id) in due {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.phase = Phase::Queue;
                let job = entry.job.clone();
                self.enqueue(job);
            }
        }
    }

    fn ask_for_loads(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        for priority in Priority::ALL {
            let window = &mut self.windows[priority as usize];
            if let Some((purpose, load)) = window.next_load(priority, self.partitions, &self.options, now) {
                effects.push(Effect::Load(purpose, load));
            }
        }
    }

    fn ask_for_claims(&mut self, effects: &mut Vec<Effect>) {
        while !self.halted && !self.closed && self.claims < self.options.claims_max && self.slots_free > 0 {
            let count = self.slots_free.min(self.options.claim_len_max).min(self.queue.len());
            if count == 0 {
                return;
            }
            let ids: Vec<JobId> = (0..count).map_while(|_| self.start_claim()).collect();
            self.slots_free -= ids.len();
            self.claims += 1;
            effects.push(Effect::Claim(ids));
        }
    }

    fn start_claim(&mut self) -> Option<JobId> {
        let job = self.queue.pop()?;
        self.count_waiting(&job.queue, -1);
        if let Some(entry) = self.entries.get_mut(&job.id) {
            entry.phase = Phase::Claiming(None);
        }
        Some(job.id)
    }

    fn conclude_claim(&mut self, asked: Vec<JobId>, taken: &IdSet<JobId>, now: Timestamp) {
        self.claims -= 1;
        let missed = asked.iter().filter(|id| !taken.contains(id)).count();
        self.free_slots(missed);
        for id in asked {
            let Some(entry) = self.entries.remove(&id) else { continue };
            self.windows[entry.job.priority as usize].held -= 1;
            if let Phase::Claiming(Some(later)) = entry.phase {
                self.learn(later, now);
            }
        }
    }

    fn put_back(&mut self, asked: Vec<JobId>, now: Timestamp) {
        self.claims -= 1;
        self.free_slots(asked.len());
        for id in asked {
            let Some(entry) = self.entries.remove(&id) else { continue };
            self.windows[entry.job.priority as usize].held -= 1;
            let Phase::Claiming(later) = entry.phase else { continue };
            self.learn(later.unwrap_or(entry.job), now);
        }
    }

    fn free_slots(&mut self, count: usize) {
        self.slots_free = (self.slots_free + count).min(self.options.slots);
    }

    /// The clock was set back: what was due may not be so any more, and the wheel's time does not go back.
    fn rewind(&mut self, now: Timestamp) {
        let is_ahead = |entry: &&Entry| entry.job.due_at > now && !matches!(entry.phase, Phase::Claiming(_));
        let ahead: Vec<DueJob> =
            self.entries.values().filter(is_ahead).map(|entry| entry.job.clone()).collect();
        ahead.iter().for_each(|job| self.forget(job.id));
        self.wheel = Wheel::new(now);
        ahead.into_iter().for_each(|job| self.hold(job, now));
        for window in &mut self.windows {
            window.rewind(now);
        }
    }

    fn change_ownership(&mut self, partitions: PartitionSet, now: Timestamp) {
        self.partitions = partitions;
        self.forget_all(|job| !partitions.contains(job.partition));
        self.start_over(now);
    }

    fn forget_all(&mut self, which: impl Fn(&DueJob) -> bool) {
        let ids: Vec<JobId> =
            self.entries.values().filter(|entry| which(&entry.job)).map(|entry| entry.job.id).collect();
        ids.into_iter().for_each(|id| self.forget(id));
    }

    fn start_over(&mut self, now: Timestamp) {
        for window in &mut self.windows {
            window.start_over(now);
        }
    }
}
