//! What a workflow is: a name, versions, and in each of them tasks that wait for each other.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::job::JsonText;
use crate::schedule::JobTemplate;
use crate::time::Timestamp;
use crate::words::words;
use crate::workflow::Graph;

/// So many elements a fan-out may have when nobody says.
pub const MAX_ITEMS_DEFAULT: u32 = 10_000;

words! {
    /// When a task may start, by how its parents ended.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TriggerRule {
        /// All of them completed. Skipped ones do not count, unless all were: then it is skipped too.
        #[default]
        AllSucceeded = "all_succeeded",
        /// None of them goes on by itself, however they ended.
        AllDone = "all_done",
        /// One of them failed; if none did, it is skipped.
        AnyFailed = "any_failed",
    }
}

words! {
    /// What becomes of a run when a task fails for good.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnFailure {
        /// What has not started is cancelled, what runs is asked to stop.
        #[default]
        FailFast = "fail_fast",
        /// Whatever does not depend on it goes on.
        Continue = "continue",
    }
}

words! {
    /// What can be told of a run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunEvent {
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

/// Who is told what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    /// Where to.
    pub url: String,
    /// Of these events.
    pub on: Vec<RunEvent>,
}

/// A task as requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Unique among those it can wait for.
    pub name: Arc<str>,
    /// It waits for these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Arc<str>>,
    /// When it may start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rule: TriggerRule,
    /// It is skipped unless this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What it does.
    pub work: Work,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// One job.
    Job(JobTemplate),
    /// The same for each element of an array.
    ForEach(ForEach),
}

/// The same for each element of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForEach {
    /// Where the array is.
    pub over: String,
    /// More elements are refused.
    pub max_items: u32,
    /// So many at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// What is done for each.
    pub each: Each,
}

/// What is done for each element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Each {
    /// One job.
    Job(JobTemplate),
    /// Tasks that wait for each other.
    Tasks(Vec<TaskSpec>),
}

/// What was requested. The stores keep it as one document.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkflowSpec {
    /// What it is for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its tasks.
    pub tasks: Vec<TaskSpec>,
    /// These come before all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<TaskSpec>,
    /// These come when all others are over, however they ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<TaskSpec>,
    /// What becomes of a run when a task fails.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// A task that waits longer than this for one that could have ended is stalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_after_ms: Option<u64>,
    /// Who is told of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<Notify>,
    /// The schedule that was requested with it, as it was written. It is one of the schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<JsonText>,
}

/// One version of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// Who owns it.
    pub tenant: Arc<str>,
    /// Unique within the tenant.
    pub name: Arc<str>,
    /// 1 for the first.
    pub version: u32,
    /// When this version was stored.
    pub created_at: Timestamp,
    /// What was requested.
    pub spec: Arc<WorkflowSpec>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A version of a workflow, and the graph that it makes.
#[derive(Debug)]
pub struct Definition {
    /// The workflow.
    pub workflow: Workflow,
    /// Its graph.
    pub graph: Graph,
}

impl Definition {
    /// Of a workflow that was checked when it was stored; otherwise what is wrong with it.
    pub fn stored(workflow: Workflow) -> Result<Self, String> {
        match Graph::stored(&workflow.spec) {
            Ok(graph) => Ok(Self { workflow, graph }),
            Err(faults) => {
                let first = faults.first().map(|fault| fault.kind.to_string()).unwrap_or_default();
                Err(format!("version {} of workflow {:?}: {first}", workflow.version, workflow.name))
            }
        }
    }
}
