//! Whoever runs one attempt, and whoever tells the outcome.

use async_trait::async_trait;

use super::callbacks::Callback;
use crate::job::Job;
use crate::payload::Document;
use crate::settle::Outcome;
use crate::time::Timestamp;

/// One attempt to be run.
#[derive(Clone, Debug)]
pub struct AttemptContext {
    /// The job, as it was claimed: `job.attempt` is this attempt's number and fencing token.
    pub job: Box<Job>,
    /// The job's payload, put together: the job itself may only refer to parts of it.
    pub payload: Document,
    /// The opaque token with which the target may report later.
    pub token: String,
    /// When the attempt has to be over.
    pub deadline: Timestamp,
}

/// Runs attempts.
///
/// An implementation
/// - MUST return within the job's timeout, with [`Outcome::TimedOut`] if need be;
/// - MUST stop the work when the returned future is dropped: that is how an attempt is cancelled;
/// - MUST send nothing before it is first polled, and never send the same attempt twice;
/// - MUST return [`Outcome::NotSent`] only if not a byte of the attempt can have reached the target, and the reason is
///   this machine's own (no file descriptor, no memory, no network): that costs the job nothing;
/// - MUST NOT return [`Outcome::Lost`] or [`Outcome::Released`]: those are for the engine to say.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Runs one attempt to its end.
    async fn run(&self, attempt: &AttemptContext) -> Outcome;
}

/// Tells a job's outcome to its callback URL.
///
/// An implementation MUST send at most one request a call and MUST return within seconds whatever the other side does.
#[async_trait]
pub trait CallbackSender: Send + Sync {
    /// Sends it once; what was answered, in words. `job` is read for what the callback does not carry; there is none
    /// where the callback carries a document of its own.
    async fn send(
        &self,
        callback: &Callback,
        job: Option<&Job>,
        now: Timestamp,
    ) -> Result<String, Undelivered>;
}

/// Why a callback did not arrive, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    /// Not a byte of it was sent, and the reason is this machine's own: that costs it no try.
    #[error("{0}")]
    NotSent(String),
    /// It was sent, or can never be.
    #[error("{0}")]
    Failed(String),
}
