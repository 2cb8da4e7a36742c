//! Workflows: graphs of tasks that depend on each other.
//!
//! A task is a job without a time, or one such job for each element of an array. The rules that one task can break by
//! itself are checked here. The domain checks the rest: names, cycles, references.
//!
//! A definition in an answer can be sent again as it is: it leaves out what has its default, and means the same.

pub mod builder;
mod run;
mod schedule;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::document;
use crate::job::{Delivery, JsonObject, Priority, SubmitJob, words};
use crate::retry::Retry;
use crate::target::Target;
use crate::time::{Span, Time};
use crate::worker::Labels;

pub use run::{CompleteTask, RunItems, RunStatus, RunTask, StartRun, WorkflowRun};
pub use schedule::WorkflowSchedule;

/// How many items a fan-out may have. The upper bound is the default.
pub const MAX_ITEMS_RANGE: RangeInclusive<u32> = 1..=10_000;
/// After how long a waiting task may count as stalled.
pub const STALL_AFTER_RANGE: RangeInclusive<Span> =
    Span::from_millis(1_000)..=Span::from_millis(366 * 24 * 3_600_000);
/// How many URLs may be notified of a run.
pub const NOTIFY_MAX: usize = 10;
/// How many characters a description may have.
pub const DESCRIPTION_CHARS_MAX: usize = 4_096;
/// How many characters a condition may have.
pub const CONDITION_CHARS_MAX: usize = 4_096;
/// The schedule of a workflow has this prefix and then the workflow's name. No other schedule may have such a name.
pub const SCHEDULE_PREFIX: &str = "workflow.";

words! {
    /// When a task may start, depending on how the tasks it depends on ended.
    TriggerRule {
        /// All of them completed. Skipped ones do not count, but if all were skipped, the task is skipped too. The
        /// default.
        AllSucceeded = "all_succeeded",
        /// All of them have ended, with any outcome.
        AllDone = "all_done",
        /// At least one of them failed. If none did, the task is skipped.
        AnyFailed = "any_failed",
    }
}

words! {
    /// What happens to a run when a task fails for good.
    OnFailure {
        /// Tasks that have not started are cancelled, and running ones are asked to stop. The default.
        FailFast = "fail_fast",
        /// Tasks that do not depend on the failed one go on.
        Continue = "continue",
    }
}

words! {
    /// An event of a run that can be notified.
    RunEvent {
        /// The run started, or was continued after it had ended.
        Running = "running",
        /// The run completed.
        Completed = "completed",
        /// The run failed.
        Failed = "failed",
        /// The run was cancelled.
        Cancelled = "cancelled",
        /// A task of the run has waited too long.
        Stalled = "stalled",
    }
}

impl RunEvent {
    /// The events that are notified unless the definition says otherwise: how the run ended.
    pub const USUAL: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];
}

/// A workflow to store. `name` and `tasks` are required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitWorkflow {
    /// The name, which is unique. Storing a workflow under an existing name makes a new version.
    #[schema(value_type = document::WorkflowName, example = "etl")]
    pub name: String,
    /// What the workflow is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Prose>)]
    pub description: Option<String>,
    /// Its tasks.
    #[schema(min_items = 1, max_items = 10000)]
    pub tasks: Vec<WorkflowTask>,
    /// Tasks that run before all others.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<WorkflowTask>>, max_items = 10000)]
    pub before: Vec<WorkflowTask>,
    /// Tasks that run after all others have ended, with any outcome.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<WorkflowTask>>, max_items = 10000)]
    pub after: Vec<WorkflowTask>,
    /// What happens to a run when a task fails. Default `fail_fast`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// When a waiting task counts as stalled: after it has waited this long for a task that could have ended. 1 s to
    /// 366 days. Default: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_after: Option<Span>,
    /// Which URLs are notified of its runs.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<Notify>>, max_items = 10)]
    pub notify: Vec<Notify>,
    /// When it runs by itself. A new version without `schedule` removes the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<WorkflowSchedule>,
}

