//! Time, the network and the store of the simulated cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tickwheel_core::machine::{Effect, Event};
use tickwheel_core::ports::{DueSchedule, PartitionSet, Scheduled, Settled};
use tickwheel_core::schedule::timer::JobsMade;
use tickwheel_core::settle::{Next, Outcome};
use tickwheel_core::{Job, JobId, ScheduleId, State, Timestamp};

use super::checks::Checks;
use super::injected::{FaultKind, Injected};
use super::node::{Node, ours};
use super::requests::{Asked, Request};
use super::schedule_checks::ScheduleChecks;
use super::workflow_checks::WorkflowChecks;
use super::{CLIENTS_STOP_MS, END_MS, FAULTS_STOP_MS, Violation};
use crate::fixtures::{START, job_id};
use crate::model::Model;

pub(super) const NODES: usize = 3;
/// How far the clocks of a cluster that nobody has touched are from the real time, in milliseconds.
const CLOCK_OFFSET_MS: i64 = 300;

/// What a run was like.
#[derive(Clone, Debug)]
pub struct Report {
    /// Jobs whose submission was acknowledged.
    pub jobs: usize,
    /// Attempts that were sent.
    pub attempts: usize,
    /// Backfills that were completed.
    pub backfills: usize,
    /// Runs of workflows.
    pub runs: usize,
    /// How often one of them was paused.
    pub run_pauses: usize,
    /// What went wrong, by kind.
    pub injected: Injected,
    /// Steps of the simulation.
    pub steps: usize,
}

/// Something that is going to happen.
pub(super) enum Happening {
    /// A message arrives at a node, if it still lives the same life.
    Arrives { node: usize, life: u32, message: ToNode },
    /// A request arrives at the store.
    Asked { node: usize, life: u32, request: Request },
    /// A client acts.
    Client,
    /// A fault strikes.
    Fault,
    /// A node dies of a job, if it still lives the same life.
    KilledByJob { node: usize, life: u32 },
    /// A crashed node comes back.
    Restart(usize),
    /// Somebody looks at the whole.
    Inspection,
    /// No more faults.
    FaultsOver,
}

/// What a node can be told.
#[derive(Clone)]
pub(super) enum ToNode {
    Machine(Event),
    /// These were claimed: run them.
    Claimed {
        asked: Vec<JobId>,
        taken: Vec<Job>,
    },
    /// The answer to a claim was lost, and this is what a second look showed.
    Reread {
        asked: Asked,
        seen: Vec<Job>,
    },
    AttemptEnded(Box<Job>, Outcome),
    /// Whether an attempt waits for its report.
    Parked(Box<Job>, Settled),
    Settled {
        job: Box<Job>,
        outcome: Outcome,
        next: Next,
        result: Settled,
        released: Vec<Scheduled>,
    },
    Stop(JobId),
    /// Time to step schedules.
    Schedules,
    /// Time to reconcile runs of workflows.
    Reconcile,
    /// A schedule is to be woken then.
    Learned(DueSchedule),
    /// A step was written, or not; wake the schedule again then.
    Advanced(ScheduleId, Option<DueSchedule>),
    Renew,
    Reap,
    /// Time to read the stop switch and the paused queues.
    ReadControls,
    Wake,
}

