//! Finds running jobs that nobody takes care of any more: their session has ended, or their deadline is long over.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::id::IdMap;
use tickwheel_core::ports::{Clock, FindAbandoned, Store, StoreResult};
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Job, SessionId, Timestamp};
use tokio::time::Instant;

use crate::lease::Lease;
use crate::loops::settler::SettlerHandle;
use crate::metrics;
use crate::running::Running;
use crate::store_watch::StoreWatch;
use crate::worker_board::WorkerBoard;

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct ReaperOptions {
    /// How often it runs.
    pub interval: Duration,
    /// How long leases last: who was cut off waits a third of it before it ends the sessions of others.
    pub lease: Duration,
    /// How far past its deadline an attempt may go.
    pub deadline_grace: Duration,
    /// So many jobs are found at once.
    pub find_len_max: usize,
    /// Looking takes one part in this many of the time at the most, unless that would be a pause of more than a lease.
    pub duty_parts: u32,
    /// How often dead letters are counted.
    pub count_interval: Duration,
}

impl Default for ReaperOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            lease: Duration::from_secs(15),
            deadline_grace: Duration::from_secs(2),
            find_len_max: 1_000,
            duty_parts: 20,
            count_interval: Duration::from_secs(10),
        }
    }
}

impl ReaperOptions {
    /// How long until the next look for jobs, if no session ends before, after one that took so long. A store that stood
    /// still must not keep the reaper away for many times as long.
    fn pause(&self, looked_for: Duration) -> Duration {
        self.interval.max((looked_for * self.duty_parts).min(self.lease))
    }
}

/// See the module.
pub struct Reaper {
    pub options: ReaperOptions,
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub lease: Arc<Lease>,
    pub running: Running,
    pub workers: WorkerBoard,
    pub settler: SettlerHandle,
}

impl Reaper {
    /// Runs for ever. Sessions are looked at in every interval, which is cheap. Their jobs are looked for as soon as one
    /// has ended, and else as often as that may take its share of time.
    pub async fn run(self) {
        let mut next_look = Instant::now();
        let mut next_count = Instant::now();
        loop {
            let began = Instant::now();
            match self.run_once(self.clock.now(), &mut next_look).await {
                Ok(_) => self.watch.succeeded("reap"),
                Err(error) => self.watch.wait_after("reap", &error).await,
            }
            if began >= next_count {
                next_count = began + self.options.count_interval;
                self.count_dead_letters().await;
            }
            tokio::time::sleep(self.options.interval).await;
        }
    }

    /// Ends dead sessions and, if there were any or it is time to look, takes abandoned jobs back; says how many jobs.
    pub async fn run_once(&self, now: Timestamp, next_look: &mut Instant) -> StoreResult<usize> {
        let began = Instant::now();
        if self.expire_sessions(now).await? > 0 {
            // It stays so until a look succeeds.
            *next_look = began;
        }
        if began < *next_look {
            return Ok(0);
        }
        let taken_back = self.take_back_abandoned(now).await?;
        *next_look = Instant::now() + self.options.pause(began.elapsed());
        Ok(taken_back)
    }

    async fn take_back_abandoned(&self, now: Timestamp) -> StoreResult<usize> {
        let (mut taken_back, mut lost) = (0, IdMap::default());
        let find =
            FindAbandoned { now, grace: self.options.deadline_grace, limit: self.options.find_len_max };
        loop {
            let found = self.store.find_abandoned(find).await?;
            let full = found.len() == find.limit;
            let abandoned: Vec<Job> =
                found.into_iter().filter(|job| !self.running.contains(job.id)).collect();
            let progress = !abandoned.is_empty();
            count_by_session(&abandoned, &mut lost);
            taken_back += self.take_back(abandoned, &lost, now).await;
            if !full || !progress {
                return Ok(taken_back);
            }
        }
    }

    /// Ends the sessions of others that are over by the store's clock: how ours is set is no business of theirs. Says how
    /// many there were.
    async fn expire_sessions(&self, now: Timestamp) -> StoreResult<usize> {
        if !self.lease.is_steady(Instant::now(), self.options.lease / 3) {
            return Ok(0);
        }
        let now = self.store.now(now).await?;
        let ended = self.store.expire_sessions(self.lease.session(), now).await?;
        if !ended.is_empty() {
            metrics::sessions_expired(ended.len());
            tracing::warn!(sessions = ended.len(), "sessions ended, their jobs go back");
        }
        let count = ended.len();
        for session in ended {
            self.workers.close(session).await;
        }
        Ok(count)
    }

    /// `lost` says how many attempts each session took with it.
    async fn take_back(&self, abandoned: Vec<Job>, lost: &IdMap<SessionId, usize>, now: Timestamp) -> usize {
        let count = abandoned.len();
        let settling = abandoned.into_iter().map(|job| {
            let overdue = job.deadline.is_some_and(|deadline| deadline + self.options.deadline_grace < now);
            let together = job.session.and_then(|session| lost.get(&session)).copied().unwrap_or(1);
            let outcome = if overdue { Outcome::TimedOut } else { Outcome::Lost { together } };
            tracing::warn!(job_id = %job.id, attempt = job.attempt, overdue, "attempt abandoned");
            self.settler.settle_and_wait(job, outcome, now)
        });
        futures::future::join_all(settling).await;
        count
    }

    async fn count_dead_letters(&self) {
        match self.store.count_dead_letters().await {
            Ok(count) => {
                self.watch.succeeded("count");
                metrics::dead_letters(count);
            }
            Err(error) => drop(self.watch.failed("count", &error)),
        }
    }
}

