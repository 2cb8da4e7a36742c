//! One try at a job, and what came of it.

use crate::time::Timestamp;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptOutcome {
    /// The work was done.
    Completed,
    /// The target said no, or could not be reached.
    Failed,
    /// It took longer than its timeout.
    TimedOut,
    /// The process that ran it died or was cut off: nobody knows how far it came.
    Lost,
    /// It was asked to stop and did.
    Cancelled,
    /// Given back untouched or unfinished by a server that is shutting down.
    Released,
}

impl AttemptOutcome {
    /// All outcomes, in the order of their numbers in the stores.
    pub const ALL: [Self; 6] =
        [Self::Completed, Self::Failed, Self::TimedOut, Self::Lost, Self::Cancelled, Self::Released];

    /// The number that stands for it in the stores. Never reused.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The outcome behind a store's number.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// The word for it, everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
            Self::Released => "released",
        }
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
