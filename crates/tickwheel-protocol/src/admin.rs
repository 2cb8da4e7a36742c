//! The state of the whole system, for operators.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of the node that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SystemStatus {
    /// Whether the stop switch is on. While it is, no job starts.
    pub halted: bool,
    /// How many attempts this node can run at once.
    pub slots: u64,
    /// How many of these slots are free.
    pub slots_free: u64,
    /// How many jobs are due and wait, counted like those of the queues.
    pub waiting: u64,
    /// How many attempts are running.
    pub running: u64,
    /// How many dead letters there are.
    pub dead_letters: u64,
}
