//! "Why has my job not run?"

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::job::Status;
use crate::time::Time;

/// Why a job is not running, or that it is, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The job.
    #[schema(value_type = String, format = "uuid")]
    pub job_id: Uuid,
    /// Where it stands.
    pub status: Status,
    /// The reason, for machines; stable.
    #[schema(example = "not_yet_due")]
    pub code: String,
    /// The reason, for people.
    pub sentence: String,
    /// What it waits for, if for anything.
    pub waits_for: Option<String>,
    /// Since when this is so.
    pub since: Option<Time>,
    /// When it will start, if that is known.
    pub expected_start: Option<Time>,
}
