//! Handlers: functions of any of three shapes, all of them called alike.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use tickwheel_client::JobType;
use tickwheel_protocol::ExecutorKind;
use tokio::sync::oneshot;

use crate::ctx::Ctx;
use crate::current;
use crate::error::JobError;
use crate::middleware::Output;
use crate::outcome::{NotRetryable, Outcome};

/// How long a handler has to end after it was cancelled.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// What a call comes to: one entry per job, or an error that all of them share.
pub(crate) type Returned = Result<Output, JobError>;
pub(crate) type Call = Pin<Box<dyn Future<Output = Returned> + Send>>;

/// Options of one handler.
#[derive(Clone)]
pub struct HandlerOptions {
    pub(crate) capacity: Option<u32>,
    pub(crate) not_retryable: Vec<NotRetryable>,
    pub(crate) cancel_grace: Duration,
    pub(crate) on_lease_lost: OnLeaseLost,
}

/// What becomes of a handler when the worker can no longer be sure that its attempt is its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLeaseLost {
    /// It is cancelled. The default.
    #[default]
    Cancel,
    /// It runs on. What it returns is offered to the server, which refuses it if somebody else has the job.
    Continue,
}

impl Default for HandlerOptions {
    fn default() -> Self {
        Self {
            capacity: None,
            not_retryable: Vec::new(),
            cancel_grace: CANCEL_GRACE,
            on_lease_lost: OnLeaseLost::default(),
        }
    }
}

impl HandlerOptions {
    /// How many of its jobs run at once. Default: as many as the worker runs.
    #[must_use]
    pub fn capacity(mut self, jobs: u32) -> Self {
        self.capacity = Some(jobs);
        self
    }

    /// Errors of type `E` are not retried.
    #[must_use]
    pub fn not_retryable<E: std::error::Error + Send + Sync + 'static>(mut self) -> Self {
        let is = |error: &JobError| error.downcast_ref::<E>().is_some();
        self.not_retryable.push(NotRetryable { is });
        self
    }

    /// How long it has to end after it was cancelled. Default 5 s. Then its future is dropped.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// What becomes of it when the lease is lost.
    #[must_use]
    pub fn on_lease_lost(mut self, what: OnLeaseLost) -> Self {
        self.on_lease_lost = what;
        self
    }
}

/// How a batch is gathered.
#[derive(Clone, Copy, Debug)]
pub struct BatchOptions {
    /// How many jobs a batch has at most.
    pub jobs_max: usize,
    /// How long the first job waits for others.
    pub wait_max: Duration,
}

/// A handler, whatever its shape.
pub(crate) struct Registered<S> {
    pub name: &'static str,
    pub options: HandlerOptions,
    pub batch: Option<BatchOptions>,
    /// Dropping its future does not stop it.
    pub is_blocking: bool,
    function: Box<dyn Fn(Ctx<S>) -> Call + Send + Sync>,
}

/// By the type of their jobs, or executors by the kind of target.
pub(crate) type Handlers<S> = BTreeMap<&'static str, Arc<Registered<S>>>;

impl<S> Registered<S> {
    pub fn call(&self, ctx: Ctx<S>) -> Call {
        (self.function)(ctx)
    }
}

