//! Dead letters: jobs that the server gave up.

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

/// A job that the server gave up.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    /// The job.
    #[schema(value_type = String, format = "uuid")]
    pub job_id: Uuid,
    /// The kind of work: the name of the handler.
    #[serde(rename = "type")]
    pub job_type: String,
    /// The queue it waited in.
    pub queue: String,
    /// How urgent it was.
    pub priority: Priority,
    /// The tenant that owns it.
    pub tenant: String,
    /// Why there was no further attempt: `retries_exhausted`, `not_retryable`, `poison_pill` or `at_most_once`.
    pub reason: String,
    /// Why its last attempt failed.
    pub error: Option<JobError>,
    /// When the server gave it up.
    pub failed_at: Time,
    /// How many attempts it had.
    pub attempts: u32,
    /// The data for the target.
    #[schema(value_type = serde_json::Value)]
    pub payload: Box<RawValue>,
    /// Labels for finding the job.
    pub tags: Vec<String>,
}

/// A request to run a dead letter again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Redrive {
    /// A new payload. `null` is a value here and replaces the payload.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
}

/// A request to run several dead letters again. An empty request is rejected: to redrive all of them, say so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveFilter {
    /// Redrive all that match the other fields. Required unless `type` or `queue` is given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Only jobs of this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub job_type: Option<String>,
    /// Only jobs of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub queue: Option<String>,
    /// Only jobs that were given up before this time. Default: the time of the request. A second request with the
    /// `failed_before` of an earlier answer redrives no job twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub failed_before: Option<Time>,
    /// How many to redrive, up to 1,000, latest first. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
}

words! {
    /// The state of a redrive.
    RedriveStatus {
        /// It is under way. It goes on whether or not anybody reads it.
        Running = "running",
        /// It has processed every dead letter that matched.
        Completed = "completed",
        /// It stopped early, and `error` says why. A new request with the same `failed_before` does the rest.
        Stopped = "stopped",
    }
}

/// A redrive and its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RedriveProgress {
    /// Its id. Valid until the server stops.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// Its state.
    pub status: RedriveStatus,
    /// It redrives only jobs that were given up before this time, each of them once.
    pub failed_before: Time,
    /// How many jobs will run again.
    pub redriven: u64,
    /// How many matching dead letters are left.
    pub remaining: u64,
    /// Why it stopped.
    pub error: Option<String>,
}
