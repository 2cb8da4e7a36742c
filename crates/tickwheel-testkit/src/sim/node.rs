//! A node: the real machine, and as little of a shell as the engine's loops come down to.

use std::collections::BTreeMap;
use std::time::Duration;

use tickwheel_core::machine::{Effect, Event, Machine, MachineOptions};
use tickwheel_core::ports::PartitionSet;
use tickwheel_core::schedule::timer::{ScheduleTimer, ScheduleTimerOptions};
use tickwheel_core::{Job, JobId, SessionId, State, Timestamp};

use super::LEASE;

/// One process, from start to crash to the next start.
pub struct Node {
    /// Grows with every start: what was under way for an earlier life is dropped.
    pub life: u32,
    /// How many attempts it can run at once.
    pub slots: usize,
    /// Whether the process exists.
    pub up: bool,
    /// Until when it stands still.
    pub frozen_until: Timestamp,
    /// What decides.
    pub machine: Machine,
    /// Under which it claims.
    pub session: SessionId,
    /// Until when it believes in that.
    pub trusted_until: Timestamp,
    /// What it will claim when it believes in it again.
    pub held_back: Vec<Vec<JobId>>,
    /// What it has taken and not yet settled, by job.
    pub attempts: BTreeMap<JobId, Attempt>,
    /// What it has asked the store to start and not heard of yet, and how often.
    pub asked: BTreeMap<JobId, usize>,
    /// When it was told to wake up next.
    pub wake_at: Timestamp,
    /// Which schedules it wakes, and when.
    pub schedule_timer: ScheduleTimer,
}

/// An attempt in a node's hands.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Its number.
    pub number: u32,
    /// Ended, but its end is not written yet.
    pub ended: bool,
}

/// Small bounds, so that every limit is met all the time.
fn options(slots: usize) -> MachineOptions {
    MachineOptions {
        near_window: Duration::from_millis(2_000),
        near_jobs_max: 12,
        load_len_max: 5,
        sweep_interval: Duration::from_millis(300),
        whole_sweep_interval: Duration::from_secs(2),
        claim_len_max: 3,
        claims_max: 2,
        slots,
    }
}

fn schedule_timer_options() -> ScheduleTimerOptions {
    ScheduleTimerOptions {
        near_window: Duration::from_millis(1_500),
        load_len_max: 2,
        sweep_interval: Duration::from_millis(300),
        take_len_max: 2,
        ..ScheduleTimerOptions::default()
    }
}

impl Node {
    /// A fresh process.
    pub fn start(
        life: u32,
        slots: usize,
        session: SessionId,
        partitions: PartitionSet,
        (now, real): (Timestamp, Timestamp),
    ) -> Self {
        Self {
            life,
            slots,
            up: true,
            frozen_until: real,
            machine: Machine::new(options(slots), partitions, now),
            session,
            trusted_until: real + LEASE,
            held_back: Vec::new(),
            attempts: BTreeMap::new(),
            asked: BTreeMap::new(),
            wake_at: Timestamp::MAX,
            schedule_timer: ScheduleTimer::new(schedule_timer_options(), partitions, now),
        }
    }

    /// Whether it does anything now.
    pub fn is_healthy(&self, now: Timestamp) -> bool {
        self.up && self.frozen_until <= now
    }

    /// Whether nobody else can have taken its jobs yet.
    pub fn is_trusted(&self, now: Timestamp) -> bool {
        now < self.trusted_until
    }

    /// Whether what it took may be started.
    pub fn covers(&self, job: &Job, now: Timestamp) -> bool {
        job.session == Some(self.session) && self.is_trusted(now)
    }

    /// Gives the machine an event.
    pub fn handle(&mut self, event: Event, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.machine.handle(event, now, &mut effects);
        effects
    }

    /// The attempts it knows of these jobs.
    pub fn attempts_of(&self, jobs: &[JobId]) -> BTreeMap<JobId, u32> {
        jobs.iter().filter_map(|id| Some((*id, self.attempts.get(id)?.number))).collect()
    }

    /// The store is asked to start these.
    pub fn asked_for(&mut self, jobs: &[JobId]) {
        jobs.iter().for_each(|id| *self.asked.entry(*id).or_default() += 1);
    }

    /// It has answered, or will not.
    pub fn heard_of(&mut self, jobs: &[JobId]) {
        for id in jobs {
            let left = self.asked.get(id).copied().unwrap_or(1) - 1;
            if left == 0 {
                self.asked.remove(id);
            } else {
                self.asked.insert(*id, left);
            }
        }
    }

    /// Whether it runs nothing and no answer is to come.
    pub fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.asked.is_empty() && self.held_back.is_empty()
    }

    /// The end of this attempt is written, or none of this node's business any more.
    pub fn forget_attempt(&mut self, job: &Job) {
        if self.attempts.get(&job.id).is_some_and(|attempt| attempt.number == job.attempt) {
            self.attempts.remove(&job.id);
        }
    }

    /// The event for a claim's answer.
    pub fn claimed(asked: Vec<JobId>, taken: &[Job]) -> Event {
        Event::Claimed { asked, taken: taken.iter().map(|job| job.id).collect() }
    }
}

/// What of the jobs read after a lost answer runs under `session`, in an attempt not known before.
pub fn ours(seen: Vec<Job>, session: SessionId, known: &BTreeMap<JobId, u32>) -> Vec<Job> {
    let ours = |job: &Job| {
        job.state() == State::Running
            && job.session == Some(session)
            && known.get(&job.id) != Some(&job.attempt)
    };
    seen.into_iter().filter(ours).collect()
}
