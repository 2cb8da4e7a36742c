//! From waiting to running.

use tickwheel_core::claim::StartConditions;
use tickwheel_core::matching::Class;
use tickwheel_core::ports::{Claim, DueJob, LoadDue};
use tickwheel_core::workflow::RunStatus;
use tickwheel_core::{Job, JobId, State, TargetKind};

use super::Model;

impl Model {
    /// Waiting jobs, in the order of their cursor; of those of the built-in executors the ones of these kinds.
    pub fn load_due(&self, load: &LoadDue, kinds: &[TargetKind]) -> Vec<DueJob> {
        let wanted = |job: &&Job| {
            job.state() == State::Scheduled
                && job.priority == load.priority
                && load.partitions.contains(job.partition)
                && Class::of(job) == load.class
                && (load.class != Class::BuiltIn || kinds.contains(&job.spec.target.kind()))
                && job.due_at <= load.until
                && !self.is_paused(&job.queue)
                && !self.run_is_paused(job)
        };
        let mut due: Vec<DueJob> = self.live.values().filter(wanted).map(DueJob::from).collect();
        due.retain(|job| job.cursor() > load.after);
        due.sort_by_key(DueJob::cursor);
        due.truncate(load.limit);
        due
    }

    /// Moves due jobs to `running`; those that may not start are left out.
    pub fn claim(&mut self, claim: &Claim) -> Vec<Job> {
        claim.jobs.iter().filter_map(|id| self.claim_one(*id, claim)).collect()
    }

    fn run_is_paused(&self, job: &Job) -> bool {
        let run = job.spec.position.as_ref().and_then(|position| self.runs.get(&position.run));
        run.is_some_and(|run| run.progress.status == RunStatus::Paused)
    }

    fn claim_one(&mut self, id: JobId, claim: &Claim) -> Option<Job> {
        let job = self.live.get(&id)?;
        let conditions = StartConditions {
            state: job.state(),
            due_at: job.due_at,
            now: claim.now,
            is_halted: self.halted,
            queue_is_paused: self.is_paused(&job.queue),
            run_is_paused: self.run_is_paused(job),
            session_is_open: self.is_open(claim.session),
        };
        if !conditions.are_met() {
            return None;
        }
        let claimed = job.clone().claimed(claim.session, claim.now);
        self.live.insert(id, claimed.clone());
        if let Some(node) = claim.claimed_by {
            self.note_claimant(id, node);
        }
        Some(claimed)
    }
}
