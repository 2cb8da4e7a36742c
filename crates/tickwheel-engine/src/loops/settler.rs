//! Writes the ends of attempts, many in a commit, and announces what followed.
//!
//! A settlement may be written again without harm: the store refuses the second one as stale. So whatever the store's
//! answer to a failed commit means, the batch is simply tried again until the store says something.

use std::sync::Arc;

use tickwheel_core::ports::{DueJob, JobStore, Scheduled, Settled, SettledBatch};
use tickwheel_core::settle::{Outcome, PoisonRule, Settlement, decide};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{Job, State, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::announcer::{Announcer, EndedJob, JobsSettled};
use crate::batch::{BatchLimits, commit_in_batches};
use crate::host::Host;
use crate::metrics;
use crate::running::RunningAttempt;
use crate::store_watch::StoreWatch;

/// The end of an attempt, not written yet.
pub struct Unsettled {
    /// The job as it was claimed, with the real start of the attempt.
    pub job: Box<Job>,
    /// What was seen.
    pub outcome: Outcome,
    /// When.
    pub ended_at: Timestamp,
    /// Keeps the attempt known until its end is written.
    pub attempt: Option<RunningAttempt>,
    /// Who wants to know what became of it, and of the job.
    pub answer: Option<oneshot::Sender<(Settled, State)>>,
}

/// Where ends of attempts are handed in.
#[derive(Clone)]
pub struct SettlerHandle {
    inbox: mpsc::Sender<Unsettled>,
    unwritten: Arc<watch::Sender<usize>>,
}

impl SettlerHandle {
    /// A handle and what the loop reads from.
    pub fn new(len_max: usize) -> (Self, mpsc::Receiver<Unsettled>) {
        let (inbox, receiver) = mpsc::channel(len_max);
        (Self { inbox, unwritten: Arc::new(watch::Sender::new(0)) }, receiver)
    }

    /// Hands one in; waits while too many are unwritten.
    pub async fn settle(&self, unsettled: Unsettled) {
        self.unwritten.send_modify(|count| *count += 1);
        if self.inbox.send(unsettled).await.is_err() {
            self.written(1);
            tracing::error!("the settler is gone; the attempt will be found by its lease");
        }
    }

    /// Waits until everything handed in so far is written.
    pub async fn flushed(&self) {
        let _ = self.unwritten.subscribe().wait_for(|count| *count == 0).await;
    }

    fn written(&self, count: usize) {
        self.unwritten.send_modify(|unwritten| *unwritten -= count);
    }

    /// Hands one in and waits until it is written.
    pub async fn settle_and_wait(
        &self,
        job: Job,
        outcome: Outcome,
        ended_at: Timestamp,
    ) -> Option<(Settled, State)> {
        let (answer, answered) = oneshot::channel();
        self.settle(Unsettled { job: Box::new(job), outcome, ended_at, attempt: None, answer: Some(answer) })
            .await;
        answered.await.ok()
    }
}

/// How the loop behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct SettlerOptions {
    /// When a job counts as poison.
    pub poison: PoisonRule,
    /// How many ends are written at once.
    pub batches: BatchLimits,
}

/// See the module.
pub struct Settler {
    pub options: SettlerOptions,
    pub host: Host,
    pub store: Arc<dyn JobStore>,
    pub watch: StoreWatch,
    pub handle: SettlerHandle,
    pub announcer: Announcer,
}

impl Settler {
    /// Runs until it is stopped; [`SettlerHandle::flushed`] says when nothing is left to write.
    pub async fn run(self, unsettled: mpsc::Receiver<Unsettled>) {
        commit_in_batches(unsettled, self.options.batches, |_| 1, |batch| self.run_once(batch)).await;
    }

    /// Writes these ends, however often that takes, announces what followed, and answers those who wait.
    pub async fn run_once(&self, mut batch: Vec<Unsettled>) {
        let count = batch.len();
        while !batch.is_empty() {
            let settlements: Vec<Settlement> = batch.iter().filter_map(|item| self.decide(item)).collect();
            let SettledBatch { settled, released, reconcile_requested } = self.write(&settlements).await;
            forget_written(&mut batch, &settled);
            count_attempts(&settlements, &settled);
            let news = JobsSettled {
                of_workers: of_workers(&batch, &settled),
                scheduled: scheduled(&batch, &settlements, &settled, released),
                ended: ended(&batch, &settlements),
                callbacks_written: is_callback_written(&settlements, &settled),
                reconcile_requested,
            };
            self.announcer.jobs_settled(news).await;
            batch = answer_all(batch, &settlements, &settled);
        }
        self.handle.written(count);
    }

