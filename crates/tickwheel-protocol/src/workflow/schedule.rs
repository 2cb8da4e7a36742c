//! When a workflow runs by itself.
//!
//! It is one of the schedules, named after the workflow; here is what is written in the definition. What a schedule can be told, it can be told here too,
//! except for its name and its job: the job starts a run.

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
    /// The moment from which `every` is counted. Default 1970-01-01T00:00:00Z.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Time>,
    /// The IANA name of the zone in which local times are read. Default `UTC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::TimeZone>, example = "America/New_York")]
    pub timezone: Option<String>,
    /// How missed firings are made up for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
    /// What becomes of firings while an earlier run is not over. Default `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What becomes of times that the clock jumps over. Default `run_after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<DstGap>,
    /// What becomes of times that happen twice. Default `once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_fold: Option<DstFold>,
    /// How the two day fields go together. Default `or`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_logic: Option<DayLogic>,
    /// No firing before it; it may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Time>,
    /// No firing after it; it may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Time>,
    /// Its runs start up to this much after their time, always by the same amount: 0 to 24 h. Default `0s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Days on which it does not fire: `2026-12-25`, `2026-12-24/2026-12-31` or `calendar:holidays`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::ExcludedDays>>, max_items = 366)]
    pub exclude: Option<Vec<String>>,
    /// What becomes of firings on those days. Default `skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_excluded: Option<OnExcluded>,
    /// Whether it is paused. Default: as it is, and not paused at first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// What each run is given: any JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub input: Option<Box<RawValue>>,
    /// The lane in which the start of a run waits. Default `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Name>)]
    pub queue: Option<String>,
    /// How urgent the start of a run is. Default `normal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// How long a run may take: 1 ms to 7 days, which is the default.
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
