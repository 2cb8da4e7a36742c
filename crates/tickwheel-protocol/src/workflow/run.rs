//! Runs of workflows: starting one, what it answers, and what people do to its tasks.

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
    /// Where a run stands.
    RunStatus {
        /// Something of it runs, or will.
        Running = "running",
        /// Every task ended well, or was skipped.
        Completed = "completed",
        /// Nothing of it goes on without somebody's help.
        Failed = "failed",
        /// Somebody ended it.
        Cancelled = "cancelled",
        /// None of its tasks starts until it is resumed. What runs goes on.
        Paused = "paused",
    }
}

impl RunStatus {
    /// Whether nothing more will happen by itself.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Running | Self::Paused)
    }
}

/// "Run it." Nothing in it is required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// What the run is given: any JSON. Default `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<Box<RawValue>>,
    /// Makes a repeated request harmless. The same as the `Idempotency-Key` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub idempotency_key: Option<String>,
}

/// "It counts as completed."
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// With this result, which other tasks may use: any JSON, `null` included.
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
    /// Of which workflow,
    pub workflow: String,
    /// and which version of it.
    pub version: u32,
    /// Where it stands.
    pub status: RunStatus,
    /// Somebody wants it to end.
    pub cancel_requested: bool,
    /// Who owns it.
    pub tenant: String,
    /// What it was given.
    #[schema(value_type = serde_json::Value)]
    pub input: Box<RawValue>,
    /// When it was started.
    pub created_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Since when it is paused.
    pub paused_at: Option<Time>,
    /// How many tasks it has so far, the elements of fan-outs included.
    pub tasks_total: u32,
    /// How many of them have not ended.
    pub tasks_open: u32,
    /// How many of them wait for longer than they should.
    pub stalled: u32,
    /// The job that waits for it, if one started it.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub job_id: Option<Uuid>,
    /// Its tasks in the order of the definition: those that come before all others first, those that come after all others last. Not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<RunTask>>,
}

/// A task of a run, or one element of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunTask {
    /// Its name; inside of a fan-out its path, such as `load[3]` or `load[3].check`.
    pub name: String,
    /// Where it stands. A fan-out runs while one of its elements does.
    pub status: Status,
    /// The job that carries it out; `null` as long as there is none.
    #[schema(value_type = Option<String>, format = "uuid")]
    pub job_id: Option<Uuid>,
    /// What kind of work it is.
    #[serde(rename = "type")]
    pub job_type: String,
    /// Number of the latest attempt, 0 before the first.
    pub attempt: u32,
    /// When its next attempt may start, or the last one could; `null` while it waits for others.
    pub due_at: Option<Time>,
    /// When its latest attempt started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub completed_at: Option<Time>,
    /// The names of the tasks it waits for.
    pub depends_on: Vec<String>,
    /// When it may start, by how those ended.
    pub trigger_rule: TriggerRule,
    /// Why it failed, or was skipped.
    pub error: Option<JobError>,
    /// What it waits for, in words; only of one that waits for others, or for its run to be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_waiting: Option<String>,
    /// How its elements stand; only of a fan-out, once they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<RunItems>,
    /// Which element it is, counted from 0; only of an element of a fan-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
}

/// How the elements of a fan-out stand. All but `total` and `released` add up to `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunItems {
    /// How many there are.
    pub total: u32,
    /// How many were let go so far.
    pub released: u32,
    /// How many ended well.
    pub completed: u32,
    /// How many ended badly, or cannot go on because something inside of them did.
    pub failed: u32,
    /// How many were cancelled.
    pub cancelled: u32,
    /// How many were passed over.
    pub skipped: u32,
    /// How many run.
    pub running: u32,
    /// How many have not started.
    pub waiting: u32,
}