impl<S: Send + Sync + 'static> Registered<S> {
    pub fn of_async<J, F, Fut>(options: HandlerOptions, handler: F) -> Self
    where
        J: JobType,
        F: Fn(J, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<J::Output, JobError>> + Send + 'static,
    {
        let function = move |ctx: Ctx<S>| -> Call {
            match payload::<J>(&ctx, 0) {
                Ok(payload) => {
                    let call = handler(payload, ctx);
                    Box::pin(async move { one(write(call.await)) })
                }
                Err(error) => Box::pin(async move { one(Err(error)) }),
            }
        };
        Self { name: J::NAME, options, batch: None, is_blocking: false, function: Box::new(function) }
    }

    /// Runs jobs with a target of this kind, whatever their type.
    pub fn of_executor<F, Fut>(kind: ExecutorKind, function: F) -> Self
    where
        F: Fn(Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        let function = move |ctx: Ctx<S>| -> Call {
            let call = function(ctx);
            Box::pin(async move { Err(JobError::ended(call.await)) })
        };
        let options = HandlerOptions::default();
        Self { name: kind.as_str(), options, batch: None, is_blocking: false, function: Box::new(function) }
    }

    pub fn of_blocking<J, F>(options: HandlerOptions, handler: F) -> Self
    where
        J: JobType,
        F: Fn(J, Ctx<S>) -> Result<J::Output, JobError> + Send + Sync + 'static,
    {
        let handler = Arc::new(handler);
        let function = move |ctx: Ctx<S>| -> Call {
            let handler = handler.clone();
            Box::pin(async move {
                let payload = match payload::<J>(&ctx, 0) {
                    Ok(payload) => payload,
                    Err(error) => return one(Err(error)),
                };
                one(on_a_thread(move || write(handler(payload, ctx.clone())), J::NAME).await)
            })
        };
        Self { name: J::NAME, options, batch: None, is_blocking: true, function: Box::new(function) }
    }

    pub fn of_batch<J, F, Fut>(options: HandlerOptions, batch: BatchOptions, handler: F) -> Self
    where
        J: JobType,
        F: Fn(Vec<J>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Result<J::Output, JobError>>, JobError>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let function = move |ctx: Ctx<S>| -> Call {
            let handler = handler.clone();
            Box::pin(async move {
                let jobs = ctx.current.attempts.len();
                let mut entries: Vec<Option<Result<Box<RawValue>, JobError>>> =
                    (0..jobs).map(|_| None).collect();
                let mut payloads = Vec::with_capacity(jobs);
                for (place, entry) in entries.iter_mut().enumerate() {
                    match payload::<J>(&ctx, place) {
                        Ok(payload) => payloads.push(payload),
                        Err(error) => *entry = Some(Err(error)),
                    }
                }
                let asked = payloads.len();
                if asked > 0 {
                    let answers = handler(payloads, ctx).await?;
                    if answers.len() != asked {
                        let why = format!("{} results for {asked} jobs", answers.len());
                        return Err(JobError::new(why).code("batch_result_mismatch"));
                    }
                    let empty = entries.iter_mut().filter(|entry| entry.is_none());
                    empty.zip(answers).for_each(|(entry, answer)| *entry = Some(write(answer)));
                }
                Ok(Output(entries.into_iter().flatten().collect()))
            })
        };
        Self { name: J::NAME, options, batch: Some(batch), is_blocking: false, function: Box::new(function) }
    }
}

fn one(ended: Result<Box<RawValue>, JobError>) -> Returned {
    ended.map(|result| Output(vec![Ok(result)]))
}

/// The payload of the job at this place of the call.
fn payload<J: DeserializeOwned>(ctx: &Ctx<impl Sized>, place: usize) -> Result<J, JobError> {
    let job = &ctx.current.attempts[place].job;
    let text = job.payload.as_ref().map_or("null", |payload| payload.get());
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let why = if path == "." { error.inner().to_string() } else { format!("{path}: {}", error.inner()) };
        JobError::not_retryable(format!("the payload is not of its type: {why}")).code("invalid_payload")
    })
}

fn write<T: Serialize>(ended: Result<T, JobError>) -> Result<Box<RawValue>, JobError> {
    to_raw_value(&ended?).map_err(|error| {
        JobError::not_retryable(format!("cannot write the result as JSON: {error}")).code("result_invalid")
    })
}

/// Runs a blocking handler on a thread of its own. Its panic becomes an error here, because no task sees it.
async fn on_a_thread(
    work: impl FnOnce() -> Result<Box<RawValue>, JobError> + Send + 'static,
    name: &str,
) -> Result<Box<RawValue>, JobError> {
    let (sender, receiver) = oneshot::channel();
    let current = current::get();
    let span = tracing::Span::current();
    let work = crate::telemetry::attached(work);
    let thread = std::thread::Builder::new().name(format!("job {name}")).spawn(move || {
        let _entered = span.enter();
        let work = AssertUnwindSafe(|| current::within(current, work));
        let ended = std::panic::catch_unwind(work).unwrap_or_else(|panic| Err(panicked(&*panic)));
        let _ = sender.send(ended);
    });
    if let Err(error) = thread {
        return Err(JobError::new(format!("no thread for the handler: {error}")).code("no_thread"));
    }
    receiver.await.unwrap_or_else(|_| Err(JobError::new("the handler's thread has vanished").code("panic")))
}

/// A panic as an error.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> JobError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    JobError::panicked(&text.unwrap_or_else(|| "the handler panicked with something that is no text".into()))
}
