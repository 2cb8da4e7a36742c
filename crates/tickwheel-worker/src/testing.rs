//! For tests: one handler, as the worker would run it, without a server.
//!
//! The payload goes through JSON, errors follow the rules of the worker, `once` remembers in memory, and
//! [`Ctx::client`](crate::Ctx::client) keeps what is submitted.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use tickwheel_client::JobType;
//! use tickwheel_worker::{Ctx, JobError, testing};
//!
//! #[derive(Serialize, Deserialize)]
//! struct SendEmail {
//!     to: String,
//! }
//!
//! impl JobType for SendEmail {
//!     const NAME: &'static str = "send_email";
//!     type Output = u32;
//! }
//!
//! async fn deliver(email: SendEmail, ctx: Ctx) -> Result<u32, JobError> {
//!     if !email.to.contains('@') {
//!         return Err(JobError::not_retryable("no such address").code("bad_address"));
//!     }
//!     Ok(ctx.attempt())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let sent = testing::run(deliver, SendEmail { to: "a@example.com".into() }, ()).attempt(2).await;
//! assert_eq!(sent.outcome.result_as::<u32>(), Some(2));
//!
//! let refused = testing::run(deliver, SendEmail { to: "nobody".into() }, ()).await;
//! assert!(!refused.outcome.retryable);
//! assert_eq!(refused.outcome.error.unwrap().code.as_deref(), Some("bad_address"));
//! # }
//! ```

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tickwheel_client::testing::{Recorder, recording_client};
use tickwheel_client::{Client, JobType};
use tickwheel_protocol::Assignment;
use uuid::Uuid;

use crate::attempt::{Attempt, CancelReason};
use crate::ctx::{Ctx, Link};
use crate::error::JobError;
use crate::handler::{HandlerOptions, Registered};
use crate::log_buffer::LogBudget;
use crate::middleware::Middleware;
use crate::once::OnceRecords;
use crate::outcome::Outcome;
use crate::supervise::{Ends, Program, supervise};
use crate::worker::ForTests;

const RESULT_BYTES_MAX: usize = 256 << 10;
const DEADLINE: Duration = Duration::from_secs(300);

/// Runs one handler once. Say more about the attempt, then await it.
pub fn run<J, S, F, Fut>(handler: F, payload: J, state: S) -> TestRun<S>
where
    J: JobType,
    S: Send + Sync + 'static,
    F: Fn(J, Ctx<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<J::Output, JobError>> + Send + 'static,
{
    run_with(HandlerOptions::default(), handler, payload, state)
}

/// The same with the handler's options.
pub fn run_with<J, S, F, Fut>(options: HandlerOptions, handler: F, payload: J, state: S) -> TestRun<S>
where
    J: JobType,
    S: Send + Sync + 'static,
    F: Fn(J, Ctx<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<J::Output, JobError>> + Send + 'static,
{
    let payload = serde_json::to_value(&payload).expect("the payload can be written as JSON");
    TestRun::new(Arc::new(Registered::of_async(options, handler)), payload, Arc::new(state), Arc::new([]))
}

/// Runs the handler that a worker has for `J`, with all middleware.
///
/// # Panics
///
/// If the worker has no handler for it.
pub fn run_on<J: JobType, S: Send + Sync + 'static>(worker: &crate::Worker<S>, payload: &J) -> TestRun<S> {
    let payload = serde_json::to_value(payload).expect("the payload can be written as JSON");
    let ForTests { handlers, middleware, state } = worker.for_tests();
    let handler = handlers.get(J::NAME).expect("the worker has a handler for this type").clone();
    TestRun::new(handler, payload, state, middleware)
}

/// An attempt of a test.
#[must_use = "nothing runs until it is awaited"]
pub struct TestRun<S> {
    handler: Arc<Registered<S>>,
    payload: Value,
    state: Arc<S>,
    middleware: Arc<[Middleware<S>]>,
    attempt: u32,
    time_left: Duration,
    cancel_after: Option<(Duration, CancelReason)>,
    draining: bool,
}

impl<S: Send + Sync + 'static> TestRun<S> {
    fn new(
        handler: Arc<Registered<S>>,
        payload: Value,
        state: Arc<S>,
        middleware: Arc<[Middleware<S>]>,
    ) -> Self {
        let (attempt, time_left) = (1, DEADLINE);
        Self { handler, payload, state, middleware, attempt, time_left, cancel_after: None, draining: false }
    }

    /// The number of the attempt.
    pub fn attempt(mut self, number: u32) -> Self {
        self.attempt = number;
        self
    }

    /// Another payload, for example one that is not of its type.
    pub fn payload(mut self, payload: Value) -> Self {
        self.payload = payload;
        self
    }

    /// How long it may take.
    pub fn time_left(mut self, time: Duration) -> Self {
        self.time_left = time;
        self
    }

    /// Cancels it after this time.
    pub fn cancel_after(mut self, time: Duration, reason: CancelReason) -> Self {
        self.cancel_after = Some((time, reason));
        self
    }

    /// The worker is draining.
    pub fn draining(mut self) -> Self {
        self.draining = true;
        self
    }

    async fn finish(self) -> Ran {
        let (client, submitted) = recording_client();
        let assignment = assignment(self.handler.name, self.attempt, &self.payload, self.time_left);
        let attempt = Arc::new(Attempt::new(assignment, Instant::now()));
        let link = Arc::new(TestLink { draining: self.draining, ..TestLink::default() });
        let program =
            Program { state: self.state, client: Client::clone(&client), middleware: self.middleware };
        let run =
            supervise(Arc::new(program), self.handler, vec![attempt.clone()], link.clone(), link.clone());
        let cancel = async {
            if let Some((time, reason)) = self.cancel_after {
                tokio::time::sleep(time).await;
                attempt.cancel(reason);
            }
        };
        tokio::join!(run, cancel);
        let outcome = link.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut said = attempt.said();
        let log = said.log.take(&link.budget).on_the_wire(Instant::now());
        Ran {
            outcome: outcome.unwrap_or_else(Outcome::released),
            progress: said.progress.take().and_then(|(percent, _)| percent),
            log: log.lines.into_iter().map(|line| line.message).collect(),
            submitted,
        }
    }
}

