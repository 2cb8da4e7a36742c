//! Jobs: submitting, changing, reading.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::attempt::JobError;
use crate::document;
use crate::problem::Problem;
use crate::retry::Retry;
use crate::target::{AnsweredTarget, Target};
use crate::time::{Span, Time};
use crate::worker::Labels;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word for it, on the wire and in every text.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|word| word.as_str()).collect();
                    format!("expected one of {}", known.join(", "))
                })
            }
        }
    };
}
pub(crate) use words;

words! {
    /// How urgent a job is. Jobs of a higher priority always start first.
    Priority {
        /// Starts before all other jobs.
        Critical = "critical",
        /// Starts before `normal` and `low`.
        High = "high",
        /// The default.
        Normal = "normal",
        /// Starts when no other job is waiting.
        Low = "low",
    }
}

words! {
    /// How often a job may execute.
    Delivery {
        /// The job executes until the server knows that it did. A crash can make it execute again. The default.
        AtLeastOnce = "at_least_once",
        /// The job starts no more than once. If a crash interrupts it, it fails.
        AtMostOnce = "at_most_once",
    }
}

words! {
    /// The state of a job.
    Status {
        /// The job waits for the jobs it depends on.
        Pending = "pending",
        /// The job waits for its time, or is due and waits for a free slot.
        Scheduled = "scheduled",
        /// The job was handed over, and no worker has taken it yet.
        Dispatched = "dispatched",
        /// An attempt is under way.
        Running = "running",
        /// The job succeeded.
        Completed = "completed",
        /// The job failed and is a dead letter.
        Failed = "failed",
        /// The job was cancelled on request.
        Cancelled = "cancelled",
        /// The job was paused by hand. It starts only after it is resumed.
        Paused = "paused",
        /// A job that it depends on failed or was cancelled.
        Blocked = "blocked",
        /// The task did not execute: its condition was false, or it was skipped by hand. Only tasks of workflows have
        /// this state.
        Skipped = "skipped",
    }
}

impl Status {
    /// Whether the job has ended. It changes again only on request.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Skipped)
    }
}

/// A JSON object that the server stores without looking inside.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct JsonObject(Box<RawValue>);

impl JsonObject {
    /// Its text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('{') {
            Ok(Self(raw))
        } else {
            Err(de::Error::invalid_type(Unexpected::Other("something else"), &"an object"))
        }
    }
}

/// A job to submit. Only `type` is required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitJob {
    /// The kind of work: the name of the handler.
    #[serde(rename = "type")]
    #[schema(value_type = document::Name, example = "send_email")]
    pub job_type: String,
    /// What executes the job. Default: a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The data for the target: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// When to start. Default: now. A time in the past means now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execute_at: Option<Time>,
    /// How long to wait before the job starts. Cannot be combined with `execute_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// The queue it waits in. Default `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>, example = "default")]
    pub queue: Option<String>,
    /// How urgent it is. Default `normal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// How often and when to try again after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long an attempt may take: 1 ms to 24 h. Default 300 s. A job that starts a workflow may take up to 7 days,
    /// which is also its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Whether the job executes at least once or at most once. Default `at_least_once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Ids of the jobs that must complete first. An id that occurs twice counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::JobId>>, max_items = 1000)]
    pub depends_on: Option<Vec<String>>,
    /// Labels for finding the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::Name>>, max_items = 64)]
    pub tags: Option<Vec<String>>,
    /// Any facts about the job, as a JSON object. The server only stores them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<JsonObject>,
    /// The key of a concurrency limit. The server stores it, and does not enforce a limit yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub concurrency_key: Option<String>,
    /// What a worker must offer in its labels. Only for jobs that workers execute.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Labels>)]
    pub requires: Option<Labels>,
    /// The URL that receives the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Url>)]
    pub callback_url: Option<String>,
    /// Makes it safe to repeat the request: the same key with the same body returns the first job. Same as the
    /// `Idempotency-Key` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub idempotency_key: Option<String>,
    /// Who submits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub created_by: Option<String>,
}

