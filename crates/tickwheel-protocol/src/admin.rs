//! What an operator sees of the whole system.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the answering node is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SystemStatus {
    /// The stop switch is on: nothing is started.
    pub halted: bool,
    /// Attempts this node can run at once.
    pub slots: u64,
    /// Of them free.
    pub slots_free: u64,
    /// Jobs that are due and wait for their turn.
    pub waiting: u64,
    /// Attempts under way.
    pub running: u64,
    /// Jobs that were given up and not looked after.
    pub dead_letters: u64,
}
