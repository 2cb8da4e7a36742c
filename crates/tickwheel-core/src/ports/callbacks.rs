//! Callbacks in the store: outcomes that are still to be told, who sends them, and what came of each try.

use std::fmt;

use async_trait::async_trait;
use uuid::Uuid;

use super::store::{Page, StoreResult};
use crate::attempt::Failure;
use crate::callback::Receiver;
use crate::id::{JobId, RunId, SessionId};
use crate::job::{Job, JsonText};
use crate::state::State;
use crate::time::Timestamp;
use crate::words::words;

/// What happened to a job or a run, to be told to somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callback {
    /// Its number; a job that is retried and ends again has another.
    pub id: i64,
    /// To which of them.
    pub subject: CallbackSubject,
    /// Where to.
    pub url: String,
    /// Its state since then.
    pub state: State,
    /// The attempt that ended a job.
    pub attempt: u32,
    /// When it happened.
    pub completed_at: Timestamp,
    /// What the job's target answered.
    pub result: Option<JsonText>,
    /// Why the job did not end well.
    pub error: Option<Failure>,
    /// How often it was tried so far.
    pub tries: u32,
}

/// What a callback is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackSubject {
    /// This job has ended. What is told of it is read when it is sent.
    Job(JobId),
    /// Something happened to a run.
    Run {
        /// Which.
        id: RunId,
        /// What: [`RunEventDetails`](crate::workflow::RunEventDetails), as a JSON document.
        document: JsonText,
    },
}

words! {
    /// The kind of a subject. The numbers are stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SubjectKind {
        /// [`CallbackSubject::Job`].
        Job = "job",
        /// [`CallbackSubject::Run`].
        Run = "run",
    }
}

impl CallbackSubject {
    /// Its kind.
    pub const fn kind(&self) -> SubjectKind {
        match self {
            Self::Job(_) => SubjectKind::Job,
            Self::Run { .. } => SubjectKind::Run,
        }
    }

    /// The id of the job or the run.
    pub const fn id(&self) -> Uuid {
        match self {
            Self::Job(id) => id.as_uuid(),
            Self::Run { id, .. } => id.as_uuid(),
        }
    }

    /// The document, where it is known already.
    pub const fn document(&self) -> Option<&JsonText> {
        match self {
            Self::Job(_) => None,
            Self::Run { document, .. } => Some(document),
        }
    }
}

impl fmt::Display for CallbackSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.id())
    }
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
            subject: CallbackSubject::Job(job.id),
            url: job.spec.callback_url.clone()?,
            state: job.state,
            attempt: job.attempt,
            completed_at: job.completed_at.filter(|_| job.state.is_terminal())?,
            result: job.result.clone(),
            error: job.error.clone(),
            tries: 0,
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

/// Callbacks: whoever takes one sends it and says what came of it.
#[async_trait]
pub trait CallbackStore: Send + Sync {
    /// Receivers for whom a callback is due that nobody has taken, in order, from the one behind `after`. MUST do
    /// bounded work a call, however many callbacks wait for one receiver: it looks at `limit` receivers at the most, so
    /// a page may be short and still have a next.
    async fn due_receivers(
        &self,
        after: Option<Receiver>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<Page<Receiver, Receiver>>;

    /// Callbacks that are due, for each receiver the longest due first. They belong to the session, and nobody else
    /// gets them until they are settled or [returned](Self::return_callbacks). None if the session has ended.
    async fn take_callbacks(&self, take: TakeCallbacks) -> StoreResult<Vec<Callback>>;

    /// Records the end of one try by `session`. The try is counted here: one that its sender did not live to report is
    /// repeated as the same. MUST change nothing for a callback that is to be tried again and does not belong to that
    /// session any more, nor for one that is over. Of the tries about the same subject MUST keep
    /// [`TRIES_KEPT_MAX`](crate::callback::TRIES_KEPT_MAX): this one, and those of the latest callbacks.
    async fn settle_callback(&self, session: SessionId, id: i64, tried: CallbackTry) -> StoreResult<()>;

    /// Writes a callback down to be sent at once. Its number and its tries do not count: it gets others. Answers its
    /// number.
    async fn write_callback(&self, callback: Callback) -> StoreResult<i64>;

    /// The callbacks about a job that there are and were, by their numbers, as far as they are kept.
    async fn callbacks_of(&self, job: JobId) -> StoreResult<Vec<CallbackRecord>>;

    /// Returns callbacks that nobody is sending: those of sessions that have ended, and those of `own`, except what is
    /// `kept`. They are due as they were before they were taken. Says how many.
    async fn return_callbacks(&self, own: SessionId, kept: Vec<i64>) -> StoreResult<usize>;
}
