//! Time, the network and the store of the simulated cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tickwheel_core::machine::{Effect, Event, Load};
use tickwheel_core::ports::{Claim, LoadDue, Scheduled, Settled, SettledBatch};
use tickwheel_core::retry::Jitter;
use tickwheel_core::schedule::agenda::JobsMade;
use tickwheel_core::settle::{Next, Outcome, PoisonRule, decide};
use tickwheel_core::workflow::RunStep;
use tickwheel_core::{Failure, Job, JobId, ScheduleId, State, TargetKind, Timestamp};

use super::checks::Checks;
use super::graphs::some_result;
use super::node::{Attempt, Node, ours};
use super::passing_on::Leave;
use super::schedule_checks::ScheduleChecks;
use super::workflow_checks::WorkflowChecks;
use super::{CLIENTS_STOP_MS, END_MS, FAULTS_STOP_MS, Violation};
use crate::fixtures::{START, job_id};
use crate::model::Model;
use tickwheel_core::ports::{DueJob, DueSchedule, PartitionSet, ScheduleStep};

const NODES: usize = 3;

/// What a run was like.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Jobs whose submission was acknowledged.
    pub jobs: usize,
    /// Attempts that were sent.
    pub attempts: usize,
    /// Backfills that were completed.
    pub backfills: usize,
    /// Runs of workflows.
    pub runs: usize,
    /// Tasks that were started by the end of others.
    pub passed_on: usize,
    /// Those of them whose node did not hear of it.
    pub found_again: usize,
    /// Attempts that were given back before they were sent.
    pub not_sent: usize,
    /// How often the clocks were set.
    pub clock_steps: usize,
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
        asked: Vec<JobId>,
        seen: Vec<Job>,
        known: BTreeMap<JobId, u32>,
    },
    AttemptEnded(Box<Job>, Outcome),
    Settled {
        job: Box<Job>,
        outcome: Outcome,
        next: Next,
        result: Settled,
        released: Vec<Scheduled>,
        passed_on: Option<(Leave, Vec<Job>)>,
        doubt: Option<Leave>,
    },
    /// Nothing was started by this leave, or (`true`) nobody knows.
    NotPassedOn(Leave, bool),
    /// What a node saw that looked for tasks that it may have started.
    Looked {
        doubt: Leave,
        suspects: Option<Vec<(JobId, u32)>>,
        seen: Vec<Job>,
        known: BTreeMap<JobId, u32>,
    },
    Stop(JobId),
    /// Time to look at schedules.
    Schedules,
    /// Time to look at runs of workflows.
    Conduct,
    /// A schedule is to be looked at then.
    Learned(DueSchedule),
    /// A step was written, or not; look at the schedule again then.
    Advanced(ScheduleId, Option<DueSchedule>),
    Renew,
    Reap,
    /// Time to read the stop switch and the paused queues.
    ReadControls,
    Wake,
}

/// What the store can be asked.
pub(super) enum Request {
    Load(Load),
    Claim { jobs: Vec<JobId>, known: BTreeMap<JobId, u32>, asked_at: Timestamp },
    Settle { job: Box<Job>, outcome: Outcome, leave: Option<Leave>, doubt: Option<Leave> },
    Look { doubt: Leave, suspects: Option<Vec<(JobId, u32)>>, known: BTreeMap<JobId, u32> },
    Advance(Box<ScheduleStep>, DueSchedule),
    Conduct(Box<RunStep>),
}

impl Request {
    /// The end of an attempt, and nothing is to be started.
    pub const fn settle(job: Box<Job>, outcome: Outcome) -> Self {
        Self::Settle { job, outcome, leave: None, doubt: None }
    }
}

