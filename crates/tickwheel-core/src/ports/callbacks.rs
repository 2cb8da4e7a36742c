//! Callbacks in the store: outcomes that are still to be told, who sends them, and what came of each try.

use crate::attempt::Failure;
use crate::callback::Receiver;
use crate::id::{JobId, SessionId};
use crate::job::{Job, JsonText};
use crate::state::State;
use crate::time::Timestamp;
use crate::words::words;

/// The outcome of a job that is to be told to its callback URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Its number; a job that is revived and ends again has another.
    pub id: i64,
    /// Which job.
    pub job_id: JobId,
    /// Where to.
    pub url: String,
    /// The state the job ended in.
    pub state: State,
    /// The attempt that ended it.
    pub attempt: u32,
    /// When it ended.
    pub completed_at: Timestamp,
    /// The target's answer.
    pub result: Option<JsonText>,
    /// Why it did not end well.
    pub error: Option<Failure>,
    /// How often it was tried so far.
    pub tries: u32,
    /// What to tell instead, if it is not about a job: a JSON document about a run, whose number zero is `job_id`.
    pub document: Option<JsonText>,
}

/// Which callbacks to take, and for whom.
#[derive(Clone, Debug)]
pub struct TakeCallbacks {
    /// Who sends them.
    pub session: SessionId,
    /// For these receivers, no receiver twice, at most so many each.
    pub rooms: Vec<(Receiver, usize)>,
    /// The time: one due later is not taken.
    pub now: Timestamp,
}

impl Callback {
    /// The outcome of a job that has ended and wants it told; it has no number yet.
    pub fn of(job: &Job) -> Option<Self> {
        Some(Self {
            id: 0,
            job_id: job.id,
            url: job.spec.callback_url.clone()?,
            state: job.state,
            attempt: job.attempt,
            completed_at: job.completed_at.filter(|_| job.state.is_terminal())?,
            result: job.result.clone(),
            error: job.error.clone(),
            tries: 0,
            document: None,
        })
    }
}

/// What becomes of a callback after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackResult {
    /// It arrived.
    Delivered,
    /// It did not, and there are no more tries.
    GivenUp,
    /// Try again then.
    Again {
        /// When.
        due_at: Timestamp,
    },
}

/// A try to deliver a callback that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackTry {
    /// When it ended.
    pub at: Timestamp,
    /// What the receiver answered, or why it did not, in words.
    pub answer: String,
    /// What follows.
    pub result: CallbackResult,
}

words! {
    /// How a try to deliver a callback ended. The numbers are stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TryOutcome {
        /// It arrived.
        Delivered = "delivered",
        /// It did not, and was tried again.
        Failed = "failed",
        /// It did not, and was the last.
        GivenUp = "given_up",
    }
}

impl CallbackResult {
    /// How the try ended that this follows from.
    pub const fn outcome(self) -> TryOutcome {
        match self {
            Self::Delivered => TryOutcome::Delivered,
            Self::GivenUp => TryOutcome::GivenUp,
            Self::Again { .. } => TryOutcome::Failed,
        }
    }
}

/// A callback as people see it: what is still to be told, and what came of it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackRecord {
    /// Its number.
    pub id: i64,
    /// Where to.
    pub url: String,
    /// The state of the job that it tells of.
    pub state: State,
    /// When the next try is due; `None`: it is over.
    pub due_at: Option<Timestamp>,
    /// The tries so far, in order.
    pub tries: Vec<TriedCallback>,
}

/// One of its tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedCallback {
    /// 1 for the first.
    pub number: u32,
    /// When it ended.
    pub at: Timestamp,
    /// How.
    pub outcome: TryOutcome,
    /// What the receiver answered, or why it did not, in words.
    pub answer: String,
}
