//! Filters for jobs: of `jobs list`, and of `cancel` and `retry` without ids.

use clap::Args;
use tickwheel_protocol::{Priority, Status, Time};
use uuid::Uuid;

use super::CommandContext;
use crate::cli::one_of;
use crate::commands::{ids, times};
use crate::failure::CommandError;

/// A job must match all filters.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[group(id = "JobFilter", multiple = true)]
pub struct FilterArgs {
    /// Only jobs in this state; several states may be separated by commas, or the option repeated
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = one_of(Status::ALL, Status::as_str))]
    pub status: Vec<Status>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Only jobs of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Only jobs with this tag; may be repeated for jobs with all the tags
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only jobs of this priority
    #[arg(long, value_name = "PRIORITY", value_parser = one_of(Priority::ALL, Priority::as_str))]
    priority: Option<Priority>,
    /// Only jobs of this schedule, by name or id
    #[arg(long, value_name = "SCHEDULE", alias = "schedule-id")]
    schedule: Option<String>,
    /// Only tasks of this workflow run
    #[arg(long, value_name = "RUN", alias = "workflow-run-id")]
    workflow_run: Option<String>,
    /// Only jobs created at this time or later, such as yesterday
    #[arg(long, value_name = "TIME", value_parser = times::back)]
    from: Option<Time>,
    /// Only jobs created before this time, such as '1h ago'
    #[arg(long, value_name = "TIME", value_parser = times::back)]
    to: Option<Time>,
}

impl FilterArgs {
    /// Whether there is no filter, so that every job matches.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The query for the server.
    pub async fn query(
        &self,
        context: &CommandContext,
    ) -> Result<Vec<(&'static str, Option<String>)>, CommandError> {
        if let Some(name) = &self.schedule {
            known_schedule(name, context).await?;
        }
        let run = match &self.workflow_run {
            Some(run) => Some(ids::whole(ids::Kind::Run, run, context).await?),
            None => None,
        };
        let states: Vec<&str> = self.status.iter().map(|status| status.as_str()).collect();
        let mut query = vec![
            ("status", Some(states.join(",")).filter(|states| !states.is_empty())),
            ("type", self.job_type.clone()),
            ("queue", self.queue.clone()),
            ("priority", self.priority.map(|priority| priority.to_string())),
            ("schedule_id", self.schedule.clone()),
            ("workflow_run_id", run),
            ("from", self.from.map(|time| time.to_string())),
            ("to", self.to.map(|time| time.to_string())),
        ];
        query.extend(self.tags.iter().map(|tag| ("tag", Some(tag.clone()))));
        Ok(query)
    }
}

/// A misspelt name matches no job, and nobody would notice. A deleted schedule still has its jobs and its id.
async fn known_schedule(name: &str, context: &CommandContext) -> Result<(), CommandError> {
    if Uuid::try_parse(name).is_ok() {
        return Ok(());
    }
    let found = context.client.get(&["schedules", name]).send().await;
    found.map(drop).map_err(|error| CommandError::from(error).about("schedule", name))
}
