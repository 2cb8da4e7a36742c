//! The invariants, checked at every step that could break them.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_core::ports::Settled;
use tickwheel_core::settle::{Outcome, Settlement};
use tickwheel_core::{Delivery, Job, JobId, RunId, State, Timestamp};

use super::attempts::poison_rule;
use super::client::REQUEST;
use super::{LEASE, Violation};
use crate::fixtures::START;
use crate::model::Model;

/// What was seen so far.
#[derive(Debug, Default)]
pub struct Checks {
    acknowledged: BTreeSet<JobId>,
    claimed: BTreeSet<(JobId, u32)>,
    delivered: BTreeSet<(JobId, u32)>,
    latest_attempt: BTreeMap<JobId, u32>,
    /// By what the client asked for.
    idempotency_keys: BTreeMap<String, String>,
    /// What may run at most once, and did.
    run_once: BTreeSet<JobId>,
    /// How many workers died while they ran nothing but this job.
    lost_alone: BTreeMap<JobId, u32>,
    to_be_cancelled: BTreeSet<JobId>,
    halted: bool,
    paused_queues: BTreeSet<String>,
    paused_runs: BTreeSet<RunId>,
    orphaned_since: BTreeMap<JobId, Timestamp>,
}

pub(super) fn violation(invariant: &'static str, now: Timestamp, what: String) -> Violation {
    Violation { invariant, at_ms: now.as_millis() - START.as_millis(), what }
}

impl Checks {
    /// A client was told that its job is stored.
    pub fn acknowledged(&mut self, id: JobId) {
        self.acknowledged.insert(id);
    }

    /// A client was told that its change is in force; this is the job as it stands.
    pub fn change_acknowledged(&mut self, job: &Job) {
        if job.cancel_requested || job.state() == State::Cancelled {
            self.to_be_cancelled.insert(job.id);
        } else {
            self.to_be_cancelled.remove(&job.id);
        }
    }

    /// A client was told that a job that may have been cancelled is run again with its run.
    pub fn wanted_again(&mut self, id: JobId) {
        self.to_be_cancelled.remove(&id);
        self.begins_anew(id);
    }

    /// Whatever the job has done before is forgiven.
    pub fn begins_anew(&mut self, id: JobId) {
        self.lost_alone.remove(&id);
        self.run_once.remove(&id);
    }

    /// A client was told that the stop switch is turned.
    pub fn halt_acknowledged(&mut self, halted: bool) {
        self.halted = halted;
    }

    /// A client was told that a queue is paused or resumed.
    pub fn pause_acknowledged(&mut self, queue: &str, paused: bool) {
        if paused {
            self.paused_queues.insert(queue.into());
        } else {
            self.paused_queues.remove(queue);
        }
    }

    /// A client was told that a run is paused, or that it goes on or has ended.
    pub fn run_pause_acknowledged(&mut self, run: RunId, paused: bool) {
        if paused {
            self.paused_runs.insert(run);
        } else {
            self.paused_runs.remove(&run);
        }
    }

    /// The store gave `job` to a claimant; `before` is how it stood.
    pub fn claimed(&mut self, before: &Job, job: &Job, now: Timestamp) -> Result<(), Violation> {
        if !self.claimed.insert((job.id, job.attempt)) {
            return Err(violation("I2", now, format!("attempt {} of {} claimed twice", job.attempt, job.id)));
        }
        let latest = self.latest_attempt.insert(job.id, job.attempt).unwrap_or(0);
        if job.attempt <= latest {
            return Err(violation("I3", now, format!("{}: attempt {} after {latest}", job.id, job.attempt)));
        }
        if before.due_at > now {
            return Err(violation("I4", now, format!("{} claimed before {:?}", job.id, before.due_at)));
        }
        if self.to_be_cancelled.contains(&job.id) {
            return Err(violation("I10", now, format!("{} claimed after it was cancelled", job.id)));
        }
        if before.state() != State::Scheduled {
            return Err(violation("I10", now, format!("{} claimed while {}", job.id, before.state())));
        }
        if self.halted || self.paused_queues.contains(&*job.queue) {
            return Err(violation("I10", now, format!("{} claimed while halted or paused", job.id)));
        }
        if job.spec.position.as_ref().is_some_and(|position| self.paused_runs.contains(&position.run)) {
            return Err(violation("I10", now, format!("{} claimed while its run is paused", job.id)));
        }
        Ok(())
    }

