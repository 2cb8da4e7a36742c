//! The target of every job: how long attempts take there, and what comes of them.

use std::time::Duration;

use async_trait::async_trait;
use rand::RngExt;
use tickwheel_core::ports::{AttemptContext, Callback, CallbackSender, Executor, Undelivered};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{Failure, Job, JobId, Timestamp};
use tickwheel_testkit::graphs::some_result;
// sleep: in simulated time, which passes when nobody has anything to do
use tokio::time::sleep;

use crate::TIMEOUT;
use crate::client::DEADLY;
use crate::cluster::{Cluster, Happening, SharedCluster};

/// The target as one process sees it.
pub struct Target {
    node: usize,
    life: u32,
    cluster: SharedCluster,
}

impl Target {
    pub fn new(node: usize, life: u32, cluster: SharedCluster) -> Self {
        Self { node, life, cluster }
    }
}

#[async_trait]
impl Executor for Target {
    async fn run(&self, attempt: &AttemptContext) -> Outcome {
        let (takes, outcome) = {
            let mut cluster = self.cluster.lock();
            cluster.delivered(self.node, &attempt.job);
            cluster.some_outcome()
        };
        let _executing = Executing::begin(self, &attempt.job);
        sleep(takes / 2).await;
        if attempt.job.job_type.ends_with(DEADLY) {
            let (node, life) = (self.node, self.life);
            self.cluster.lock().at(0, Happening::KilledByJob { node, life });
        }
        sleep(takes / 2).await;
        if outcome == Outcome::Accepted {
            let attempt = AttemptRef { job_id: attempt.job.id, attempt: attempt.job.attempt };
            self.cluster.lock().report_later(attempt);
        }
        outcome
    }
}

/// An attempt that is at its target, until this is dropped.
struct Executing {
    cluster: SharedCluster,
    attempt: (JobId, u32),
}

impl Executing {
    fn begin(target: &Target, job: &Job) -> Self {
        let attempt = (job.id, job.attempt);
        target.cluster.lock().executing.insert(attempt, target.node);
        Self { cluster: target.cluster.clone(), attempt }
    }
}

impl Drop for Executing {
    fn drop(&mut self) {
        self.cluster.lock().executing.remove(&self.attempt);
    }
}

impl Cluster {
    fn delivered(&mut self, node: usize, job: &Job) {
        let (model, now) = (self.model.clone(), self.now_of(node));
        let found = model.with_model(|model| self.checks.delivered(node, job, model, now));
        self.check(found);
    }

    /// How long an attempt takes and what comes of it.
    pub fn some_outcome(&mut self) -> (Duration, Outcome) {
        let takes = Duration::from_millis(self.rng.random_range(1..600));
        match self.rng.random_range(0..100) {
            0..57 => (takes, Outcome::Completed { result: Some(some_result(&mut self.rng)) }),
            57..60 => (takes, Outcome::Snoozed { again_in: takes * 5 }),
            60..80 => (takes, failed(true)),
            80..86 => (takes, failed(false)),
            86..94 => (takes, Outcome::Accepted),
            _ => (TIMEOUT, Outcome::TimedOut),
        }
    }

    /// A target that answered 202 reports by itself, or never does.
    fn report_later(&mut self, attempt: AttemptRef) {
        if self.chance(70) {
            let (_, outcome) = self.some_outcome();
            let outcome = if outcome == Outcome::Accepted { Outcome::TimedOut } else { outcome };
            let delay = self.rng.random_range(1..3_000);
            self.at(delay, Happening::Report(attempt, outcome));
        }
    }
}

fn failed(retryable: bool) -> Outcome {
    let failure = Failure::new("http_status", "the target answered 500");
    Outcome::Failed { failure, retryable, retry_after: None }
}

/// There are no callbacks in these worlds.
pub struct Silent;

#[async_trait]
impl CallbackSender for Silent {
    async fn send(&self, _: &Callback, _: Option<&Job>, _: Timestamp) -> Result<String, Undelivered> {
        Ok(String::new())
    }
}
