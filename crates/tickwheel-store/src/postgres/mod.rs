//! The store for a cluster: any number of processes on one PostgreSQL.
//!
//! Batches go in as arrays; the hot verbs are one round trip each. A pool serves everything but sessions, which have a
//! connection of their own (`session_connection.rs`). Every verb is one transaction; two nodes that disagree meet at
//! the row's compare-and-set.
//!
//! Deliberately not here: decisions. What a change or the end of an attempt means was decided in the core; here it is
//! written.

mod attempt_logs;
mod callbacks;
mod claim;
mod connect;
mod controls;
mod dependencies;
mod error;
mod jobs;
mod lists;
mod locks;
mod migrate;
mod once;
mod pipeline;
mod progress;
mod restore;
mod row;
mod schedules;
mod session_connection;
mod sessions;
mod settle;
mod submit;
#[cfg(test)]
mod tests;
mod vacuum;
mod walk;
mod workers;
mod workflows;

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Client, Pool};
use tickwheel_core::callback::Receiver;
use tickwheel_core::change::Change;
use tickwheel_core::id::IdSet;
use tickwheel_core::log::{LogAppend, LogPage};
use tickwheel_core::matching::Route;
use tickwheel_core::once::{OnceAnswer, OnceCall, OnceReport, OnceReported};
use tickwheel_core::ports::{
    AttemptLogStore, Callback, CallbackRecord, CallbackStore, CallbackTry, Changed, Claim, ControlStore,
    Controls, Creation, DeadLetter, DeadLetterCursor, DeadLetterQuery, DueCount, DueJob, FindAbandoned,
    HeldAttempt, JobQuery, JobStore, LoadDue, LogQuery, NewJob, OnceStore, Page, ProgressStore, QueryStore,
    Queue, RoutesLookedAt, Session, SessionStore, Settled, SettledBatch, StoreResult, TakeCallbacks,
    UnknownParent, Vacuumed, WorkerRenewal, WorkerStore,
};
use tickwheel_core::progress::Progress;
use tickwheel_core::settle::Settlement;
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::{AttemptRecord, Job, JobId, RouteId, SessionId, TargetKind, Timestamp};
use tokio_postgres::{Config, Row};

use self::error::{no_connection, not_done, write_failed};
use self::pipeline::Param;
use self::session_connection::SessionConnection;

/// How the store uses the server.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Connections for everything but sessions.
    pub pool_size: usize,
    /// How long a verb waits for one of them to be free.
    pub pool_wait: Duration,
    /// How long a statement may take on the server.
    pub statement_timeout: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { pool_size: 8, pool_wait: Duration::from_secs(3), statement_timeout: Duration::from_secs(30) }
    }
}

/// How many names of queues are remembered: enough for any real installation, and a bound for the others.
const KNOWN_QUEUES_MAX: usize = 10_000;

/// A [`Store`] on PostgreSQL.
#[derive(Debug)]
pub struct PostgresStore {
    pool: Pool,
    session_connection: SessionConnection,
    /// How to connect for a vacuum.
    vacuums: Config,
    /// Queues that have a row, so that a submission does not have to write it again.
    known_queues: Mutex<HashSet<String>>,
    known_routes: Mutex<IdSet<RouteId>>,
}

impl PostgresStore {
    /// Connects to the database at `url` (`postgres://user:password@host/database`), brings its schema up to date and
    /// is ready for work. Fails if the server cannot be reached now; later it may come and go.
    pub async fn connect(url: &str, options: PostgresOptions) -> StoreResult<Self> {
        let config = connect::config(url, &options)?;
        let pool = connect::pool(config.clone(), &options)?;
        migrate::migrate(&mut pool.get().await.map_err(no_connection)?).await?;
        let session_connection = SessionConnection::open(config).await?;
        let patient = PostgresOptions { statement_timeout: vacuum::TIME_MAX, ..options };
        let vacuums = connect::config(url, &patient)?;
        Ok(Self {
            pool,
            session_connection,
            vacuums,
            known_queues: Mutex::default(),
            known_routes: Mutex::default(),
        })
    }

    async fn client(&self) -> StoreResult<Client> {
        self.pool.get().await.map_err(no_connection)
    }

    async fn read(&self, sql: &str, params: &[Param<'_>]) -> StoreResult<Vec<Row>> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await.map_err(not_done)?;
        client.query(&statement, params).await.map_err(not_done)
    }

    /// One statement that is a transaction of its own; answers how many rows it wrote.
    async fn write(&self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await.map_err(not_done)?;
        client.execute(&statement, params).await.map_err(write_failed)
    }

    /// Like [`write`](Self::write), for a statement that answers rows.
    async fn write_returning(&self, sql: &str, params: &[Param<'_>]) -> StoreResult<Vec<Row>> {
        let client = self.client().await?;
        let statement = client.prepare_cached(sql).await.map_err(not_done)?;
        client.query(&statement, params).await.map_err(write_failed)
    }

    fn known_queues(&self) -> MutexGuard<'_, HashSet<String>> {
        // Forgetting or knowing a name more is harmless, so a panic elsewhere is too.
        self.known_queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_routes(&self) -> MutexGuard<'_, IdSet<RouteId>> {
        self.known_routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown_queues<'a>(&self, names: BTreeSet<&'a str>) -> Vec<&'a str> {
        let known = self.known_queues();
        names.into_iter().filter(|name| !known.contains(*name)).collect()
    }