    fn decide(&self, item: &Unsettled) -> Option<Settlement> {
        let jitter = self.host.jitter();
        let settlement = decide(&item.job, item.outcome.clone(), item.ended_at, &self.options.poison, jitter);
        debug_assert!(settlement.is_some(), "an accepted attempt is not handed to the settler");
        settlement
    }

    async fn write(&self, settlements: &[Settlement]) -> SettledBatch {
        loop {
            let asked = Instant::now();
            match self.store.settle(settlements.to_vec()).await {
                Ok(batch) => {
                    self.watch.succeeded("settle");
                    metrics::commit("settle", settlements.len(), asked.elapsed());
                    return batch;
                }
                Err(error) => self.watch.wait_after("settle", &error).await,
            }
        }
    }
}

fn count_attempts(settlements: &[Settlement], results: &[Settled]) {
    let written = settlements.iter().zip(results).filter(|(_, result)| **result != Settled::CancelRequested);
    written.for_each(|(settlement, result)| metrics::finished_attempt(settlement, *result));
}

/// What waits for its time now: what the ends released, and what is to be tried again.
fn scheduled(
    batch: &[Unsettled],
    settlements: &[Settlement],
    results: &[Settled],
    mut released: Vec<Scheduled>,
) -> Vec<Scheduled> {
    for ((item, settlement), result) in batch.iter().zip(settlements).zip(results) {
        // Stale after a lost answer may mean that it was written: being told of it does no harm.
        if let Some(due_at) = settlement.next.due_again_at()
            && *result != Settled::CancelRequested
        {
            let Scheduled { due, target, .. } = Scheduled::from(&*item.job);
            released.push(Scheduled { due: DueJob { due_at, ..due }, target, route: None });
        }
    }
    released
}

/// The attempts that were with workers and are over.
fn of_workers(batch: &[Unsettled], results: &[Settled]) -> Vec<AttemptRef> {
    let is_over = |(item, result): &(&Unsettled, &Settled)| {
        item.job.spec.is_for_workers() && **result != Settled::CancelRequested
    };
    let attempt =
        |(item, _): (&Unsettled, &Settled)| AttemptRef { job_id: item.job.id, attempt: item.job.attempt };
    batch.iter().zip(results).filter(is_over).map(attempt).collect()
}

fn ended(batch: &[Unsettled], settlements: &[Settlement]) -> impl Iterator<Item = EndedJob> + Clone {
    let is_over = |(_, settlement): &(&Unsettled, &Settlement)| settlement.next.state().is_terminal();
    batch.iter().zip(settlements).filter(is_over).map(|(item, _)| EndedJob::from(&*item.job))
}

fn is_callback_written(settlements: &[Settlement], results: &[Settled]) -> bool {
    settlements.iter().zip(results).any(|(settlement, result)| {
        let is_last = settlement.next.due_again_at().is_none() && *result != Settled::CancelRequested;
        is_last && settlement.callback_url().is_some()
    })
}

/// Before a retry is announced: its claim must not meet the attempt it follows.
fn forget_written(batch: &mut [Unsettled], results: &[Settled]) {
    for (item, result) in batch.iter_mut().zip(results) {
        if *result != Settled::CancelRequested {
            item.attempt = None;
        }
    }
}

/// Answers those who wait; what came between a retry and a cancel is returned, to be decided anew.
fn answer_all(batch: Vec<Unsettled>, settlements: &[Settlement], results: &[Settled]) -> Vec<Unsettled> {
    let mut undecided = Vec::new();
    for ((mut item, settlement), result) in batch.into_iter().zip(settlements).zip(results) {
        if *result == Settled::CancelRequested {
            item.job.cancel_requested = true;
            undecided.push(item);
        } else if let Some(answer) = item.answer {
            let _ = answer.send((*result, settlement.next.state()));
        }
    }
    undecided
}

#[cfg(test)]
mod tests {
    use tickwheel_core::Failure;
    use tickwheel_core::change::Change;
    use tickwheel_core::machine::Event;
    use tickwheel_core::ports::{Claim, JobStore, SessionStore};
    use tickwheel_testkit::fixtures::{at, job_numbered, session, session_id};
    use tickwheel_testkit::model::Verb;
    use tickwheel_testkit::{Fault, ModelStore};

