//! Attempts: their history, and the reports of targets that answer later.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::document;
use crate::time::{Span, Time};

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobError {
    /// A stable code in snake_case, such as `http_status`, `connect_failed` or `timed_out`.
    pub code: String,
    /// What happened, as a sentence.
    pub message: String,
    /// Whether the message was cut. Only the overview of a run cuts messages, when they are long; the task's own job
    /// has the whole text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// One attempt to execute a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// The number of the attempt, beginning with 1. It is also the fencing token.
    pub number: u32,
    /// When it started.
    pub started_at: Time,
    /// When it ended. `null` while it is running.
    pub ended_at: Option<Time>,
    /// `completed`, `failed`, `timed_out`, `lost`, `cancelled` or `released`. `null` while it is running.
    pub outcome: Option<String>,
    /// Why it failed. `null` if it did not.
    pub error: Option<JobError>,
}

/// One line of an attempt's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// When the line was written.
    pub time: Time,
    /// The text.
    pub message: String,
}

/// The report that an attempt succeeded.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteAttempt {
    /// The result: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Box<RawValue>>,
}

/// The report that an attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailAttempt {
    /// Why: a sentence, or a code and a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReportedError>,
    /// Whether a retry could help. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// How long to wait before the retry, instead of the delay from the job's retry policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
}

/// Why an attempt failed, in the words of its target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ReportedError {
    /// A sentence.
    Message(String),
    /// A code and a message.
    Coded(CodedError),
}

/// An error with a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CodedError {
    /// A stable code. Default `reported`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub code: Option<String>,
    /// What happened, as a sentence.
    pub message: String,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// Whether somebody asked the attempt to stop.
    pub cancel: bool,
    /// When the attempt must have ended.
    pub deadline: Time,
}
