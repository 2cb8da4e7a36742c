//! Takes submissions in, writes those that arrive together together, answers after the commit.

use std::sync::Arc;

use tickwheel_core::Job;
use tickwheel_core::ports::{Creation, JobStore, NewJob, SchedulerError, StoreError, UnknownParent};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::announcer::{Announcer, scheduled};
use crate::batch::{BatchLimits, commit_in_batches};
use crate::metrics;
use crate::store_watch::StoreWatch;

type Submitted = Creation<Job, UnknownParent>;
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

/// How the loop behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntakeOptions {
    /// How many jobs are written at once.
    pub batches: BatchLimits,
}

/// See the module.
pub struct Intake {
    pub options: IntakeOptions,
    pub store: Arc<dyn JobStore>,
    pub watch: StoreWatch,
    pub announcer: Announcer,
}

impl Intake {
    /// Runs until every handle is gone.
    pub async fn run(self, submissions: mpsc::Receiver<Submission>) {
        let weight = |submission: &Submission| submission.jobs.len();
        commit_in_batches(submissions, self.options.batches, weight, |batch| self.run_once(batch)).await;
    }

    /// Stores what was submitted in one commit, announces it and answers everybody.
    pub async fn run_once(&self, batch: Vec<Submission>) {
        let mut jobs = Vec::new();
        let mut answers = Vec::with_capacity(batch.len());
        for submission in batch {
            answers.push((submission.jobs.len(), submission.answer));
            jobs.extend(submission.jobs);
        }
        let (len, asked) = (jobs.len(), Instant::now());
        match self.store.submit_jobs(jobs).await {
            Ok(results) => {
                self.watch.succeeded("submit");
                metrics::commit("submit", len, asked.elapsed());
                self.announce(&results).await;
                answer_all(answers, results);
            }
            Err(error) => {
                self.watch.failed("submit", &error);
                for (_, answer) in answers {
                    let _ = answer.send(Err(repeat(&error)));
                }
            }
        }
    }

    async fn announce(&self, results: &[Submitted]) {
        let new = results.iter().filter_map(Creation::as_new);
        metrics::submitted(new.clone().count());
        self.announcer.jobs_scheduled(new.filter_map(scheduled)).await;
    }
}

fn answer_all(answers: Vec<(usize, Answer)>, results: Vec<Submitted>) {
    let mut results = results.into_iter();
    for (len, answer) in answers {
        // A client that went away still has its jobs stored.
        let _ = answer.send(Ok(results.by_ref().take(len).collect()));
    }
}

/// The same error for another who waits.
pub fn repeat(error: &StoreError) -> StoreError {
    match error {
        StoreError::Aborted(why) => StoreError::Aborted(why.clone()),
        StoreError::Unknown(why) => StoreError::Unknown(why.clone()),
        StoreError::Corrupt(why) => StoreError::Corrupt(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tickwheel_core::machine::Event;
    use tickwheel_core::ports::DueJob;
    use tickwheel_testkit::fixtures::job_numbered;
    use tickwheel_testkit::model::Verb;
    use tickwheel_testkit::{Fault, ModelStore};

    use super::*;
    use crate::announcer::tests::listening::{Listening, listening, shown};

    fn intake(store: &ModelStore) -> (Intake, Listening) {
        let (announcer, listening) = listening();
        let (options, watch) = (IntakeOptions::default(), StoreWatch::default());
        (Intake { options, store: Arc::new(store.clone()), watch, announcer }, listening)
    }

    fn submission(number: u64) -> (Submission, oneshot::Receiver<Result<Vec<Submitted>, StoreError>>) {
        let (answer, answered) = oneshot::channel();
        (Submission { jobs: vec![job_numbered(number).build_new()], answer }, answered)
    }

    #[tokio::test]
    async fn what_arrives_together_is_stored_announced_and_answered_together() {
        let store = ModelStore::new();
        let (intake, mut listening) = intake(&store);
        let (first, first_answer) = submission(1);
        let (second, second_answer) = submission(2);
        intake.run_once(vec![first, second]).await;
        let due = [1, 2].map(|number| DueJob::from(&job_numbered(number).build()));
        assert_eq!(listening.heard().planner, shown([Event::Learned(due.to_vec())]));
        assert!(first_answer.await.unwrap().unwrap()[0].as_new().is_some());
        assert!(second_answer.await.unwrap().unwrap()[0].as_new().is_some());
        assert_eq!(store.with_model(|model| model.live().len()), 2);
    }

    #[tokio::test]
    async fn everybody_of_a_batch_hears_that_it_failed_and_nobody_else_does() {
        let store = ModelStore::new();
        let (intake, mut listening) = intake(&store);
        store.fail(Verb::SubmitJobs, Fault::Aborted);
        let ((first, first_answer), (second, second_answer)) = (submission(1), submission(2));
        intake.run_once(vec![first, second]).await;
        assert!(first_answer.await.unwrap().is_err() && second_answer.await.unwrap().is_err());
        assert_eq!(listening.heard().planner, shown([]));
    }

    #[tokio::test]
    async fn a_full_intake_refuses() {
        let (handle, _submissions) = IntakeHandle::new(1);
        let jobs = || vec![job_numbered(1).build_new()];
        let mut waiting = Box::pin(handle.submit(jobs()));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(matches!(handle.submit(jobs()).await, Err(SchedulerError::Overloaded)));
    }
}
