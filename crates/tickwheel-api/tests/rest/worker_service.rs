//! What the engine does for workers, without an engine: a poll claims what is due and never waits.

use async_trait::async_trait;
use tickwheel_core::matching::Class;
use tickwheel_core::payload::Document;
use tickwheel_core::ports::{
    AttemptContext, BeatAnswer, Claim, Clock, DueCursor, JobStore, Leaving, LoadDue, PartitionSet, Poll,
    PollAnswer, SchedulerError, WorkerActivity, WorkerBeat, WorkerReport, WorkerStore, Workers,
};
use tickwheel_core::retry::Jitter;
use tickwheel_core::settle::{Outcome, PoisonRule, decide};
use tickwheel_core::token::{AttemptRef, TokenKey};
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::{JobId, Priority, SessionId};
use tickwheel_testkit::{ManualClock, ModelStore};

/// See the module.
pub struct WorkerService {
    pub store: ModelStore,
    pub clock: ManualClock,
    pub tokens: TokenKey,
}

#[async_trait]
impl Workers for WorkerService {
    async fn register(&self, worker: NewWorker) -> Result<WorkerSession, SchedulerError> {
        Ok(self.store.open_worker(worker, self.clock.now()).await?)
    }

    async fn poll(&self, id: SessionId, poll: Poll) -> Result<Option<PollAnswer>, SchedulerError> {
        let now = self.clock.now();
        let Some(renewal) = self.store.renew_worker(id, now).await? else { return Ok(None) };
        let mut due = Vec::new();
        for route in self.store.routes().await? {
            let load = LoadDue {
                class: Class::Worker(route.id),
                priority: Priority::Normal,
                partitions: PartitionSet::ALL,
                after: DueCursor::START,
                until: now,
                limit: poll.demand.jobs_max,
            };
            if renewal.session.profile.serves(&route) {
                due.extend(self.store.load_due(load, &[]).await?.into_iter().map(|job| job.id));
            }
        }
        due.truncate(poll.demand.jobs_max);
        let claim = Claim { claimed_by: Some(id), session: id, jobs: due, now };
        let taken = self.store.claim(claim).await?.into_iter().map(|job| AttemptContext {
            payload: Document::Whole(job.payload.whole().expect("no task")),
            token: self.tokens.sign(AttemptRef { job_id: job.id, attempt: job.attempt }),
            deadline: job.deadline.expect("it runs"),
            job: Box::new(job),
        });
        let drain = renewal.session.draining;
        Ok(Some(PollAnswer { jobs: taken.collect(), cancel: renewal.cancel, lost: Vec::new(), drain }))
    }

    async fn beat(&self, id: SessionId, beat: WorkerBeat) -> Result<Option<BeatAnswer>, SchedulerError> {
        let Some(renewal) = self.store.renew_worker(id, self.clock.now()).await? else { return Ok(None) };
        let held: Vec<AttemptRef> =
            self.store.held_by(id, 1_000).await?.iter().map(|held| held.attempt).collect();
        let all = beat.all.iter().flatten().chain(&beat.mentioned);
        Ok(Some(BeatAnswer {
            cancel: renewal.cancel,
            lost: all.filter(|attempt| !held.contains(attempt)).copied().collect(),
            lease: renewal.session.profile.lease(),
            drain: renewal.session.draining,
            resync: beat.all.is_none() && beat.held.is_some_and(|count| count != held.len() as u64),
        }))
    }

    async fn report(&self, reports: Vec<(AttemptRef, Outcome)>) -> Result<Vec<WorkerReport>, SchedulerError> {
        let mut answers = Vec::new();
        for (attempt, outcome) in reports {
            let job = self.store.get_job(attempt.job_id).await?;
            let current = job.filter(|job| job.attempt == attempt.attempt && !job.state().is_terminal());
            let Some(job) = current else {
                answers.push(WorkerReport::Stale);
                continue;
            };
            if outcome == Outcome::Cancelled && !job.cancel_requested {
                answers.push(WorkerReport::NotCancelled);
                continue;
            }
            let settlement = decide(&job, outcome, self.clock.now(), &PoisonRule::default(), Jitter::NONE);
            let settlement = settlement.expect("it has ended");
            answers.push(WorkerReport::Recorded(settlement.next.state()));
            self.store.settle(vec![settlement]).await?;
        }
        Ok(answers)
    }

    async fn leave(&self, id: SessionId, _: Leaving) -> Result<bool, SchedulerError> {
        Ok(self.store.end_worker(id).await?)
    }

    async fn drain(&self, id: SessionId, draining: bool) -> Result<bool, SchedulerError> {
        Ok(self.store.set_worker_draining(id, draining).await?)
    }

    fn activity(&self, _: SessionId) -> WorkerActivity {
        WorkerActivity::default()
    }

    fn has(&self, _: JobId) -> bool {
        false
    }
}
