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

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word for it, everywhere.
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
    /// How urgent a job is. A higher priority always goes first.
    Priority {
        /// Before everything else.
        Critical = "critical",
        /// Before normal.
        High = "high",
        /// The default.
        Normal = "normal",
        /// When nothing else is waiting.
        Low = "low",
    }
}

words! {
    /// What is promised about the number of executions.
    Delivery {
        /// Run until it is known to have run: a crash can repeat it. The default.
        AtLeastOnce = "at_least_once",
        /// Never started a second time: a crash can leave it undone, and then it fails.
        AtMostOnce = "at_most_once",
    }
}

words! {
    /// Where a job stands.
    Status {
        /// Waits for the jobs it depends on.
        Pending = "pending",
        /// Waits for its time, or is due and waits for its turn.
        Scheduled = "scheduled",
        /// Handed over, not yet taken by a worker.
        Dispatched = "dispatched",
        /// An attempt is under way.
        Running = "running",
        /// Ended well.
        Completed = "completed",
        /// Ended badly; it is a dead letter.
        Failed = "failed",
        /// Ended because somebody asked for it.
        Cancelled = "cancelled",
        /// Held by hand until resumed.
        Paused = "paused",
        /// A job it depends on failed or was cancelled.
        Blocked = "blocked",
        /// Ended without having run: its condition did not hold, or somebody passed over it. Only a task of a workflow.
        Skipped = "skipped",
    }
}

impl Status {
    /// Whether nothing more will happen by itself.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Skipped)
    }
}

/// A JSON object whose inside is nobody's business here.
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

/// A job to be run. Only `type` is required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitJob {
    /// What kind of work it is: the handler's name.
    #[serde(rename = "type")]
    #[schema(value_type = document::Name, example = "send_email")]
    pub job_type: String,
    /// Who runs it. Default: a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The data for the target: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// When to run. Default: now. A time in the past means now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execute_at: Option<Time>,
    /// How long from now to run; not together with `execute_at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// The lane it waits in. Default `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>, example = "default")]
    pub queue: Option<String>,
    /// How urgent it is. Default `normal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// When to try again after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How long an attempt may take: 1 ms to 24 h, default 300 s. For a workflow: up to 7 days, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// At least once or at most once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Ids of the jobs that have to complete first. One that is named twice counts once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::JobId>>, max_items = 1000)]
    pub depends_on: Option<Vec<String>>,
    /// Labels to find it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::Name>>, max_items = 64)]
    pub tags: Option<Vec<String>>,
    /// Free-form facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<JsonObject>,
    /// Jobs with the same key are meant to share a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub concurrency_key: Option<String>,
    /// What a worker must offer. Not available yet: must be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Empty>)]
    pub requires: Option<serde_json::Map<String, serde_json::Value>>,
    /// Where to send the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Url>)]
    pub callback_url: Option<String>,
    /// Makes a repeated submission harmless. The same as the `Idempotency-Key` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub idempotency_key: Option<String>,
    /// Who submits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub created_by: Option<String>,
}

/// A job: what was ordered and how far it has come.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// UUIDv7.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// What kind of work it is.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub job_type: Arc<str>,
    /// Where it stands.
    pub status: Status,
    /// The lane it waits in.
    #[schema(value_type = String)]
    pub queue: Arc<str>,
    /// How urgent it is.
    pub priority: Priority,
    /// Who owns it.
    #[schema(value_type = String)]
    pub tenant: Arc<str>,
    /// When it was ordered to run.
    pub execute_at: Time,
    /// When its next attempt may start: `execute_at`, or the time of the retry. `null` once it has started or ended, and while it waits for others.
    pub next_run_at: Option<Time>,
    /// When it was submitted.
    pub created_at: Time,
    /// When its latest attempt started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub completed_at: Option<Time>,
    /// When the running attempt has to be over.
    pub deadline: Option<Time>,
    /// Number of the latest attempt, 0 before the first.
    pub attempt: u32,
    /// Failures that were answered by a retry.
    pub retries: u32,
    /// Retries it may use.
    pub max_retries: u32,
    /// Somebody asked the running attempt to stop.
    pub cancel_requested: bool,
    /// What the target answered. Left out in lists that were not asked to include it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Option<Box<RawValue>>>,
    /// Why the latest attempt that failed did so.
    pub error: Option<JobError>,
    /// Labels to find it by.
    pub tags: Vec<String>,
    /// Free-form facts of the submitter.
    #[schema(value_type = Object)]
    pub metadata: JsonObject,
    /// The data for the target. Left out in lists that were not asked to include it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value)]
    pub payload: Option<Box<RawValue>>,
    /// Who runs it.
    #[schema(value_type = AnsweredTarget)]
    pub target: Target,
    /// When to try again after a failure.
    pub retry: Retry,
    /// How long an attempt may take.
    pub timeout: Span,
    /// At least once or at most once.
    pub delivery: Delivery,
    /// Ids of the jobs that have to complete first.
    #[schema(value_type = Vec<document::JobId>)]
    pub depends_on: Vec<Uuid>,
    /// Jobs with the same key are meant to share a limit.
    pub concurrency_key: Option<String>,
    /// Where the outcome is sent.
    pub callback_url: Option<String>,
    /// Who submitted it, if they said.
    pub created_by: Option<String>,
    /// The schedule it comes from.
    pub schedule_id: Option<String>,
    /// The workflow run it belongs to,
    pub workflow_run_id: Option<String>,
    /// and which task of it it is: its name, inside of a fan-out its path, such as `load[3].check`.
    pub task: Option<String>,
}

/// New values for a job that has not started; what is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchJob {
    /// When to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execute_at: Option<Time>,
    /// How urgent it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The data for the target. `null` is a value here: it replaces the payload.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// Labels to find it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::Name>>, max_items = 64)]
    pub tags: Option<Vec<String>>,
    /// `paused` holds it, `scheduled` lets it go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PatchStatus>,
}

/// The states a job can be put into by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchStatus {
    /// Hold it.
    Paused,
    /// Let it go.
    Scheduled,
}

/// For a field where `null` is a value of its own and not the same as leaving it out.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// Many jobs at once. Each is judged by itself, so they are kept as text until then.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchSubmit {
    /// The jobs, 10,000 at the most.
    #[schema(value_type = Vec<SubmitJob>, max_items = 10000)]
    pub jobs: Vec<Box<RawValue>>,
}

/// [`BatchSubmit`] as it is read: the jobs stay where they are in the request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadBatch<'a> {
    /// The text of each job.
    #[serde(borrow)]
    pub jobs: Vec<&'a RawValue>,
}

impl BatchSubmit {
    /// A batch of these jobs.
    pub fn of<'a>(jobs: impl IntoIterator<Item = &'a SubmitJob>) -> serde_json::Result<Self> {
        let jobs = jobs.into_iter().map(serde_json::value::to_raw_value).collect::<Result<_, _>>()?;
        Ok(Self { jobs })
    }
}

/// What became of one job of a batch.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchItem {
    /// It is stored, now or earlier under the same idempotency key.
    Job(Box<Job>),
    /// It was refused.
    Error(Problem),
}

/// What became of a batch: one answer a job, in order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BatchResult {
    /// The answers.
    pub results: Vec<BatchItem>,
}
