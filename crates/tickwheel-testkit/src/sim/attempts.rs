//! Attempts in the simulated cluster: what a node does with jobs it has taken, how long they take, and what comes of
//! them.

use std::time::Duration;

use rand::RngExt;
use tickwheel_core::machine::Event;
use tickwheel_core::ports::{DueJob, Settled};
use tickwheel_core::settle::{DeadReason, Next, Outcome, PoisonRule};
use tickwheel_core::{Failure, Job, JobId};

use super::Violation;
use super::checks::violation;
use super::client::DEADLY;
use super::graphs::some_result;
use super::injected::FaultKind;
use super::node::{Attempt, Node};
use super::requests::Request;
use super::world::{Happening, ToNode, World};

impl World {
    pub(super) fn run_all(
        &mut self,
        node: usize,
        asked: Vec<JobId>,
        taken: Vec<Job>,
    ) -> Result<(), Violation> {
        self.nodes[node].heard_of(&asked);
        let event = Node::claimed(asked, &taken);
        self.run_taken(node, taken)?;
        self.feed(node, event);
        Ok(())
    }

    pub(super) fn run_taken(&mut self, node: usize, taken: Vec<Job>) -> Result<(), Violation> {
        for mut job in taken {
            if !self.nodes[node].covers(&job, self.real) || job.due_at > self.now {
                self.return_to_queue(node, job);
                continue;
            }
            self.checks.delivered(&job, self.now)?;
            let attempt = Attempt { number: job.attempt, ended: false };
            let former = self.nodes[node].attempts.insert(job.id, attempt);
            if former.is_some_and(|former| !former.ended) {
                // Others had taken it for lost. Nobody hears of its end any more.
                self.feed(node, Event::SlotsFreed(1));
            }
            job.started_at = Some(self.now);
            let (takes, outcome) = self.some_outcome();
            let life = self.nodes[node].life;
            if job.job_type.ends_with(DEADLY) {
                self.at(takes / 2, Happening::KilledByJob { node, life });
            }
            let message = ToNode::AttemptEnded(Box::new(job), outcome);
            self.at(takes, Happening::Arrives { node, life, message });
        }
        Ok(())
    }

    pub(super) fn end_attempt(&mut self, node: usize, job: Box<Job>, outcome: Outcome) {
        match self.nodes[node].attempts.get_mut(&job.id) {
            Some(attempt) if attempt.number == job.attempt && !attempt.ended => attempt.ended = true,
            // Stopped meanwhile: then it has ended before, as cancelled.
            _ => return,
        }
        self.feed(node, Event::SlotsFreed(1));
        if outcome == Outcome::Accepted {
            self.ask(node, Request::AwaitReport(job));
        } else {
            self.ask(node, Request::Settle(job, outcome));
        }
    }

    /// The node hears whether the attempt goes on without it.
    pub(super) fn parked(&mut self, node: usize, job: Box<Job>, result: Settled) {
        if result == Settled::CancelRequested {
            return self.ask(node, Request::Settle(job, Outcome::Cancelled));
        }
        self.nodes[node].forget_attempt(&job);
        // Whoever works on it does not know whether its report still counts.
        self.report_later(job);
    }

    /// A target that answered 202 reports by itself, or never does.
    fn report_later(&mut self, job: Box<Job>) {
        if self.chance(70) {
            let (_, outcome) = self.some_outcome();
            let outcome = if outcome == Outcome::Accepted { Outcome::TimedOut } else { outcome };
            let node = self.some_node();
            let (life, delay) = (self.nodes[node].life, self.rng.random_range(1..3_000));
            self.at(delay, Happening::Asked { node, life, request: Request::Settle(job, outcome) });
        }
    }

    pub(super) fn stop(&mut self, node: usize, id: JobId) {
        let attempt = self.nodes[node].attempts.get(&id).map(|attempt| attempt.number);
        let job = self.model.live().get(&id).filter(|job| Some(job.attempt) == attempt);
        if let Some(job) = job.cloned() {
            self.end_attempt(node, Box::new(job), Outcome::Cancelled);
        }
    }

    /// The node hears that the end of an attempt is written.
    pub(super) fn settled(
        &mut self,
        node: usize,
        mut job: Box<Job>,
        outcome: Outcome,
        next: Next,
        result: Settled,
    ) {
        if result != Settled::CancelRequested {
            self.nodes[node].forget_attempt(&job);
        }
        match (result, next.due_again_at()) {
            (Settled::CancelRequested, _) => {
                job.cancel_requested = true;
                self.ask(node, Request::Settle(job, outcome));
            }
            (_, Some(due_at)) => {
                let due = DueJob { due_at, ..DueJob::from(&*job) };
                self.feed(node, Event::Learned(vec![due]));
            }
            _ => job.schedule_id.into_iter().for_each(|id| self.job_of_schedule_ended(id)),
        }
    }

    /// When everything is over: a machine whose node runs nothing and waits for nothing has all its slots.
    pub(super) fn no_slot_is_lost(&self) -> Result<(), Violation> {
        for node in self.nodes.iter().filter(|node| node.up && node.is_idle()) {
            let (free, all) = (node.machine.slots_free(), node.slots);
            if free != all {
                return Err(violation("I5", self.now, format!("{free} of {all} slots are free")));
            }
        }
        Ok(())
    }

    pub(super) fn count_poison(&mut self, next: &Next) {
        if matches!(next, Next::Fail { reason: DeadReason::PoisonPill }) {
            self.injected.count(FaultKind::Poison);
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
}

fn failed(retryable: bool) -> Outcome {
    let failure = Failure::new("http_status", "the target answered 500");
    Outcome::Failed { failure, retryable, retry_after: None }
}

/// Strict: most jobs have retries left when they are given up.
pub(super) const fn poison_rule() -> PoisonRule {
    PoisonRule { failures_max: 3, window: Duration::from_secs(2), lost_max: 2 }
}
