//! Jobs, schedules, runs and sessions for tests: sensible defaults, and only what a test is about is said in the test.
//!
//! Ids are UUIDv7 from a counter and the time of creation, so they sort as real ones do and a run can be repeated.

mod jobs_in_tests;
mod schedules;
mod workflows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tickwheel_core::job::HttpTarget;
use tickwheel_core::ports::{Idempotency, NewJob, Session};
use tickwheel_core::retry::RetryPolicy;
use tickwheel_core::{
    Delivery, Job, JobId, JobSpec, JsonText, Partition, Priority, SessionId, State, Target, Timestamp,
};
use uuid::Uuid;

pub use jobs_in_tests::JobInTest;
pub use schedules::{ScheduleBuilder, backfill, schedule, schedule_id, schedule_numbered};
pub use workflows::{
    RunBuilder, WorkflowBuilder, items_of, rich_spec, run, run_at, run_id, run_numbered, task_spec,
    waiting_by_edges, workflow,
};

/// When the jobs of [`job`] are created and due unless the test says otherwise: 2025-01-01T00:00:00Z.
pub const START: Timestamp = Timestamp::from_millis(1_735_689_600_000);

/// The moment `ms` milliseconds after [`START`].
pub const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(START.as_millis() + ms)
}

/// The UUIDv7 with this time and this number in its tail: later and higher sorts later.
pub fn job_id(created_at: Timestamp, number: u64) -> JobId {
    JobId::from_uuid(uuid_v7(created_at, number))
}

/// A session id; the same number gives the same id.
pub fn session_id(number: u64) -> SessionId {
    SessionId::from_uuid(uuid_v7(START, number))
}

/// A session called `node-<number>` whose lease ends then.
pub fn session(number: u64, expires_at: Timestamp) -> Session {
    Session { id: session_id(number), node: format!("node-{number}"), expires_at }
}

/// The default builder, with an id no other builder of this process has.
pub fn job() -> JobBuilder {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    job_numbered(NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The default builder with a fixed number in its id: the same job in every run.
pub fn job_numbered(number: u64) -> JobBuilder {
    JobBuilder::new(number)
}

fn uuid_v7(at: Timestamp, number: u64) -> Uuid {
    let ms = u64::try_from(at.as_millis()).unwrap_or(0);
    let mut tail = [0u8; 10];
    tail[2..].copy_from_slice(&number.to_be_bytes());
    uuid::Builder::from_unix_timestamp_millis(ms, &tail).into_uuid()
}

/// Builds a [`Job`]: scheduled, an HTTP target, default queue, priority normal, due at once.
#[derive(Clone, Debug)]
pub struct JobBuilder {
    number: u64,
    job: Job,
    idempotency: Option<Idempotency>,
}

impl JobBuilder {
    fn new(number: u64) -> Self {
        let id = job_id(START, number);
        let spec = JobSpec { timeout_ms: 30_000, ..JobSpec::new(http_target("http://127.0.0.1:9/hook")) };
        let job =
            Job::new(id, "email.send", spec, START).with(|job| job.payload = JsonText::empty_object().into());
        Self { number, job, idempotency: None }
    }

    /// Created then; its id and partition follow.
    #[must_use]
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.job.created_at = at;
        self.job.id = job_id(at, self.number);
        self.job.partition = Partition::of(self.job.id);
        self
    }

    /// Ordered for, and due, then.
    #[must_use]
    pub fn due_at(mut self, at: Timestamp) -> Self {
        self.job.execute_at = at;
        self.job.due_at = at;
        self
    }

    /// Of this partition instead of the one its id gives.
    #[must_use]
    pub fn partition(mut self, partition: Partition) -> Self {
        self.job.partition = partition;
        self
    }

    /// Owned by.
    #[must_use]
    pub fn tenant(mut self, tenant: &str) -> Self {
        self.job.tenant = tenant.into();
        self
    }

    /// Of this type.
    #[must_use]
    pub fn job_type(mut self, job_type: &str) -> Self {
        self.job.job_type = job_type.into();
        self
    }

    /// In this queue.
    #[must_use]
    pub fn queue(mut self, queue: &str) -> Self {
        self.job.queue = queue.into();
        self
    }

    /// This urgent.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.job.priority = priority;
        self
    }

    /// In this state, instead of `scheduled`.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.job = self.job.in_state(state);
        self
    }

    /// With these labels.
    #[must_use]
    pub fn tags<const N: usize>(mut self, tags: [&str; N]) -> Self {
        self.job.tags = tags.map(str::to_owned).to_vec();
        self
    }

    /// With this JSON text as data.
    #[must_use]
    pub fn payload(mut self, json: &str) -> Self {
        self.job.payload = JsonText::from_checked(json).into();
        self
    }

    /// Run by.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.spec().target = target;
        self
    }

    /// An HTTP target with this address.
    #[must_use]
    pub fn http(self, url: &str) -> Self {
        self.target(http_target(url))
    }

    /// Tried again like this.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.spec().retry = retry;
        self
    }

    /// An attempt may take this long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec().timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// At least or at most once.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.spec().delivery = delivery;
        self
    }

    /// The outcome is to be sent there.
    #[must_use]
    pub fn callback_url(mut self, url: &str) -> Self {
        self.spec().callback_url = Some(url.to_owned());
        self
    }

    /// Started when these have completed.
    #[must_use]
    pub fn depends_on(mut self, parents: impl IntoIterator<Item = JobId>) -> Self {
        self.spec().depends_on = parents.into_iter().collect();
        self
    }

    fn spec(&mut self) -> &mut JobSpec {
        Arc::make_mut(&mut self.job.spec)
    }

    /// Changes what has no method of its own.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Job)) -> Self {
        change(&mut self.job);
        self
    }

    /// Submitted under this key; `request` stands for the request's digest.
    #[must_use]
    pub fn idempotency(mut self, key: &str, request: u8) -> Self {
        self.idempotency = Some(Idempotency { key: key.to_owned(), fingerprint: [request; 32] });
        self
    }

    /// The job.
    pub fn build(self) -> Job {
        self.job
    }

    /// The job, to be submitted.
    pub fn build_new(self) -> NewJob {
        NewJob { job: self.job, idempotency: self.idempotency }
    }
}

fn http_target(url: &str) -> Target {
    Target::Http(HttpTarget { url: url.to_owned(), method: "POST".into(), headers: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_creation_and_fall_into_the_range_of_their_moment() {
        let (first, second, later) = (job_id(at(5), 1), job_id(at(5), 2), job_id(at(6), 1));
        assert!(first < second && second < later);
        assert!(JobId::first_at(at(5)) <= first && second < JobId::first_at(at(6)));
        assert_eq!(first.as_uuid().get_version_num(), 7);
    }

    #[test]
    fn no_two_jobs_share_an_id() {
        assert_ne!(job().build().id, job().build().id);
        assert_eq!(job_numbered(7).build(), job_numbered(7).build());
    }
}
