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

/// Counting the due jobs of queues looks at so many of them.
pub const DUE_COUNT_MAX: usize = 20_000;

/// How many jobs of a queue are due and wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DueCount {
    /// This many were counted.
    pub jobs: u64,
    /// There may be more.
    pub more: bool,
}

impl DueCount {
    /// The same where it is known that so many wait: a count that came to its end may have seen fewer.
    #[must_use]
    pub fn at_least(self, jobs: u64) -> Self {
        Self { jobs: self.jobs.max(jobs), ..self }
    }
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

    /// How many jobs of each of these queues wait and are due, paused or not, whether somebody could run them or not;
    /// one answer each, in order. MUST look at not much more than `limit` jobs for all queues together, however many
    /// there are: where that is not enough, the count says so. For people, not for the hot path.
    async fn count_due(
        &self,
        queues: Vec<String>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<DueCount>>;

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