/// Adds up how many attempts were running under each session.
fn count_by_session(jobs: &[Job], counts: &mut IdMap<SessionId, usize>) {
    for session in jobs.iter().filter_map(|job| job.session) {
        *counts.entry(session).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::State;
    use tickwheel_core::ports::{Claim, JobStore, SessionStore};
    use tickwheel_testkit::fixtures::{at, job_numbered, session, session_id};
    use tickwheel_testkit::model::Verb;
    use tickwheel_testkit::{Fault, ManualClock, ModelStore};
    use tokio::time::timeout;

    use super::*;
    use crate::announcer::tests::listening::listening;
    use crate::host::Host;
    use crate::loops::planner;
    use crate::loops::settler::{Settler, SettlerOptions};

    const SECOND_MS: i64 = 1_000;

    /// A store in which the dead session 1 runs three jobs, and a reaper of session 2 that finds two jobs at once.
    async fn bench() -> (Arc<ModelStore>, Reaper, impl Future<Output = ()>) {
        let store = Arc::new(ModelStore::new());
        store.open_session(session(1, at(15 * SECOND_MS))).await.unwrap();
        store.open_session(session(2, at(3_600 * SECOND_MS))).await.unwrap();
        let jobs: Vec<_> = (1..=3).map(|number| job_numbered(number).build_new()).collect();
        let ids = jobs.iter().map(|new| new.job.id).collect();
        store.submit_jobs(jobs).await.unwrap();
        store.claim(Claim { claimed_by: None, session: session_id(1), jobs: ids, now: at(0) }).await.unwrap();

        let (settler, unsettled) = SettlerHandle::new(10);
        let (announcer, _) = listening();
        let settling = Settler {
            options: SettlerOptions::default(),
            host: Host::default(),
            store: store.clone(),
            watch: StoreWatch::default(),
            handle: settler.clone(),
            announcer,
        };
        let reaper = Reaper {
            options: ReaperOptions { find_len_max: 2, ..ReaperOptions::default() },
            store: store.clone(),
            watch: StoreWatch::default(),
            clock: Arc::new(ManualClock::at(at(0))),
            lease: Arc::new(Lease::new(session_id(2), Instant::now() + Duration::from_secs(3_600))),
            running: Running::default(),
            workers: WorkerBoard::new(planner::channel([].into()).1),
            settler,
        };
        (store, reaper, settling.run(unsettled))
    }

    async fn reap(reaper: &Reaper, settling: impl Future<Output = ()>, now: Timestamp) -> usize {
        let mut next_look = Instant::now();
        tokio::select! {
            reaped = reaper.run_once(now, &mut next_look) => reaped.unwrap(),
            () = settling => unreachable!("the reaper has a handle of the settler"),
        }
    }

    #[tokio::test]
    async fn what_a_dead_session_ran_is_taken_back() {
        let (store, reaper, settling) = bench().await;
        assert_eq!(reap(&reaper, settling, at(16 * SECOND_MS)).await, 3);
        let is_waiting = |job: &Job| job.state() == State::Scheduled && job.attempt == 1;
        assert!(store.with_model(|model| model.live().values().all(is_waiting)));
    }

    #[tokio::test]
    async fn what_a_living_session_runs_is_left_alone() {
        let (store, reaper, settling) = bench().await;
        assert_eq!(reap(&reaper, settling, at(14 * SECOND_MS)).await, 0);
        assert!(store.with_model(|model| model.live().values().all(|job| job.state() == State::Running)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_stood_still_keeps_the_reaper_away_for_a_lease_at_the_most() {
        let (store, mut reaper, settling) = bench().await;
        // A node that died ended the session, and did not get to its jobs.
        store.end_session(session_id(1)).await.unwrap();
        let clock = ManualClock::at(at(0));
        reaper.clock = Arc::new(clock.clone());
        store.fail(Verb::FindAbandoned, Fault::Stalled);
        let pause_max = reaper.options.lease + reaper.options.interval;
        let mut working = Box::pin(futures::future::join(reaper.run(), settling));
        assert!(timeout(Duration::from_secs(60), &mut working).await.is_err());
        clock.set(at(60 * SECOND_MS));
        store.release();
        assert!(timeout(pause_max, &mut working).await.is_err());
        let is_waiting = |job: &Job| job.state() == State::Scheduled;
        assert!(store.with_model(|model| model.live().values().all(is_waiting)));
    }
    #[tokio::test(start_paused = true)]
    async fn what_a_session_ran_is_taken_back_when_it_ends_however_long_the_last_look_took() {
        let (store, mut reaper, settling) = bench().await;
        let clock = ManualClock::at(at(0));
        reaper.clock = Arc::new(clock.clone());
        reaper.options.lease = Duration::from_secs(600);
        let interval = reaper.options.interval;
        store.fail(Verb::FindAbandoned, Fault::Stalled);
        let mut working = Box::pin(futures::future::join(reaper.run(), settling));
        assert!(timeout(interval * 10, &mut working).await.is_err());
        store.release();
        assert!(timeout(interval, &mut working).await.is_err());
        let has_state =
            |state: State| store.with_model(|model| model.live().values().all(|job| job.state() == state));
        assert!(has_state(State::Running), "its session has not ended yet");
        clock.set(at(16 * SECOND_MS));
        assert!(timeout(interval * 2, &mut working).await.is_err());
        assert!(has_state(State::Scheduled));
    }
}
