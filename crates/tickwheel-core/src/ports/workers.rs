//! Workers: their sessions in the store, and what the engine offers to them.

use std::time::Duration;

use async_trait::async_trait;

use super::executor::AttemptContext;
use super::scheduler::SchedulerError;
use super::store::StoreResult;
use crate::id::{JobId, RouteId, SessionId};
use crate::job::Job;
use crate::matching::{Demand, Route};
use crate::settle::Outcome;
use crate::state::State;
use crate::time::Timestamp;
use crate::token::AttemptRef;
use crate::worker::{NewWorker, WorkerSession};

/// What a worker learns with the renewal of its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRenewal {
    /// The session, renewed.
    pub session: WorkerSession,
    /// Its attempts that somebody wants stopped.
    pub cancel: Vec<AttemptRef>,
}

/// An attempt that runs under a worker's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldAttempt {
    /// The attempt.
    pub attempt: AttemptRef,
    /// The type of its job.
    pub job_type: String,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it has to be over.
    pub deadline: Option<Timestamp>,
    /// Somebody wants it stopped.
    pub cancel_requested: bool,
}

/// What a look at some routes came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RoutesLookedAt {
    /// So many were removed.
    pub removed: usize,
    /// Where the next look begins. `None`: there are no more.
    pub next: Option<RouteId>,
}

/// The sessions of workers, and the routes of the jobs that wait for one.
#[async_trait]
pub trait WorkerStore: Send + Sync {
    /// Opens a session with a lease from `now` on. If one with the same instance is open, MUST renew that one instead and
    /// keep its id; what the worker says of itself replaces what it said before.
    async fn open_worker(&self, worker: NewWorker, now: Timestamp) -> StoreResult<WorkerSession>;

    /// Prolongs a session by its lease from `now` on. `None`: it has ended, and so has the right to its jobs.
    async fn renew_worker(&self, id: SessionId, now: Timestamp) -> StoreResult<Option<WorkerRenewal>>;

    /// The session, if it is open.
    async fn get_worker(&self, id: SessionId) -> StoreResult<Option<WorkerSession>>;

    /// The open sessions after this one, by id.
    async fn list_workers(&self, after: Option<SessionId>, limit: usize) -> StoreResult<Vec<WorkerSession>>;

    /// Wants a worker to take nothing new, or no longer so. `false`: its session is not open.
    async fn set_worker_draining(&self, id: SessionId, draining: bool) -> StoreResult<bool>;

    /// Ends a session; its attempts, if any are left, are abandoned. `false`: it was not open.
    async fn end_worker(&self, id: SessionId) -> StoreResult<bool>;

    /// Every open session gets a whole lease from `now` on: it may have been silent because nobody listened.
    async fn extend_workers(&self, now: Timestamp) -> StoreResult<()>;

    /// The attempts that run under a worker's session, by job; this many at the most.
    async fn held_by(&self, id: SessionId, limit: usize) -> StoreResult<Vec<HeldAttempt>>;

    /// Those of these jobs that run under a worker's session and that the node with the session `node` claimed in its name.
    /// A worker polls where it likes, so two nodes may claim for it.
    async fn claimed_by(&self, node: SessionId, jobs: Vec<JobId>) -> StoreResult<Vec<Job>>;

    /// How many attempts run under each of these sessions.
    async fn count_held(&self, ids: Vec<SessionId>) -> StoreResult<Vec<u64>>;

    /// How many jobs of these routes are due and wait, this many at the most.
    async fn count_due_routes(&self, routes: Vec<RouteId>, now: Timestamp, limit: usize) -> StoreResult<u64>;

    /// The routes of all live jobs for workers, and perhaps some that no job has any more; in any order.
    async fn routes(&self) -> StoreResult<Vec<Route>>;

    /// Looks at this many routes after this one, and removes those that no live job has. A job that is stored or brought
    /// back meanwhile MUST have its route afterwards: without it no worker would ever get the job.
    async fn remove_unused_routes(&self, after: Option<RouteId>, limit: usize)
    -> StoreResult<RoutesLookedAt>;
}

