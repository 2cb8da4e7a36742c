//! Runs an attempt by calling an HTTP endpoint once.
//!
//! [`request`] and [`job_headers`] say what is sent, [`verdict`] what an answer means; here is the clockwork between
//! them. The whole attempt, from finding the host to the last byte of the answer, fits into the job's timeout, whatever
//! the other side does. An answer's status is final once its head has arrived: a failure does not turn into a timeout
//! because its text is slow.
//!
//! Deliberately not here: trying again (the core decides, the engine waits) and following redirects.

mod job_headers;
mod request;
mod retry_after;
mod verdict;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderValue, Response};
use hyper::body::Incoming;
use tickwheel_core::Failure;
use tickwheel_core::ports::{AttemptContext, Clock, Executor};
use tickwheel_core::settle::Outcome;
use tokio::time::{Instant, timeout_at};

pub(super) use self::job_headers::trace_of;
use self::verdict::Verdict;
use crate::error::Error;
use crate::outbound::{OutboundClient, SigningSecret, USER_AGENT, capture};

/// The clock of the runtime cannot count further than some centuries; nobody waits that long for an answer.
const TIMEOUT_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// How long a failure's text is waited for: it only explains what is known already.
const EXPLANATION_WAIT_MAX: Duration = Duration::from_secs(2);

/// What this machine lacked will not be there at once.
const NOT_SENT_PAUSE: Duration = Duration::from_secs(1);

/// How often the log is told of it.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);

/// How attempts are sent.
#[derive(Clone)]
pub struct HttpExecutorOptions {
    /// The way out.
    pub outbound: OutboundClient,
    /// Dates signatures and reads `Retry-After` dates.
    pub clock: Arc<dyn Clock>,
    /// Signs every request if given.
    pub signing: Option<SigningSecret>,
    /// How much of an answer is read.
    pub response_bytes_max: usize,
    /// What `User-Agent` says, unless the job says otherwise.
    pub user_agent: HeaderValue,
}

impl HttpExecutorOptions {
    /// The defaults: unsigned, 64 KiB of the answer are read.
    pub fn new(outbound: OutboundClient, clock: Arc<dyn Clock>) -> Self {
        Self { outbound, clock, signing: None, response_bytes_max: 64 * 1024, user_agent: USER_AGENT }
    }
}

/// Calls HTTP targets.
pub struct HttpExecutor {
    options: HttpExecutorOptions,
    /// When the log was last told that nothing can be sent.
    complained_at: Mutex<Option<Instant>>,
}

impl HttpExecutor {
    /// An executor with these options.
    pub fn new(options: HttpExecutorOptions) -> Self {
        Self { options, complained_at: Mutex::new(None) }
    }

    /// Once for all attempts that this happens to, and again while it lasts.
    fn complain(&self, error: &Error) {
        let mut complained_at = self.complained_at.lock().unwrap_or_else(PoisonError::into_inner);
        if complained_at.is_none_or(|at| at.elapsed() >= COMPLAINT_INTERVAL) {
            *complained_at = Some(Instant::now());
            tracing::warn!(%error, "jobs go back unsent");
        }
    }

    async fn call(&self, attempt: &AttemptContext) -> Result<Response<Incoming>, Error> {
        let request = request::build(attempt, &self.options)?;
        self.options.outbound.send(request).await
    }

    async fn outcome_of(&self, response: Response<Incoming>, give_up_at: Instant) -> Outcome {
        match Verdict::of(response.status()) {
            Verdict::Accepted => Outcome::Accepted,
            Verdict::Completed => self.completed(response, give_up_at).await,
            Verdict::Redirected => failed(verdict::redirect_refused(&response)),
            Verdict::Failed { retryable } => self.failed(response, retryable, give_up_at).await,
        }
    }

    async fn completed(&self, response: Response<Incoming>, give_up_at: Instant) -> Outcome {
        let reading = capture(response.into_body(), self.options.response_bytes_max);
        match timeout_at(give_up_at, reading).await {
            Ok(Ok(captured)) => Outcome::Completed { result: verdict::result_of(&captured) },
            Ok(Err(error)) => not_called(&error),
            Err(_) => Outcome::TimedOut,
        }
    }

    async fn failed(&self, response: Response<Incoming>, retryable: bool, give_up_at: Instant) -> Outcome {
        let retry_after =
            if retryable { retry_after::read(response.headers(), self.options.clock.now()) } else { None };
        let status = response.status();
        let wait_until = give_up_at.min(Instant::now() + EXPLANATION_WAIT_MAX);
        let reading = capture(response.into_body(), self.options.response_bytes_max);
        let explanation = timeout_at(wait_until, reading).await.ok().and_then(Result::ok);
        let failure = verdict::bad_status(status, explanation.as_ref());
        Outcome::Failed { failure, retryable, retry_after }
    }
}

#[async_trait]
impl Executor for HttpExecutor {
    async fn run(&self, attempt: &AttemptContext) -> Outcome {
        let give_up_at = Instant::now() + attempt.job.spec.timeout().min(TIMEOUT_MAX);
        match timeout_at(give_up_at, self.call(attempt)).await {
            Ok(Ok(response)) => self.outcome_of(response, give_up_at).await,
            Ok(Err(error @ Error::NotSent(_))) => {
                self.complain(&error);
                Outcome::NotSent { reason: error.to_string(), again_in: NOT_SENT_PAUSE }
            }
            Ok(Err(error)) => not_called(&error),
            Err(_) => Outcome::TimedOut,
        }
    }
}

fn not_called(error: &Error) -> Outcome {
    Outcome::Failed { failure: error.into(), retryable: error.is_retryable(), retry_after: None }
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed { failure, retryable: false, retry_after: None }
}
