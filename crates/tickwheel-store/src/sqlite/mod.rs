//! The embedded store: one SQLite file, one process.
//!
//! All writes go through one thread that commits whatever has gathered (`writer`); reads run beside it on connections
//! of their own (`readers`). The verbs are plain functions on a connection, a file each, and know nothing of threads.
//!
//! Invariant: at most one process has the file (whoever opens it holds the lock of the data directory). The store
//! relies on it in one place: the sessions of others are known to be dead.

mod attempt_logs;
mod callbacks;
mod claim;
mod connection;
mod controls;
mod dependencies;
mod fault;
mod file;
mod jobs;
mod lists;
mod migrate;
mod once;
mod progress;
mod readers;
mod row;
mod schedules;
mod sessions;
mod settle;
mod submit;
#[cfg(test)]
mod tests;
mod walk;
mod workers;
mod workflows;
mod writer;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tickwheel_core::attempt::AttemptRecord;
use tickwheel_core::callback::Receiver;
use tickwheel_core::change::Change;
use tickwheel_core::log::{LogAppend, LogPage};
use tickwheel_core::matching::Route;
use tickwheel_core::once::{OnceAnswer, OnceCall, OnceReport, OnceReported};
use tickwheel_core::ports::{
    AttemptLogStore, Callback, CallbackRecord, CallbackStore, CallbackTry, Changed, Claim, ControlStore,
    Controls, Creation, DeadLetter, DeadLetterCursor, DeadLetterQuery, DueCount, DueJob, FindAbandoned,
    HeldAttempt, JobQuery, JobStore, LoadDue, LogQuery, NewJob, OnceStore, Page, ProgressStore, QueryStore,
    Queue, RoutesLookedAt, Session, SessionStore, Settled, SettledBatch, StoreResult, TakeCallbacks,
    UnknownParent, WorkerRenewal, WorkerStore,
};
use tickwheel_core::progress::Progress;
use tickwheel_core::settle::Settlement;
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::{Job, JobId, RouteId, SessionId, TargetKind, Timestamp};

use readers::Readers;
use writer::Writer;

/// A store in one SQLite file.
///
/// Dropping it finishes what was asked, writes a checkpoint and closes the file; it blocks for as long as that takes.
pub struct SqliteStore {
    // Dropped first, so that no reader stands in the way of the writer's last checkpoint.
    readers: Readers,
    writer: Writer,
    directory: PathBuf,
}

impl SqliteStore {
    /// Opens the file, creating it or bringing its schema up to date if need be, and refuses it if it is damaged. The
    /// directory must exist, and no other process may have the file open as a store.
    pub fn open(path: &Path) -> StoreResult<Self> {
        file::prepare(path)?;
        let mut connection = connection::open_writer(path)?;
        file::check(&connection)?;
        migrate::migrate(&mut connection)?;
        let readers = Readers::open(path)?;
        let directory = file::directory_of(path).to_owned();
        Ok(Self { readers, writer: Writer::start(connection)?, directory })
    }
}

