//! Queues, in which jobs wait.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Whether it is paused. While it is, none of its jobs starts.
    pub paused: bool,
    /// How many of its jobs are due and wait for a slot, on the node that answers. For a paused queue: how many are
    /// due.
    pub waiting: u64,
    /// How many of its attempts are running, on the node that answers.
    pub running: u64,
}
