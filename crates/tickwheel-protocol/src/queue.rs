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
    /// How many of its jobs are due and wait: for a slot, for a worker, or because the queue is paused.
    pub waiting: u64,
    /// Whether there may be more than `waiting`: the server stops counting after 20,000 due jobs.
    #[serde(default)]
    pub more_waiting: bool,
    /// How many of its attempts are running, on the node that answers.
    pub running: u64,
}
