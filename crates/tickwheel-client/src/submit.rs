//! Submitting: one job that can be awaited, or many at once.
//!
//! Each job carries an idempotency key of its own unless the caller gave one, so that a request whose answer was lost
//! can be sent again.

use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, Value, to_raw_value};
use tickwheel_protocol::{
    BatchItem, BatchResult, Code, Delivery, Job, Labels, Priority, Problem, Retry, Span, SubmitJob, Time,
};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::handle::JobHandle;
use crate::job_type::{JobType, span};
use crate::repeat::{Repeat, repeated};
use crate::trace::current_traceparent;

/// The bounds of a batch, a little below the server's own.
const BATCH_JOBS_MAX: usize = 10_000;
const BATCH_BYTES_MAX: usize = 15 << 20;

/// A job to submit, with all that is said about it.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until it is submitted"]
pub struct NewJob {
    request: SubmitJob,
    unique: Option<Unique>,
    traceparent: Option<String>,
    /// Why the payload could not be written.
    fault: Option<String>,
}

/// Jobs that would do the same work count once.
#[derive(Clone, Debug, Serialize)]
struct Unique {
    within: Span,
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    request: &'a SubmitJob,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique: Option<&'a Unique>,
}

impl NewJob {
    /// A job of type `J`, with the defaults of its type.
    pub fn of<J: JobType>(job: &J) -> Self {
        Self::with_payload(J::options().request(J::NAME), job)
    }

    /// A job of a type that has no Rust type here.
    pub fn named(job_type: impl Into<String>, payload: &impl Serialize) -> Self {
        let request = SubmitJob { job_type: job_type.into(), ..SubmitJob::default() };
        Self::with_payload(request, payload)
    }

    fn with_payload(request: SubmitJob, payload: &impl Serialize) -> Self {
        let (payload, fault) = match to_raw_value(payload) {
            Ok(payload) => (Some(payload), None),
            Err(error) => (None, Some(format!("cannot write the payload as JSON: {error}"))),
        };
        Self { request: SubmitJob { payload, ..request }, unique: None, traceparent: None, fault }
    }

    /// The request as it will be sent.
    pub fn request(&self) -> &SubmitJob {
        &self.request
    }

    /// The same, or why it cannot be sent.
    pub(crate) fn into_request(self, client: &Client) -> Result<SubmitJob, Error> {
        self.check(client)?;
        Ok(self.request)
    }

    fn check(&self, client: &Client) -> Result<(), Error> {
        if let Some(fault) = &self.fault {
            return Err(Error::BadRequest(fault.clone()));
        }
        let (bytes, bytes_max) = (self.payload_bytes(), client.options().payload_bytes_max);
        if bytes > bytes_max {
            let detail = format!("the payload has {bytes} bytes, more than {bytes_max}");
            return Err(Error::refused(Problem::new(Code::PayloadTooLarge, detail)));
        }
        Ok(())
    }

    fn payload_bytes(&self) -> usize {
        self.request.payload.as_ref().map_or(0, |payload| payload.get().len())
    }

    /// Checked, with a key, as text.
    fn body(&mut self, client: &Client) -> Result<Box<RawValue>, Error> {
        self.check(client)?;
        self.request.idempotency_key.get_or_insert_with(|| Uuid::now_v7().to_string());
        let body = Body { request: &self.request, unique: self.unique.as_ref() };
        to_raw_value(&body)
            .map_err(|error| Error::BadRequest(format!("cannot write the job as JSON: {error}")))
    }
}

macro_rules! settings {
    ($job:ident) => {
        /// How long to wait before it starts.
        pub fn delay(mut self, delay: Duration) -> Self {
            self.$job().request.delay = Some(span(delay));
            self
        }

        /// When to start.
        pub fn execute_at(mut self, at: Time) -> Self {
            self.$job().request.execute_at = Some(at);
            self
        }

        /// The queue it waits in.
        pub fn queue(mut self, queue: impl Into<String>) -> Self {
            self.$job().request.queue = Some(queue.into());
            self
        }

        /// How urgent it is.
        pub fn priority(mut self, priority: Priority) -> Self {
            self.$job().request.priority = Some(priority);
            self
        }

        /// How many retries follow the first attempt.
        pub fn max_retries(mut self, retries: u32) -> Self {
            self.$job().request.retry.get_or_insert_default().max_retries = Some(retries);
            self
        }

        /// How often and when to try again, in full.
        pub fn retry(mut self, retry: Retry) -> Self {
            self.$job().request.retry = Some(retry);
            self
        }

        /// How long an attempt may take.
        pub fn timeout(mut self, timeout: Duration) -> Self {
            self.$job().request.timeout = Some(span(timeout));
            self
        }

        /// Whether it executes at least once or at most once.
        pub fn delivery(mut self, delivery: Delivery) -> Self {
            self.$job().request.delivery = Some(delivery);
            self
        }

        /// Adds a label for finding it.
        pub fn tag(mut self, tag: impl Into<String>) -> Self {
            self.$job().request.tags.get_or_insert_default().push(tag.into());
            self
        }

        /// Waits for this job to complete first.
        pub fn depends_on(mut self, job: Uuid) -> Self {
            self.$job().request.depends_on.get_or_insert_default().push(job.to_string());
            self
        }

        /// What a worker must offer in its labels.
        pub fn requires(mut self, labels: Labels) -> Self {
            self.$job().request.requires = Some(labels);
            self
        }

        /// The URL that receives the outcome.
        pub fn callback_url(mut self, url: impl Into<String>) -> Self {
            self.$job().request.callback_url = Some(url.into());
            self
        }

        /// A key of the caller's own: the same key with the same job again returns the first job.
        pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
            self.$job().request.idempotency_key = Some(key.into());
            self
        }

        /// Returns the existing job if one of the same type and payload was submitted within this time.
        pub fn unique_within(mut self, within: Duration) -> Self {
            self.$job().unique = Some(Unique { within: span(within) });
            self
        }

        /// Who submits it.
        pub fn created_by(mut self, who: impl Into<String>) -> Self {
            self.$job().request.created_by = Some(who.into());
            self
        }

        /// The trace that it belongs to (W3C trace context). Default: with the feature `otel`, the current span.
        pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
            self.$job().traceparent = Some(traceparent.into());
            self
        }
    };
}

