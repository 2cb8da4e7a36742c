//! Finds running jobs that nobody takes care of any more: their session has ended, or their deadline is long over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_core::id::IdMap;
use tickwheel_core::ports::{Clock, FindAbandoned, Store, StoreResult};
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Job, SessionId, Timestamp};

use crate::lease::Lease;
use crate::metrics;
use crate::running::Running;
use crate::settler::SettlerHandle;
use crate::store_watch::StoreWatch;

const FIND_LEN_MAX: usize = 1_000;
/// Searching may take up one part in this many of the time.
const DUTY: u32 = 20;
const COUNT_INTERVAL: Duration = Duration::from_secs(10);

/// See the module.
pub struct Reaper {
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub lease: Arc<Lease>,
    pub lease_length: Duration,
    pub running: Running,
    pub settler: SettlerHandle,
    pub interval: Duration,
    pub grace: Duration,
}

impl Reaper {
    /// Looks for ever.
    pub async fn run(self) {
        let mut next_count = Instant::now();
        loop {
            let began = Instant::now();
            match self.run_once(self.clock.now()).await {
                Ok(_) => self.watch.succeeded("reap"),
                Err(error) => self.watch.wait_after("reap", &error).await,
            }
            if began >= next_count {
                next_count = began + COUNT_INTERVAL;
                self.count_dead_letters().await;
            }
            tokio::time::sleep(self.interval.max(began.elapsed() * DUTY)).await;
        }
    }

    /// Ends dead sessions and takes their jobs back; says how many jobs.
    async fn run_once(&self, now: Timestamp) -> StoreResult<usize> {
        self.expire_sessions(now).await?;
        let (mut taken_back, mut lost) = (0, IdMap::default());
        loop {
            let find = FindAbandoned { now, grace: self.grace, limit: FIND_LEN_MAX };
            let found = self.store.find_abandoned(find).await?;
            let full = found.len() == FIND_LEN_MAX;
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

    /// Ends the sessions of others that are over by the store's clock: how ours is set is no business of theirs.
    async fn expire_sessions(&self, now: Timestamp) -> StoreResult<()> {
        if !self.lease.is_steady(Instant::now(), self.lease_length / 3) {
            return Ok(());
        }
        let now = self.store.now(now).await?;
        let ended = self.store.expire_sessions(self.lease.session(), now).await?;
        if ended > 0 {
            metrics::sessions_expired(ended);
            tracing::warn!(sessions = ended, "sessions ended, their jobs go back");
        }
        Ok(())
    }

    /// `lost` says how many attempts each session took with it.
    async fn take_back(&self, abandoned: Vec<Job>, lost: &IdMap<SessionId, usize>, now: Timestamp) -> usize {
        let count = abandoned.len();
        let settling = abandoned.into_iter().map(|job| {
            let overdue = job.deadline.is_some_and(|deadline| deadline + self.grace < now);
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
