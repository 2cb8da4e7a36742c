//! From waiting to running.

use tickwheel_core::ports::{Claim, DueJob, LoadDue};
use tickwheel_core::workflow::RunStatus;
use tickwheel_core::{Job, JobId, State};

use super::Model;

impl Model {
    /// Waiting jobs, in the order of their cursor.
    pub fn load_due(&self, load: &LoadDue) -> Vec<DueJob> {
        let wanted = |job: &&Job| {
            job.state == State::Scheduled
                && job.priority == load.priority
                && load.partitions.contains(job.partition)
                && load.kinds.contains(&job.spec.target.kind())
                && job.due_at <= load.until
                && !self.is_held(job)
        };
        let mut due: Vec<DueJob> = self.live.values().filter(wanted).map(DueJob::from).collect();
        due.retain(|job| job.cursor() > load.after);
        due.sort_by_key(DueJob::cursor);
        due.truncate(load.limit);
        due
    }

    /// Moves due jobs to `running`; those that may not start are left out.
    pub fn claim(&mut self, claim: &Claim) -> Vec<Job> {
        if self.halted || !self.sessions.contains_key(&claim.session) {
            return Vec::new();
        }
        claim.jobs.iter().filter_map(|id| self.claim_one(*id, claim)).collect()
    }

    /// Whether its queue or its run is paused.
    fn is_held(&self, job: &Job) -> bool {
        let run = job.spec.place.as_ref().and_then(|place| self.runs.get(&place.run));
        self.is_paused(&job.queue) || run.is_some_and(|run| run.progress.status == RunStatus::Paused)
    }

    fn claim_one(&mut self, id: JobId, claim: &Claim) -> Option<Job> {
        let may_start =
            |job: &Job| job.state == State::Scheduled && job.due_at <= claim.now && !self.is_held(job);
        if !self.live.get(&id).is_some_and(may_start) {
            return None;
        }
        let job = self.live.get_mut(&id)?;
        job.state = State::Running;
        job.attempt += 1;
        job.session = Some(claim.session);
        job.started_at = Some(claim.now);
        job.deadline = Some(claim.now + job.spec.timeout());
        Some(job.clone())
    }
}
