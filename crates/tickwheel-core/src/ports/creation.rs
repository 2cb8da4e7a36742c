//! The answer to whoever wants something new: a job, the job of a schedule, a run. It is the same answer, whether the
//! store or the engine gives it; only what can be refused differs.
//!
//! Deliberately not here: schedules and workflows. They have names instead of idempotency keys, and a name that is
//! taken is neither the same request nor another one ([`ScheduleCreated`](super::ScheduleCreated),
//! [`WorkflowPut`](super::WorkflowPut)).

use std::convert::Infallible;
use std::fmt::Debug;

use crate::id::{JobId, RunId};
use crate::job::Job;
use crate::workflow::{Run, StartRefused};

/// What became of a request to create something. `R` says why it may be refused; a request that cannot be has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Creation<T: Creatable, R = Infallible> {
    /// It is stored, and this is how.
    Created(Box<T>),
    /// The same request was seen before: this is what it made, as it is now.
    Existing(Box<T>),
    /// The key was seen before with another request, which made this one.
    Conflict(T::Id),
    /// Nothing is stored of it.
    Refused(R),
}

/// What somebody can ask for, and by what it is known.
pub trait Creatable {
    /// Its id.
    type Id: Copy + Debug + Eq;
}

impl Creatable for Job {
    type Id = JobId;
}

impl Creatable for Run {
    type Id = RunId;
}

impl<T: Creatable, R> Creation<T, R> {
    /// It is stored like this.
    pub fn created(stored: T) -> Self {
        Self::Created(Box::new(stored))
    }

    /// There is this one already.
    pub fn existing(found: T) -> Self {
        Self::Existing(Box::new(found))
    }

    /// What is new.
    pub fn as_new(&self) -> Option<&T> {
        match self {
            Self::Created(new) => Some(new),
            _ => None,
        }
    }

    /// The same, with another word for the refusal.
    pub fn map_refused<S>(self, why: impl FnOnce(R) -> S) -> Creation<T, S> {
        match self {
            Self::Created(new) => Creation::Created(new),
            Self::Existing(found) => Creation::Existing(found),
            Self::Conflict(first) => Creation::Conflict(first),
            Self::Refused(refused) => Creation::Refused(why(refused)),
        }
    }
}

/// A job depends on this one, which its tenant does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownParent(pub JobId);

/// There is no schedule to make a job of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchSchedule;

/// Why a run is not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunRefused {
    /// With this input it cannot be.
    Input(StartRefused),
    /// There is no such workflow.
    NoSuchWorkflow,
}
