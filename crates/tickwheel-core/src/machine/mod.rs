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

mod backlog;
mod controls;
mod window;
mod windows;
mod workers;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::id::{IdMap, IdSet, JobId, RouteId, RunId, SessionId};
use crate::job::Priority;
use crate::matching::{Class, Demand, Offer, Route};
use crate::ports::{Controls, DueCursor, DueJob, LoadDue, PartitionSet};
use crate::time::Timestamp;
use crate::wheel::{TimerKey, Wheel};
use backlog::Backlog;
use controls::Paused;
use windows::Windows;

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

/// A request for waiting jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// What for.
    pub purpose: LoadPurpose,
    /// Which.
    pub due: LoadDue,
}

/// What happened outside.
#[derive(Clone, Debug)]
pub enum Event {
    /// These jobs are waiting now, or wait differently: submitted, retried, resumed, edited.
    Learned(Vec<DueJob>),
    /// This job does not wait any more: cancelled, paused.
    Forgotten(JobId),
    /// The answer to a [`Load`], in order.
    Loaded(Load, Vec<DueJob>),
    /// A load came to nothing.
    LoadFailed(Load),
    /// The answer to a claim: what was asked for, and what of it was taken.
    Claimed {
        /// As in the effect.
        claim: ClaimRequest,
        /// A part of its jobs.
        taken: IdSet<JobId>,
    },
    /// A claim certainly took nothing.
    ClaimFailed(ClaimRequest),
    /// This many attempts of the built-in executors are over.
    SlotsFreed(usize),
    /// There are jobs for workers with these routes.
    RoutesLearned(Vec<Arc<Route>>),
    /// No job has these routes any more.
    RoutesForgotten(IdSet<RouteId>),
    /// A worker has a session and can run what it offers. It does not wait for work yet.
    SessionOpened(SessionId, Arc<Offer>),
    /// A worker's session has ended.
    SessionClosed(SessionId),
    /// A worker waits for this much, whatever it waited for before. A claim for it ends its wait, whatever it takes.
    DemandChanged(SessionId, Demand),
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
    Load(Load),
    /// Claim jobs.
    Claim(ClaimRequest),
}

/// Jobs to be claimed, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Who is to run them.
    pub runner: Runner,
    /// The jobs, in the order of their turns.
    pub jobs: Vec<JobId>,
}

