//! Jobs that wait for other jobs. Nothing is counted up or down here: whenever a parent ends or comes back, its
//! children count all their parents anew.

use std::collections::BTreeSet;

use tickwheel_core::parents::Parents;
use tickwheel_core::ports::Scheduled;
use tickwheel_core::{Job, JobId, State};

use super::Model;

impl Model {
    /// The jobs that depend on this one.
    pub fn children_of(&self, parent: JobId) -> impl Iterator<Item = JobId> {
        self.children.get(&parent).into_iter().flatten().copied()
    }

    /// The first job it depends on that its tenant does not have.
    pub(super) fn unknown_parent(&self, job: &Job) -> Option<JobId> {
        let is_known = |id: &JobId| self.job(*id).is_some_and(|parent| parent.tenant == job.tenant);
        job.spec.depends_on.iter().copied().find(|id| !is_known(id))
    }

    /// How the jobs stand that it waits for.
    pub(super) fn parents_of(&self, job: &Job) -> Parents {
        Parents::of(waited_for(job).into_iter().filter_map(|id| self.job(id)).map(|parent| parent.state()))
    }

    /// Stores a new job as its parents make it, and makes it known to them.
    pub(super) fn insert_dependent(&mut self, job: Job) -> Job {
        let parents = self.parents_of(&job);
        let job = job.waiting_for(parents);
        self.add_edges(&job);
        self.insert(job.clone());
        job
    }

    /// Makes a job known to those that it waits for.
    pub(super) fn add_edges(&mut self, job: &Job) {
        for parent in waited_for(job) {
            self.children.entry(parent).or_default().insert(job.id);
        }
    }

    /// These jobs have ended or come back: whoever waits for one of them counts again. Answers those that wait no more.
    pub(super) fn propagate_completion(&mut self, moved: &BTreeSet<JobId>) -> Vec<Scheduled> {
        let children: BTreeSet<JobId> = moved.iter().flat_map(|id| self.children_of(*id)).collect();
        children.into_iter().filter_map(|child| self.recount(child, moved)).collect()
    }

    fn recount(&mut self, child: JobId, moved: &BTreeSet<JobId>) -> Option<Scheduled> {
        let waits = |job: &&Job| matches!(job.state(), State::Pending | State::Blocked);
        let job = self.live.get(&child).filter(waits)?.clone();
        let mut parents = self.parents_of(&job);
        // Its items that are still to be made are waited for like those that have not ended.
        parents.open += job.fan_out.map_or(0, |fan_out| fan_out.unmade);
        let just_ended = waited_for(&job).into_iter().filter(|id| moved.contains(id));
        let latest_end = just_ended.filter_map(|id| self.job(id)?.completed_at).max();
        let job = job.recounted(parents, latest_end);
        if job.release().wants_reconcile(job.parents, job.state()) {
            self.request_reconcile(child);
        }
        self.live.insert(child, job.clone());
        // Its route is known already.
        (job.state() == State::Scheduled).then(|| Scheduled { route: None, ..Scheduled::from(&job) })
    }
}

pub(super) fn waited_for(job: &Job) -> BTreeSet<JobId> {
    job.waits_for().into_iter().collect()
}
