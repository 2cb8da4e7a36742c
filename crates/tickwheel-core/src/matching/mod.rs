//! Which waiting job goes to which worker.
//!
//! Jobs for workers wait in one [fair queue](crate::fair_queue) per [`Route`]. Workers that offer the same form a *pool*;
//! a session of it that waits for work is *demand*. A job leaves its queue only when a waiting session can take it, so
//! jobs that nobody can take cost nothing however many they are: nobody walks past them.
//!
//! ```text
//!  job ──▶ [ route: fair queue ] ──┐
//!  job ──▶ [ route: fair queue ] ──┼──▶ [ pool: same offer ] ──▶ session that waits for longest
//!  job ──▶ [ route: fair queue ] ──┘
//! ```
//! Within a route the order is that of the fair queue. A pool that serves several routes takes the most urgent of their
//! first jobs; among equals that of the tenant whose turn by this pool is longest ago; then the one that is due first.
//! So a tenant waits for one turn per route of the pool at the most, however many jobs the others have.
//! Work that several pools can do goes to the one with the fewest labels, so that special workers stay free for what
//! only they can do.
//!
//! Invariant: a pool is *active* if and only if one of its sessions waits and one of its routes has a job.
//! [`Matching::next_start`] is to be called until it answers `None`; then no pool is active.

mod labels;
mod pool;
mod route;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use labels::{Amount, Label, Labels};
pub use route::{ExecutorKind, Offer, Route, Skill};

use crate::fair_queue::FairQueue;
use crate::id::{IdMap, RouteId, SessionId};
use crate::job::Job;
use crate::ports::DueJob;
use pool::{Pool, PoolId};

/// Everything that decides whether a waiting job can start now, except its turn: jobs of one class are alike in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Class {
    /// An executor of the process that plans it runs it.
    #[default]
    BuiltIn,
    /// Workers run it.
    Worker(RouteId),
}

impl Class {
    /// The class of a job.
    pub fn of(job: &Job) -> Self {
        Self::of_route(Route::of(job).map(|route| route.id))
    }

    /// The class of a job with this route; one that workers do not run has none.
    pub fn of_route(route: Option<RouteId>) -> Self {
        route.map_or(Self::BuiltIn, Self::Worker)
    }
}

/// How much a session waits for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Demand {
    /// This many jobs at the most; none means that it does not wait.
    pub jobs_max: usize,
    /// Of these types so many at the most.
    pub by_type: HashMap<Arc<str>, usize>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Matching {
    routes: IdMap<RouteId, RouteQueue>,
    sessions: IdMap<SessionId, Session>,
    pools: BTreeMap<PoolId, Pool>,
    by_offer: HashMap<Arc<Offer>, PoolId>,
    active: BTreeSet<PoolId>,
    /// Counts whatever gets a number: pools, waits, turns.
    next_number: u64,
}

/// The jobs of a route.
#[derive(Debug)]
struct RouteQueue {
    route: Arc<Route>,
    queue: FairQueue,
    /// Who serves it.
    pools: BTreeSet<PoolId>,
}

#[derive(Debug)]
struct Session {
    offer: Arc<Offer>,
    /// How much it waits for, in which pool, and since when.
    waiting: Option<WaitingPoll>,
}

#[derive(Debug)]
struct WaitingPoll {
    demand: Demand,
    pool: PoolId,
    since: u64,
}

impl Matching {
    /// Makes a route known. Jobs of a route that is not known are refused.
    pub fn learn_route(&mut self, route: Arc<Route>) {
        if self.routes.contains_key(&route.id) {
            return;
        }
        let serving = self.pools.iter_mut().filter(|(_, pool)| pool.offer.serves(&route));
        let pools = serving
            .map(|(id, pool)| {
                pool.routes.insert(route.id);
                *id
            })
            .collect();
        self.routes.insert(route.id, RouteQueue { route, queue: FairQueue::default(), pools });
    }

