//! The switches that people turn, and the state of the installation itself.

use std::time::Duration;

use async_trait::async_trait;

use super::store::StoreResult;
use crate::id::RunId;
use crate::time::Timestamp;

/// A queue as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Nothing of it is started.
    pub paused: bool,
}

/// What forbids starts: turned by people, through any server.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Controls {
    /// The stop switch is on.
    pub halted: bool,
    /// The queues that are paused, by name.
    pub paused_queues: Vec<String>,
    /// The runs of workflows that are paused, by id.
    pub paused_runs: Vec<RunId>,
}

/// What a vacuum did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// So many tables were cleared
    pub tables: u64,
    /// of so many dead rows,
    pub dead_rows: u64,
    /// in this time.
    pub took: Duration,
}

/// Switches, and the store itself.
#[async_trait]
pub trait ControlStore: Send + Sync {
    /// Every queue that ever had a job or was paused, by name.
    async fn list_queues(&self) -> StoreResult<Vec<Queue>>;

    /// How many jobs of a queue wait and are due, paused or not. For people, not for the hot path.
    async fn count_due(&self, queue: &str, now: Timestamp) -> StoreResult<u64>;

    /// Pauses or resumes a queue. No claim that commits after this returns takes a job of a paused queue.
    async fn set_queue_paused(&self, queue: &str, paused: bool) -> StoreResult<()>;

    /// The stop switch, the paused queues and the paused runs. Every server asks about once a second: MUST be one small
    /// read.
    async fn controls(&self) -> StoreResult<Controls>;

    /// Whether the stop switch is on.
    async fn halted(&self) -> StoreResult<bool>;

    /// Turns the stop switch. No claim that commits after this returns takes any job while it is on.
    async fn set_halted(&self, halted: bool) -> StoreResult<()>;

    /// The installation's secret: `candidate` if there was none yet.
    async fn installation_secret(&self, candidate: [u8; 32]) -> StoreResult<[u8; 32]>;

    /// Whether the store can be read and written right now.
    async fn ping(&self) -> StoreResult<()>;

    /// Clears tables of dead rows that have at least so many of them. Nothing to do for a store that leaves none.
    async fn vacuum(&self, _dead_rows_min: u64) -> StoreResult<Vacuumed> {
        Ok(Vacuumed::default())
    }
}
