//! The contract of a kind of job: its name, its payload, its result, and the defaults of its jobs.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickwheel_protocol::{Backoff, Delivery, Priority, Retry, Span, SubmitJob};

/// A payload that knows the name of its handler. Both sides import it: whoever submits, and the worker.
///
/// A type without Rust fields of its own can be a newtype around `serde_json::Value`.
pub trait JobType: Serialize + DeserializeOwned + Send + 'static {
    /// The job's type: what workers with a handler for it ask for.
    const NAME: &'static str;

    /// What the handler returns.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// The defaults of its jobs.
    fn options() -> JobOptions {
        JobOptions::default()
    }
}

/// Defaults for the jobs of a type. Whoever submits can change each of them.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    queue: Option<String>,
    priority: Option<Priority>,
    retry: Option<Retry>,
    timeout: Option<Span>,
    delivery: Option<Delivery>,
}

impl JobOptions {
    /// The queue they wait in.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// How urgent they are.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// How many retries follow the first attempt.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.retry.get_or_insert_default().max_retries = Some(retries);
        self
    }

    /// How the delay between retries begins and grows.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff, initial_delay: Duration) -> Self {
        let retry = self.retry.get_or_insert_default();
        retry.backoff = Some(backoff);
        retry.initial_delay = Some(span(initial_delay));
        self
    }

    /// How often and when to try again, in full.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// How long an attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(span(timeout));
        self
    }

    /// Whether they execute at least once or at most once.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = Some(delivery);
        self
    }

    pub(crate) fn request(self, job_type: impl Into<String>) -> SubmitJob {
        SubmitJob {
            job_type: job_type.into(),
            queue: self.queue,
            priority: self.priority,
            retry: self.retry,
            timeout: self.timeout,
            delivery: self.delivery,
            ..SubmitJob::default()
        }
    }
}

/// To the millisecond, never shorter.
pub(crate) fn span(duration: Duration) -> Span {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    Span::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
}