/// A task. `name` and either `job` or, with `for_each`, `tasks` are required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowTask {
    /// The name: letters, digits, `_` and `-`, beginning with a letter. Unique among the tasks that it could depend on.
    #[schema(value_type = document::TaskName, example = "extract")]
    pub name: String,
    /// The names of the tasks it depends on.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<document::TaskName>>)]
    pub depends_on: Vec<String>,
    /// When it may start, depending on how those tasks ended. Default `all_succeeded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_rule: Option<TriggerRule>,
    /// A condition. The task is skipped unless it is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Condition>, example = "extract.result.rows > 0")]
    pub when: Option<String>,
    /// An array: the task runs once for each element. A path, as a string or as `{"$from": "path"}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Path>, example = "extract.result.files")]
    pub for_each: Option<DataPath>,
    /// With `for_each`: the task fails if the array has more elements than this. Default 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10000)]
    pub max_items: Option<u32>,
    /// With `for_each`: how many items may run at once. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub concurrency: Option<u32>,
    /// The job of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<TaskJob>,
    /// With `for_each`, instead of `job`: tasks that run for each element and can depend on each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion, min_items = 1)]
    pub tasks: Option<Vec<WorkflowTask>>,
}

/// The job of a task: a job without time, keys and parents. All fields are optional.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskJob {
    /// The kind of work: the name of the handler. Default: the name of the task.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub job_type: Option<String>,
    /// What executes the job. Default: a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The data for the target: any JSON. Anywhere in it, `{"$from": "path", "default": …}` is replaced by the data at
    /// the path, and `{"$literal": …}` by its content as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
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
    /// How long an attempt may take: 1 ms to 24 h. Default 300 s. A task that runs a workflow may take up to 7 days,
    /// which is also its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Whether the job executes at least once or at most once. Default `at_least_once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
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
    /// The URL that receives the outcome of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Url>)]
    pub callback_url: Option<String>,
    /// Who is recorded as the submitter of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub created_by: Option<String>,
}

impl TaskJob {
    /// The job of the task with that name, as a request.
    pub fn into_job(self, task: &str) -> SubmitJob {
        SubmitJob {
            job_type: self.job_type.unwrap_or_else(|| task.to_owned()),
            target: self.target,
            payload: self.payload,
            queue: self.queue,
            priority: self.priority,
            retry: self.retry,
            timeout: self.timeout,
            delivery: self.delivery,
            tags: self.tags,
            metadata: self.metadata,
            concurrency_key: self.concurrency_key,
            requires: self.requires,
            callback_url: self.callback_url,
            created_by: self.created_by,
            ..SubmitJob::default()
        }
    }
}

/// A URL and the events of which it is notified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Notify {
    /// The URL.
    #[schema(value_type = document::Url)]
    pub url: String,
    /// The events. Default: how the run ended (`completed`, `failed`, `cancelled`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    pub on: Option<Vec<RunEvent>>,
}

/// A path into data, such as `extract.result.rows`. Written as a string, or as `{"$from": "path"}`, which means the
/// same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DataPath(pub String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    #[serde(rename = "$from")]
    path: String,
}

impl<'de> Deserialize<'de> for DataPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathVisitor;
        impl<'de> Visitor<'de> for PathVisitor {
            type Value = DataPath;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path, as a string or as {\"$from\": \"path\"}")
            }
            fn visit_str<E: de::Error>(self, path: &str) -> Result<DataPath, E> {
                Ok(DataPath(path.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DataPath, A::Error> {
                let reference = Reference::deserialize(MapAccessDeserializer::new(map))?;
                Ok(DataPath(reference.path))
            }
        }
        deserializer.deserialize_any(PathVisitor)
    }
}

/// For a list where `null` means the same as leaving it out.
fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A version of a workflow, without its tasks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkflowSummary {
    /// The name, which is unique.
    pub name: String,
    /// The version, beginning with 1.
    pub version: u32,
    /// What the workflow is for.
    pub description: Option<String>,
    /// The tenant that owns it.
    pub tenant: String,
    /// When this version was stored.
    pub created_at: Time,
    /// How many tasks it has, including those inside fan-outs.
    pub tasks_total: usize,
    /// When it runs by itself, as the definition says. The schedule itself is named `workflow.<name>`.
    pub schedule: Option<WorkflowSchedule>,
}

/// A version of a workflow.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Workflow {
    /// The name, which is unique.
    pub name: String,
    /// The version, beginning with 1.
    pub version: u32,
    /// What the workflow is for.
    pub description: Option<String>,
    /// The tenant that owns it.
    pub tenant: String,
    /// When this version was stored.
    pub created_at: Time,
    /// How many tasks it has, including those inside fan-outs.
    pub tasks_total: usize,
    /// The definition. Sent again as it is, it changes nothing.
    pub definition: SubmitWorkflow,
}
