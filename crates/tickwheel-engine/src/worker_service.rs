//! The engine's service for workers: sessions, polls, heartbeats, reports.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use tickwheel_core::id::IdSet;
use tickwheel_core::matching::Demand;
use tickwheel_core::ports::{
    BeatAnswer, Clock, Leaving, Poll, PollAnswer, SchedulerError, Settled, Store, WorkerActivity, WorkerBeat,
    WorkerReport, Workers,
};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::{Job, JobId, SessionId, State};
use tokio::time::Instant;

use crate::host::Host;
use crate::loops::planner::PlannerHandle;
use crate::reports::Reports;
use crate::worker_board::{Found, PollStart, WorkerBoard};

/// Sessions of workers that a node accepts.
const SESSIONS_MAX: usize = 20_000;
/// Attempts of a session that are read at once.
pub const HELD_LEN_MAX: usize = 100_000;
/// Attempts that are given back at once.
const RELEASE_LEN_MAX: usize = 1_000;

/// See the module.
pub struct WorkerService {
    pub host: Host,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub planner: PlannerHandle,
    pub board: WorkerBoard,
    pub reports: Reports,
}

#[async_trait]
impl Workers for WorkerService {
    async fn register(&self, worker: NewWorker) -> Result<WorkerSession, SchedulerError> {
        if self.board.len() >= SESSIONS_MAX {
            return Err(SchedulerError::Overloaded);
        }
        let session = self.store.open_worker(worker, self.clock.now()).await?;
        let held = self.store.held_by(session.id, HELD_LEN_MAX).await?;
        self.board.open(session.clone(), held).await;
        self.board.heard(&session, self.clock.now());
        tracing::info!(worker = %session.id, name = session.profile.name, "worker registered");
        Ok(session)
    }

    async fn poll(&self, id: SessionId, poll: Poll) -> Result<Option<PollAnswer>, SchedulerError> {
        if self.board.wants_renewal(id) && self.renew(id).await?.is_none() {
            return Ok(None);
        }
        let start = self.board.begin_poll(id, poll.seq, poll.demand, self.clock.now());
        let jobs = match start {
            None => return Ok(None),
            Some(PollStart::Again(jobs)) => jobs,
            Some(PollStart::Waits { number, demand, news }) => {
                let waiting = WaitingPoll { service: self, id, number, withdrawn: false };
                let Some(jobs) = waiting.run(demand, &news, poll.wait).await else { return Ok(None) };
                jobs
            }
        };
        let news = self.board.take_news(id);
        Ok(Some(PollAnswer { jobs, cancel: news.cancel, lost: news.lost, drain: news.drain }))
    }

    async fn beat(&self, id: SessionId, beat: WorkerBeat) -> Result<Option<BeatAnswer>, SchedulerError> {
        // Before it counts as heard of: what it mentions has arrived.
        self.board.mentioned(id, beat.all.iter().flatten().chain(&beat.mentioned));
        let Some((session, cancelled)) = self.renew(id).await? else { return Ok(None) };
        self.board.note(id, beat.draining, beat.stuck);
        cancelled.iter().for_each(|attempt| self.board.stop(attempt.job_id));
        let mut lost = Vec::new();
        if let Some(all) = &beat.all {
            lost = self.compare(id, all).await?;
        }
        lost.extend(self.not_held(id, &beat.mentioned).await?);
        let news = self.board.take_news(id);
        lost.extend(news.lost);
        lost.sort_unstable_by_key(|attempt| (attempt.job_id, attempt.attempt));
        lost.dedup();
        let counts_differ = beat.held.is_some_and(|held| held != self.board.count_held(id) as u64);
        Ok(Some(BeatAnswer {
            cancel: news.cancel,
            lost,
            lease: session.profile.lease(),
            drain: session.draining,
            resync: counts_differ && beat.all.is_none(),
        }))
    }

    async fn report(&self, reports: Vec<(AttemptRef, Outcome)>) -> Result<Vec<WorkerReport>, SchedulerError> {
        let known: Vec<Option<Box<Job>>> =
            reports.iter().map(|(attempt, outcome)| self.remembered(*attempt, outcome)).collect();
        let unknown = reports.iter().zip(&known).filter(|(_, job)| job.is_none());
        let ids: IdSet<JobId> = unknown.map(|((attempt, _), _)| attempt.job_id).collect();
        let mut read: HashMap<JobId, Job> = HashMap::new();
        if !ids.is_empty() {
            let jobs = self.store.get_jobs(ids.into_iter().collect()).await?;
            read.extend(jobs.into_iter().map(|job| (job.id, job)));
        }
        let recording = reports.into_iter().zip(known).map(|((attempt, outcome), job)| {
            let job = job.map(|job| *job).or_else(|| read.get(&attempt.job_id).cloned());
            self.record(job, attempt, outcome)
        });
        join_all(recording).await.into_iter().collect()
    }

