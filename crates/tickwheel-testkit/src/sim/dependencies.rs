//! Jobs that depend on others in the simulated cluster: which ones clients make depend on each other, and what has to
//! hold for them (I8).

use rand::RngExt;
use tickwheel_core::machine::Event;
use tickwheel_core::ports::Scheduled;
use tickwheel_core::{Job, JobId, State, Timestamp};

use super::Violation;
use super::checks::violation;
use super::world::World;
use crate::model::Model;

impl World {
    /// What a new job of this tenant depends on: mostly nothing; else a few jobs that exist, ended or not, now and then
    /// somebody else's.
    pub(super) fn some_parents(&mut self, tenant: &str) -> Vec<JobId> {
        if !self.chance(40) {
            return Vec::new();
        }
        let anybodys = self.chance(10);
        let all = self.model.live().values().chain(self.model.finished().values());
        let eligible = all.filter(|job| anybodys || &*job.tenant == tenant);
        let eligible: Vec<JobId> = eligible.map(|job| job.id).collect();
        if eligible.is_empty() {
            return Vec::new();
        }
        let count = self.rng.random_range(1..4);
        (0..count).map(|_| eligible[self.rng.random_range(0..eligible.len())]).collect()
    }

    /// A node hears that these wait for nobody any more.
    pub(super) fn released(&mut self, node: usize, jobs: &[Scheduled]) {
        if !jobs.is_empty() {
            self.feed(node, Event::Learned(jobs.iter().map(|job| job.due.clone()).collect()));
        }
    }

    /// The job was claimed: what it depends on has completed. A task of a workflow has rules of its own.
    pub(super) fn parents_have_completed(&self, job: &Job) -> Result<(), Violation> {
        if job.spec.position.is_some() {
            return Ok(());
        }
        let mut parents = job.spec.depends_on.iter().filter_map(|id| self.model.job(*id));
        if let Some(foreign) = parents.find(|parent| parent.tenant != job.tenant) {
            let what = format!("{} waited for {} of another tenant", job.id, foreign.id);
            return Err(violation("I9", self.now, what));
        }
        for parent in states_of_parents(&self.model, job) {
            if parent != State::Completed {
                let what = format!("{} started while a parent is {parent}", job.id);
                return Err(violation("I8", self.now, what));
            }
        }
        Ok(())
    }

    /// Whoever is held up by parents has parents that hold it up.
    pub(super) fn everybody_waits_rightly(&self) -> Result<(), Violation> {
        let mut outside = self.model.live().values().filter(|job| job.spec.position.is_none());
        outside.try_for_each(|job| waits_rightly(&self.model, job, self.now))
    }

    /// Every job that has not ended is held up by parents. Those that could go on are not among them: somebody would
    /// have to let them.
    pub(super) fn nobody_can_go_on(&self) -> bool {
        self.model.live().values().all(|job| matches!(job.state(), State::Pending | State::Blocked))
    }
}

fn states_of_parents(model: &Model, job: &Job) -> impl Iterator<Item = State> {
    job.spec.depends_on.iter().filter_map(|id| Some(model.job(*id)?.state()))
}

fn waits_rightly(model: &Model, job: &Job, now: Timestamp) -> Result<(), Violation> {
    let ended_badly = |state: State| matches!(state, State::Failed | State::Cancelled | State::Skipped);
    let some_failed = states_of_parents(model, job).any(ended_badly);
    let some_open = states_of_parents(model, job).any(|state| !state.is_terminal());
    match job.state() {
        State::Pending if some_failed => {
            Err(violation("I8", now, format!("{} waits in silence for a parent that failed", job.id)))
        }
        State::Pending if !some_open => {
            Err(violation("I1", now, format!("{} waits although its parents are done", job.id)))
        }
        State::Blocked if !some_failed => {
            Err(violation("I8", now, format!("{} is blocked by nobody", job.id)))
        }
        _ => Ok(()),
    }
}
