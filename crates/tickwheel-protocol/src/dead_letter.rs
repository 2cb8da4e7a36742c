//! Dead letters: jobs that were given up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::attempt::JobError;
use crate::document;
use crate::job::{Priority, present, words};
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

/// "Run all of these again." An empty one means nothing: whoever wants all of them says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveFilter {
    /// All there are, or all that the rest of this leaves. Needed unless a type or a queue is named.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Of this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub job_type: Option<String>,
    /// Of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub queue: Option<String>,
    /// Given up before this moment. Default: the moment of the request. Asking again with the `failed_before` of an earlier answer runs
    /// nothing a second time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub failed_before: Option<Time>,
    /// This many at the most, up to 1,000, the latest first. Default: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
}

words! {
    /// How far it is.
    RedriveStatus {
        /// It goes on, whether somebody asks for it or not.
        Running = "running",
        /// All of them were looked at.
        Completed = "completed",
        /// It ended before its end: `error` says why. Asking again with the same `failed_before` does the rest.
        Stopped = "stopped",
    }
}

/// What became of it so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveProgress {
    /// Its name, as long as this server runs.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// How far it is.
    pub status: RedriveStatus,
    /// Only what was given up before this moment is run again, each once.
    pub failed_before: Time,
    /// Jobs that will run again.
    pub redriven: u64,
    /// Dead letters that match and are left.
    pub remaining: u64,
    /// Why it stopped.
    pub error: Option<String>,
}
