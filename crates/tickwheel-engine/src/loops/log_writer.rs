//! Writes lines of logs, those that arrive together together, and answers after the commit.
//!
//! Logs have a queue and commits of their own: however much is logged, the ends of attempts do not wait behind it. What
//! does not fit into the queue is refused, and whoever sent it sends it again.

use std::sync::Arc;

use tickwheel_core::log::LogAppend;
use tickwheel_core::ports::{AttemptLogStore, SchedulerError, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use crate::batch::{BatchLimits, commit_in_batches};
use crate::followers::Followers;
use crate::loops::intake::repeat;
use crate::metrics;
use crate::store_watch::StoreWatch;

/// What may wait to be written, in bytes.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// What may wait to be written, in logs.
const WAITING_LEN_MAX: usize = 10_000;
/// What an empty line counts.
const LINE_OVERHEAD: usize = 16;

/// Lines of one attempt, and where the answer goes.
pub struct Unwritten {
    append: LogAppend,
    answer: oneshot::Sender<Result<bool, StoreError>>,
    /// Its share of what may wait.
    _room: OwnedSemaphorePermit,
}

/// Where lines are handed in.
#[derive(Clone)]
pub struct LogWriterHandle {
    sender: mpsc::Sender<Unwritten>,
    room: Arc<Semaphore>,
}

impl LogWriterHandle {
    /// A handle and what the loop reads from.
    pub fn new() -> (Self, mpsc::Receiver<Unwritten>) {
        let (sender, receiver) = mpsc::channel(WAITING_LEN_MAX);
        (Self { sender, room: Arc::new(Semaphore::new(WAITING_BYTES_MAX)) }, receiver)
    }

    /// Answers once the lines are durable. If there is no room for all of them, some may be written all the same.
    pub async fn append(&self, appends: Vec<LogAppend>) -> Result<Vec<bool>, SchedulerError> {
        let mut answers = Vec::with_capacity(appends.len());
        for append in appends {
            answers.push(self.hand_in(append)?);
        }
        let mut known = Vec::with_capacity(answers.len());
        for answer in answers {
            known.push(answer.await.map_err(|_| SchedulerError::ShuttingDown)??);
        }
        Ok(known)
    }

    fn hand_in(
        &self,
        append: LogAppend,
    ) -> Result<oneshot::Receiver<Result<bool, StoreError>>, SchedulerError> {
        let bytes = u32::try_from(weight(&append).min(WAITING_BYTES_MAX)).unwrap_or(u32::MAX);
        let room = self.room.clone().try_acquire_many_owned(bytes).map_err(|_| SchedulerError::Overloaded)?;
        let (answer, answered) = oneshot::channel();
        self.sender.try_send(Unwritten { append, answer, _room: room }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SchedulerError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => SchedulerError::ShuttingDown,
        })?;
        Ok(answered)
    }
}

fn weight(append: &LogAppend) -> usize {
    append.bytes() + (append.lines.len() + 1) * LINE_OVERHEAD
}

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct LogWriterOptions {
    /// How many bytes are written at once. Whoever else writes waits for so much at the most.
    pub batches: BatchLimits,
}

impl Default for LogWriterOptions {
    fn default() -> Self {
        Self { batches: BatchLimits { weight_max: 256 << 10, in_flight_max: 1 } }
    }
}

/// See the module.
pub struct LogWriter {
    pub options: LogWriterOptions,
    pub store: Arc<dyn AttemptLogStore>,
    pub watch: StoreWatch,
    pub followers: Followers,
}

impl LogWriter {
    /// Runs until every handle is gone.
    pub async fn run(self, unwritten: mpsc::Receiver<Unwritten>) {
        let weight = |unwritten: &Unwritten| weight(&unwritten.append);
        commit_in_batches(unwritten, self.options.batches, weight, |batch| self.run_once(batch)).await;
    }

