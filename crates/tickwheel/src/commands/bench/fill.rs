//! Fills a store before anything is measured on it: with jobs for the far future, with a history, with schedules.
//!
//! Through the store's own verbs, in large batches and several at once: real rows, as an engine would have left them. No engine
//! is running yet, so nobody takes the jobs away.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tickwheel_core::SessionId;
use tickwheel_core::ports::{Claim, Clock as _, NewJob, Session, Store};
use tickwheel_core::retry::Jitter;
use tickwheel_core::settle::{Outcome, PoisonRule, decide};
use tickwheel_engine::SystemClock;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::figure::Figure;
use super::jobs::new_job;
use super::schedules::Pattern;

const BATCH_LEN: usize = 2_000;
const BATCHES_IN_FLIGHT: usize = 4;
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Waiting jobs are due from tomorrow on, over this time: the later the one, the later on the whole the other was submitted, as
/// if they had come in over weeks.
const WAITING_SPAN: Duration = DAY.saturating_mul(30);
/// How far a job may be from that order.
const DISORDER: Duration = Duration::from_secs(3600);
/// Nobody renews the session that makes the history.
const SESSION_LEASE: Duration = DAY;

/// How much to put into the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contents {
    pub waiting: usize,
    pub finished: usize,
    pub schedules: usize,
    pub pattern: Pattern,
}

/// Puts jobs and schedules into the store.
pub(super) async fn fill(store: &Arc<dyn Store>, contents: Contents) -> anyhow::Result<Figure> {
    let Contents { waiting, finished, schedules, pattern } = contents;
    let begun = Instant::now();
    let tomorrow = SystemClock.now() + DAY;
    let due = move |number: usize| {
        let in_order = WAITING_SPAN.mul_f64(number as f64 / waiting as f64);
        tomorrow + in_order + DISORDER.mul_f64(rand::random())
    };
    in_batches(waiting, |numbers| submit(store.clone(), numbers.map(due).map(new_job).collect())).await?;
    if finished > 0 {
        let session = open_session(store).await?;
        in_batches(finished, |numbers| run_to_the_end(store.clone(), session, numbers.len())).await?;
        store.end_session(session).await?;
    }
    in_batches(schedules, |numbers| super::schedules::create(store.clone(), pattern, numbers, schedules))
        .await?;
    Ok(Figure::Fill { waiting, finished, schedules, seconds: begun.elapsed().as_secs_f64() })
}

/// Writes `jobs` jobs, each batch by one call of `write` with the numbers of its jobs.
async fn in_batches<W>(jobs: usize, write: impl Fn(Range<usize>) -> W) -> anyhow::Result<()>
where
    W: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let mut writing = JoinSet::new();
    for first in (0..jobs).step_by(BATCH_LEN) {
        if writing.len() == BATCHES_IN_FLIGHT
            && let Some(written) = writing.join_next().await
        {
            written??;
        }
        writing.spawn(write(first..jobs.min(first + BATCH_LEN)));
    }
    while let Some(written) = writing.join_next().await {
        written??;
    }
    Ok(())
}

async fn submit(store: Arc<dyn Store>, jobs: Vec<NewJob>) -> anyhow::Result<()> {
    store.submit_jobs(jobs).await?;
    Ok(())
}

async fn open_session(store: &Arc<dyn Store>) -> anyhow::Result<SessionId> {
    let id = SessionId::from_uuid(Uuid::now_v7());
    let expires_at = SystemClock.now() + SESSION_LEASE;
    store.open_session(Session { id, node: "bench".into(), expires_at }).await?;
    Ok(id)
}

async fn run_to_the_end(store: Arc<dyn Store>, session: SessionId, len: usize) -> anyhow::Result<()> {
    let now = SystemClock.now();
    let new: Vec<NewJob> = (0..len).map(|_| new_job(now)).collect();
    let jobs = new.iter().map(|new| new.job.id).collect();
    store.submit_jobs(new).await?;
    let claimed = store.claim(Claim { claimed_by: None, session, jobs, now }).await?;
    ensure!(claimed.len() == len, "{} of {len} jobs could be claimed: is the store halted?", claimed.len());
    let done = Outcome::Completed { result: None };
    let ended_at = SystemClock.now();
    let ends = claimed
        .iter()
        .filter_map(|job| decide(job, done.clone(), ended_at, &PoisonRule::default(), Jitter::NONE));
    store.settle(ends.collect()).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn every_job_is_in_one_batch() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let jobs = BATCH_LEN * 6 + 1;
        in_batches(jobs, |numbers| {
            let written = written.clone();
            async move {
                written.lock().unwrap().extend(numbers);
                Ok(())
            }
        })
        .await
        .unwrap();
        let mut written = std::mem::take(&mut *written.lock().unwrap());
        written.sort_unstable();
        assert!(written.into_iter().eq(0..jobs));
    }

    #[tokio::test]
    async fn a_batch_that_fails_is_not_passed_over() {
        let failed = in_batches(1, |_| async { anyhow::bail!("full") }).await;
        assert!(failed.is_err());
    }
}
