//! The end of an attempt. Every write is valid only while the job is running exactly that attempt.

use tickwheel_core::parents::Parents;
use tickwheel_core::ports::{Settled, SettledBatch};
use tickwheel_core::settle::{Burst, Next, Settlement};
use tickwheel_core::{AttemptRecord, Job, JobId, JsonText, State, TargetKind, Timestamp};

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
        let mut job = running.clone();
        if settlement.next.due_again_at().is_some() && job.cancel_requested {
            return Settled::CancelRequested;
        }
        if let Next::ReturnToQueue { due_at } = settlement.next {
            self.return_to_queue(job, due_at);
            return Settled::Applied;
        }
        job.state = settlement.next.state();
        job.started_at = Some(settlement.started_at);
        job.error.clone_from(&settlement.error);
        match &settlement.next {
            Next::ReturnToQueue { .. } => unreachable!("dealt with above"),
            Next::Again { due_at, retries, lost, burst } => {
                (job.due_at, job.retries, job.lost) = (*due_at, *retries, *lost);
                self.schedule_again(job, *burst, settlement);
            }
            Next::Complete { result } => {
                job.error = None;
                self.end(job, settlement, result.clone());
            }
            Next::Cancel => self.end(job, settlement, None),
            Next::Fail { reason } => {
                let mark = DeadMark { failed_at: settlement.ended_at, reason: *reason };
                self.dead_letters.insert(job.id, mark);
                self.end(job, settlement, None);
            }
        }
        Settled::Applied
    }

    fn schedule_again(&mut self, mut job: Job, burst: Burst, settlement: &Settlement) {
        job.burst = burst;
        job.session = None;
        job.deadline = None;
        self.remember_attempt(job.id, attempt_record(settlement));
        self.live.insert(job.id, job);
    }

    /// As before the attempt, but for its number.
    fn return_to_queue(&mut self, mut job: Job, due_at: Timestamp) {
        let before = self.past_attempts.range((job.id, 0)..(job.id, u32::MAX)).next_back();
        job.started_at = before.map(|(_, attempt)| attempt.started_at);
        job.state = State::Scheduled;
        (job.session, job.deadline, job.due_at) = (None, None, due_at);
        self.live.insert(job.id, job);
    }

    fn end(&mut self, mut job: Job, settlement: &Settlement, result: Option<JsonText>) {
        job.completed_at = Some(settlement.ended_at);
        job.last_outcome = Some(settlement.outcome);
        job.result = result;
        // Parents are counted while a job waits for them.
        job.parents = Parents::default();
        self.finish(job, settlement.spec.callback_url.clone());
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