    /// Writes what was handed in, in one commit, tells those who follow and answers everybody.
    pub async fn run_once(&self, batch: Vec<Unwritten>) {
        let (mut appends, mut answers) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        let mut rooms = Vec::with_capacity(batch.len());
        for Unwritten { append, answer, _room: room } in batch {
            answers.push((append.attempt.job_id, answer));
            appends.push(append);
            rooms.push(room);
        }
        let (len, asked) = (appends.len(), Instant::now());
        match self.store.append_logs(appends).await {
            Ok(known) => {
                self.watch.succeeded("logs");
                metrics::commit("logs", len, asked.elapsed());
                self.followers.tell(answers.iter().map(|(job_id, _)| *job_id));
                for ((_, answer), known) in answers.into_iter().zip(known) {
                    let _ = answer.send(Ok(known));
                }
            }
            Err(error) => {
                self.watch.failed("logs", &error);
                for (_, answer) in answers {
                    let _ = answer.send(Err(repeat(&error)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tickwheel_core::log::{LogLevel, LogLine};
    use tickwheel_core::token::AttemptRef;
    use tickwheel_core::{JobId, Timestamp};
    use tickwheel_testkit::fixtures::job_numbered;
    use tickwheel_testkit::model::Verb;
    use tickwheel_testkit::{Fault, ModelStore};

    use super::*;

    async fn store_with_job() -> (ModelStore, JobId) {
        let store = ModelStore::new();
        let new = job_numbered(1).build_new();
        let id = new.job.id;
        store.with_model(|model| model.submit_jobs(vec![new])).expect("submitted");
        (store, id)
    }

    fn lines(job_id: JobId, text: &str, count: usize) -> LogAppend {
        let line = LogLine::cut(Timestamp::EPOCH, LogLevel::Info, text.into(), None);
        LogAppend { attempt: AttemptRef { job_id, attempt: 1 }, first: 0, lines: vec![line; count] }
    }

    fn writer(store: &ModelStore) -> LogWriter {
        LogWriter {
            options: LogWriterOptions::default(),
            store: Arc::new(store.clone()),
            watch: StoreWatch::default(),
            followers: Followers::default(),
        }
    }

    #[tokio::test]
    async fn lines_are_answered_when_they_are_written_and_followers_hear_of_them() {
        let (store, id) = store_with_job().await;
        let (handle, mut unwritten) = LogWriterHandle::new();
        let writer = writer(&store);
        let follower = writer.followers.follow(id).unwrap();
        let unknown = JobId::from_uuid(uuid::Uuid::from_u128(9));
        let mut appending = Box::pin(handle.append(vec![lines(id, "a", 2), lines(unknown, "b", 1)]));
        assert!(appending.as_mut().now_or_never().is_none(), "not yet");
        let mut batch = Vec::new();
        unwritten.recv_many(&mut batch, 10).await;
        writer.run_once(batch).await;
        assert_eq!(appending.await.unwrap(), [true, false]);
        assert!(follower.new_lines().now_or_never().is_some());
        assert_eq!(handle.room.available_permits(), WAITING_BYTES_MAX);
    }

    #[tokio::test]
    async fn whoever_sent_lines_hears_that_they_were_not_written() {
        let (store, id) = store_with_job().await;
        store.fail(Verb::AppendLogs, Fault::Aborted);
        let (handle, unwritten) = LogWriterHandle::new();
        let running = tokio::spawn(writer(&store).run(unwritten));
        assert!(matches!(handle.append(vec![lines(id, "a", 1)]).await, Err(SchedulerError::Store(_))));
        assert_eq!(handle.append(vec![lines(id, "a", 1)]).await.unwrap(), [true]);
        drop(handle);
        running.await.unwrap();
    }

    #[tokio::test]
    async fn a_full_queue_refuses() {
        let (handle, _unwritten) = LogWriterHandle::new();
        let id = JobId::from_uuid(uuid::Uuid::from_u128(9));
        let large = || lines(id, &"x".repeat(16 << 10), 700);
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(handle.append(vec![large()]))).collect();
        assert!(waiting.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
        assert!(matches!(handle.append(vec![large()]).await, Err(SchedulerError::Overloaded)));
    }
}
