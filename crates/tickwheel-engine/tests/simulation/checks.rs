//! The invariants, checked at every step that could break them.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_core::ports::Settled;
use tickwheel_core::settle::{DeadReason, Next, Settlement};
use tickwheel_core::{AttemptOutcome, Delivery, Job, JobId, RunId, State, Timestamp};
use tickwheel_testkit::Model;
use tickwheel_testkit::fixtures::START;

use crate::client::REQUEST;
use crate::commits::is_held_up;
use crate::node::poison_rule;
use crate::{LEASE, Violation};

/// What was seen so far.
#[derive(Debug, Default)]
pub struct Checks {
    stored: BTreeSet<JobId>,
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
    /// What the clients of each node were told, and still holds.
    acknowledged: BTreeSet<(usize, Forbidden)>,
    orphaned_since: BTreeMap<JobId, Timestamp>,
    /// What was taken and not started yet: by whom, and since when that could have happened.
    unstarted: BTreeMap<(JobId, u32), (usize, Timestamp)>,
}

/// What is not to start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Forbidden {
    /// Anything.
    All,
    /// What is in this queue.
    Queue(String),
    /// What belongs to this run.
    Run(RunId),
    /// This attempt.
    Attempt(JobId, u32),
}

pub fn violation(invariant: &'static str, now: Timestamp, what: String) -> Violation {
    Violation { invariant, at_ms: now.as_millis() - START.as_millis(), what }
}

impl Checks {
    /// The store has it, or a client was told so.
    pub fn stored(&mut self, id: JobId) {
        self.stored.insert(id);
    }

    /// Somebody's change is in force; this is the job as it stands.
    pub fn changed(&mut self, job: &Job) {
        if job.cancel_requested || job.state() == State::Cancelled {
            self.to_be_cancelled.insert(job.id);
        } else {
            self.to_be_cancelled.remove(&job.id);
        }
    }

    /// A job that may have been cancelled is run again with its run.
    pub fn wanted_again(&mut self, id: JobId) {
        self.to_be_cancelled.remove(&id);
        self.begins_anew(id);
    }

    /// Whatever the job has done before is forgiven.
    pub fn begins_anew(&mut self, id: JobId) {
        self.lost_alone.remove(&id);
        self.run_once.remove(&id);
    }

    /// The stop switch is turned.
    pub fn halted(&mut self, halted: bool) {
        self.halted = halted;
        self.allowed_again(!halted, |forbidden| *forbidden == Forbidden::All);
    }

    /// A queue is paused or resumed.
    pub fn queue_paused(&mut self, queue: &str, paused: bool) {
        if paused {
            self.paused_queues.insert(queue.into());
        } else {
            self.paused_queues.remove(queue);
        }
        self.allowed_again(!paused, |forbidden| *forbidden == Forbidden::Queue(queue.into()));
    }

    /// A run is paused, or goes on, or has ended.
    pub fn run_paused(&mut self, run: RunId, paused: bool) {
        if paused {
            self.paused_runs.insert(run);
        } else {
            self.paused_runs.remove(&run);
        }
        self.allowed_again(!paused, |forbidden| *forbidden == Forbidden::Run(run));
    }

    /// A client of this node was told that nothing of it starts any more, and nobody has allowed it again meanwhile:
    /// this node starts nothing of it, whatever it had claimed before.
    pub fn acknowledged(&mut self, node: usize, forbidden: Forbidden) {
        self.acknowledged.insert((node, forbidden));
    }