impl NewJob {
    settings!(itself);

    fn itself(&mut self) -> &mut Self {
        self
    }
}

/// A submission: say more about the job, then await it.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct Submit<O> {
    client: Client,
    job: NewJob,
    output: PhantomData<fn() -> O>,
}

impl<O> Submit<O> {
    settings!(job);

    pub(crate) fn new(client: Client, job: NewJob) -> Self {
        Self { client, job, output: PhantomData }
    }

    fn job(&mut self) -> &mut NewJob {
        &mut self.job
    }
}

impl<O: DeserializeOwned> IntoFuture for Submit<O> {
    type Output = Result<JobHandle<O>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, job, .. } = self;
        Box::pin(async move {
            let job = submit_one(&client, job).await?;
            Ok(JobHandle::new(client, job))
        })
    }
}

async fn submit_one(client: &Client, mut job: NewJob) -> Result<Job, Error> {
    let body = job.body(client)?;
    if let Some(recorder) = &client.shared.recorder {
        return recorder.keep(job.request);
    }
    let body = Bytes::from(String::from(Box::<str>::from(body)));
    let traceparent = job.traceparent.or_else(current_traceparent);
    let traceparent = traceparent.as_deref();
    client
        .repeated(Repeat::Always, || client.post(&["jobs"]).body(body.clone()).traceparent(traceparent))
        .await
}

/// Submits jobs in as few requests as possible. If a whole request fails, all its jobs have its error.
pub(crate) async fn submit_many(client: &Client, jobs: Vec<NewJob>) -> Vec<Result<JobHandle<Value>, Error>> {
    let mut outcomes: Vec<Option<Result<Job, Error>>> = jobs.iter().map(|_| None).collect();
    let mut batch = Batch::default();
    for (index, mut job) in jobs.into_iter().enumerate() {
        let body = match job.body(client) {
            Err(error) => {
                outcomes[index] = Some(Err(error));
                continue;
            }
            Ok(_) if client.shared.recorder.is_some() => {
                outcomes[index] = client.shared.recorder.as_ref().map(|recorder| recorder.keep(job.request));
                continue;
            }
            Ok(body) => body,
        };
        if !batch.has_room_for(&body) {
            std::mem::take(&mut batch).send(client, &mut outcomes).await;
        }
        batch.bytes += body.get().len() + 1;
        batch.jobs.push((index, body));
    }
    batch.send(client, &mut outcomes).await;
    let missing = || Err(Error::BadAnswer("the server's answer has no result for this job".into()));
    let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(missing));
    outcomes.map(|outcome| outcome.map(|job| JobHandle::new(client.clone(), job))).collect()
}

/// Jobs that go into one request, each with its place in the whole.
#[derive(Default)]
struct Batch {
    jobs: Vec<(usize, Box<RawValue>)>,
    bytes: usize,
}

impl Batch {
    fn has_room_for(&self, job: &RawValue) -> bool {
        self.jobs.is_empty()
            || (self.jobs.len() < BATCH_JOBS_MAX && self.bytes + job.get().len() < BATCH_BYTES_MAX)
    }

    async fn send(self, client: &Client, outcomes: &mut [Option<Result<Job, Error>>]) {
        if self.jobs.is_empty() {
            return;
        }
        let (places, jobs): (Vec<_>, Vec<_>) = self.jobs.into_iter().unzip();
        let body = serde_json::to_vec(&tickwheel_protocol::BatchSubmit { jobs });
        let body = Bytes::from(body.expect("texts that are JSON already"));
        let traceparent = current_traceparent();
        let post = || client.post(&["jobs", "batch"]).body(body.clone()).traceparent(traceparent.as_deref());
        let send = || async { post().send().await?.read() };
        match repeated(client.options().patience, Repeat::Always, send).await {
            Ok(BatchResult { results }) => {
                for (place, item) in places.into_iter().zip(results) {
                    outcomes[place] = Some(match item {
                        BatchItem::Job(job) => Ok(*job),
                        BatchItem::Error(problem) => Err(Error::refused(problem)),
                    });
                }
            }
            Err(error) => {
                for place in places {
                    outcomes[place] = Some(Err(error.clone()));
                }
            }
        }
    }
}