pub(super) struct World {
    pub rng: StdRng,
    /// What every clock on the wall shows.
    pub now: Timestamp,
    /// Time as it really passes, and what the clocks on the wall are ahead of it, in milliseconds.
    pub real: Timestamp,
    pub wall_ahead_ms: i64,
    /// The latest they have ever shown.
    pub latest: Timestamp,
    pub model: Model,
    pub nodes: Vec<Node>,
    pub checks: Checks,
    pub schedule_checks: ScheduleChecks,
    pub workflow_checks: WorkflowChecks,
    pub passed_on: usize,
    pub found_again: usize,
    pub not_sent: usize,
    pub clock_steps: usize,
    agenda: BTreeMap<(Timestamp, u64), Happening>,
    number: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut world = Self {
            rng: StdRng::seed_from_u64(seed),
            now: START,
            real: START,
            wall_ahead_ms: 0,
            latest: START,
            model: Model::new(),
            nodes: Vec::new(),
            checks: Checks::default(),
            schedule_checks: ScheduleChecks::default(),
            workflow_checks: WorkflowChecks::default(),
            passed_on: 0,
            found_again: 0,
            not_sent: 0,
            clock_steps: 0,
            agenda: BTreeMap::new(),
            number: 0,
        };
        for node in 0..NODES {
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
        while let Some(((at, _), happening)) = self.agenda.pop_first() {
            if at > end || (at > self.faults_over_at() && self.nothing_is_left()) {
                break;
            }
            self.real = at;
            self.read_the_wall();
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
        let Self { passed_on, found_again, not_sent, clock_steps, .. } = self;
        Ok(Report { jobs, attempts, backfills, runs, passed_on, found_again, not_sent, clock_steps, steps })
    }

    fn nothing_is_left(&self) -> bool {
        self.nobody_can_go_on() && self.schedules_are_over() && self.workflow_checks.all_over(&self.model)
    }

    fn faults_over_at(&self) -> Timestamp {
        START + Duration::from_millis(FAULTS_STOP_MS as u64)
    }

    fn step(&mut self, happening: Happening) -> Result<(), Violation> {
        match happening {
            Happening::Arrives { node, life, message } => self.arrive(node, life, message)?,
            Happening::Asked { node, life, request } => self.store_is_asked(node, life, request)?,
            Happening::Client => self.client_acts()?,
            Happening::Fault => self.fault_strikes(),
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
            ToNode::Reread { asked, seen, known } => {
                let taken = ours(seen, self.nodes[node].session, &known);
                self.run_all(node, asked, taken)?;
            }
            ToNode::AttemptEnded(job, outcome) => self.end_attempt(node, job, outcome),
            ToNode::Settled { job, outcome, next, result, released, passed_on, doubt } => {
                if let Some((leave, started)) = passed_on {
                    self.passed_on(node, &leave, started)?;
                }
                if let Some(doubt) = doubt {
                    self.doubts(node, doubt);
                }
                self.released(node, &released);
                self.settled(node, job, outcome, next, result);
            }
            ToNode::NotPassedOn(leave, is_doubtful) => self.not_passed_on(node, &leave, is_doubtful),
            ToNode::Looked { doubt, suspects, seen, known } => {
                let unknown = Self::unknown(&doubt, seen, &known);
                self.looked(node, doubt, suspects, unknown)?;
            }
            ToNode::Stop(id) => self.stop(node, id),
            ToNode::Schedules => self.look_at_schedules(node),
            ToNode::Conduct => self.look_at_runs(node),
            ToNode::Learned(due) => self.nodes[node].agenda.learn(due, self.now),
            ToNode::Advanced(id, again) => {
                self.nodes[node].agenda.done(id, again, JobsMade::default(), self.now)
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
                Effect::Load(load) => self.ask(node, Request::Load(load)),
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

    fn store_is_asked(&mut self, node: usize, life: u32, request: Request) -> Result<(), Violation> {
        let (lost, answer_lost) = (self.goes_wrong(), self.goes_wrong());
        match request {
            Request::Load(load) if lost => self.reply(node, life, ToNode::Machine(Event::LoadFailed(load))),
            Request::Load(load) => {
                let found = self.model.load_due(&wanted(&load));
                self.reply(node, life, ToNode::Machine(Event::Loaded(load, found)));
            }
            Request::Claim { jobs, .. } if lost => {
                self.reply(node, life, ToNode::Machine(Event::ClaimFailed(jobs)));
            }
            Request::Claim { jobs, known, asked_at } => {
                let taken = self.claim(node, &jobs, asked_at)?;
                let answer = if answer_lost {
                    ToNode::Reread { seen: self.model.get_jobs(&jobs), asked: jobs, known }
                } else {
                    ToNode::Claimed { asked: jobs, taken }
                };
                self.reply(node, life, answer);
            }
            Request::Settle { job, outcome, leave, doubt } if lost => {
                if let Some(leave) = leave {
                    self.reply(node, life, ToNode::NotPassedOn(leave, false));
                }
                let request = Request::Settle { job, outcome, leave: None, doubt };
                self.at(5, Happening::Asked { node, life, request });
            }
            Request::Settle { job, outcome, leave, doubt } => {
                self.settle(node, life, (job, outcome), (leave, doubt), answer_lost)?;
            }
            Request::Look { doubt, suspects, known } => {
                let seen = self.doubted(&doubt);
                self.reply(node, life, ToNode::Looked { doubt, suspects, seen, known });
            }
            Request::Advance(step, known) => {
                self.store_advances(node, life, *step, known, lost, answer_lost)?
            }
            Request::Conduct(step) => self.store_conducts(node, life, *step, lost, answer_lost)?,
        }
        Ok(())
    }

    fn claim(&mut self, node: usize, asked: &[JobId], asked_at: Timestamp) -> Result<Vec<Job>, Violation> {
        let before: BTreeMap<JobId, Job> =
            asked.iter().filter_map(|id| Some((*id, self.model.job(*id)?.clone()))).collect();
        let session = self.nodes[node].session;
        let taken = self.model.claim(&Claim { session, jobs: asked.to_vec(), now: asked_at });
        for job in &taken {
            self.was_claimed(&before[&job.id], job, asked_at)?;
        }
        Ok(taken)
    }

    pub fn was_claimed(&mut self, before: &Job, job: &Job, asked_at: Timestamp) -> Result<(), Violation> {
        self.checks.claimed(before, job, asked_at)?;
        self.parents_have_completed(job)?;
        self.workflow_checks.claimed(&self.model, job, asked_at)
    }

    fn run_all(&mut self, node: usize, asked: Vec<JobId>, taken: Vec<Job>) -> Result<(), Violation> {
        self.nodes[node].heard_of(&asked);
        let event = Node::claimed(asked, &taken);
        self.run_taken(node, taken)?;
        self.feed(node, event);
        Ok(())
    }

    pub fn run_taken(&mut self, node: usize, taken: Vec<Job>) -> Result<(), Violation> {
        for mut job in taken {
            if !self.nodes[node].covers(&job, self.real) || job.due_at > self.now {
                self.give_back(node, job);
                continue;
            }
            self.checks.delivered(&job, job.id.to_string(), self.now)?;
            let attempt = Attempt { number: job.attempt, ended: false };
            let former = self.nodes[node].attempts.insert(job.id, attempt);
            if former.is_some_and(|former| !former.ended) {
                // Others had taken it for lost. Nobody hears of its end any more.
                self.feed(node, Event::SlotsFreed(1));
            }
            job.started_at = Some(self.now);
            let (takes, outcome) = self.some_outcome();
            let life = self.nodes[node].life;
            let message = ToNode::AttemptEnded(Box::new(job), outcome);
            self.at(takes, Happening::Arrives { node, life, message });
        }
        Ok(())
    }

    fn end_attempt(&mut self, node: usize, job: Box<Job>, outcome: Outcome) {
        match self.nodes[node].attempts.get_mut(&job.id) {
            Some(attempt) if attempt.number == job.attempt && !attempt.ended => attempt.ended = true,
            // Stopped meanwhile: then it has ended before, as cancelled.
            _ => return,
        }
        self.feed(node, Event::SlotsFreed(1));
        if outcome == Outcome::Accepted {
            if self.model.await_report(job.id, job.attempt) == Settled::CancelRequested {
                return self.ask_to_settle(node, job, Outcome::Cancelled);
            }
            self.nodes[node].forget_attempt(&job);
            self.report_later(job);
        } else {
            self.ask_to_settle(node, job, outcome);
        }
    }

    /// A target that answered 202 reports by itself, or never does.
    fn report_later(&mut self, job: Box<Job>) {
        if self.chance(70) {
            let (_, outcome) = self.some_outcome();
            let outcome = if outcome == Outcome::Accepted { Outcome::TimedOut } else { outcome };
            let node = self.some_node();
            let (life, delay) = (self.nodes[node].life, self.rng.random_range(1..3_000));
            self.at(delay, Happening::Asked { node, life, request: Request::settle(job, outcome) });
        }
    }

    fn stop(&mut self, node: usize, id: JobId) {
        let attempt = self.nodes[node].attempts.get(&id).map(|attempt| attempt.number);
        let job = self.model.live().get(&id).filter(|job| Some(job.attempt) == attempt);
        if let Some(job) = job.cloned() {
            self.end_attempt(node, Box::new(job), Outcome::Cancelled);
        }
    }

    fn settle(
        &mut self,
        node: usize,
        life: u32,
        (job, outcome): (Box<Job>, Outcome),
        (leave, doubt): (Option<Leave>, Option<Leave>),
        answer_lost: bool,
    ) -> Result<(), Violation> {
        let jitter = Jitter::from_bits(self.rng.random());
        let settlement = decide(&job, outcome.clone(), self.now, &poison_rule(), jitter);
        let settlement = settlement.expect("accepted attempts are not settled");
        let before = self.model.job(job.id).cloned();
        let start = leave.as_ref().map(Self::start_tasks);
        let SettledBatch { settled, released, started, .. } =
            self.model.settle_and_start(std::slice::from_ref(&settlement), start.as_ref());
        if let Some(leave) = &leave {
            self.were_started(leave, &started)?;
        }
        let result = settled[0];
        if result == Settled::Stale {
            self.checks.stale(before, self.model.job(job.id), self.now)?;
        }
        if answer_lost {
            if let Some(leave) = leave.clone() {
                self.reply(node, life, ToNode::NotPassedOn(leave, true));
            }
            let request = Request::Settle { job, outcome, leave: None, doubt: doubt.or(leave) };
            self.at(5, Happening::Asked { node, life, request });
        } else {
            let (next, passed_on) = (settlement.next, leave.map(|leave| (leave, started)));
            let answer = ToNode::Settled { job, outcome, next, result, released, passed_on, doubt };
            self.reply(node, life, answer);
        }
        Ok(())
    }

    fn settled(&mut self, node: usize, mut job: Box<Job>, outcome: Outcome, next: Next, result: Settled) {
        if result != Settled::CancelRequested {
            self.nodes[node].forget_attempt(&job);
        }
        match (result, next.due_again_at()) {
            (Settled::CancelRequested, _) => {
                job.cancel_requested = true;
                self.ask(node, Request::settle(job, outcome));
            }
            (_, Some(due_at)) => {
                let due = DueJob { due_at, ..DueJob::from(&*job) };
                self.feed(node, Event::Learned(vec![due]));
            }
            _ => job.schedule_id.into_iter().for_each(|id| self.job_of_schedule_ended(id)),
        }
    }

    /// How long an attempt takes and what comes of it.
    fn some_outcome(&mut self) -> (u64, Outcome) {
        let takes = self.rng.random_range(1..600);
        match self.rng.random_range(0..100) {
            0..60 => (takes, Outcome::Completed { result: Some(some_result(&mut self.rng)) }),
            60..80 => (takes, failed(true)),
            80..86 => (takes, failed(false)),
            86..94 => (takes, Outcome::Accepted),
            _ => (super::TIMEOUT.as_millis() as u64, Outcome::TimedOut),
        }
    }

    // --- small things ---------------------------------------------------------------------------------------

    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    /// While there are faults, one message in ten is lost.
    pub fn goes_wrong(&mut self) -> bool {
        let unlucky = self.chance(10);
        unlucky && self.real < self.faults_over_at()
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
        self.agenda.insert((self.real + Duration::from_millis(delay_ms), number), happening);
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
        if self.chance(5) { self.rng.random_range(0..400) } else { self.rng.random_range(0..6) }
    }
}

fn wanted(load: &Load) -> LoadDue {
    LoadDue {
        priority: load.priority,
        partitions: load.partitions,
        kinds: vec![TargetKind::Http],
        after: load.after,
        until: load.until,
        limit: load.limit,
    }
}

fn failed(retryable: bool) -> Outcome {
    let failure = Failure::new("http_status", "the target answered 500");
    Outcome::Failed { failure, retryable, retry_after: None }
}

/// Generous: in this world every job is unlucky.
fn poison_rule() -> PoisonRule {
    PoisonRule { failures_max: 50, window: Duration::from_secs(1), lost_max: 50 }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let running = self.model.live().values().filter(|job| job.state == State::Running).count();
        write!(f, "World({:?}, {} live, {running} running)", self.now, self.model.live().len())
    }
}