impl<S: Send + Sync + 'static> IntoFuture for TestRun<S> {
    type Output = Ran;
    type IntoFuture = Pin<Box<dyn Future<Output = Ran> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.finish())
    }
}

/// What came of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ran {
    /// How the attempt ended, as the server would hear it.
    pub outcome: Outcome,
    /// The last progress, in percent.
    pub progress: Option<f64>,
    /// The lines of its log.
    pub log: Vec<String>,
    /// What it submitted.
    pub submitted: Recorder,
}

#[derive(Default)]
struct TestLink {
    budget: LogBudget,
    once: Arc<Mutex<HashMap<String, Box<serde_json::value::RawValue>>>>,
    outcome: Mutex<Option<Outcome>>,
    draining: bool,
}

impl Link for TestLink {
    fn progressed(&self, _: &Arc<Attempt>) {}

    fn logged(&self, _: &Arc<Attempt>, _: bool) {}

    fn budget(&self) -> &LogBudget {
        &self.budget
    }

    fn is_draining(&self) -> bool {
        self.draining
    }

    fn confirm(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async { true })
    }

    fn once_records(&self) -> OnceRecords {
        OnceRecords::Memory(self.once.clone())
    }
}

impl Ends for TestLink {
    fn finish(&self, _: &Arc<Attempt>, outcome: Option<Outcome>, _: Duration) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
    }

    fn add_stuck(&self) {}

    fn remove_stuck(&self) {}

    fn result_bytes_max(&self) -> usize {
        RESULT_BYTES_MAX
    }

    fn shutdown_grace(&self) -> Duration {
        Duration::from_secs(3)
    }
}

/// A job as a server would hand it out.
pub(crate) fn assignment(job_type: &str, attempt: u32, payload: &Value, time_left: Duration) -> Assignment {
    let time = "2026-01-01T00:00:00Z";
    let job = json!({
        "id": Uuid::now_v7(), "type": job_type, "status": "running", "queue": "default", "priority": "normal",
        "tenant": "default", "execute_at": time, "next_run_at": null, "created_at": time, "started_at": time,
        "completed_at": null, "deadline": null, "attempt": attempt, "retries": attempt.saturating_sub(1),
        "max_retries": 3, "cancel_requested": false, "error": null, "tags": [], "metadata": {}, "payload": payload,
        "target": {"worker": {}}, "retry": {}, "timeout": "300s", "delivery": "at_least_once", "depends_on": [],
        "concurrency_key": null, "callback_url": null, "created_by": null, "schedule_id": null,
        "workflow_run_id": null, "task": null,
    });
    let assignment = json!({
        "job": job, "attempt": attempt, "token": Uuid::now_v7().to_string(), "fencing_token": attempt,
        "deadline": time, "deadline_in": format!("{}ms", time_left.as_millis()), "traceparent": null,
    });
    serde_json::from_str(&assignment.to_string()).expect("it has every field of an assignment")
}