    fn remember_queues(&self, names: &[&str]) {
        let mut known = self.known_queues();
        if known.len() + names.len() > KNOWN_QUEUES_MAX {
            known.clear();
        }
        known.extend(names.iter().map(|name| (*name).to_owned()));
    }
}

#[async_trait]
impl JobStore for PostgresStore {
    async fn submit_jobs(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Creation<Job, UnknownParent>>> {
        submit::submit_jobs(self, jobs).await
    }

    async fn load_due(&self, load: LoadDue, kinds: &[TargetKind]) -> StoreResult<Vec<DueJob>> {
        claim::load_due(self, load, kinds).await
    }

    async fn claim(&self, claim: Claim) -> StoreResult<Vec<Job>> {
        claim::claim(self, claim).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> StoreResult<SettledBatch> {
        settle::settle(self, settlements).await
    }

    async fn await_report(&self, job_id: JobId, attempt: u32) -> StoreResult<Settled> {
        settle::await_report(self, job_id, attempt).await
    }

    async fn get_job(&self, id: JobId) -> StoreResult<Option<Job>> {
        Ok(jobs::get_jobs(self, vec![id]).await?.pop())
    }

    async fn get_jobs(&self, ids: Vec<JobId>) -> StoreResult<Vec<Job>> {
        jobs::get_jobs(self, ids).await
    }

    async fn ended_among(&self, ids: Vec<JobId>) -> StoreResult<Vec<JobId>> {
        jobs::ended_among(self, ids).await
    }

    async fn change_job(&self, id: JobId, change: Change, now: Timestamp) -> StoreResult<Changed> {
        jobs::change_job(self, id, change, now).await
    }

    async fn attempts(&self, id: JobId) -> StoreResult<Option<Vec<AttemptRecord>>> {
        jobs::attempts(self, id).await
    }

    async fn discard_dead_letter(&self, id: JobId) -> StoreResult<bool> {
        lists::discard_dead_letter(self, id).await
    }
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn now(&self, _ours: Timestamp) -> StoreResult<Timestamp> {
        sessions::now(self).await
    }

    async fn open_session(&self, session: Session) -> StoreResult<()> {
        sessions::open_session(self, session).await
    }

    async fn renew_session(&self, id: SessionId, expires_at: Timestamp) -> StoreResult<bool> {
        sessions::renew_session(self, id, expires_at).await
    }

    async fn end_session(&self, id: SessionId) -> StoreResult<()> {
        sessions::end_session(self, id).await
    }

    async fn expire_sessions(&self, own: SessionId, now: Timestamp) -> StoreResult<Vec<SessionId>> {
        sessions::expire_sessions(self, own, now).await
    }

    async fn find_abandoned(&self, find: FindAbandoned) -> StoreResult<Vec<Job>> {
        sessions::find_abandoned(self, find).await
    }
}

#[async_trait]
impl WorkerStore for PostgresStore {
    async fn open_worker(&self, worker: NewWorker, _now: Timestamp) -> StoreResult<WorkerSession> {
        workers::open_worker(self, worker).await
    }

    async fn renew_worker(&self, id: SessionId, _now: Timestamp) -> StoreResult<Option<WorkerRenewal>> {
        workers::renew_worker(self, id).await
    }

    async fn get_worker(&self, id: SessionId) -> StoreResult<Option<WorkerSession>> {
        workers::get_worker(self, id).await
    }

    async fn list_workers(&self, after: Option<SessionId>, limit: usize) -> StoreResult<Vec<WorkerSession>> {
        workers::list_workers(self, after, limit).await
    }

    async fn set_worker_draining(&self, id: SessionId, draining: bool) -> StoreResult<bool> {
        workers::set_worker_draining(self, id, draining).await
    }

    async fn end_worker(&self, id: SessionId) -> StoreResult<bool> {
        workers::end_worker(self, id).await
    }

    async fn extend_workers(&self, _now: Timestamp) -> StoreResult<()> {
        workers::extend_workers(self).await
    }

    async fn held_by(&self, id: SessionId, limit: usize) -> StoreResult<Vec<HeldAttempt>> {
        workers::held_by(self, id, limit).await
    }

    async fn claimed_by(&self, node: SessionId, jobs: Vec<JobId>) -> StoreResult<Vec<Job>> {
        workers::claimed_by(self, node, &jobs).await
    }

    async fn count_held(&self, ids: Vec<SessionId>) -> StoreResult<Vec<u64>> {
        workers::count_held(self, ids).await
    }

    async fn count_due_routes(&self, routes: Vec<RouteId>, now: Timestamp, limit: usize) -> StoreResult<u64> {
        workers::count_due_routes(self, routes, now, limit).await
    }

    async fn routes(&self) -> StoreResult<Vec<Route>> {
        workers::routes(self).await
    }

    async fn remove_unused_routes(
        &self,
        after: Option<RouteId>,
        limit: usize,
    ) -> StoreResult<RoutesLookedAt> {
        workers::remove_unused_routes(self, after, limit).await
    }
}

#[async_trait]
impl AttemptLogStore for PostgresStore {
    async fn append_logs(&self, appends: Vec<LogAppend>) -> StoreResult<Vec<bool>> {
        attempt_logs::append_logs(self, appends).await
    }

    async fn read_logs(&self, query: LogQuery) -> StoreResult<LogPage> {
        attempt_logs::read_logs(self, &query).await
    }
}

#[async_trait]
impl ProgressStore for PostgresStore {
    async fn put_progress(&self, notes: Vec<Progress>) -> StoreResult<()> {
        progress::put_progress(self, &notes).await
    }

    async fn get_progress(&self, id: JobId) -> StoreResult<Option<Progress>> {
        progress::get_progress(self, id).await
    }

    async fn forget_progress(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        progress::forget_progress(self, before, limit).await
    }
}

#[async_trait]
impl OnceStore for PostgresStore {
    async fn ask_once(&self, call: OnceCall) -> StoreResult<OnceAnswer> {
        once::ask_once(self, &call).await
    }

    async fn report_once(&self, report: OnceReport) -> StoreResult<OnceReported> {
        once::report_once(self, &report).await
    }

    async fn expire_once(&self, now: Timestamp, limit: usize) -> StoreResult<usize> {
        once::expire_once(self, now, limit).await
    }
}

#[async_trait]
impl QueryStore for PostgresStore {
    async fn list_jobs(&self, query: JobQuery) -> StoreResult<Page<Job, JobId>> {
        lists::list_jobs(self, &query, lists::EXAMINED_MAX).await
    }

    async fn list_dead_letters(
        &self,
        query: DeadLetterQuery,
    ) -> StoreResult<Page<DeadLetter, DeadLetterCursor>> {
        lists::list_dead_letters(self, &query, lists::EXAMINED_MAX).await
    }

    async fn get_dead_letter(&self, id: JobId) -> StoreResult<Option<DeadLetter>> {
        lists::get_dead_letter(self, id).await
    }

    async fn count_dead_letters(&self) -> StoreResult<u64> {
        lists::count_dead_letters(self).await
    }

    async fn count_dead_letters_like(&self, query: DeadLetterQuery) -> StoreResult<u64> {
        lists::count_dead_letters_like(self, &query).await
    }
}

#[async_trait]
impl CallbackStore for PostgresStore {
    async fn due_receivers(
        &self,
        after: Option<Receiver>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<Page<Receiver, Receiver>> {
        callbacks::due_receivers(self, after.as_ref(), now, limit).await
    }

    async fn take_callbacks(&self, take: TakeCallbacks) -> StoreResult<Vec<Callback>> {
        callbacks::take_callbacks(self, take).await
    }

    async fn settle_callback(&self, session: SessionId, id: i64, tried: CallbackTry) -> StoreResult<()> {
        callbacks::settle_callback(self, session, id, &tried).await
    }

    async fn write_callback(&self, callback: Callback) -> StoreResult<i64> {
        callbacks::write_callback(self, &callback).await
    }

    async fn callbacks_of(&self, job: JobId) -> StoreResult<Vec<CallbackRecord>> {
        callbacks::callbacks_of(self, job).await
    }

    async fn return_callbacks(&self, own: SessionId, kept: Vec<i64>) -> StoreResult<usize> {
        callbacks::return_callbacks(self, own, kept).await
    }
}

#[async_trait]
impl ControlStore for PostgresStore {
    async fn list_queues(&self) -> StoreResult<Vec<Queue>> {
        controls::list_queues(self).await
    }

    async fn count_due(
        &self,
        queues: Vec<String>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<DueCount>> {
        controls::count_due(self, queues, now, limit).await
    }

    async fn set_queue_paused(&self, queue: &str, paused: bool) -> StoreResult<()> {
        controls::set_queue_paused(self, queue, paused).await
    }

    async fn controls(&self) -> StoreResult<Controls> {
        controls::controls(self).await
    }

    async fn halted(&self) -> StoreResult<bool> {
        controls::halted(self).await
    }

    async fn set_halted(&self, halted: bool) -> StoreResult<()> {
        controls::set_halted(self, halted).await
    }

    async fn installation_secret(&self, candidate: [u8; 32]) -> StoreResult<[u8; 32]> {
        controls::installation_secret(self, candidate).await
    }

    async fn ping(&self) -> StoreResult<()> {
        controls::ping(self).await
    }

    async fn vacuum(&self, dead_rows_min: u64) -> StoreResult<Vacuumed> {
        vacuum::vacuum(self, dead_rows_min).await
    }
}
