//! What every request handler can reach.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::Timestamp;
use tickwheel_core::ports::{AttemptNotes, Clock, Redrives, Scheduler, Schedules, Store, Workers, Workflows};
use tickwheel_core::token::TokenKey;
use tickwheel_protocol::Limits;

use crate::browsers::AllowedHosts;
use crate::memory::Memory;
use crate::permissions::Permissions;

/// What every call of the API can use. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    /// Everything that changes a job, a queue or an attempt goes through it.
    pub scheduler: Arc<dyn Scheduler>,
    /// Everything that changes a schedule or a calendar goes through it.
    pub schedules: Arc<dyn Schedules>,
    /// Everything that changes a workflow, or starts or changes a run of one, goes through it.
    pub workflows: Arc<dyn Workflows>,
    /// Everything that workers ask for goes through it.
    pub workers: Arc<dyn Workers>,
    /// Everything that attempts say beside how they ended goes through it.
    pub notes: Arc<dyn AttemptNotes>,
    /// Everything that only reads asks it; nothing is changed in it directly.
    pub store: Arc<dyn Store>,
    /// Runs dead letters again by the many.
    pub redrives: Arc<dyn Redrives>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Checks the tokens of those who report on attempts.
    pub tokens: TokenKey,
    /// Under which hosts this server is asked.
    pub hosts: Arc<AllowedHosts>,
    /// How much memory requests take together.
    pub memory: Memory,
    /// How long the lease of a worker is that does not ask for one.
    pub worker_lease: Duration,
    /// How much a request may carry.
    pub limits: Arc<Limits>,
    /// What the operator lets jobs do.
    pub permissions: Permissions,
    /// Renders the metrics as Prometheus text.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Whether the server wants traffic: started, and not shutting down.
    pub ready: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl ApiState {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState").field("limits", &self.limits).finish_non_exhaustive()
    }
}
