//! The end of an attempt. Every write is valid only while the job is running exactly that attempt.

use tickwheel_core::ports::{Settled, SettledBatch};
use tickwheel_core::settle::{Next, Settlement};
use tickwheel_core::{AttemptRecord, Job, JobId, TargetKind, Timestamp};

use super::{DeadMark, Model};

impl Model {
    /// Ends attempts, one after the other, then tells the children of all that ended, and the runs.
    pub fn settle(&mut self, settlements: &[Settlement]) -> SettledBatch {
        let settled: Vec<Settled> =
            settlements.iter().map(|settlement| self.settle_one(settlement)).collect();
        let applied = settlements.iter().zip(&settled).filter(|(_, settled)| **settled == Settled::Applied);
        let ended = applied.filter(|(settlement, _)| settlement.next.state().is_terminal());
        let ended = ended.map(|(settlement, _)| settlement.job_id).collect();
        let reconcile_request_count = self.reconcile_request_count;
        let released = self.propagate_completion(&ended);
        self.count_ends(&ended);
        SettledBatch {
            settled,
            released,
            reconcile_requested: self.reconcile_request_count > reconcile_request_count,
        }
    }

    /// The attempt goes on without a session: whoever holds its token will report.
    pub fn await_report(&mut self, job_id: JobId, attempt: u32) -> Settled {
        let Some(job) = self.running(job_id, attempt) else { return Settled::Stale };
        if job.cancel_requested && job.spec.target.kind() != TargetKind::Workflow {
            return Settled::CancelRequested;
        }
        self.live.entry(job_id).and_modify(|job| job.session = None);
        Settled::Applied
    }

    fn settle_one(&mut self, settlement: &Settlement) -> Settled {
        let Some(running) = self.running(settlement.job_id, settlement.attempt) else {
            return Settled::Stale;
        };
        if settlement.next.due_again_at().is_some() && running.cancel_requested {
            return Settled::CancelRequested;
        }
        let job = running.clone().settled(settlement, self.previous_start(settlement.job_id));
        match &settlement.next {
            Next::ReturnToQueue { .. } => self.insert(job),
            Next::Again { .. } => {
                self.remember_attempt(job.id, attempt_record(settlement));
                self.insert(job);
            }
            Next::Complete { .. } | Next::Cancel => self.end(job),
            Next::Fail { reason } => {
                let mark = DeadMark { failed_at: settlement.ended_at, reason: *reason };
                self.dead_letters.insert(job.id, mark);
                self.end(job);
            }
        }
        Settled::Applied
    }

    /// When the attempt before the current one started.
    fn previous_start(&self, id: JobId) -> Option<Timestamp> {
        let before = self.past_attempts.range((id, 0)..(id, u32::MAX)).next_back();
        before.map(|(_, attempt)| attempt.started_at)
    }

    fn end(&mut self, job: Job) {
        let callback_url = job.spec.callback_url.clone();
        self.finish(job, callback_url);
    }

    pub(super) fn remember_attempt(&mut self, id: JobId, attempt: AttemptRecord) {
        self.past_attempts.insert((id, attempt.number), attempt);
    }
}

fn attempt_record(settlement: &Settlement) -> AttemptRecord {
    AttemptRecord {
        number: settlement.attempt,
        started_at: settlement.started_at,
        ended_at: Some(settlement.ended_at),
        outcome: Some(settlement.outcome),
        error: settlement.error.clone(),
    }
}