    async fn leave(&self, id: SessionId, leaving: Leaving) -> Result<bool, SchedulerError> {
        if self.store.get_worker(id).await?.is_none() {
            return Ok(false);
        }
        self.board.close(id).await;
        tracing::info!(worker = %id, ?leaving, "worker left");
        // While its session is open: what runs under one that has ended is lost to whoever finds it first.
        self.give_back_all(id, leaving).await?;
        self.store.end_worker(id).await?;
        self.give_back_all(id, leaving).await?;
        Ok(true)
    }

    async fn drain(&self, id: SessionId, draining: bool) -> Result<bool, SchedulerError> {
        if !self.store.set_worker_draining(id, draining).await? {
            return Ok(false);
        }
        self.board.set_draining(id, draining).await;
        Ok(true)
    }

    fn activity(&self, id: SessionId) -> WorkerActivity {
        self.board.activity(id)
    }

    fn has(&self, job: JobId) -> bool {
        self.board.has(job)
    }
}

impl WorkerService {
    /// Renews a session, and takes it in if this node does not know it. `None`: it has ended.
    async fn renew(&self, id: SessionId) -> Result<Option<(WorkerSession, Vec<AttemptRef>)>, SchedulerError> {
        let now = self.clock.now();
        let Some(renewal) = self.store.renew_worker(id, now).await? else {
            self.board.close(id).await;
            return Ok(None);
        };
        if !self.board.knows(id) {
            let held = self.store.held_by(id, HELD_LEN_MAX).await?;
            self.board.open(renewal.session.clone(), held).await;
        }
        self.board.heard(&renewal.session, now);
        Ok(Some((renewal.session, renewal.cancel)))
    }

    /// The worker says that it has exactly these. What it does not have and was handed out a while ago goes back; what
    /// is not its own it has lost.
    async fn compare(&self, id: SessionId, all: &[AttemptRef]) -> Result<Vec<AttemptRef>, SchedulerError> {
        let held = self.store.held_by(id, HELD_LEN_MAX).await?;
        let ours: Vec<AttemptRef> = held.iter().map(|held| held.attempt).collect();
        let has: IdSet<JobId> = all.iter().map(|attempt| attempt.job_id).collect();
        let missing: Vec<AttemptRef> =
            ours.iter().filter(|attempt| !has.contains(&attempt.job_id)).copied().collect();
        let missing = self.board.handed_out_long_ago(id, &missing);
        self.board.replace_held(id, held);
        if !missing.is_empty() {
            tracing::warn!(worker = %id, attempts = missing.len(), "attempts never reached their worker, they go back");
            self.give_back(&missing, &Outcome::Released).await?;
        }
        let current: HashMap<JobId, u32> =
            ours.iter().map(|attempt| (attempt.job_id, attempt.attempt)).collect();
        let is_lost = |attempt: &&AttemptRef| current.get(&attempt.job_id) != Some(&attempt.attempt);
        Ok(all.iter().filter(is_lost).copied().collect())
    }

    /// Those of the attempts that are not the session's own.
    async fn not_held(
        &self,
        id: SessionId,
        attempts: &[AttemptRef],
    ) -> Result<Vec<AttemptRef>, SchedulerError> {
        let held: IdSet<JobId> = self.board.held(id).into_iter().map(|attempt| attempt.job_id).collect();
        let unknown: Vec<AttemptRef> =
            attempts.iter().filter(|attempt| !held.contains(&attempt.job_id)).copied().collect();
        if unknown.is_empty() {
            return Ok(unknown);
        }
        // Another node may have handed them out.
        let jobs = self.store.get_jobs(unknown.iter().map(|attempt| attempt.job_id).collect()).await?;
        let is_own = |attempt: &AttemptRef| {
            jobs.iter().any(|job| {
                job.id == attempt.job_id && job.attempt == attempt.attempt && job.session == Some(id)
            })
        };
        Ok(unknown.into_iter().filter(|attempt| !is_own(attempt)).collect())
    }

    /// The job of an attempt, if what is known of it here is enough to record the outcome.
    fn remembered(&self, attempt: AttemptRef, outcome: &Outcome) -> Option<Box<Job>> {
        let job = self.board.job_of(attempt)?;
        // Somebody may have asked another node to cancel it.
        (*outcome != Outcome::Cancelled || job.cancel_requested).then_some(job)
    }

