//! Queues: the lanes jobs wait in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Nothing of it is started.
    pub paused: bool,
    /// Jobs that are due and wait for their turn, as the answering node sees it; in a paused queue, all that are due.
    pub waiting: u64,
    /// Attempts under way, as the answering node sees it.
    pub running: u64,
}
