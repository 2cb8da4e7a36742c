//! The schedule in the definition of a workflow.
//!
//! It becomes an ordinary schedule, named after the workflow, whose job starts a run. It has all settings of a schedule
//! except name and job.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::SCHEDULE_PREFIX;
use crate::cron::{DayLogic, DstFold, DstGap};
use crate::document;
use crate::job::{Priority, SubmitJob};
use crate::schedule::{Missed, OnExcluded, Overlap, SubmitSchedule};
use crate::target::{Target, WorkflowTarget};
use crate::time::{Span, Time};

/// When a workflow runs by itself. Either `cron` or `every` is required.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowSchedule {
    /// The expression: five fields, six with leading seconds, a nickname such as `@daily`, or `@every 90s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Cron>, example = "0 2 * * *")]
    pub cron: Option<String>,
    /// An interval instead of an expression: 1 s to 366 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// The time from which `every` counts. Default 1970-01-01T00:00:00Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Time>,
    /// The IANA name of the time zone for local times. Default `UTC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::TimeZone>, example = "America/New_York")]
    pub timezone: Option<String>,
    /// How the server makes up for missed firings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// What happens to a firing while an earlier run has not ended. Default `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What happens to times that the clock skips. Default `run_after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<DstGap>,
    /// What happens to times that occur twice. Default `once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_fold: Option<DstFold>,
    /// How the two day fields combine. Default `or`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_logic: Option<DayLogic>,
    /// The schedule does not fire before this time. It may fire at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Time>,
    /// The schedule does not fire after this time. It may fire at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Time>,
    /// Its runs start up to this long after their time. The shift is the same for every run of the schedule. 0 to 24 h.
    /// Default `0s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Days on which it does not fire: `2026-12-25`, `2026-12-24/2026-12-31` or `calendar:holidays`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::ExcludedDays>>, max_items = 366)]
    pub exclude: Option<Vec<String>>,
    /// What happens to firings on those days. Default `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_excluded: Option<OnExcluded>,
    /// Whether the schedule is paused. Default: unchanged, and not paused at first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// The input of each run: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<Box<RawValue>>,
    /// The queue in which the start of a run waits. Default `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub queue: Option<String>,
    /// How urgent the start of a run is. Default `normal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// How long a run may take: 1 ms to 7 days. Default 7 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

impl WorkflowSchedule {
    /// The schedule that starts runs of the workflow of that name.
    pub fn into_schedule(self, workflow: &str) -> SubmitSchedule {
        SubmitSchedule {
            name: format!("{SCHEDULE_PREFIX}{workflow}"),
            job: SubmitJob {
                job_type: workflow.to_owned(),
                target: Some(Target::Workflow(WorkflowTarget { name: workflow.to_owned() })),
                payload: self.input,
                queue: self.queue,
                priority: self.priority,
                timeout: self.timeout,
                ..SubmitJob::default()
            },
            cron: self.cron,
            every: self.every,
            anchor: self.anchor,
            timezone: self.timezone,
            missed: self.missed,
            overlap: self.overlap,
            dst_gap: self.dst_gap,
            dst_fold: self.dst_fold,
            day_logic: self.day_logic,
            start_at: self.start_at,
            end_at: self.end_at,
            jitter: self.jitter,
            exclude: self.exclude,
            on_excluded: self.on_excluded,
            paused: self.paused,
        }
    }
}