    use super::*;
    use crate::announcer::tests::listening::{Listening, listening, shown};

    struct Bench {
        store: Arc<ModelStore>,
        settler: Settler,
        listening: Listening,
        /// Running jobs: one with a callback, and another.
        jobs: Vec<Job>,
    }

    async fn bench() -> Bench {
        let store = Arc::new(ModelStore::new());
        let (announcer, mut listening) = listening();
        store.open_session(session(1, at(60_000))).await.unwrap();
        let with_callback = job_numbered(1).callback_url("http://127.0.0.1:9/told").build_new();
        let new = vec![with_callback, job_numbered(2).build_new()];
        let ids: Vec<_> = new.iter().map(|new| new.job.id).collect();
        listening.wait_for(ids.iter().copied());
        store.submit_jobs(new).await.unwrap();
        let claim = Claim { claimed_by: None, session: session_id(1), jobs: ids, now: at(0) };
        let mut jobs = store.claim(claim).await.unwrap();
        jobs.sort_by_key(|job| job.id);
        let settler = Settler {
            options: SettlerOptions::default(),
            host: Host::default(),
            store: store.clone(),
            watch: StoreWatch::default(),
            handle: SettlerHandle::new(10).0,
            announcer,
        };
        Bench { store, settler, listening, jobs }
    }

    impl Bench {
        /// Settles each job with its outcome, and says what came of it.
        async fn settle<const N: usize>(&self, outcomes: [(&Job, Outcome); N]) -> Vec<Settled> {
            let (mut batch, mut answers) = (Vec::new(), Vec::new());
            for (job, outcome) in outcomes {
                let (answer, answered) = oneshot::channel();
                let (job, answer) = (Box::new(job.clone()), Some(answer));
                batch.push(Unsettled { job, outcome, ended_at: at(10), attempt: None, answer });
                answers.push(answered);
            }
            self.settler.handle.unwritten.send_modify(|count| *count += N);
            self.settler.run_once(batch).await;
            self.settler.handle.flushed().await;
            let answered = futures::future::join_all(answers).await;
            answered.into_iter().map(|answer| answer.unwrap().0).collect()
        }
    }

    fn completed() -> Outcome {
        Outcome::Completed { result: None }
    }

    fn failed() -> Outcome {
        Outcome::Failed { failure: Failure::new("http_status", "500"), retryable: true, retry_after: None }
    }

    #[tokio::test]
    async fn ends_are_written_together_and_everybody_hears_of_them() {
        let mut bench = bench().await;
        let outcomes = [(&bench.jobs[0], completed()), (&bench.jobs[1], failed())];
        assert_eq!(bench.settle(outcomes).await, [Settled::Applied; 2]);
        let retried = bench.store.get_job(bench.jobs[1].id).await.unwrap().unwrap();
        assert_eq!(retried.state(), State::Scheduled);
        let heard = bench.listening.heard();
        assert_eq!(heard.planner, shown([Event::Learned(vec![DueJob::from(&retried)])]));
        assert_eq!(heard.clients, [bench.jobs[0].id]);
        assert!(heard.callbacks && !heard.reconciler);
    }

    #[tokio::test]
    async fn an_end_is_written_again_until_the_store_answers() {
        for fault in [Fault::Aborted, Fault::LostReply] {
            let mut bench = bench().await;
            bench.store.fail(Verb::Settle, fault);
            let result = bench.settle([(&bench.jobs[1], completed())]).await;
            let expected = if fault == Fault::Aborted { Settled::Applied } else { Settled::Stale };
            assert_eq!(result, [expected]);
            assert_eq!(bench.listening.heard().clients, [bench.jobs[1].id]);
        }
    }

    #[tokio::test]
    async fn a_cancel_that_comes_before_a_retry_wins() {
        let bench = bench().await;
        let job = &bench.jobs[1];
        bench.store.change_job(job.id, Change::Cancel, at(5)).await.unwrap();
        assert_eq!(bench.settle([(job, failed())]).await, [Settled::Applied]);
        let state = bench.store.get_job(job.id).await.unwrap().unwrap().state();
        assert_eq!(state, State::Cancelled);
    }
}
