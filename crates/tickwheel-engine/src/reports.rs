//! What somebody outside says about an attempt: recorded once, and accepted again if it says the same again.

use std::sync::Arc;

use tickwheel_core::ports::{Clock, JobStore, SchedulerError, Settled, WorkerReport};
use tickwheel_core::settle::{Outcome, is_reported_again};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{Job, State};

use crate::loops::settler::SettlerHandle;

/// See the module.
#[derive(Clone)]
pub struct Reports {
    pub store: Arc<dyn JobStore>,
    pub clock: Arc<dyn Clock>,
    pub settler: SettlerHandle,
}

impl Reports {
    /// Records the end of an attempt of this job, as it was claimed or as the store has it.
    pub async fn record(
        &self,
        job: Job,
        attempt: AttemptRef,
        outcome: Outcome,
    ) -> Result<WorkerReport, SchedulerError> {
        if !is_current(&job, attempt) {
            return self.record_again(attempt, &outcome).await;
        }
        match self.settler.settle_and_wait(job, outcome.clone(), self.clock.now()).await {
            Some((Settled::Applied, state)) => Ok(WorkerReport::Recorded(state)),
            Some(_) => self.record_again(attempt, &outcome).await,
            None => Err(SchedulerError::ShuttingDown),
        }
    }

    /// A report on an attempt that is over. What was recorded before is accepted again: whoever reports may not have
    /// heard of it.
    async fn record_again(
        &self,
        attempt: AttemptRef,
        outcome: &Outcome,
    ) -> Result<WorkerReport, SchedulerError> {
        let Some(job) = self.store.get_job(attempt.job_id).await? else { return Ok(WorkerReport::NotFound) };
        let attempts = self.store.attempts(job.id).await?.unwrap_or_default();
        let ended = attempts.iter().find(|ended| ended.number == attempt.attempt);
        let is_same = ended.is_some_and(|ended| is_reported_again(&job, ended, outcome));
        Ok(if is_same { WorkerReport::Recorded(job.state()) } else { WorkerReport::Stale })
    }
}

fn is_current(job: &Job, attempt: AttemptRef) -> bool {
    job.state() == State::Running && job.attempt == attempt.attempt
}
