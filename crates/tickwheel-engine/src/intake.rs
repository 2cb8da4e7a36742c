//! Takes submissions in, writes those that arrive together together, answers after the commit.

use std::sync::Arc;
use std::time::Instant;

use tickwheel_core::ports::{NewJob, Scheduled, SchedulerError, Store, StoreError, Submitted};
use tokio::sync::{mpsc, oneshot};

use crate::announcer::{Announcer, scheduled};
use crate::batch::{BatchLimits, commit_in_batches};
use crate::metrics;
use crate::store_watch::StoreWatch;

type Answer = oneshot::Sender<Result<Vec<Submitted>, StoreError>>;

/// One request and where its answer goes.
pub struct Submission {
    jobs: Vec<NewJob>,
    answer: Answer,
}

/// Where submissions are handed in.
#[derive(Clone)]
pub struct IntakeHandle(mpsc::Sender<Submission>);

impl IntakeHandle {
    /// A handle and what the loop reads from.
    pub fn new(len_max: usize) -> (Self, mpsc::Receiver<Submission>) {
        let (sender, receiver) = mpsc::channel(len_max);
        (Self(sender), receiver)
    }

    /// Answers once the jobs are durable.
    pub async fn submit(&self, jobs: Vec<NewJob>) -> Result<Vec<Submitted>, SchedulerError> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(Submission { jobs, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SchedulerError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => SchedulerError::ShuttingDown,
        })?;
        Ok(answered.await.map_err(|_| SchedulerError::ShuttingDown)??)
    }
}

/// Runs until every handle is gone.
pub async fn run(
    submissions: mpsc::Receiver<Submission>,
    limits: BatchLimits,
    store: Arc<dyn Store>,
    watch: StoreWatch,
    announcer: Announcer,
) {
    let weight = |submission: &Submission| submission.jobs.len();
    commit_in_batches(submissions, limits, weight, |batch| commit(batch, &store, &watch, &announcer)).await;
}

async fn commit(batch: Vec<Submission>, store: &Arc<dyn Store>, watch: &StoreWatch, announcer: &Announcer) {
    let mut jobs = Vec::new();
    let mut answers = Vec::with_capacity(batch.len());
    for submission in batch {
        answers.push((submission.jobs.len(), submission.answer));
        jobs.extend(submission.jobs);
    }
    let waiting: Vec<Option<Scheduled>> = jobs.iter().map(|new| scheduled(&new.job)).collect();
    let (len, asked) = (jobs.len(), Instant::now());
    match store.submit_jobs(jobs).await {
        Ok(results) => {
            watch.succeeded("submit");
            metrics::commit("submit", len, asked.elapsed());
            let is_new = |r: &&Submitted| matches!(r, Submitted::Created | Submitted::Linked(_));
            metrics::submitted(results.iter().filter(is_new).count());
            let new = waiting.into_iter().zip(&results).filter_map(|(job, result)| match result {
                Submitted::Created => job,
                Submitted::Linked(job) => scheduled(job),
                _ => None,
            });
            announcer.jobs_scheduled(new).await;
            answer_all(answers, results);
        }
        Err(error) => {
            watch.failed("submit", &error);
            for (_, answer) in answers {
                let _ = answer.send(Err(repeat(&error)));
            }
        }
    }
}

fn answer_all(answers: Vec<(usize, Answer)>, results: Vec<Submitted>) {
    let mut results = results.into_iter();
    for (len, answer) in answers {
        // A client that went away still has its jobs stored.
        let _ = answer.send(Ok(results.by_ref().take(len).collect()));
    }
}

fn repeat(error: &StoreError) -> StoreError {
    match error {
        StoreError::Aborted(why) => StoreError::Aborted(why.clone()),
        StoreError::Unknown(why) => StoreError::Unknown(why.clone()),
        StoreError::Corrupt(why) => StoreError::Corrupt(why.clone()),
    }
}