    async fn record(
        &self,
        job: Option<Job>,
        attempt: AttemptRef,
        outcome: Outcome,
    ) -> Result<WorkerReport, SchedulerError> {
        let Some(job) = job else { return Ok(WorkerReport::NotFound) };
        let is_running = job.attempt == attempt.attempt && !job.state().is_terminal();
        if outcome == Outcome::Cancelled && is_running && !job.cancel_requested {
            return Ok(WorkerReport::NotCancelled);
        }
        self.board.reported(attempt);
        if outcome == Outcome::Accepted && is_running {
            return self.await_report(job, attempt).await;
        }
        self.reports.record(job, attempt, outcome).await
    }

    /// Ends all attempts of a worker that leaves.
    async fn give_back_all(&self, id: SessionId, leaving: Leaving) -> Result<(), SchedulerError> {
        loop {
            let held = self.store.held_by(id, RELEASE_LEN_MAX).await?;
            let attempts: Vec<AttemptRef> = held.iter().map(|held| held.attempt).collect();
            let outcome = match leaving {
                Leaving::Drained => Outcome::Released,
                Leaving::Crashed => Outcome::Lost { together: attempts.len() },
            };
            if self.give_back(&attempts, &outcome).await? == 0 {
                return Ok(());
            }
        }
    }

    /// The target took the job and will report by itself: it hangs no longer on the worker's lease.
    async fn await_report(&self, job: Job, attempt: AttemptRef) -> Result<WorkerReport, SchedulerError> {
        match self.store.await_report(attempt.job_id, attempt.attempt).await? {
            Settled::Applied => {
                self.board.settled([attempt].into_iter());
                Ok(WorkerReport::Recorded(State::Running))
            }
            // Somebody wanted it cancelled while the worker still had it.
            Settled::CancelRequested => self.reports.record(job, attempt, Outcome::Cancelled).await,
            Settled::Stale => Ok(WorkerReport::Stale),
        }
    }

    /// Ends attempts that their worker does not have; says how many there were.
    pub async fn give_back(
        &self,
        attempts: &[AttemptRef],
        outcome: &Outcome,
    ) -> Result<usize, SchedulerError> {
        if attempts.is_empty() {
            return Ok(0);
        }
        let jobs = self.store.get_jobs(attempts.iter().map(|attempt| attempt.job_id).collect()).await?;
        let by_id: HashMap<JobId, u32> =
            attempts.iter().map(|attempt| (attempt.job_id, attempt.attempt)).collect();
        let current = jobs.into_iter().filter(|job| by_id.get(&job.id) == Some(&job.attempt));
        let settling = current.map(|job| {
            let attempt = AttemptRef { job_id: job.id, attempt: job.attempt };
            self.reports.record(job, attempt, outcome.clone())
        });
        let settled = join_all(settling).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(settled.len())
    }
}

/// A poll that waits. When it is dropped, because the client is gone, the machine hears of it.
struct WaitingPoll<'s> {
    service: &'s WorkerService,
    id: SessionId,
    number: u64,
    withdrawn: bool,
}

impl WaitingPoll<'_> {
    /// The jobs that it is answered with. `None`: the session has ended.
    async fn run(
        mut self,
        demand: Demand,
        news: &tokio::sync::Notify,
        wait: Duration,
    ) -> Option<Vec<tickwheel_core::ports::AttemptContext>> {
        let ends_at = Instant::now() + wait;
        // Also if it has no room: it may have taken the place of a poll that had.
        self.service.planner.demand_changed(self.id, demand).await;
        loop {
            let is_over = tokio::select! {
                biased;
                () = news.notified() => false,
                () = tokio::time::sleep_until(ends_at) => true,
            };
            match self.service.board.look(self.id, self.number) {
                Found::Jobs(jobs) => {
                    self.withdrawn = true;
                    return Some(jobs);
                }
                Found::Nothing if !is_over => {}
                Found::Nothing | Found::News => {
                    self.withdraw().await;
                    // A claim may have come in between.
                    return Some(match self.service.board.look(self.id, self.number) {
                        Found::Jobs(jobs) => jobs,
                        _ => Vec::new(),
                    });
                }
                Found::Replaced => {
                    self.withdrawn = true;
                    return Some(Vec::new());
                }
                Found::Gone => {
                    self.withdrawn = true;
                    return None;
                }
            }
        }
    }

    async fn withdraw(&mut self) {
        self.withdrawn = true;
        if self.service.board.end_poll(self.id, self.number) {
            self.service.planner.demand_changed(self.id, Demand::default()).await;
        }
    }
}

impl Drop for WaitingPoll<'_> {
    fn drop(&mut self) {
        if self.withdrawn || !self.service.board.end_poll(self.id, self.number) {
            return;
        }
        let (planner, id) = (self.service.planner.clone(), self.id);
        self.service.host.spawn(async move { planner.demand_changed(id, Demand::default()).await });
    }
}
