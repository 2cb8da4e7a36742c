//! What the engine offers to the API: everything that changes something. Reading goes to the store directly.

use std::pin::Pin;

use async_trait::async_trait;

use super::callbacks::Callback;
use super::creation::{Creation, UnknownParent};
use super::jobs::{Changed, NewJob};
use super::store::StoreError;
use crate::change::Change;
use crate::id::JobId;
use crate::job::Job;
use crate::settle::Outcome;
use crate::time::Timestamp;
use crate::token::AttemptRef;

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// More is waiting to be written than the server is willing to hold.
    #[error("the server is overloaded")]
    Overloaded,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// What became of a report about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportOutcome {
    /// It is recorded.
    Recorded,
    /// The attempt is no longer the current one: nothing changed.
    Stale,
    /// There is no such job.
    NotFound,
}

/// The answer to somebody who says "I am still working on it".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// Go on.
    Current {
        /// Somebody wants it stopped.
        cancel_requested: bool,
        /// When it has to be over.
        deadline: Timestamp,
    },
    /// The attempt is no longer the current one.
    Stale,
    /// There is no such job.
    NotFound,
}

/// One queue as this node sees it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct QueueSnapshot {
    /// Its name.
    pub name: String,
    /// Nothing of it is started.
    pub paused: bool,
    /// Jobs that are due and wait for their turn.
    pub waiting: u64,
    /// Attempts under way.
    pub running: u64,
}

/// What this node is doing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SchedulerSnapshot {
    /// The stop switch is on.
    pub halted: bool,
    /// Attempts this node can run at once.
    pub slots: u64,
    /// Of them free.
    pub slots_free: u64,
    /// The queues with something waiting or running here.
    pub queues: Vec<QueueSnapshot>,
}

/// The engine's service for jobs.
#[async_trait]
pub trait Scheduler: Send + Sync {
    /// Stores jobs and answers once they are durable, one answer a job in order.
    async fn submit(&self, jobs: Vec<NewJob>) -> Result<Vec<Creation<Job, UnknownParent>>, SchedulerError>;

    /// Changes a job; once acknowledged, the change is in force.
    async fn change(&self, job_id: JobId, change: Change) -> Result<Changed, SchedulerError>;

    /// Records what somebody outside says about an attempt.
    async fn report(&self, attempt: AttemptRef, outcome: Outcome) -> Result<ReportOutcome, SchedulerError>;

    /// Tells somebody outside whether an attempt is still theirs.
    async fn heartbeat(&self, attempt: AttemptRef) -> Result<Heartbeat, SchedulerError>;

    /// Sends a callback, as if what it tells of had just happened. Answers its number.
    async fn send_callback(&self, callback: Callback) -> Result<i64, SchedulerError>;

    /// Takes a job off the list of dead letters; the job stays in history. `false`: it was not on it.
    async fn discard_dead_letter(&self, job_id: JobId) -> Result<bool, SchedulerError>;

    /// Pauses or resumes a queue; after an acknowledged pause nothing of it starts.
    async fn set_queue_paused(&self, queue: &str, paused: bool) -> Result<(), SchedulerError>;

    /// The stop switch: after an acknowledged halt nothing starts.
    async fn set_halted(&self, halted: bool) -> Result<(), SchedulerError>;

    /// Resolves when the job may have ended, from the moment of this call on: who listens first and reads the job then
    /// misses nothing. Reading it again tells whether it has. Waiting costs the store nothing.
    fn end_of(&self, job_id: JobId) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Wakes everybody who waits for an end: the server wants them to go.
    fn wake_waiting(&self);

    /// What this node is doing.
    async fn snapshot(&self) -> SchedulerSnapshot;
}