pub(super) struct World {
    pub rng: StdRng,
    /// What the clock of the node shows that acts, or that a client talks to.
    pub now: Timestamp,
    /// Time as it really passes, and what the clock of each node is ahead of it, in milliseconds.
    pub real: Timestamp,
    pub clocks_ahead_ms: [i64; NODES],
    /// The latest that any of them has ever shown.
    pub latest: Timestamp,
    pub model: Model,
    pub nodes: Vec<Node>,
    pub checks: Checks,
    pub schedule_checks: ScheduleChecks,
    pub workflow_checks: WorkflowChecks,
    pub injected: Injected,
    events: BTreeMap<(Timestamp, u64), Happening>,
    number: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut world = Self {
            rng: StdRng::seed_from_u64(seed),
            now: START,
            real: START,
            clocks_ahead_ms: [0; NODES],
            latest: START,
            model: Model::new(),
            nodes: Vec::new(),
            checks: Checks::default(),
            schedule_checks: ScheduleChecks::default(),
            workflow_checks: WorkflowChecks::default(),
            injected: Injected::default(),
            events: BTreeMap::new(),
            number: 0,
        };
        for node in 0..NODES {
            world.clocks_ahead_ms[node] = world.rng.random_range(-CLOCK_OFFSET_MS..=CLOCK_OFFSET_MS);
            world.start(node, PartitionSet::ALL);
        }
        for _ in 0..world.rng.random_range(20..60) {
            let at = world.rng.random_range(0..CLIENTS_STOP_MS as u64);
            world.at(at, Happening::Client);
        }
        for _ in 0..world.rng.random_range(0..12) {
            let at = world.rng.random_range(0..FAULTS_STOP_MS as u64);
            world.at(at, Happening::Fault);
        }
        world.at(FAULTS_STOP_MS as u64, Happening::FaultsOver);
        world.at(0, Happening::Inspection);
        world
    }

    pub fn run(mut self) -> Result<Report, Violation> {
        let end = START + Duration::from_millis(END_MS as u64);
        let mut steps = 0;
        while let Some(((at, _), happening)) = self.events.pop_first() {
            if at > end || (at > self.faults_over_at() && self.nothing_is_left()) {
                break;
            }
            self.real = at;
            steps += 1;
            self.step(happening)?;
        }
        self.checks.finished(&self.model, self.now)?;
        self.everybody_waits_rightly()?;
        self.schedule_checks.finished(&self.model, self.now)?;
        self.workflow_checks.finished(&self.model, self.now)?;
        let (jobs, attempts) = self.checks.counts();
        let (backfills, runs) = (self.schedule_checks.backfills_completed(), self.workflow_checks.runs.len());
        self.no_slot_is_lost()?;
        let run_pauses = self.workflow_checks.pauses;
        Ok(Report { jobs, attempts, backfills, runs, run_pauses, injected: self.injected, steps })
    }

    fn nothing_is_left(&self) -> bool {
        self.nobody_can_go_on() && self.schedules_are_over() && self.workflow_checks.all_over(&self.model)
    }

    pub fn faults_over_at(&self) -> Timestamp {
        START + Duration::from_millis(FAULTS_STOP_MS as u64)
    }

    fn step(&mut self, happening: Happening) -> Result<(), Violation> {
        let acting = match &happening {
            Happening::Arrives { node, .. } | Happening::Asked { node, .. } | Happening::Restart(node) => {
                *node
            }
            // A client talks to one of them.
            _ => self.some_node(),
        };
        self.read_the_clock_of(acting);
        match happening {
            Happening::Arrives { node, life, message } => self.arrive(node, life, message)?,
            Happening::Asked { node, life, request } => self.store_is_asked(node, life, request)?,
            Happening::Client => self.client_acts()?,
            Happening::Fault => self.fault_strikes(),
            Happening::KilledByJob { node, life } => self.die_of_job(node, life),
            Happening::Restart(node) => self.restart(node),
            Happening::FaultsOver => {
                self.faults_are_over();
                self.let_everything_go()?;
            }
            Happening::Inspection => {
                let healthy = self.nodes.iter().any(|node| node.is_healthy(self.real));
                self.checks.orphans(&self.model, healthy, self.real)?;
                self.everybody_waits_rightly()?;
                self.workflow_checks.inspect(&self.model, self.now)?;
                self.at(100, Happening::Inspection);
            }
        }
        Ok(())
    }

    fn arrive(&mut self, node: usize, life: u32, message: ToNode) -> Result<(), Violation> {
        let receiver = &self.nodes[node];
        if !receiver.up || receiver.life != life {
            return Ok(());
        }
        if receiver.frozen_until > self.real {
            let thaw = receiver.frozen_until.since(self.real).as_millis() as u64;
            self.at(thaw, Happening::Arrives { node, life, message });
            return Ok(());
        }
        match message {
            ToNode::Machine(event) => {
                if let Event::ClaimFailed(asked) = &event {
                    self.nodes[node].heard_of(asked);
                }
                self.feed(node, event);
            }
            ToNode::Wake => {
                self.nodes[node].wake_at = Timestamp::MAX;
                self.feed(node, Event::Tick);
            }
            ToNode::Claimed { asked, taken } => self.run_all(node, asked, taken)?,
            ToNode::Reread { asked, seen } => {
                let taken = ours(seen, asked.session, &asked.known);
                self.run_all(node, asked.jobs, taken)?;
            }
            ToNode::AttemptEnded(job, outcome) => self.end_attempt(node, job, outcome),
            ToNode::Parked(job, result) => self.parked(node, job, result),
            ToNode::Settled { job, outcome, next, result, released } => {
                self.released(node, &released);
                self.settled(node, job, outcome, next, result);
            }
            ToNode::Stop(id) => self.stop(node, id),
            ToNode::Schedules => self.step_schedules(node),
            ToNode::Reconcile => self.reconcile_runs(node),
            ToNode::Learned(due) => self.nodes[node].schedule_timer.learn(due, self.now),
            ToNode::Advanced(id, again) => {
                self.nodes[node].schedule_timer.done(id, again, JobsMade::default(), self.now)
            }
            ToNode::Renew => self.renew(node),
            ToNode::Reap => self.reap(node),
            ToNode::ReadControls => self.read_controls(node),
        }
        Ok(())
    }

    pub fn feed(&mut self, node: usize, event: Event) {
        let effects = self.nodes[node].handle(event, self.now);
        for effect in effects {
            match effect {
                Effect::Load(purpose, load) => self.ask(node, Request::Load(purpose, load)),
                Effect::Claim(jobs) => self.ask_to_claim(node, jobs),
            }
        }
        let wake = self.nodes[node].machine.next_wake().max(self.now);
        if wake < self.nodes[node].wake_at {
            self.nodes[node].wake_at = wake;
            let (life, delay) = (self.nodes[node].life, wake.since(self.now).as_millis() as u64);
            self.at(delay, Happening::Arrives { node, life, message: ToNode::Wake });
        }
    }

    // --- small things ---------------------------------------------------------------------------------------

    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    /// While there are faults, this one strikes once in ten times.
    pub fn goes_wrong(&mut self, fault: FaultKind) -> bool {
        let strikes = self.chance(10) && self.real < self.faults_over_at();
        if strikes {
            self.injected.count(fault);
        }
        strikes
    }

    pub fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    pub fn fresh_id(&mut self) -> JobId {
        let number = self.next_number();
        job_id(self.now, number)
    }

    pub fn some_node(&mut self) -> usize {
        self.rng.random_range(0..self.nodes.len())
    }

    pub fn at(&mut self, delay_ms: u64, happening: Happening) {
        let number = self.next_number();
        self.events.insert((self.real + Duration::from_millis(delay_ms), number), happening);
    }

    pub fn tell(&mut self, node: usize, message: ToNode) {
        let (life, delay) = (self.nodes[node].life, self.some_delay());
        self.at(delay, Happening::Arrives { node, life, message });
    }

    /// A node reminds itself.
    pub fn later(&mut self, node: usize, delay_ms: u64, message: ToNode) {
        let life = self.nodes[node].life;
        self.at(delay_ms, Happening::Arrives { node, life, message });
    }

    pub fn reply(&mut self, node: usize, life: u32, message: ToNode) {
        let delay = self.some_delay();
        self.at(delay, Happening::Arrives { node, life, message });
    }

    pub fn ask(&mut self, node: usize, request: Request) {
        let (life, delay) = (self.nodes[node].life, self.some_delay());
        self.at(delay, Happening::Asked { node, life, request });
    }

    /// Mostly quick, now and then very slow.
    fn some_delay(&mut self) -> u64 {
        if self.chance(5) {
            self.injected.count(FaultKind::Slow);
            self.rng.random_range(0..400)
        } else {
            self.rng.random_range(0..6)
        }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let running = self.model.live().values().filter(|job| job.state() == State::Running).count();
        write!(f, "World({:?}, {} live, {running} running)", self.now, self.model.live().len())
    }
}