    fn allowed_again(&mut self, is_allowed: bool, which: impl Fn(&Forbidden) -> bool) {
        if is_allowed {
            self.acknowledged.retain(|(_, forbidden)| !which(forbidden));
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

    /// A node sent an attempt to its target. Whatever a client asked for, however often, is sent with one key.
    pub fn delivered(
        &mut self,
        node: usize,
        job: &Job,
        model: &Model,
        now: Timestamp,
    ) -> Result<(), Violation> {
        self.may_start(node, job, now)?;
        self.unstarted.remove(&(job.id, job.attempt));
        if !job.session.is_some_and(|session| model.sessions().contains_key(&session)) {
            return Err(violation("I7", now, format!("{} started under a session that has ended", job.id)));
        }
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

    /// A worker starts an attempt that it was given. Whether its session has ended meanwhile it cannot know.
    pub fn started_by_worker(&mut self, job: &Job, now: Timestamp) -> Result<(), Violation> {
        if !self.delivered.insert((job.id, job.attempt)) {
            return Err(violation("I2", now, format!("attempt {} of {} started twice", job.attempt, job.id)));
        }
        if job.spec.delivery == Delivery::AtMostOnce && !self.run_once.insert(job.id) {
            return Err(violation("I2", now, format!("{} may run once, and is started again", job.id)));
        }
        Ok(())
    }

    fn may_start(&self, node: usize, job: &Job, now: Timestamp) -> Result<(), Violation> {
        let mut forbidden = vec![
            Forbidden::All,
            Forbidden::Queue(job.queue.to_string()),
            Forbidden::Attempt(job.id, job.attempt),
        ];
        forbidden.extend(job.spec.position.as_ref().map(|position| Forbidden::Run(position.run)));
        match forbidden.into_iter().find(|forbidden| self.acknowledged.contains(&(node, forbidden.clone()))) {
            Some(forbidden) => {
                Err(violation("I10", now, format!("{} started although {forbidden:?} was stopped", job.id)))
            }
            None => Ok(()),
        }
    }

    /// The store answered a write about the end of `attempt`. It did something if that attempt was running, and nothing
    /// if not.
    pub fn written(
        &self,
        result: Settled,
        before: Option<&Job>,
        (job_id, attempt): (JobId, u32),
        after: Option<&Job>,
        now: Timestamp,
    ) -> Result<(), Violation> {
        let was_running = before.is_some_and(|job| job.state() == State::Running && job.attempt == attempt);
        let name = format!("attempt {attempt} of {job_id}");
        match result {
            Settled::Applied | Settled::CancelRequested if !was_running => {
                Err(violation("I3", now, format!("{name} was not running, and its end counts: {before:?}")))
            }
            // One that waits for parents may have been released by another end of the same batch.
            Settled::Stale | Settled::CancelRequested
                if before != after && !before.is_some_and(is_held_up) =>
            {
                Err(violation("I3", now, format!("{name} does not count, and changed {after:?}")))
            }
            Settled::Stale if was_running => {
                Err(violation("I1", now, format!("{name} was running, and its end does not count")))
            }
            _ => Ok(()),
        }
    }

    /// The end of an attempt is written; `before` is how the job stood. A job that takes worker after worker with it
    /// does not go on for ever.
    pub fn lost_alone(&mut self, settlement: &Settlement, before: Option<&Job>) -> Result<(), Violation> {
        let lost_before = before.map_or(0, |job| job.lost);
        let was_alone = match settlement.next {
            Next::Again { lost, .. } => lost > lost_before,
            Next::Fail { reason } => reason == DeadReason::PoisonPill,
            _ => false,
        };
        if settlement.outcome != AttemptOutcome::Lost || !was_alone {
            return Ok(());
        }
        let lost = self.lost_alone.entry(settlement.job_id).or_default();
        *lost += 1;
        if *lost >= poison_rule().lost_max && !settlement.next.state().is_terminal() {
            let what = format!("{} goes on after {lost} workers died of it", settlement.job_id);
            return Err(violation("I5", settlement.ended_at, what));
        }
        Ok(())
    }

    /// Called now and then: a running job whose session has ended must not stay so while somebody healthy is there,
    /// unless it is still at its target.
    pub fn orphans(
        &mut self,
        model: &Model,
        somebody_is_healthy: bool,
        is_executing: impl Fn(&Job) -> bool,
        now: Timestamp,
    ) -> Result<(), Violation> {
        if !somebody_is_healthy {
            self.orphaned_since.clear();
            return Ok(());
        }
        let orphaned = |job: &&Job| {
            let has_no_owner = job.session.is_some_and(|session| !model.is_open(session));
            job.state() == State::Running && has_no_owner && !is_executing(job)
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

    /// A node has taken a job, and is going to hear of it or to ask.
    pub fn taken(&mut self, node: usize, job: &Job, now: Timestamp) {
        self.unstarted.insert((job.id, job.attempt), (node, now));
    }

    /// Called now and then: what a node has taken it starts or gives back, unless something happens to it.
    pub fn unstarted(&mut self, model: &Model, healthy: &[bool], now: Timestamp) -> Result<(), Violation> {
        let is_running = |id: &JobId, attempt: u32| {
            model.live().get(id).is_some_and(|job| {
                let has_owner = job.session.is_some_and(|session| model.sessions().contains_key(&session));
                job.state() == State::Running && job.attempt == attempt && has_owner
            })
        };
        self.unstarted.retain(|(id, attempt), _| is_running(id, *attempt));
        for ((id, attempt), (node, since)) in &mut self.unstarted {
            if !healthy[*node] {
                *since = now;
            }
            if now.since(*since) > LEASE * 2 {
                let what = format!("attempt {attempt} of {id} was taken by {node} and never started");
                return Err(violation("I7", now, what));
            }
        }
        Ok(())
    }

    /// Everything is over: every job has come to exactly one end, or waits for parents that did not.
    pub fn finished(&self, model: &Model, now: Timestamp) -> Result<(), Violation> {
        for id in &self.stored {
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

    /// How many jobs were stored, and how many attempts were sent.
    pub fn counts(&self) -> (usize, usize) {
        (self.stored.len(), self.delivered.len())
    }
}

/// What the target gets to tell repetitions by: the executor sends the job's id.
fn idempotency_key(job: &Job) -> String {
    job.id.to_string()
}