    /// Forgets a route, and what waits in it.
    pub fn forget_route(&mut self, route: RouteId) {
        let Some(entry) = self.routes.remove(&route) else { return };
        for id in entry.pools {
            let Some(pool) = self.pools.get_mut(&id) else { continue };
            pool.routes.remove(&route);
            pool.backlogged.remove(&route);
            pool.keep_active(id, &mut self.active);
        }
    }

    /// Whether jobs of this route could start if somebody had a place for them.
    pub fn is_served(&self, route: RouteId) -> bool {
        self.routes.get(&route).is_some_and(|entry| !entry.pools.is_empty())
    }

    /// The routes that could be served.
    pub fn served(&self) -> impl Iterator<Item = RouteId> {
        self.routes.iter().filter(|(_, entry)| !entry.pools.is_empty()).map(|(id, _)| *id)
    }

    /// The queue of a route.
    pub fn queue(&self, route: RouteId) -> Option<&FairQueue> {
        self.routes.get(&route).map(|entry| &entry.queue)
    }

    /// Makes a session known, which does not wait yet.
    pub fn open_session(&mut self, id: SessionId, offer: Arc<Offer>) {
        self.close_session(id);
        let pool = self.pool_of(offer);
        let pool = self.pools.get_mut(&pool).expect("it was just looked up");
        pool.sessions += 1;
        self.sessions.insert(id, Session { offer: pool.offer.clone(), waiting: None });
    }

    /// Forgets a session.
    pub fn close_session(&mut self, id: SessionId) {
        self.wait(id, Demand::default());
        if let Some(session) = self.sessions.remove(&id)
            && let Some(pool) = self.by_offer.get(&session.offer).copied()
        {
            self.leave(pool);
        }
    }

