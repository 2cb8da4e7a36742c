//! Running many dead letters again, in the background.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::scheduler::SchedulerError;
use crate::time::Timestamp;

/// Which dead letters to run again, the latest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redrive {
    /// Of this type.
    pub job_type: Option<String>,
    /// Of this queue.
    pub queue: Option<String>,
    /// Given up before this moment.
    pub failed_before: Timestamp,
    /// This many at the most.
    pub limit: Option<usize>,
}

/// How far it is.
#[derive(Clone, Debug)]
pub enum RedriveStatus {
    /// It goes on, whether somebody asks for it or not.
    Running,
    /// All of them were looked at.
    Completed,
    /// It ended before its end. Asking again for what failed before the same moment does the rest.
    Stopped(RedriveStopped),
}

/// Why it ended before its end.
#[derive(Clone, Debug)]
pub enum RedriveStopped {
    /// This went on for too long.
    Failing(Arc<SchedulerError>),
    /// It panicked.
    Broken,
}

/// What became of it so far.
#[derive(Clone, Debug)]
pub struct RedriveProgress {
    /// Its name, as long as this process runs.
    pub id: Uuid,
    /// How far it is.
    pub status: RedriveStatus,
    /// What was given up before this moment is run again, each once.
    pub failed_before: Timestamp,
    /// Jobs that will run again.
    pub redriven: u64,
    /// Dead letters that match and are left.
    pub remaining: u64,
}

impl RedriveProgress {
    /// Whether it goes on.
    pub const fn is_running(&self) -> bool {
        matches!(self.status, RedriveStatus::Running)
    }
}

/// The engine's service for dead letters by the many.
#[async_trait]
pub trait Redrives: Send + Sync {
    /// Begins to run dead letters again. Goes on by itself; answers when it is over, or how far it has come after
    /// `wait`. MUST run none of them twice, also if it fails again meanwhile. [`SchedulerError::Overloaded`]: too many
    /// are under way already, and nothing was changed.
    async fn redrive(&self, redrive: Redrive, wait: Duration) -> Result<RedriveProgress, SchedulerError>;

    /// How far one is; `None`: nobody knows it (any more).
    fn progress(&self, id: Uuid) -> Option<RedriveProgress>;
}
