//! A submitted job: read it, wait for its result, cancel it.

use std::marker::PhantomData;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tickwheel_protocol::{Code, Job, Status};
use tokio::time::Instant;
use uuid::Uuid;

use crate::client::Client;
use crate::error::{Error, JobFailure};
use crate::repeat::Repeat;

/// How long one request waits. Short enough for proxies that cut silent connections.
pub(crate) const ROUND: Duration = Duration::from_secs(25);

/// A submitted job whose result is an `O`.
#[derive(Clone, Debug)]
pub struct JobHandle<O> {
    client: Client,
    job: Job,
    output: PhantomData<fn() -> O>,
}

impl<O> JobHandle<O> {
    pub(crate) fn new(client: Client, job: Job) -> Self {
        Self { client, job, output: PhantomData }
    }

    /// Its id.
    pub fn id(&self) -> Uuid {
        self.job.id
    }

    /// The job as the server last described it to this handle.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The job as it is now.
    pub async fn refresh(&mut self) -> Result<&Job, Error> {
        self.job = self.client.read_job(self.job.id).await?;
        Ok(&self.job)
    }

    /// Cancels it. One that runs is asked to stop.
    pub async fn cancel(&self) -> Result<Job, Error> {
        let id = self.job.id.to_string();
        // To cancel twice is to cancel.
        self.client.repeated(Repeat::Always, || self.client.post(&["jobs", &id, "cancel"])).await
    }
}

impl<O: DeserializeOwned> JobHandle<O> {
    /// Its result, once it has ended. Fails with [`Error::JobFailed`], [`Error::JobCancelled`], or after `timeout` with
    /// [`Error::WaitTimeout`]; the job goes on in that case.
    pub async fn wait(&self, timeout: Duration) -> Result<O, Error> {
        let id = self.job.id;
        let job: Job = until_ended(&self.client, &["jobs", &id.to_string()], id, timeout).await?;
        match job.status {
            Status::Failed => Err(Error::JobFailed(Box::new(failure(job)))),
            Status::Cancelled | Status::Skipped => Err(Error::JobCancelled { id }),
            _ => result(&job),
        }
    }
}

/// What is at `path` once it has ended.
pub(crate) async fn until_ended<T: DeserializeOwned>(
    client: &Client,
    path: &[&str],
    id: Uuid,
    timeout: Duration,
) -> Result<T, Error> {
    // A timeout too long for the clock is no timeout.
    let give_up_at = Instant::now().checked_add(timeout);
    loop {
        let left = give_up_at.map_or(ROUND, |at| at.saturating_duration_since(Instant::now()));
        let round = left.min(ROUND);
        let wait = format!("{}ms", round.as_millis().max(1));
        let call = || client.get(path).query("wait", Some(&wait)).patience(round);
        match client.repeated(Repeat::Always, call).await {
            Err(error) if error.code() == Some(Code::WaitTimeout) => {
                if left <= ROUND && give_up_at.is_some() {
                    return Err(Error::WaitTimeout { id });
                }
            }
            answered => return answered,
        }
    }
}

fn failure(job: Job) -> JobFailure {
    let (code, message) = match job.error {
        Some(error) => (error.code, error.message),
        None => ("unknown".into(), "the server did not say why".into()),
    };
    JobFailure { id: job.id, job_type: job.job_type.to_string(), code, message, attempts: job.attempt }
}

fn result<O: DeserializeOwned>(job: &Job) -> Result<O, Error> {
    let text = job.result.iter().flatten().next().map_or("null", |result| result.get());
    serde_json::from_str(text).map_err(|error| {
        Error::BadAnswer(format!("the result of job {} is not of the type of its contract: {error}", job.id))
    })
}