    /// The session waits for this much from now on, whatever it waited for before.
    pub fn wait(&mut self, id: SessionId, demand: Demand) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Some(before) = session.waiting.take() {
            self.stop_waiting(&before);
        }
        let Some(session) = self.sessions.get(&id).filter(|_| demand.jobs_max > 0) else { return };
        // A session without a place for some of its types waits among those that do not offer them.
        let is_full = |name: &str| demand.by_type.get(name) == Some(&0);
        let offer = if demand.by_type.values().any(|places| *places == 0) {
            Arc::new(session.offer.without_types(is_full))
        } else {
            session.offer.clone()
        };
        let (pool_id, since) = (self.pool_of(offer), self.take_number());
        let pool = self.pools.get_mut(&pool_id).expect("it was just looked up");
        pool.sessions += 1;
        pool.waiting.insert(since, id);
        self.refresh(pool_id);
        let waiting = WaitingPoll { demand, pool: pool_id, since };
        self.sessions.get_mut(&id).expect("it was there before").waiting = Some(waiting);
    }

    /// Adds a job. `false`: its route is not known.
    pub fn push(&mut self, route: RouteId, job: DueJob) -> bool {
        let Some(entry) = self.routes.get_mut(&route) else { return false };
        let was_empty = entry.queue.is_empty();
        entry.queue.push(job);
        if was_empty {
            self.backlog_changed(route);
        }
        true
    }

    /// Takes a job out of its turn.
    pub fn remove(&mut self, route: RouteId, job: &DueJob) -> Option<DueJob> {
        self.take_from(route, |queue| queue.remove(job))
    }

    /// Makes room for a job of the route: see [`FairQueue::evict_for`].
    pub fn evict_for(&mut self, route: RouteId, job: &DueJob) -> Option<DueJob> {
        self.take_from(route, |queue| queue.evict_for(job))
    }

    /// The jobs that a waiting session is to start now, and who it is. It waits no more: it has its answer.
    pub fn next_start(&mut self) -> Option<(SessionId, Vec<DueJob>)> {
        let pool_id = *self.active.first()?;
        let (_, id) = self.pools.get(&pool_id)?.waiting.first_key_value()?;
        let id = *id;
        let waiting = self.sessions.get_mut(&id)?.waiting.take()?;
        let jobs = self.take_jobs(&waiting);
        self.stop_waiting(&waiting);
        Some((id, jobs))
    }

    fn take_jobs(&mut self, waiting: &WaitingPoll) -> Vec<DueJob> {
        let mut places = waiting.demand.by_type.clone();
        let mut jobs = Vec::new();
        while jobs.len() < waiting.demand.jobs_max {
            let Some(route) = self.next_route(waiting.pool, &places) else { break };
            let Some(job) = self.take_from(route, FairQueue::pop) else { break };
            let job_type = self.routes[&route].route.job_type();
            if let Some(left) = job_type.and_then(|job_type| places.get_mut(job_type)) {
                *left -= 1;
            }
            let turn = self.take_number();
            if let Some(pool) = self.pools.get_mut(&waiting.pool) {
                pool.note_turn(&job.tenant, turn);
            }
            jobs.push(job);
        }
        jobs
    }

    /// The route whose first job is next for a session of the pool that has these places left.
    fn next_route(&self, pool: PoolId, places: &HashMap<Arc<str>, usize>) -> Option<RouteId> {
        let pool = self.pools.get(&pool)?;
        let is_full = |job_type: &Arc<str>| places.get(job_type) == Some(&0);
        let has_place = |entry: &&RouteQueue| !entry.route.job_type().is_some_and(is_full);
        let entries = pool.backlogged.iter().filter_map(|id| self.routes.get(id)).filter(has_place);
        let first = |entry: &RouteQueue| {
            let job = entry.queue.first()?;
            Some((job.priority, pool.last_turn(&job.tenant), job.cursor(), entry.route.id))
        };
        entries.filter_map(first).min().map(|(.., route)| route)
    }

    fn take_from(
        &mut self,
        route: RouteId,
        take: impl FnOnce(&mut FairQueue) -> Option<DueJob>,
    ) -> Option<DueJob> {
        let entry = self.routes.get_mut(&route)?;
        let job = take(&mut entry.queue)?;
        if entry.queue.is_empty() {
            self.backlog_changed(route);
        }
        Some(job)
    }

    /// The route has its first job, or its last one is gone.
    fn backlog_changed(&mut self, route: RouteId) {
        let Some(entry) = self.routes.get(&route) else { return };
        for id in &entry.pools {
            let Some(pool) = self.pools.get_mut(id) else { continue };
            if entry.queue.is_empty() {
                pool.backlogged.remove(&route);
            } else {
                pool.backlogged.insert(route);
            }
            pool.keep_active(*id, &mut self.active);
        }
    }

    fn refresh(&mut self, id: PoolId) {
        if let Some(pool) = self.pools.get(&id) {
            pool.keep_active(id, &mut self.active);
        }
    }

    fn stop_waiting(&mut self, waiting: &WaitingPoll) {
        if let Some(pool) = self.pools.get_mut(&waiting.pool) {
            pool.waiting.remove(&waiting.since);
        }
        self.refresh(waiting.pool);
        self.leave(waiting.pool);
    }

    /// The pool of those who offer this.
    fn pool_of(&mut self, offer: Arc<Offer>) -> PoolId {
        if let Some(id) = self.by_offer.get(&offer) {
            return *id;
        }
        let id = PoolId { label_count: offer.label_count(), number: self.take_number() };
        let mut pool = Pool::new(offer.clone());
        for entry in self.routes.values_mut().filter(|entry| offer.serves(&entry.route)) {
            entry.pools.insert(id);
            pool.routes.insert(entry.route.id);
            if !entry.queue.is_empty() {
                pool.backlogged.insert(entry.route.id);
            }
        }
        self.pools.insert(id, pool);
        self.by_offer.insert(offer, id);
        id
    }

    /// One session less; a pool that has none is gone.
    fn leave(&mut self, id: PoolId) {
        let Some(pool) = self.pools.get_mut(&id) else { return };
        pool.sessions -= 1;
        if pool.sessions > 0 {
            return;
        }
        let Some(pool) = self.pools.remove(&id) else { return };
        self.by_offer.remove(&pool.offer);
        self.active.remove(&id);
        for route in pool.routes {
            if let Some(entry) = self.routes.get_mut(&route) {
                entry.pools.remove(&id);
            }
        }
    }

    const fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}