#[async_trait]
impl JobStore for SqliteStore {
    async fn submit_jobs(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Creation<Job, UnknownParent>>> {
        self.writer.write(move |c| submit::submit_jobs(c, jobs)).await
    }

    async fn load_due(&self, load: LoadDue, kinds: &[TargetKind]) -> StoreResult<Vec<DueJob>> {
        let kinds = kinds.iter().fold(0_i64, |bits, kind| bits | 1 << kind.code());
        self.readers.read(move |c| claim::load_due(c, &load, kinds)).await
    }

    async fn claim(&self, claim: Claim) -> StoreResult<Vec<Job>> {
        self.writer.write(move |c| claim::claim(c, &claim)).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> StoreResult<SettledBatch> {
        self.writer.write(move |c| settle::settle(c, &settlements)).await
    }

    async fn await_report(&self, job_id: JobId, attempt: u32) -> StoreResult<Settled> {
        self.writer.write(move |c| settle::await_report(c, job_id, attempt)).await
    }

    async fn get_job(&self, id: JobId) -> StoreResult<Option<Job>> {
        self.readers.read(move |c| row::find_job(c, id)).await
    }

    async fn get_jobs(&self, ids: Vec<JobId>) -> StoreResult<Vec<Job>> {
        self.readers.read(move |c| jobs::get_jobs(c, &ids)).await
    }

    async fn ended_among(&self, ids: Vec<JobId>) -> StoreResult<Vec<JobId>> {
        self.readers.read(move |c| jobs::ended_among(c, &ids)).await
    }

    async fn change_job(&self, id: JobId, change: Change, now: Timestamp) -> StoreResult<Changed> {
        self.writer.write(move |c| jobs::change_job(c, id, &change, now)).await
    }

    async fn attempts(&self, id: JobId) -> StoreResult<Option<Vec<AttemptRecord>>> {
        self.readers.read(move |c| jobs::attempts(c, id)).await
    }

    async fn discard_dead_letter(&self, id: JobId) -> StoreResult<bool> {
        self.writer.write(move |c| lists::delete_dead_letter(c, id)).await
    }
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn open_session(&self, session: Session) -> StoreResult<()> {
        self.writer.write(move |c| sessions::open_session(c, &session)).await
    }

    async fn renew_session(&self, id: SessionId, expires_at: Timestamp) -> StoreResult<bool> {
        self.writer.write(move |c| sessions::renew_session(c, id, expires_at)).await
    }

    async fn end_session(&self, id: SessionId) -> StoreResult<()> {
        self.writer.write(move |c| sessions::end_session(c, id)).await
    }

    async fn expire_sessions(&self, own: SessionId, now: Timestamp) -> StoreResult<Vec<SessionId>> {
        self.writer.write(move |c| sessions::expire_sessions(c, own, now)).await
    }

    async fn find_abandoned(&self, find: FindAbandoned) -> StoreResult<Vec<Job>> {
        self.readers.read(move |c| sessions::find_abandoned(c, &find)).await
    }
}

#[async_trait]
impl WorkerStore for SqliteStore {
    async fn open_worker(&self, worker: NewWorker, now: Timestamp) -> StoreResult<WorkerSession> {
        self.writer.write(move |c| workers::open_worker(c, &worker, now)).await
    }

    async fn renew_worker(&self, id: SessionId, now: Timestamp) -> StoreResult<Option<WorkerRenewal>> {
        self.writer.write(move |c| workers::renew_worker(c, id, now)).await
    }

    async fn get_worker(&self, id: SessionId) -> StoreResult<Option<WorkerSession>> {
        self.readers.read(move |c| workers::get_worker(c, id)).await
    }

    async fn list_workers(&self, after: Option<SessionId>, limit: usize) -> StoreResult<Vec<WorkerSession>> {
        self.readers.read(move |c| workers::list_workers(c, after, limit)).await
    }

    async fn set_worker_draining(&self, id: SessionId, draining: bool) -> StoreResult<bool> {
        self.writer.write(move |c| workers::set_worker_draining(c, id, draining)).await
    }

    async fn end_worker(&self, id: SessionId) -> StoreResult<bool> {
        self.writer.write(move |c| workers::end_worker(c, id)).await
    }

    async fn extend_workers(&self, now: Timestamp) -> StoreResult<()> {
        self.writer.write(move |c| workers::extend_workers(c, now)).await
    }

    async fn held_by(&self, id: SessionId, limit: usize) -> StoreResult<Vec<HeldAttempt>> {
        self.readers.read(move |c| workers::held_by(c, id, limit)).await
    }

    async fn claimed_by(&self, node: SessionId, jobs: Vec<JobId>) -> StoreResult<Vec<Job>> {
        self.readers.read(move |c| workers::claimed_by(c, node, &jobs)).await
    }

    async fn count_held(&self, ids: Vec<SessionId>) -> StoreResult<Vec<u64>> {
        self.readers.read(move |c| workers::count_held(c, &ids)).await
    }

    async fn count_due_routes(&self, routes: Vec<RouteId>, now: Timestamp, limit: usize) -> StoreResult<u64> {
        self.readers.read(move |c| workers::count_due_routes(c, &routes, now, limit)).await
    }

    async fn routes(&self) -> StoreResult<Vec<Route>> {
        self.readers.read(workers::routes).await
    }

    async fn remove_unused_routes(
        &self,
        after: Option<RouteId>,
        limit: usize,
    ) -> StoreResult<RoutesLookedAt> {
        self.writer.write(move |c| workers::remove_unused_routes(c, after, limit)).await
    }
}

#[async_trait]
impl AttemptLogStore for SqliteStore {
    async fn append_logs(&self, appends: Vec<LogAppend>) -> StoreResult<Vec<bool>> {
        self.writer.write(move |c| attempt_logs::append_logs(c, appends)).await
    }

    async fn read_logs(&self, query: LogQuery) -> StoreResult<LogPage> {
        self.readers.read(move |c| attempt_logs::read_logs(c, &query)).await
    }
}

#[async_trait]
impl ProgressStore for SqliteStore {
    async fn put_progress(&self, notes: Vec<Progress>) -> StoreResult<()> {
        self.writer.write(move |c| progress::put_progress(c, &notes)).await
    }

    async fn get_progress(&self, id: JobId) -> StoreResult<Option<Progress>> {
        self.readers.read(move |c| progress::get_progress(c, id)).await
    }

    async fn forget_progress(&self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.writer.write(move |c| progress::forget_progress(c, before, limit)).await
    }
}

#[async_trait]
impl OnceStore for SqliteStore {
    async fn ask_once(&self, call: OnceCall) -> StoreResult<OnceAnswer> {
        self.writer.write(move |c| once::ask_once(c, &call)).await
    }

    async fn report_once(&self, report: OnceReport) -> StoreResult<OnceReported> {
        self.writer.write(move |c| once::report_once(c, &report)).await
    }

    async fn expire_once(&self, now: Timestamp, limit: usize) -> StoreResult<usize> {
        self.writer.write(move |c| once::expire_once(c, now, limit)).await
    }
}

#[async_trait]
impl QueryStore for SqliteStore {
    async fn list_jobs(&self, query: JobQuery) -> StoreResult<Page<Job, JobId>> {
        self.readers.read(move |c| lists::list_jobs(c, &query)).await
    }

    async fn list_dead_letters(
        &self,
        query: DeadLetterQuery,
    ) -> StoreResult<Page<DeadLetter, DeadLetterCursor>> {
        self.readers.read(move |c| lists::list_dead_letters(c, &query)).await
    }

    async fn get_dead_letter(&self, id: JobId) -> StoreResult<Option<DeadLetter>> {
        self.readers.read(move |c| lists::get_dead_letter(c, id)).await
    }

    async fn count_dead_letters(&self) -> StoreResult<u64> {
        self.readers.read(lists::count_dead_letters).await
    }

    async fn count_dead_letters_like(&self, query: DeadLetterQuery) -> StoreResult<u64> {
        self.readers.read(move |c| lists::count_dead_letters_like(c, &query)).await
    }
}

#[async_trait]
impl CallbackStore for SqliteStore {
    async fn due_receivers(
        &self,
        after: Option<Receiver>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<Page<Receiver, Receiver>> {
        self.readers.read(move |c| callbacks::due_receivers(c, after.as_ref(), now, limit)).await
    }

    async fn take_callbacks(&self, take: TakeCallbacks) -> StoreResult<Vec<Callback>> {
        self.writer.write(move |c| callbacks::take_callbacks(c, &take)).await
    }

    async fn settle_callback(&self, session: SessionId, id: i64, tried: CallbackTry) -> StoreResult<()> {
        self.writer.write(move |c| callbacks::settle_callback(c, session, id, &tried)).await
    }

    async fn write_callback(&self, callback: Callback) -> StoreResult<i64> {
        self.writer.write(move |c| callbacks::write_callback(c, &callback)).await
    }

    async fn callbacks_of(&self, job: JobId) -> StoreResult<Vec<CallbackRecord>> {
        self.readers.read(move |c| callbacks::callbacks_of(c, job)).await
    }

    async fn return_callbacks(&self, own: SessionId, kept: Vec<i64>) -> StoreResult<usize> {
        self.writer.write(move |c| callbacks::return_callbacks(c, own, &kept)).await
    }
}

#[async_trait]
impl ControlStore for SqliteStore {
    async fn list_queues(&self) -> StoreResult<Vec<Queue>> {
        self.readers.read(controls::list_queues).await
    }

    async fn count_due(
        &self,
        queues: Vec<String>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<DueCount>> {
        self.readers.read(move |c| controls::count_due(c, &queues, now, limit)).await
    }

    async fn set_queue_paused(&self, queue: &str, paused: bool) -> StoreResult<()> {
        let queue = queue.to_owned();
        self.writer.write(move |c| controls::set_queue_paused(c, &queue, paused)).await
    }

    async fn controls(&self) -> StoreResult<Controls> {
        self.readers.read(controls::controls).await
    }

    async fn halted(&self) -> StoreResult<bool> {
        self.readers.read(controls::is_halted).await
    }

    async fn set_halted(&self, halted: bool) -> StoreResult<()> {
        self.writer.write(move |c| controls::set_halted(c, halted)).await
    }

    async fn installation_secret(&self, candidate: [u8; 32]) -> StoreResult<[u8; 32]> {
        self.writer.write(move |c| controls::installation_secret(c, candidate)).await
    }

    async fn ping(&self) -> StoreResult<()> {
        let directory = self.directory.clone();
        self.readers.read(move |c| file::has_room(&directory).and_then(|()| controls::is_halted(c))).await?;
        self.writer.write(controls::ping).await
    }
}
