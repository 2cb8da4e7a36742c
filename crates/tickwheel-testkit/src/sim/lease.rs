//! Leases in the simulated cluster: a node takes nothing while its own is not trusted, and gives back untouched what it took and cannot start.

use std::time::Duration;

use tickwheel_core::machine::Event;
use tickwheel_core::ports::FindAbandoned;
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Job, JobId};

use super::node::Attempt;
use super::world::{Request, ToNode, World};
use super::{GRACE, LEASE};

impl World {
    /// A node wants to take these. It waits while its lease is not trusted.
    pub(super) fn ask_to_claim(&mut self, node: usize, jobs: Vec<JobId>) {
        if !self.nodes[node].is_trusted(self.real) {
            self.nodes[node].held_back.push(jobs);
            return;
        }
        let known = self.nodes[node].attempts_of(&jobs);
        self.nodes[node].asked_for(&jobs);
        self.ask(node, Request::Claim { jobs, known, asked_at: self.now });
    }

    pub(super) fn renew(&mut self, node: usize) {
        let session = self.nodes[node].session;
        if !self.goes_wrong() {
            self.nodes[node].trusted_until = self.real + LEASE;
            if !self.model.renew_session(session, self.real + LEASE) {
                self.nodes[node].session = self.open_session();
                self.feed(node, Event::StartedOver);
            }
            for jobs in std::mem::take(&mut self.nodes[node].held_back) {
                self.ask_to_claim(node, jobs);
            }
        }
        self.later(node, LEASE.as_millis() as u64 / 3, ToNode::Renew);
    }

    /// The node looks for attempts that nobody takes care of any more.
    pub(super) fn reap(&mut self, node: usize) {
        let own = self.nodes[node].session;
        self.model.expire_sessions(own, self.real);
        let find = FindAbandoned { now: self.now, grace: GRACE, limit: 5 };
        for job in self.model.find_abandoned(find) {
            if self.nodes[node].attempts.contains_key(&job.id) {
                continue;
            }
            let overdue = job.deadline.is_some_and(|deadline| deadline + GRACE < self.now);
            let outcome = if overdue { Outcome::TimedOut } else { Outcome::Lost { together: 1 } };
            self.ask(node, Request::settle(Box::new(job), outcome));
        }
        self.later(node, 250, ToNode::Reap);
    }

    /// The node stood still between taking a job and starting it: it gives the job back, and nobody is to see anything of it.
    pub(super) fn give_back(&mut self, node: usize, job: Job) {
        self.not_sent += 1;
        self.nodes[node].attempts.insert(job.id, Attempt { number: job.attempt, ended: true });
        self.feed(node, Event::SlotsFreed(1));
        let outcome = Outcome::NotSent { reason: "no lease".into(), again_in: Duration::ZERO };
        self.ask(node, Request::settle(Box::new(job), outcome));
    }
}