/// Who runs jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Runner {
    /// The executors of this process.
    BuiltIn,
    /// A worker.
    Worker(SessionId),
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
    backlog: Backlog,
    windows: Windows,
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
            backlog: Backlog::default(),
            windows: Windows::new(now),
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
        self.ask_for_worker_claims(effects);
    }

    /// When to send a [`Event::Tick`] if nothing else happens before.
    pub fn next_wake(&self) -> Timestamp {
        let due = self.wheel.next_wake().unwrap_or(Timestamp::MAX);
        due.min(self.windows.next_wake())
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
        self.waiting_in_queue.values().sum()
    }

    /// Jobs that are due and wait for their turn, by queue.
    pub fn waiting_by_queue(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        self.waiting_in_queue.iter().map(|(queue, waiting)| (queue, *waiting))
    }

    fn take_in(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Learned(jobs) => jobs.into_iter().for_each(|job| self.learn(job, now)),
            Event::Forgotten(id) => self.forget(id),
            Event::Loaded(load, jobs) => self.take_in_load(load, jobs, now),
            Event::LoadFailed(load) => self.conclude_failed_load(&load),
            Event::Claimed { claim, taken } => self.conclude_claim(claim, &taken, now),
            Event::ClaimFailed(claim) => self.put_back(claim, now),
            Event::SlotsFreed(count) => self.free_slots(count),
            Event::RoutesLearned(routes) => self.learn_routes(routes, now),
            Event::RoutesForgotten(routes) => self.forget_routes(&routes, now),
            Event::SessionOpened(session, offer) => self.open_session(session, offer, now),
            Event::SessionClosed(session) => self.close_session(session, now),
            Event::DemandChanged(session, demand) => self.backlog.workers.wait(session, demand),
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
        let room = self.windows.room(job.class, &self.options);
        // What nobody can run is not held: when somebody can, it is read from the store.
        let Some(window) = self.windows.get(job.class, job.priority) else { return };
        if job.due_at > now + self.options.near_window && job.cursor() > window.known_until {
            return;
        }
        if window.held >= room && !self.make_room_for(&job, now) {
            self.give_up_from(&job);
            return;
        }
        self.hold(job, now);
    }

    /// What is known ends before this job.
    fn give_up_from(&mut self, job: &DueJob) {
        if let Some(window) = self.windows.get(job.class, job.priority) {
            window.give_up_from(job.cursor());
        }
    }

    /// One more is held like this job, or one less.
    fn count_held(&mut self, job: &DueJob, by: isize) {
        if let Some(window) = self.windows.get(job.class, job.priority) {
            window.held = window.held.saturating_add_signed(by);
        }
    }

    /// A tenant or a group with few jobs does not wait until one with many has drained: the last one of the many goes
    /// back to the store. And one that is due does not wait for those that are not.
    fn make_room_for(&mut self, job: &DueJob, now: Timestamp) -> bool {
        let Some(evicted) = self.backlog.evict_for(job) else {
            return job.due_at <= now && self.give_up_the_latest(job.class, job.priority);
        };
        self.entries.remove(&evicted.id);
        self.count_waiting(&evicted.queue, -1);
        self.count_held(&evicted, -1);
        self.give_up_from(&evicted);
        true
    }

    /// Forgets the latest of the jobs that are not due yet, many at once: they have to be searched for.
    fn give_up_the_latest(&mut self, class: Class, priority: Priority) -> bool {
        let held = self.windows.get(class, priority).map_or(0, |window| window.held);
        let count = held.div_ceil(GIVE_UP_PART);
        if held - self.backlog.len_of(class, priority) < count {
            return false;
        }
        let is_alike = |job: &DueJob| job.priority == priority && job.class == class;
        let armed = |entry: &&Entry| is_alike(&entry.job) && matches!(entry.phase, Phase::Wheel(_));
        let mut later: Vec<DueCursor> =
            self.entries.values().filter(armed).map(|entry| entry.job.cursor()).collect();
        let Some(kept) = later.len().checked_sub(count) else { return false };
        let first = *later.select_nth_unstable(kept).1;
        later.drain(kept..).for_each(|latest| self.forget(latest.id));
        if let Some(window) = self.windows.get(class, priority) {
            window.give_up_from(first);
        }
        true
    }

    fn hold(&mut self, job: DueJob, now: Timestamp) {
        self.count_held(&job, 1);
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
        self.backlog.push(job);
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
                self.backlog.remove(&entry.job);
                self.count_waiting(&queue, -1);
            }
        }
        if let Some(entry) = self.entries.remove(&id) {
            self.count_held(&entry.job, -1);
        }
    }

    fn conclude_failed_load(&mut self, load: &Load) {
        if let Some(window) = self.windows.get(load.due.class, load.due.priority) {
            window.loading = false;
        }
    }

    fn take_in_load(&mut self, load: Load, jobs: Vec<DueJob>, now: Timestamp) {
        let full = jobs.len() >= load.due.limit;
        let last = jobs.last().map(DueJob::cursor);
        self.windows.touch(load.due.class);
        let Some(window) = self.windows.get(load.due.class, load.due.priority) else { return };
        window.loading = false;
        match load.purpose {
            LoadPurpose::Window => window.conclude_load(&load.due, last.filter(|_| full)),
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
        let Self { windows, partitions, options, .. } = self;
        windows.next_loads(*partitions, options, now, |load| effects.push(Effect::Load(load)));
    }

    fn ask_for_claims(&mut self, effects: &mut Vec<Effect>) {
        while !self.halted && !self.closed && self.claims < self.options.claims_max && self.slots_free > 0 {
            let count = self.slots_free.min(self.options.claim_len_max).min(self.backlog.built_in.len());
            if count == 0 {
                return;
            }
            let next = |_| self.backlog.built_in.pop().map(|job| self.start_claim(job));
            let jobs: Vec<JobId> = (0..count).map_while(next).collect();
            self.slots_free -= jobs.len();
            self.claims += 1;
            effects.push(Effect::Claim(ClaimRequest { runner: Runner::BuiltIn, jobs }));
        }
    }

    fn start_claim(&mut self, job: DueJob) -> JobId {
        self.count_waiting(&job.queue, -1);
        if let Some(entry) = self.entries.get_mut(&job.id) {
            entry.phase = Phase::Claiming(None);
        }
        job.id
    }

    fn conclude_claim(&mut self, claim: ClaimRequest, taken: &IdSet<JobId>, now: Timestamp) {
        let missed = claim.jobs.iter().filter(|id| !taken.contains(id)).count();
        self.conclude_runner(claim.runner, missed);
        for id in claim.jobs {
            let Some((_, Some(later))) = self.end_claim(id) else { continue };
            self.learn(later, now);
        }
    }

    fn put_back(&mut self, claim: ClaimRequest, now: Timestamp) {
        self.conclude_runner(claim.runner, claim.jobs.len());
        for id in claim.jobs {
            let Some((job, later)) = self.end_claim(id) else { continue };
            self.learn(later.unwrap_or(job), now);
        }
    }

    /// The claim of a job is over: what it was, and what it became meanwhile.
    fn end_claim(&mut self, id: JobId) -> Option<(DueJob, Option<DueJob>)> {
        let entry = self.entries.remove(&id)?;
        self.count_held(&entry.job, -1);
        self.windows.touch(entry.job.class);
        match entry.phase {
            Phase::Claiming(later) => Some((entry.job, later)),
            Phase::Wheel(_) | Phase::Queue => None,
        }
    }

    /// `missed` of the jobs were not taken. What a worker waits for it says again itself.
    fn conclude_runner(&mut self, runner: Runner, missed: usize) {
        if runner == Runner::BuiltIn {
            self.claims -= 1;
            self.free_slots(missed);
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
        self.windows.rewind(now);
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
        self.windows.start_over(now);
    }
}
