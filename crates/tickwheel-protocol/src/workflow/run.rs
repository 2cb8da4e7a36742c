//! Runs of workflows: how to start one, what an answer contains, and commands for its tasks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::TriggerRule;
use crate::attempt::JobError;
use crate::document;
use crate::job::{Status, present, words};
use crate::time::Time;

words! {
    /// The state of a run.
    RunStatus {
        /// At least one task is running or will run.
        Running = "running",
        /// Every task completed or was skipped.
        Completed = "completed",
        /// A task failed, and nothing goes on without a command.
        Failed = "failed",
        /// The run was cancelled on request.
        Cancelled = "cancelled",
        /// No task starts until the run is resumed. Running tasks go on.
        Paused = "paused",
    }
}

impl RunStatus {
    /// Whether the run has ended. It changes again only on request.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Running | Self::Paused)
    }
}

/// A request to start a run. All fields are optional.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The input of the run: any JSON. Default `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<Box<RawValue>>,
    /// Makes it safe to repeat the request: the same key with the same body returns the first run. Same as the
    /// `Idempotency-Key` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub idempotency_key: Option<String>,
}

/// A request to mark a task as completed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// The result of the task, which other tasks may use: any JSON, including `null`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Box<RawValue>>,
}

/// A run of a workflow.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WorkflowRun {
    /// UUIDv7.
    #[schema(value_type = String, format = "uuid")]
    pub id: Uuid,
    /// The name of its workflow.
    pub workflow: String,
    /// The version of its workflow.
    pub version: u32,
    /// Its state.
    pub status: RunStatus,
    /// Whether somebody asked the run to stop.
    pub cancel_requested: bool,
    /// The tenant that owns it.
    pub tenant: String,
    /// The input of the run.
    #[schema(value_type = serde_json::Value)]
    pub input: Box<RawValue>,
    /// When it was started.
    pub created_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// When it was paused. `null` if it is not.
    pub paused_at: Option<Time>,
    /// How many tasks it has so far, including the items of fan-outs.
    pub tasks_total: u32,
    /// How many of its tasks have not ended.
    pub tasks_open: u32,
    /// How many of its tasks have waited too long.
    pub stalled: u32,
    /// The job that started the run and waits for it, if there is one.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub job_id: Option<Uuid>,
    /// Its tasks in the order of the definition: `before` first, `after` last. Not part of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<RunTask>>,
}

/// A task of a run, or one item of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunTask {
    /// Its name, or its path inside a fan-out, such as `load[3]` or `load[3].check`.
    pub name: String,
    /// Its state. A fan-out is running while one of its items is.
    pub status: Status,
    /// The job that executes it. `null` while there is none.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub job_id: Option<Uuid>,
    /// The kind of work: the name of the handler.
    #[serde(rename = "type")]
    pub job_type: String,
    /// The number of its latest attempt. 0 before the first one.
    pub attempt: u32,
    /// When its next attempt may start, or when the last one could. `null` while it waits for other tasks.
    pub due_at: Option<Time>,
    /// When its latest attempt started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub completed_at: Option<Time>,
    /// The names of the tasks it depends on.
    pub depends_on: Vec<String>,
    /// When it may start, depending on how those tasks ended.
    pub trigger_rule: TriggerRule,
    /// Why it failed or was skipped.
    pub error: Option<JobError>,
    /// What it waits for, as a sentence. Only for a task that waits for other tasks, or for its run to be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_waiting: Option<String>,
    /// The counts of its items. Only for a fan-out, once the array is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<RunItems>,
    /// The index of its element, beginning with 0. Only for an item of a fan-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
}

/// The items of a fan-out by state. All counts except `total` and `released` add up to `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunItems {
    /// How many items there are.
    pub total: u32,
    /// How many have been released to run so far.
    pub released: u32,
    /// How many completed.
    pub completed: u32,
    /// How many failed, or cannot go on because a task inside them failed.
    pub failed: u32,
    /// How many were cancelled.
    pub cancelled: u32,
    /// How many were skipped.
    pub skipped: u32,
    /// How many are running.
    pub running: u32,
    /// How many have not started.
    pub waiting: u32,
}
