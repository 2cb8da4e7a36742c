//! Tasks that are started by the end of others in the simulated cluster: leave to do so, and what a node does if it did not hear what came of it.

use std::collections::BTreeMap;

use tickwheel_core::machine::Event;
use tickwheel_core::ports::{PartitionSet, StartTasks};
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Job, JobId, SessionId, State, TargetKind, Timestamp};

use super::Violation;
use super::checks::violation;
use super::node::ours;
use super::requests::Request;
use super::world::World;

/// Leave to start these, for which a node's machine has lent slots.
#[derive(Clone)]
pub(super) struct Leave {
    session: SessionId,
    tasks: Vec<JobId>,
    now: Timestamp,
}

/// An attempt.
type Suspect = (JobId, u32);

impl World {
    /// Asks the store to write the end of an attempt.
    pub(super) fn ask_to_settle(&mut self, node: usize, job: Box<Job>, outcome: Outcome) {
        let leave = self.leave_to_start(node, &job, &outcome);
        self.ask(node, Request::Settle { job, outcome, leave, doubt: None });
    }

    fn leave_to_start(&mut self, node: usize, job: &Job, outcome: &Outcome) -> Option<Leave> {
        let place = job.spec.place.as_ref().filter(|_| matches!(outcome, Outcome::Completed { .. }))?;
        let tasks: Vec<JobId> = place.child_ids().collect();
        let (now, node) = (self.now, &mut self.nodes[node]);
        let partitions = PartitionSet::NONE.with(job.partition);
        if tasks.is_empty() || !node.machine.lend_slots(tasks.len(), partitions) {
            return None;
        }
        node.asked_for(&tasks);
        Some(Leave { session: node.session, tasks, now })
    }

    /// What the store may start.
    pub(super) fn start_tasks(leave: &Leave) -> StartTasks {
        StartTasks { session: leave.session, kinds: [TargetKind::Http].into(), now: leave.now }
    }

    /// The store has started these: everything that holds for a claim holds for them.
    pub(super) fn were_started(&mut self, leave: &Leave, started: &[Job]) -> Result<(), Violation> {
        for job in started {
            let before = Job { state: State::Scheduled, ..job.clone() };
            self.was_claimed(&before, job, leave.now)?;
            self.passed_on += 1;
        }
        Ok(())
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

    /// A node hears what was started by its leave.
    pub(super) fn passed_on(
        &mut self,
        node: usize,
        leave: &Leave,
        started: Vec<Job>,
    ) -> Result<(), Violation> {
        self.nodes[node].heard_of(&leave.tasks);
        self.run_ours(node, leave, started)
    }

    /// A node hears that its try came to nothing, or nothing at all. It holds on to the slots as long as it is in doubt.
    pub(super) fn not_passed_on(&mut self, node: usize, leave: &Leave, is_doubtful: bool) {
        self.nodes[node].heard_of(&leave.tasks);
        if !is_doubtful {
            self.feed(node, Event::SlotsFreed(leave.tasks.len()));
        }
    }

    /// A node hears of the end it wrote, and does not know what its first try has started.
    pub(super) fn doubts(&mut self, node: usize, doubt: Leave) {
        self.nodes[node].doubts += 1;
        self.look_for_unknown(node, doubt, None);
    }

    fn look_for_unknown(&mut self, node: usize, doubt: Leave, suspects: Option<Vec<Suspect>>) {
        let known = self.nodes[node].attempts_of(&doubt.tasks);
        self.ask(node, Request::Look { doubt, suspects, known });
    }

    /// What it saw. Those that nobody knows are run if they are still so when whoever had asked for them has heard.
    pub(super) fn looked(
        &mut self,
        node: usize,
        doubt: Leave,
        suspects: Option<Vec<Suspect>>,
        unknown: Vec<Job>,
    ) -> Result<(), Violation> {
        let Some(suspects) = suspects else {
            let is_asked_for = unknown.iter().any(|job| self.nodes[node].has_asked_for(job.id));
            let suspects = unknown.iter().map(|job| (job.id, job.attempt)).collect();
            self.look_for_unknown(node, doubt, (!is_asked_for).then_some(suspects));
            return Ok(());
        };
        let ours: Vec<Job> =
            unknown.into_iter().filter(|job| suspects.contains(&(job.id, job.attempt))).collect();
        self.nodes[node].doubts -= 1;
        self.found_again += ours.len();
        self.run_ours(node, &doubt, ours)
    }

    fn run_ours(&mut self, node: usize, leave: &Leave, ours: Vec<Job>) -> Result<(), Violation> {
        let unused = leave.tasks.len() - ours.len();
        self.run_taken(node, ours)?;
        self.feed(node, Event::SlotsFreed(unused));
        Ok(())
    }

    /// What of the jobs a node has looked at runs under the session of the leave, unknown to it.
    pub(super) fn unknown(doubt: &Leave, seen: Vec<Job>, known: &BTreeMap<JobId, u32>) -> Vec<Job> {
        ours(seen, doubt.session, known)
    }

    /// What the node doubts about.
    pub(super) fn doubted(&self, doubt: &Leave) -> Vec<Job> {
        self.model.get_jobs(&doubt.tasks)
    }
}
