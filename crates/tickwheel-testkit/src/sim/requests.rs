//! What nodes ask the store for: requests that are lost, answers that are lost, and requests that arrive twice.

use std::collections::BTreeMap;

use rand::RngExt;
use tickwheel_core::machine::{Event, LoadPurpose};
use tickwheel_core::ports::{Claim, DueSchedule, LoadDue, ScheduleStep, Settled, SettledBatch};
use tickwheel_core::retry::Jitter;
use tickwheel_core::settle::{Outcome, decide};
use tickwheel_core::workflow::RunStep;
use tickwheel_core::{Job, JobId, SessionId, TargetKind, Timestamp};

use super::attempts::poison_rule;
use super::injected::{FaultKind, RequestKind};
use super::world::{Happening, ToNode, World};
use super::{NOBODY, Violation};

/// How long until a write is tried again, in milliseconds.
const RETRY_MS: u64 = 5;

/// What the store can be asked.
#[derive(Clone)]
pub(super) enum Request {
    Load(LoadPurpose, LoadDue),
    Claim(Asked),
    Settle(Box<Job>, Outcome),
    AwaitReport(Box<Job>),
    Advance(Box<ScheduleStep>, DueSchedule),
    Reconcile(Box<RunStep>),
}

/// Jobs that a node wants to take.
#[derive(Clone)]
pub(super) struct Asked {
    pub jobs: Vec<JobId>,
    /// For this session.
    pub session: SessionId,
    /// The attempts of them that it knew of.
    pub known: BTreeMap<JobId, u32>,
    /// What its clock showed.
    pub at: Timestamp,
}

impl Request {
    /// What is asked for.
    const fn kind(&self) -> RequestKind {
        match self {
            Self::Load(..) => RequestKind::Load,
            Self::Claim(_) => RequestKind::Claim,
            Self::Settle(..) => RequestKind::Settle,
            Self::AwaitReport(_) => RequestKind::AwaitReport,
            Self::Advance(..) => RequestKind::AdvanceSchedule,
            Self::Reconcile(_) => RequestKind::AdvanceRun,
        }
    }
}

impl World {
    /// A request arrives at the store, or would have.
    pub(super) fn store_is_asked(
        &mut self,
        node: usize,
        life: u32,
        request: Request,
    ) -> Result<(), Violation> {
        if life == NOBODY {
            return self.store_does(node, life, request, false);
        }
        let kind = request.kind();
        if self.goes_wrong(FaultKind::RequestLost(kind)) {
            self.request_is_lost(node, life, request);
            return Ok(());
        }
        let answer_lost = kind != RequestKind::Load && self.goes_wrong(FaultKind::AnswerLost(kind));
        if kind != RequestKind::Load && self.goes_wrong(FaultKind::RequestDoubled(kind)) {
            // Somewhere on the way it was sent again. Nobody waits for the second answer.
            let after = self.rng.random_range(0..2_000);
            self.at(after, Happening::Asked { node, life: NOBODY, request: request.clone() });
        }
        self.store_does(node, life, request, answer_lost)
    }

    /// Nothing was done for certain, and the node knows.
    fn request_is_lost(&mut self, node: usize, life: u32, request: Request) {
        match request {
            Request::Load(_, load) => self.reply(node, life, ToNode::Machine(Event::LoadFailed(load))),
            Request::Claim(asked) => {
                self.reply(node, life, ToNode::Machine(Event::ClaimFailed(asked.jobs)));
            }
            Request::Settle(..) | Request::AwaitReport(_) => self.try_again(node, life, request),
            Request::Advance(step, known) => self.step_schedule_again(node, life, step.id, known),
            // The reconciler comes back by itself.
            Request::Reconcile(_) => {}
        }
    }

    fn store_does(
        &mut self,
        node: usize,
        life: u32,
        request: Request,
        answer_lost: bool,
    ) -> Result<(), Violation> {
        match request {
            Request::Load(purpose, load) => {
                let found = self.model.load_due(&load, &[TargetKind::Http]);
                self.reply(node, life, ToNode::Machine(Event::Loaded(purpose, load, found)));
            }
            Request::Claim(asked) => {
                let taken = self.claim(&asked)?;
                let answer = if answer_lost {
                    ToNode::Reread { seen: self.model.get_jobs(&asked.jobs), asked }
                } else {
                    ToNode::Claimed { asked: asked.jobs, taken }
                };
                self.reply(node, life, answer);
                if life != NOBODY {
                    self.freeze_in_claim(node);
                }
            }
            Request::Settle(job, outcome) => self.settle(node, life, job, outcome, answer_lost)?,
            Request::AwaitReport(job) => self.await_report(node, life, job, answer_lost)?,
            Request::Advance(step, known) => {
                self.store_advances(node, life, *step, known, answer_lost)?;
            }
            Request::Reconcile(step) => self.store_reconciles(node, life, *step, answer_lost)?,
        }
        Ok(())
    }

    pub(super) fn try_again(&mut self, node: usize, life: u32, request: Request) {
        self.at(RETRY_MS, Happening::Asked { node, life, request });
    }

    fn claim(&mut self, asked: &Asked) -> Result<Vec<Job>, Violation> {
        let before: BTreeMap<JobId, Job> =
            asked.jobs.iter().filter_map(|id| Some((*id, self.model.job(*id)?.clone()))).collect();
        let claim = Claim { session: asked.session, jobs: asked.jobs.clone(), now: asked.at };
        let taken = self.model.claim(&claim);
        for job in &taken {
            self.was_claimed(&before[&job.id], job, asked.at)?;
        }
        Ok(taken)
    }

    fn was_claimed(&mut self, before: &Job, job: &Job, asked_at: Timestamp) -> Result<(), Violation> {
        self.checks.claimed(before, job, asked_at)?;
        self.parents_have_completed(job)?;
        self.workflow_checks.claimed(&self.model, job, asked_at)
    }

    fn settle(
        &mut self,
        node: usize,
        life: u32,
        job: Box<Job>,
        outcome: Outcome,
        answer_lost: bool,
    ) -> Result<(), Violation> {
        let jitter = Jitter::from_bits(self.rng.random());
        let settlement = decide(&job, outcome.clone(), self.now, &poison_rule(), jitter);
        let settlement = settlement.expect("accepted attempts are not settled");
        let before = self.model.job(job.id).cloned();
        let SettledBatch { settled, released, .. } = self.model.settle(std::slice::from_ref(&settlement));
        let result = settled[0];
        self.checks.written(result, before.as_ref(), &job, self.model.job(job.id), self.now)?;
        if result == Settled::Applied {
            self.checks.lost_alone(&outcome, &settlement, self.now)?;
            self.count_poison(&settlement.next);
        }
        if answer_lost {
            self.try_again(node, life, Request::Settle(job, outcome));
        } else {
            let answer = ToNode::Settled { job, outcome, next: settlement.next, result, released };
            self.reply(node, life, answer);
        }
        Ok(())
    }

    fn await_report(
        &mut self,
        node: usize,
        life: u32,
        job: Box<Job>,
        answer_lost: bool,
    ) -> Result<(), Violation> {
        let before = self.model.job(job.id).cloned();
        let result = self.model.await_report(job.id, job.attempt);
        self.checks.written(result, before.as_ref(), &job, self.model.job(job.id), self.now)?;
        if answer_lost {
            self.try_again(node, life, Request::AwaitReport(job));
        } else {
            self.reply(node, life, ToNode::Parked(job, result));
        }
        Ok(())
    }
}
