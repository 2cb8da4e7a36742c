//! Workflows: graphs of tasks that wait for each other, and what is asked of and told about them.
//!
//! A task is a job without a time, or the same for each element of an array. What a definition has to keep to be one (names, cycles, references) is
//! the domain's to say; what can be seen from one task alone is checked here.
//!
//! A definition that is answered can be sent again as it is: it leaves out what has its default, and says the same.

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

pub use run::{CompleteTask, RunItems, RunStatus, RunTask, StartRun, WorkflowRun};
pub use schedule::WorkflowSchedule;

/// How many elements a fan-out may be allowed; as many as it is when nobody says.
pub const MAX_ITEMS_RANGE: RangeInclusive<u32> = 1..=10_000;
/// How long a task may be made to wait before it counts as stalled.
pub const STALL_AFTER_RANGE: RangeInclusive<Span> =
    Span::from_millis(1_000)..=Span::from_millis(366 * 24 * 3_600_000);
/// Who can be told of a run.
pub const NOTIFY_MAX: usize = 10;
/// Characters of the description.
pub const DESCRIPTION_CHARS_MAX: usize = 4_096;
/// Characters of a condition.
pub const CONDITION_CHARS_MAX: usize = 4_096;
/// The schedule of a workflow has the workflow's name after this; no other schedule can have such a name.
pub const SCHEDULE_PREFIX: &str = "workflow.";

words! {
    /// When a task may start, by how those it depends on ended.
    TriggerRule {
        /// All of them completed. Skipped ones do not count, unless all were: then it is skipped too. The default.
        AllSucceeded = "all_succeeded",
        /// All of them are over, however they ended.
        AllDone = "all_done",
        /// One of them failed; if none did, it is skipped.
        AnyFailed = "any_failed",
    }
}

words! {
    /// What becomes of a run when a task fails for good.
    OnFailure {
        /// What has not started is cancelled, what runs is asked to stop. The default.
        FailFast = "fail_fast",
        /// Whatever does not depend on it goes on.
        Continue = "continue",
    }
}

words! {
    /// What can be told of a run.
    RunEvent {
        /// It began, or goes on after having ended.
        Running = "running",
        /// It ended well.
        Completed = "completed",
        /// It ended badly.
        Failed = "failed",
        /// Somebody ended it.
        Cancelled = "cancelled",
        /// A task of it waits for longer than it should.
        Stalled = "stalled",
    }
}

impl RunEvent {
    /// What is told when nobody says: how it ended.
    pub const USUAL: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];
}

/// A workflow to be stored. `name` and `tasks` are required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitWorkflow {
    /// Unique. The same name again makes a new version.
    #[schema(value_type = document::WorkflowName, example = "etl")]
    pub name: String,
    /// What it is for, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Prose>)]
    pub description: Option<String>,
    /// Its tasks.
    #[schema(min_items = 1, max_items = 10000)]
    pub tasks: Vec<WorkflowTask>,
    /// Tasks that come before all others.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<WorkflowTask>>, max_items = 10000)]
    pub before: Vec<WorkflowTask>,
    /// Tasks that come when all others are over, however they ended.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<WorkflowTask>>, max_items = 10000)]
    pub after: Vec<WorkflowTask>,
    /// What becomes of a run when a task fails. Default `fail_fast`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// A task that waits longer than this for one that could have ended is stalled: 1 s to 366 days. Default: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_after: Option<Span>,
    /// Who is told of its runs.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<Notify>>, max_items = 10)]
    pub notify: Vec<Notify>,
    /// When it runs by itself. Leaving it out of a new version takes the schedule away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<WorkflowSchedule>,
}

/// A task. `name` and either `job` or, with `for_each`, `tasks` are required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowTask {
    /// Unique among those it can wait for: letters, digits, `_` and `-`, beginning with a letter.
    #[schema(value_type = document::TaskName, example = "extract")]
    pub name: String,
    /// The names of the tasks it waits for.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<document::TaskName>>)]
    pub depends_on: Vec<String>,
    /// When it may start, by how those ended. Default `all_succeeded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_rule: Option<TriggerRule>,
    /// It is skipped unless this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Condition>, example = "extract.result.rows > 0")]
    pub when: Option<String>,
    /// The array for each element of which it is done: a path, as a string or as `{"$from": "path"}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Path>, example = "extract.result.files")]
    pub for_each: Option<DataPath>,
    /// With `for_each`: an array of more elements fails the task. Default 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10000)]
    pub max_items: Option<u32>,
    /// With `for_each`: so many at a time. Default: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub concurrency: Option<u32>,
    /// What is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<TaskJob>,
    /// With `for_each`, in place of a job: tasks that are done for each element and can wait for each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion, min_items = 1)]
    pub tasks: Option<Vec<WorkflowTask>>,
}

/// The job of a task: a job without time, key and parents. Nothing in it is required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskJob {
    /// What kind of work it is: the handler's name. Default: the name of the task.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub job_type: Option<String>,
    /// Who runs it. Default: a worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The data for the target: any JSON. Anywhere in it, `{"$from": "path", "default": …}` stands for what the path leads to, and
    /// `{"$literal": …}` for what is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
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
    /// Where to send the outcome of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Url>)]
    pub callback_url: Option<String>,
    /// Who is named as its submitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub created_by: Option<String>,
}

impl TaskJob {
    /// The job of the task of that name, as if it were submitted.
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

/// Who is told what of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Notify {
    /// Where to.
    #[schema(value_type = document::Url)]
    pub url: String,
    /// Of these events. Default: how it ended (`completed`, `failed`, `cancelled`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1)]
    pub on: Option<Vec<RunEvent>>,
}

/// A path into data, such as `extract.result.rows`. Written as a string, or as `{"$from": "path"}`, which means the same.
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

/// For a list where `null` is the same as leaving it out.
fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A version of a workflow, without its tasks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkflowSummary {
    /// Unique.
    pub name: String,
    /// 1 for the first.
    pub version: u32,
    /// What it is for.
    pub description: Option<String>,
    /// Who owns it.
    pub tenant: String,
    /// When this version was stored.
    pub created_at: Time,
    /// How many tasks it has, those inside of fan-outs included.
    pub tasks_total: usize,
    /// When it runs by itself, as it was ordered. The schedule itself is the one named `workflow.<name>`.
    pub schedule: Option<WorkflowSchedule>,
}

/// A version of a workflow.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Workflow {
    /// Unique.
    pub name: String,
    /// 1 for the first.
    pub version: u32,
    /// What it is for.
    pub description: Option<String>,
    /// Who owns it.
    pub tenant: String,
    /// When this version was stored.
    pub created_at: Time,
    /// How many tasks it has, those inside of fan-outs included.
    pub tasks_total: usize,
    /// What was ordered. Sent again as it is, it changes nothing.
    pub definition: SubmitWorkflow,
}
