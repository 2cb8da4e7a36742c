//! One try at a job, and what came of it.

use crate::time::Timestamp;
use crate::words::words;

words! {
    /// How an attempt ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum AttemptOutcome {
        /// The work was done.
        Completed = "completed",
        /// The target said no, or could not be reached.
        Failed = "failed",
        /// It took longer than its timeout.
        TimedOut = "timed_out",
        /// The process that ran it died or was cut off: nobody knows how far it came.
        Lost = "lost",
        /// It was asked to stop and did.
        Cancelled = "cancelled",
        /// Given back: unfinished by a server that is shutting down, or never sent.
        Released = "released",
        /// It asked to run again later. That is no failure.
        Snoozed = "snoozed",
    }
}

/// Why an attempt failed: a stable code for machines, a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable, snake_case: `http_status`, `connect_failed`, `timed_out` …
    pub code: String,
    /// What happened, in words.
    pub message: String,
}

impl Failure {
    /// A failure with its code and its sentence.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// An attempt that is over, or (with no outcome yet) the one under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Its number: 1 for the first. Also its fencing token.
    pub number: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<AttemptOutcome>,
    /// Why, if not well.
    pub error: Option<Failure>,
}
