//! Leases in the simulated cluster: a node takes nothing while its own is not trusted, and gives back untouched what it
//! took and cannot start.

use std::time::Duration;

use tickwheel_core::machine::Event;
use tickwheel_core::ports::FindAbandoned;
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Job, JobId, SessionId};

use super::injected::{FaultKind, RequestKind};
use super::node::Attempt;
use super::requests::{Asked, Request};
use super::world::{ToNode, World};
use super::{GRACE, LEASE};

impl World {
    /// A node wants to take these. It waits while its lease is not trusted.
    pub(super) fn ask_to_claim(&mut self, node: usize, jobs: Vec<JobId>) {
        if !self.nodes[node].is_trusted(self.real) {
            self.nodes[node].held_back.push(jobs);
            return;
        }
        let (session, known) = (self.nodes[node].session, self.nodes[node].attempts_of(&jobs));
        self.nodes[node].asked_for(&jobs);
        self.ask(node, Request::Claim(Asked { jobs, session, known, at: self.now }));
    }

    pub(super) fn renew(&mut self, node: usize) {
        if !self.goes_wrong(FaultKind::RequestLost(RequestKind::Renew)) {
            let session = self.nodes[node].session;
            let is_known = self.model.renew_session(session, self.real + LEASE);
            if !self.goes_wrong(FaultKind::AnswerLost(RequestKind::Renew)) {
                self.renewed(node, is_known);
            }
        }
        self.later(node, LEASE.as_millis() as u64 / 3, ToNode::Renew);
    }

    /// The node hears that its lease is longer, or that it has none any more.
    fn renewed(&mut self, node: usize, is_known: bool) {
        self.nodes[node].trusted_until = self.real + LEASE;
        if !is_known {
            self.nodes[node].session = self.open_session();
            self.feed(node, Event::StartedOver);
        }
        for jobs in std::mem::take(&mut self.nodes[node].held_back) {
            self.ask_to_claim(node, jobs);
        }
    }

    /// The node looks for attempts that nobody takes care of any more.
    pub(super) fn reap(&mut self, node: usize) {
        let own = self.nodes[node].session;
        self.model.expire_sessions(own, self.real);
        let find = FindAbandoned { now: self.now, grace: GRACE, limit: 5 };
        let abandoned = self.model.find_abandoned(find);
        let lost_with =
            |session: Option<SessionId>| abandoned.iter().filter(|job| job.session == session).count();
        for job in abandoned.clone() {
            if self.nodes[node].attempts.contains_key(&job.id) {
                continue;
            }
            let overdue = job.deadline.is_some_and(|deadline| deadline + GRACE < self.now);
            let together = lost_with(job.session);
            let outcome = if overdue { Outcome::TimedOut } else { Outcome::Lost { together } };
            self.ask(node, Request::Settle(Box::new(job), outcome));
        }
        self.later(node, 250, ToNode::Reap);
    }

    /// The node stood still between taking a job and starting it: it gives the job back, and nobody is to see anything
    /// of it.
    pub(super) fn return_to_queue(&mut self, node: usize, job: Job) {
        self.injected.count(FaultKind::NotSent);
        self.nodes[node].attempts.insert(job.id, Attempt { number: job.attempt, ended: true });
        self.feed(node, Event::SlotsFreed(1));
        let outcome = Outcome::NotSent { reason: "no lease".into(), again_in: Duration::ZERO };
        self.ask(node, Request::Settle(Box::new(job), outcome));
    }
}
