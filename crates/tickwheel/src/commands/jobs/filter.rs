//! Which jobs are meant: the filters of `jobs list`, and of `cancel` and `retry` where no ids are given.

use clap::Args;
use tickwheel_protocol::{Priority, Status, Time};
use uuid::Uuid;

use super::CommandContext;
use crate::cli::one_of;
use crate::commands::{ids, times};
use crate::failure::CommandError;

/// Every filter narrows it further.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[group(id = "JobFilter", multiple = true)]
pub struct FilterArgs {
    /// Only jobs in this state, or in one of several with commas; may be repeated
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = one_of(Status::ALL, Status::as_str))]
    pub status: Vec<Status>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Only jobs of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Only jobs with this tag; may be repeated, then only jobs with all of them
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only jobs of this priority
    #[arg(long, value_name = "PRIORITY", value_parser = one_of(Priority::ALL, Priority::as_str))]
    priority: Option<Priority>,
    /// Only jobs of this schedule: its name or id
    #[arg(long, value_name = "SCHEDULE", alias = "schedule-id")]
    schedule: Option<String>,
    /// Only the tasks of this run of a workflow
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
    /// Whether nothing was said, so that every job is meant.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What the server is asked for.
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

/// A name that is misspelt has no jobs either, and nobody would notice. A schedule that is gone has jobs, and an id.
async fn known_schedule(name: &str, context: &CommandContext) -> Result<(), CommandError> {
    if Uuid::try_parse(name).is_ok() {
        return Ok(());
    }
    let found = context.client.get(&["schedules", name]).send().await;
    found.map(drop).map_err(|failure| failure.about("schedule", name))
}
