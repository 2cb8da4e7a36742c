//! Attempts: their history, and reports of those who run them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::document;
use crate::time::{Span, Time};

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobError {
    /// Stable, snake_case: `http_status`, `connect_failed`, `timed_out` …
    pub code: String,
    /// What happened, in words.
    pub message: String,
    /// The message is only the beginning: the whole is in the task's own job. Only in the overview of a run whose errors are long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// One try at a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// Its number: 1 for the first. Also its fencing token.
    pub number: u32,
    /// When it started.
    pub started_at: Time,
    /// When it ended; `null` while it is under way.
    pub ended_at: Option<Time>,
    /// `completed`, `failed`, `timed_out`, `lost`, `cancelled` or `released`; `null` while it is under way.
    pub outcome: Option<String>,
    /// Why, if not well.
    pub error: Option<JobError>,
}

/// One line an attempt wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// When.
    pub time: Time,
    /// What.
    pub message: String,
}

/// "The work is done."
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteAttempt {
    /// What came of it: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Box<RawValue>>,
}

/// "The work was not done."
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailAttempt {
    /// Why: a sentence, or a code and a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReportedError>,
    /// Whether trying again could help. Default: yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// How long to wait before the retry, instead of what the job's policy says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
}

/// Why an attempt failed, as its runner says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ReportedError {
    /// Just a sentence.
    Message(String),
    /// With a code for machines.
    Coded(CodedError),
}

/// An error with a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CodedError {
    /// Stable, for machines. Default `reported`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub code: Option<String>,
    /// What happened, in words.
    pub message: String,
}

/// The answer to "I am still working on it".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// Somebody wants it stopped.
    pub cancel: bool,
    /// When it has to be over.
    pub deadline: Time,
}