/// A job: its request and its progress.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// UUIDv7.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// The kind of work: the name of the handler.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub job_type: Arc<str>,
    /// Its state.
    pub status: Status,
    /// The queue it waits in.
    #[schema(value_type = String)]
    pub queue: Arc<str>,
    /// How urgent it is.
    pub priority: Priority,
    /// The tenant that owns it.
    #[schema(value_type = String)]
    pub tenant: Arc<str>,
    /// When the request asked it to start.
    pub execute_at: Time,
    /// When its next attempt may start: `execute_at`, or the time of the retry. `null` while it runs, after it has
    /// ended, and while it waits for other jobs.
    pub next_run_at: Option<Time>,
    /// When it was submitted.
    pub created_at: Time,
    /// When its latest attempt started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub completed_at: Option<Time>,
    /// When the running attempt must have ended.
    pub deadline: Option<Time>,
    /// The number of its latest attempt. 0 before the first one.
    pub attempt: u32,
    /// How many of its retries are used.
    pub retries: u32,
    /// How many retries it may use.
    pub max_retries: u32,
    /// Whether somebody asked the running attempt to stop.
    pub cancel_requested: bool,
    /// How much of the work is done, in percent, as the running attempt says. Lists do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// What the running attempt is doing, in its own words. Lists do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_message: Option<String>,
    /// When the running attempt said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_at: Option<Time>,
    /// What the target answered. A list contains it only if the request asks for it with `include`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Option<Box<RawValue>>>,
    /// Why the latest failed attempt failed.
    pub error: Option<JobError>,
    /// Labels for finding the job.
    pub tags: Vec<String>,
    /// Any facts about the job, as the submitter wrote them.
    #[schema(value_type = Object)]
    pub metadata: JsonObject,
    /// The data for the target. A list contains it only if the request asks for it with `include`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub payload: Option<Box<RawValue>>,
    /// What executes the job.
    #[schema(value_type = AnsweredTarget)]
    pub target: Target,
    /// How often and when it is tried again after a failure.
    pub retry: Retry,
    /// How long an attempt may take.
    pub timeout: Span,
    /// Whether the job executes at least once or at most once.
    pub delivery: Delivery,
    /// Ids of the jobs that must complete first.
    #[schema(value_type = Vec<document::JobId>)]
    pub depends_on: Vec<Uuid>,
    /// The key of a concurrency limit. The server stores it, and does not enforce a limit yet.
    pub concurrency_key: Option<String>,
    /// What a worker must offer in its labels.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    #[schema(value_type = document::Labels)]
    pub requires: Labels,
    /// The URL that receives the outcome.
    pub callback_url: Option<String>,
    /// Who submitted it, if the request said so.
    pub created_by: Option<String>,
    /// The schedule that made it.
    pub schedule_id: Option<String>,
    /// The workflow run it belongs to.
    pub workflow_run_id: Option<String>,
    /// Its task in that run: a name, or a path inside a fan-out, such as `load[3].check`.
    pub task: Option<String>,
}

/// New values for a job that has not started. Fields that you leave out keep their value.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchJob {
    /// When to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execute_at: Option<Time>,
    /// How urgent it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The data for the target. `null` is a value here and replaces the payload.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// Labels for finding the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::Name>>, max_items = 64)]
    pub tags: Option<Vec<String>>,
    /// `paused` pauses the job, `scheduled` resumes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PatchStatus>,
}

/// The states that a change can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchStatus {
    /// Pause the job.
    Paused,
    /// Resume the job.
    Scheduled,
}

/// For a field where `null` is a value and differs from leaving the field out.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// Many jobs in one request. The server checks each by itself, so they stay text until then.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchSubmit {
    /// The jobs, up to 10,000.
    #[schema(value_type = Vec<SubmitJob>, max_items = 10000)]
    pub jobs: Vec<Box<RawValue>>,
}

/// [`BatchSubmit`] as the server reads it: the jobs stay where they are in the request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadBatch<'a> {
    /// The text of each job.
    #[serde(borrow)]
    pub jobs: Vec<&'a RawValue>,
}

impl BatchSubmit {
    /// Makes a batch of these jobs.
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a SubmitJob>) -> serde_json::Result<Self> {
        let jobs = jobs.into_iter().map(serde_json::value::to_raw_value).collect::<Result<_, _>>()?;
        Ok(Self { jobs })
    }
}

/// The answer for one job of a batch: either the stored job, or the reason why it was rejected.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchItem {
    /// The job is stored, by this request or by an earlier one with the same idempotency key.
    Job(Box<Job>),
    /// The job was rejected.
    Error(Problem),
}

/// The answer to a batch: one result per job, in order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// The results.
    pub results: Vec<BatchItem>,
}
