//! What attempts say beside how they ended (log lines, progress, effects that happen once): where it is stored, and what
//! the engine offers to those who say it.

use async_trait::async_trait;

use super::scheduler::SchedulerError;
use super::store::StoreResult;
use crate::id::JobId;
use crate::log::{LogAppend, LogPage, LogPlace};
use crate::once::{OnceAnswer, OnceCall, OnceReport, OnceReported};
use crate::progress::Progress;
use crate::time::Timestamp;

/// Which lines to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogQuery {
    /// Of which job.
    pub job_id: JobId,
    /// Only of this attempt.
    pub attempt: Option<u32>,
    /// From this place on.
    pub from: LogPlace,
    /// This many lines at the most,
    pub lines_max: usize,
    /// and after this many bytes no further one.
    pub bytes_max: usize,
}

/// The logs of attempts.
#[async_trait]
pub trait AttemptLogStore: Send + Sync {
    /// Adds lines to logs, as [`LogHead::append`](crate::log::LogHead::append) decides. Whether the attempt is still
    /// the current one does not matter. `false`: there is no such job.
    async fn append_logs(&self, appends: Vec<LogAppend>) -> StoreResult<Vec<bool>>;

    /// Lines of a job's attempts in order. MUST do bounded work: a page may be short and not be the last. A job that
    /// does not exist has no lines.
    async fn read_logs(&self, query: LogQuery) -> StoreResult<LogPage>;
}

/// How far running attempts have come.
#[async_trait]
pub trait ProgressStore: Send + Sync {
    /// Keeps what attempts say, instead of what was said of the same job before. What comes from an attempt that is not
    /// the current one of a running job MUST leave no trace. At most one per job.
    async fn put_progress(&self, notes: Vec<Progress>) -> StoreResult<()>;

    /// What the current attempt of a running job said last.
    async fn get_progress(&self, id: JobId) -> StoreResult<Option<Progress>>;

    /// Forgets what attempts said before `before` that are over by now; this many at the most. Says how many.
    async fn forget_progress(&self, before: Timestamp, limit: usize) -> StoreResult<usize>;
}

/// Keys of effects that happen once.
#[async_trait]
pub trait OnceStore: Send + Sync {
    /// An attempt asks for a key; see [`once::ask`](crate::once::ask). MUST be atomic: of several who ask at the same
    /// time, one is told [`First`](OnceAnswer::First).
    async fn ask_once(&self, call: OnceCall) -> StoreResult<OnceAnswer>;

    /// An attempt says what came of an effect; see [`once::report`](crate::once::report).
    async fn report_once(&self, report: OnceReport) -> StoreResult<OnceReported>;

    /// Removes keys that are [forgotten](crate::once::is_forgotten); this many at the most. Says how many.
    async fn expire_once(&self, now: Timestamp, limit: usize) -> StoreResult<usize>;
}

/// Somebody who reads the log of a job while it grows.
#[async_trait]
pub trait LogFollower: Send + Sync {
    /// Waits until the job may have new lines. Lines that came since the last time count.
    async fn new_lines(&self);
}

/// The engine's service for what attempts say beside how they ended.
#[async_trait]
pub trait AttemptNotes: Send + Sync {
    /// Adds lines to logs; answers once they are durable. `false`: there is no such job.
    async fn append_logs(&self, appends: Vec<LogAppend>) -> Result<Vec<bool>, SchedulerError>;

    /// Adds the last lines of attempts whose end is about to be recorded. What cannot be written soon is dropped and
    /// counted: an end does not wait for it.
    async fn append_last_lines(&self, appends: Vec<LogAppend>);

    /// Listens for new lines of a job, from now on. `None`: too many do. What other servers write is not heard.
    fn follow(&self, id: JobId) -> Option<Box<dyn LogFollower>>;

    /// Keeps how far attempts have come. Returns at once; of what comes quickly, the latest is written.
    fn note_progress(&self, notes: Vec<Progress>);

    /// An attempt asks for a key.
    async fn ask_once(&self, call: OnceCall) -> Result<OnceAnswer, SchedulerError>;

    /// An attempt says what came of an effect.
    async fn report_once(&self, report: OnceReport) -> Result<OnceReported, SchedulerError>;
}
