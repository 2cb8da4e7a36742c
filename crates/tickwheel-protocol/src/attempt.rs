//! Attempts: their history, and the reports of targets that answer later.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::document;
use crate::job::{JsonObject, words};
use crate::time::{Span, Time};
use crate::worker::LogLevel;

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
    /// `completed`, `failed`, `timed_out`, `lost`, `cancelled`, `released` or `snoozed`. `null` while it is running.
    pub outcome: Option<String>,
    /// Why it failed. `null` if it did not.
    pub error: Option<JobError>,
}

/// One line of an attempt's log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// The attempt that wrote it.
    pub attempt: u32,
    /// Its number in the log of the attempt, beginning with 0. Lines that never arrived leave a gap.
    pub number: u64,
    /// When the line was written.
    pub time: Time,
    /// How much it matters.
    pub level: LogLevel,
    /// The text.
    pub message: String,
    /// Facts beside the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub fields: Option<JsonObject>,
    /// Whether something of it was cut off, because it was longer than a line may be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Only while the log is followed: how to go on after this line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// An attempt is still running.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatAttempt {
    /// How much of it is done, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 100)]
    pub progress: Option<f64>,
    /// What it is doing, in words. What is longer than 255 characters is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

words! {
    /// For whom the key of an effect is the same.
    OnceScope {
        /// For all attempts of the job. The default.
        Job = "job",
        /// For all jobs of the tenant.
        Tenant = "tenant",
    }
}

/// An attempt asks whether it is to carry out an effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AskOnce {
    /// For whom the key is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<OnceScope>,
    /// How long to remember what comes of it: up to 90 days. Default 7 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
}

words! {
    /// How an effect stands.
    OnceState {
        /// Nobody has carried it out: do so now, then say `done` or `abandon`.
        First = "first",
        /// It was carried out; `result` says what came of it.
        Done = "done",
        /// Another attempt is at it: ask again after `retry_in`.
        Busy = "busy",
        /// An attempt was at it and is over, without a word. The effect may have happened. The key is yours now.
        InDoubt = "in_doubt",
    }
}

/// The answer to an attempt that asks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OnceAnswer {
    /// How the effect stands.
    pub state: OnceState,
    /// What came of it, if it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Box<RawValue>>,
    /// When to ask again, if another attempt is at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in: Option<Span>,
}

/// An effect was carried out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OnceDone {
    /// What came of it: any JSON, up to 64 KiB. Default `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Box<RawValue>>,
    /// For whom the key is the same. Default: whichever the attempt was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<OnceScope>,
}

/// An effect was not carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OnceAbandon {
    /// For whom the key is the same. Default: whichever the attempt was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<OnceScope>,
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
    /// The class of the error in the language of its target. Stored with the message.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>, example = "ValueError")]
    pub class: Option<String>,
    /// Where in its code it happened. Stored with the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// Whether somebody asked the attempt to stop.
    pub cancel: bool,
    /// When the attempt must have ended.
    pub deadline: Time,
}
