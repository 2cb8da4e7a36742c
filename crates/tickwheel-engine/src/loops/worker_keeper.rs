//! Looks after the workers of this node: takes in the sessions that the store has, learns the routes of jobs that other
//! nodes took in, forgets those that no job has any more, and gives back what never reached its worker.
//!
//! Time in which nobody could listen does not count: when the store has been away, every worker gets a whole lease before
//! anybody may end its session.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::RouteId;
use tickwheel_core::matching::{Offer, Route};
use tickwheel_core::ports::{Clock, SchedulerError, Store, StoreResult};
use tickwheel_core::settle::Outcome;
use tokio::time::Instant;

use crate::announcer::Announcer;
use crate::metrics;
use crate::store_watch::StoreWatch;
use crate::worker_service::{HELD_LEN_MAX, WorkerService};

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct WorkerKeeperOptions {
    /// How often it looks.
    pub interval: Duration,
    /// After a pause of more than this, nobody knows who was silent and who was not heard.
    pub deaf_max: Duration,
    /// The longest pause.
    pub pause_max: Duration,
    /// Unroutable jobs are counted up to this many.
    pub unroutable_max: usize,
    /// Sessions are read so many at once.
    pub page_len: usize,
    /// Reading routes takes one part in this many of the time at the most.
    pub duty_parts: u32,
}

impl Default for WorkerKeeperOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            deaf_max: Duration::from_secs(4),
            pause_max: Duration::from_secs(60),
            unroutable_max: 10_000,
            page_len: 1_000,
            duty_parts: 20,
        }
    }
}

/// See the module.
pub struct WorkerKeeper {
    pub options: WorkerKeeperOptions,
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub announcer: Announcer,
    pub service: Arc<WorkerService>,
}

impl WorkerKeeper {
    /// Runs for ever.
    pub async fn run(self) {
        let mut heard_at = Instant::now();
        let mut taken_in = false;
        loop {
            let began = Instant::now();
            let result = self.run_once(began.duration_since(heard_at), &mut taken_in).await;
            match result {
                Ok(()) => {
                    self.watch.succeeded("workers");
                    let pause = self.options.interval.max(began.elapsed() * self.options.duty_parts);
                    let wakes_at = Instant::now() + pause.min(self.options.pause_max);
                    tokio::time::sleep_until(wakes_at).await;
                    // Who sleeps longer than he wants to heard nobody meanwhile.
                    heard_at = wakes_at;
                }
                Err(error) => self.watch.wait_after("workers", &error).await,
            }
        }
    }

    /// Looks once, after nothing was heard of the store for so long.
    pub async fn run_once(&self, deaf_for: Duration, taken_in: &mut bool) -> StoreResult<()> {
        if deaf_for > self.options.deaf_max {
            self.store.extend_workers(self.clock.now()).await?;
        }
        let question = self.announcer.asking_for_routes().await;
        let routes = self.store.routes().await?;
        self.count_unroutable(&routes).await?;
        self.announcer.routes_read(routes, question).await;
        if !*taken_in {
            self.take_in_sessions().await?;
            *taken_in = true;
        }
        match self.give_back_what_never_arrived().await {
            Err(SchedulerError::Store(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// The sessions that were open before this process began.
    async fn take_in_sessions(&self) -> StoreResult<()> {
        let mut after = None;
        loop {
            let sessions = self.store.list_workers(after, self.options.page_len).await?;
            let Some(last) = sessions.last().map(|session| session.id) else { return Ok(()) };
            for session in sessions {
                if !self.service.board.knows(session.id) {
                    let held = self.store.held_by(session.id, HELD_LEN_MAX).await?;
                    self.service.board.open(session, held).await;
                }
            }
            after = Some(last);
        }
    }

    /// Counts what no worker of any node can run.
    async fn count_unroutable(&self, routes: &[Route]) -> StoreResult<()> {
        let mut offers: HashSet<Offer> = HashSet::new();
        let mut after = None;
        loop {
            let sessions = self.store.list_workers(after, self.options.page_len).await?;
            let Some(last) = sessions.last() else { break };
            after = Some(last.id);
            offers.extend(sessions.iter().map(|session| session.profile.offer()));
        }
        let is_unserved = |route: &&Route| !offers.iter().any(|offer| offer.serves(route));
        let unserved: Vec<RouteId> = routes.iter().filter(is_unserved).map(|route| route.id).collect();
        let now = self.clock.now();
        let count = self.store.count_due_routes(unserved, now, self.options.unroutable_max).await?;
        metrics::unroutable(count);
        Ok(())
    }

    async fn give_back_what_never_arrived(&self) -> Result<(), SchedulerError> {
        let attempts = self.service.board.take_never_arrived();
        if !attempts.is_empty() {
            tracing::warn!(attempts = attempts.len(), "an answer with jobs never arrived, they go back");
            self.service.give_back(&attempts, &Outcome::Released).await?;
        }
        Ok(())
    }
}
