//! The store: the only truth. Timers, queues and owners are derived from it and may vanish at any moment.

use super::attempt_notes::{AttemptLogStore, OnceStore, ProgressStore};
use super::callbacks::CallbackStore;
use super::controls::ControlStore;
use super::jobs::JobStore;
use super::queries::QueryStore;
use super::schedules::{CalendarStore, LedgerStore, ScheduleStore};
use super::sessions::SessionStore;
use super::workers::WorkerStore;
use super::workflows::{RunStore, WorkflowStore};

/// Why the store did not do what was asked. Tells whether asking again is safe.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was changed: asking again is safe.
    #[error("the store did not do it: {0}")]
    Aborted(String),
    /// It may or may not have been done: read before asking again.
    #[error("the store did not say whether it did it: {0}")]
    Unknown(String),
    /// What is stored makes no sense to this version.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// Whether nothing was changed for certain.
    pub const fn is_certainly_aborted(&self) -> bool {
        matches!(self, Self::Aborted(_))
    }
}

/// A result of the store.
pub type StoreResult<T> = Result<T, StoreError>;

/// A page of a list, and where the next one starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, C> {
    /// What was found, in order.
    pub items: Vec<T>,
    /// Continue after this; `None` at the end. A page may be short or empty and still not be the last.
    pub next: Option<C>,
}

/// The source of truth.
///
/// Every method is one transaction with a business meaning. Writes are durable when the method returns. Every change of
/// a job's state is a compare-and-set here; therefore two nodes that both believe in something can never both act on
/// it. Batches are ordered: answer `n` belongs to item `n`.
///
/// Its verbs are in the traits of the rooms; whoever needs only some of them takes only those.
pub trait Store:
    JobStore
    + SessionStore
    + WorkerStore
    + AttemptLogStore
    + ProgressStore
    + OnceStore
    + QueryStore
    + CallbackStore
    + ControlStore
    + ScheduleStore
    + LedgerStore
    + CalendarStore
    + WorkflowStore
    + RunStore
{
}

impl<T> Store for T where
    T: JobStore
        + SessionStore
        + WorkerStore
        + AttemptLogStore
        + ProgressStore
        + OnceStore
        + QueryStore
        + CallbackStore
        + ControlStore
        + ScheduleStore
        + LedgerStore
        + CalendarStore
        + WorkflowStore
        + RunStore
{
}
