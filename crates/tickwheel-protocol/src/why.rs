//! Why a job has not run.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::job::Status;
use crate::time::Time;

/// Why a job is not running, or the fact that it is, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The job.
    #[schema(value_type = String, format = "uuid")]
    pub job_id: Uuid,
    /// Its state.
    pub status: Status,
    /// A stable code for the reason.
    #[schema(example = "not_yet_due")]
    pub code: String,
    /// The reason, as a sentence.
    pub sentence: String,
    /// What it waits for, if it waits.
    pub waits_for: Option<String>,
    /// Since when this has been so.
    pub since: Option<Time>,
    /// When it will start, if the server can tell.
    pub expected_start: Option<Time>,
}
