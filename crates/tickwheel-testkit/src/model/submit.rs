//! Submission: all that is new of a batch, or nothing.

use std::collections::BTreeSet;

use tickwheel_core::Job;
use tickwheel_core::ports::{Creation, Idempotency, NewJob, StoreError, StoreResult, UnknownParent};

use super::{KeyMark, Model};

type Submitted = Creation<Job, UnknownParent>;

impl Model {
    /// Stores jobs. Refuses the whole batch if a job to be stored has the id of another.
    pub fn submit_jobs(&mut self, jobs: Vec<NewJob>) -> StoreResult<Vec<Creation<Job, UnknownParent>>> {
        self.refuse_taken_ids(&jobs)?;
        Ok(jobs.into_iter().map(|new| self.submit_one(new)).collect())
    }

    pub(super) fn refuse_taken_ids(&self, jobs: &[NewJob]) -> StoreResult<()> {
        let mut ids = BTreeSet::new();
        let is_new =
            |new: &&NewJob| self.seen_before(new).is_none() && self.unknown_parent(&new.job).is_none();
        for new in jobs.iter().filter(is_new) {
            if self.job(new.job.id).is_some() || !ids.insert(new.job.id) {
                return Err(StoreError::Aborted(format!("there is a job {} already", new.job.id)));
            }
        }
        Ok(())
    }

    pub(super) fn submit_one(&mut self, new: NewJob) -> Submitted {
        if let Some(seen) = self.seen_before(&new) {
            return seen;
        }
        if let Some(unknown) = self.unknown_parent(&new.job) {
            return Creation::Refused(UnknownParent(unknown));
        }
        let NewJob { job, idempotency } = new;
        if let Some(Idempotency { key, fingerprint }) = idempotency {
            self.idempotency.insert((job.tenant.clone(), key), KeyMark { fingerprint, job_id: job.id });
        }
        if !job.spec.depends_on.is_empty() {
            return Creation::created(self.insert_dependent(job));
        }
        self.insert(job.clone());
        Creation::created(job)
    }

    fn seen_before(&self, new: &NewJob) -> Option<Submitted> {
        let idempotency = new.idempotency.as_ref()?;
        let mark = self.idempotency.get(&(new.job.tenant.clone(), idempotency.key.clone()))?;
        if mark.fingerprint != idempotency.fingerprint {
            return Some(Creation::Conflict(mark.job_id));
        }
        let existing =
            self.job(mark.job_id).expect("a key is written with its job, and jobs are never removed");
        Some(Creation::existing(existing.clone()))
    }

    pub(super) fn insert(&mut self, job: Job) {
        debug_assert!(!job.state().is_terminal(), "a new job has not ended");
        self.queues.entry(job.queue.to_string()).or_insert(false);
        self.live.insert(job.id, job);
    }
}
