//! Jobs that depend on others in the simulated cluster: which ones clients make depend on each other, and what has to
//! hold for them (I8).

use rand::RngExt;
use tickwheel_core::{Job, JobId, State, Timestamp};
use tickwheel_testkit::Model;

use crate::Violation;
use crate::checks::violation;
use crate::cluster::Cluster;

impl Cluster {
    /// What a new job of this tenant depends on: mostly nothing; else a few jobs that exist, ended or not, now and then
    /// somebody else's.
    pub fn some_parents(&mut self, tenant: &str) -> Vec<JobId> {
        if !self.chance(40) {
            return Vec::new();
        }
        let anybodys = self.chance(10);
        let eligible: Vec<JobId> = self.model.with_model(|model| {
            let all = model.live().values().chain(model.finished().values());
            all.filter(|job| anybodys || &*job.tenant == tenant).map(|job| job.id).collect()
        });
        if eligible.is_empty() {
            return Vec::new();
        }
        let count = self.rng.random_range(1..4);
        (0..count).map(|_| eligible[self.rng.random_range(0..eligible.len())]).collect()
    }
}

/// The job was claimed: what it depends on has completed. A task of a workflow has rules of its own.
pub fn parents_have_completed(model: &Model, job: &Job, now: Timestamp) -> Result<(), Violation> {
    if job.spec.position.is_some() {
        return Ok(());
    }
    let mut parents = job.spec.depends_on.iter().filter_map(|id| model.job(*id));
    if let Some(foreign) = parents.find(|parent| parent.tenant != job.tenant) {
        let what = format!("{} waited for {} of another tenant", job.id, foreign.id);
        return Err(violation("I9", now, what));
    }
    match states_of_parents(model, job).find(|state| *state != State::Completed) {
        Some(state) => Err(violation("I8", now, format!("{} started while a parent is {state}", job.id))),
        None => Ok(()),
    }
}

/// Whoever is held up by parents has parents that hold it up.
pub fn everybody_waits_rightly(model: &Model, now: Timestamp) -> Result<(), Violation> {
    let mut outside = model.live().values().filter(|job| job.spec.position.is_none());
    outside.try_for_each(|job| waits_rightly(model, job, now))
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
