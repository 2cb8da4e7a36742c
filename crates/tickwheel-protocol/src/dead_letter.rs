//! Dead letters: jobs that were given up.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::attempt::JobError;
use crate::job::{Priority, present};
use crate::time::Time;

/// A job that was given up.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    /// The job.
    #[schema(value_type = String, format = "uuid")]
    pub job_id: Uuid,
    /// What kind of work it was.
    #[serde(rename = "type")]
    pub job_type: String,
    /// The lane it waited in.
    pub queue: String,
    /// How urgent it was.
    pub priority: Priority,
    /// Who owns it.
    pub tenant: String,
    /// Why there was no other attempt: `retries_exhausted`, `not_retryable`, `poison_pill` or `at_most_once`.
    pub reason: String,
    /// Why its last attempt failed.
    pub error: Option<JobError>,
    /// When it was given up.
    pub failed_at: Time,
    /// How many attempts there were.
    pub attempts: u32,
    /// The data for the target.
    #[schema(value_type = serde_json::Value)]
    pub payload: Box<RawValue>,
    /// Labels to find it by.
    pub tags: Vec<String>,
}

/// "Run it again."
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Redrive {
    /// Replaces the payload; `null` is a value here.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
}

/// "Run all of these again."
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveFilter {
    /// Of this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub job_type: Option<String>,
    /// Of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// This many at the most, the latest first. Default and maximum 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveSummary {
    /// Jobs that will run again.
    pub redriven: u64,
    /// Dead letters that are left, of any type and queue.
    pub remaining: u64,
}