/// A worker asks for jobs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Poll {
    /// How much it has room for.
    pub demand: Demand,
    /// The number of the poll: the same one again is answered the same.
    pub seq: Option<u64>,
    /// How long it waits for a job.
    pub wait: Duration,
}

/// The answer to a poll.
#[derive(Clone, Debug, Default)]
pub struct PollAnswer {
    /// Attempts that the worker has from now on.
    pub jobs: Vec<AttemptContext>,
    /// Attempts of its own that somebody wants stopped.
    pub cancel: Vec<AttemptRef>,
    /// Attempts that are not its own any more.
    pub lost: Vec<AttemptRef>,
    /// It is to take nothing new.
    pub drain: bool,
}

/// What a worker says with a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WorkerBeat {
    /// Attempts that it mentions. Those that are not its own are answered as lost.
    pub mentioned: Vec<AttemptRef>,
    /// How many attempts it has.
    pub held: Option<u64>,
    /// All attempts that it has.
    pub all: Option<Vec<AttemptRef>>,
    /// It takes nothing new.
    pub draining: bool,
    /// How many of its slots are taken by handlers that do not end.
    pub stuck: u64,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BeatAnswer {
    /// Attempts of its own that somebody wants stopped.
    pub cancel: Vec<AttemptRef>,
    /// Attempts that are not its own any more.
    pub lost: Vec<AttemptRef>,
    /// How long its attempts stay its own from now on.
    pub lease: Duration,
    /// It is to take nothing new.
    pub drain: bool,
    /// It should say which attempts it has.
    pub resync: bool,
}

/// What became of a worker's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerReport {
    /// It is recorded, now or before; the job's state afterwards.
    Recorded(State),
    /// The attempt is no longer the current one: nothing changed.
    Stale,
    /// There is no such job.
    NotFound,
    /// It says that the attempt was cancelled, and nobody asked for that.
    NotCancelled,
}

/// Why a worker leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// What it still has is given back.
    Drained,
    /// It died: what it had is lost.
    Crashed,
}

/// What this node has seen of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WorkerActivity {
    /// When it was last heard of.
    pub last_seen: Option<Timestamp>,
    /// When it last asked for jobs.
    pub last_poll: Option<Timestamp>,
    /// It says that it takes nothing new.
    pub draining: bool,
    /// How many of its slots are taken by handlers that do not end.
    pub stuck: u64,
}

/// The engine's service for workers. `None` where a session is named means that it has ended, or never was.
#[async_trait]
pub trait Workers: Send + Sync {
    /// Opens a session, or finds the one that the worker has already.
    async fn register(&self, worker: NewWorker) -> Result<WorkerSession, SchedulerError>;

    /// Answers as soon as there is a job that the worker can run, or news about those it has; or when it has waited
    /// for long enough.
    async fn poll(&self, id: SessionId, poll: Poll) -> Result<Option<PollAnswer>, SchedulerError>;

    /// Renews the worker's lease.
    async fn beat(&self, id: SessionId, beat: WorkerBeat) -> Result<Option<BeatAnswer>, SchedulerError>;

    /// Records the ends of attempts, whoever runs them; one answer each, in order.
    async fn report(&self, reports: Vec<(AttemptRef, Outcome)>) -> Result<Vec<WorkerReport>, SchedulerError>;

    /// Ends a session, and what it has goes elsewhere at once. `false`: it was not open.
    async fn leave(&self, id: SessionId, leaving: Leaving) -> Result<bool, SchedulerError>;

    /// Wants a worker to take nothing new, or no longer so. `false`: its session is not open.
    async fn drain(&self, id: SessionId, draining: bool) -> Result<bool, SchedulerError>;

    /// What this node has seen of a worker.
    fn activity(&self, id: SessionId) -> WorkerActivity;

    /// Whether an attempt of the job is with a worker of this node.
    fn has(&self, job: JobId) -> bool;
}