    /// An attempt was sent to its target. Whatever a client asked for, however often, is sent with one key.
    pub fn delivered(&mut self, job: &Job, now: Timestamp) -> Result<(), Violation> {
        if !self.delivered.insert((job.id, job.attempt)) {
            return Err(violation("I2", now, format!("attempt {} of {} sent twice", job.attempt, job.id)));
        }
        if job.due_at > now {
            return Err(violation("I4", now, format!("{} started before {:?}", job.id, job.due_at)));
        }
        if job.spec.delivery == Delivery::AtMostOnce && !self.run_once.insert(job.id) {
            return Err(violation("I2", now, format!("{} may run once, and is sent again", job.id)));
        }
        if job.job_type.starts_with(REQUEST) {
            let key = idempotency_key(job);
            let first = self.idempotency_keys.entry(job.job_type.to_string()).or_insert_with(|| key.clone());
            if *first != key {
                return Err(violation("I6", now, format!("{} sent with {first} and {key}", job.job_type)));
            }
        }
        Ok(())
    }

    /// The store answered a write about the end of `attempt`. It did something if that attempt was running, and nothing
    /// if not.
    pub fn written(
        &self,
        result: Settled,
        before: Option<&Job>,
        attempt: &Job,
        after: Option<&Job>,
        now: Timestamp,
    ) -> Result<(), Violation> {
        let was_running =
            before.is_some_and(|job| job.state() == State::Running && job.attempt == attempt.attempt);
        let name = format!("attempt {} of {}", attempt.attempt, attempt.id);
        match result {
            Settled::Applied | Settled::CancelRequested if !was_running => {
                Err(violation("I3", now, format!("{name} was not running, and its end counts: {before:?}")))
            }
            Settled::Stale | Settled::CancelRequested if before != after => {
                Err(violation("I3", now, format!("{name} does not count, and changed {after:?}")))
            }
            Settled::Stale if was_running => {
                Err(violation("I1", now, format!("{name} was running, and its end does not count")))
            }
            _ => Ok(()),
        }
    }

    /// The end of an attempt is written: a job that takes worker after worker with it does not go on for ever.
    pub fn lost_alone(
        &mut self,
        outcome: &Outcome,
        settlement: &Settlement,
        now: Timestamp,
    ) -> Result<(), Violation> {
        if !matches!(outcome, Outcome::Lost { together: 1 }) {
            return Ok(());
        }
        let lost = self.lost_alone.entry(settlement.job_id).or_default();
        *lost += 1;
        if *lost >= poison_rule().lost_max && !settlement.next.state().is_terminal() {
            let what = format!("{} goes on after {lost} workers died of it", settlement.job_id);
            return Err(violation("I5", now, what));
        }
        Ok(())
    }

    /// Called now and then: a running job whose session has ended must not stay so while somebody healthy is there.
    pub fn orphans(
        &mut self,
        model: &Model,
        somebody_is_healthy: bool,
        now: Timestamp,
    ) -> Result<(), Violation> {
        if !somebody_is_healthy {
            self.orphaned_since.clear();
            return Ok(());
        }
        let orphaned = |job: &&Job| {
            job.state() == State::Running && job.session.is_some_and(|s| !model.sessions().contains_key(&s))
        };
        let orphans: BTreeSet<JobId> = model.live().values().filter(orphaned).map(|job| job.id).collect();
        self.orphaned_since.retain(|id, _| orphans.contains(id));
        for id in orphans {
            let since = *self.orphaned_since.entry(id).or_insert(now);
            if now.since(since) > LEASE * 2 {
                return Err(violation("I7", now, format!("{id} has had no owner since {since:?}")));
            }
        }
        Ok(())
    }

    /// Everything is over: every acknowledged job has come to exactly one end, or waits for parents that did not.
    pub fn finished(&self, model: &Model, now: Timestamp) -> Result<(), Violation> {
        for id in &self.acknowledged {
            match (model.live().get(id), model.finished().get(id)) {
                (None, Some(job)) if job.state().is_terminal() => {}
                (None, None) => return Err(violation("I1", now, format!("{id} is lost"))),
                // Its parents do not let it, and whether that is right is checked elsewhere.
                (Some(job), None) if matches!(job.state(), State::Pending | State::Blocked) => {}
                (Some(job), _) => {
                    let what = format!("{id} is still {} (due {:?}, now {now:?})", job.state(), job.due_at);
                    return Err(violation(
                        if job.state() == State::Running { "I7" } else { "I1" },
                        now,
                        what,
                    ));
                }
                (_, Some(job)) => return Err(violation("I1", now, format!("{id} ended as {}", job.state()))),
            }
        }
        Ok(())
    }

    /// How many jobs were acknowledged, and how many attempts were sent.
    pub fn counts(&self) -> (usize, usize) {
        (self.acknowledged.len(), self.delivered.len())
    }
}

/// What the target gets to tell repetitions by: the executor sends the job's id.
fn idempotency_key(job: &Job) -> String {
    job.id.to_string()
}
