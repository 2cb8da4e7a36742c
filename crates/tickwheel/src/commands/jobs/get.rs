//! `tickwheel jobs get`.

use std::collections::HashMap;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tickwheel_protocol::{Code, Job, Status};
use uuid::Uuid;

use super::{CommandContext, view};
use crate::commands::{ids, pretty};
use crate::failure::CommandError;

/// Options of `jobs get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Id of the job
    id: String,
}

/// Shows a job in full.
pub async fn run(args: GetArgs, context: &CommandContext) -> Result<(), CommandError> {
    let id = ids::whole(ids::Kind::Job, &args.id, context).await?;
    let answer = context.client.get(&["jobs", &id]).send().await?;
    if context.output.json {
        return Ok(context.output.print(&pretty(&answer)?)?);
    }
    let job: Job = answer.read()?;
    let known = view::Context {
        parents: parents(&job, context).await?,
        schedule: found::<Schedule>("schedules", job.schedule_id.as_deref(), context)
            .await?
            .map(|it| it.name),
        workflow: found::<Origin>("workflow-runs", job.workflow_run_id.as_deref(), context)
            .await?
            .map(|run| run.workflow),
    };
    Ok(context.output.print(&view::full(&context.output, &job, &known))?)
}

/// The states of the jobs it depends on, as far as they are shown.
async fn parents(job: &Job, context: &CommandContext) -> Result<HashMap<Uuid, Status>, CommandError> {
    let mut found = HashMap::new();
    for id in view::shown_parents(job) {
        if let Some(parent) = self::found::<Job>("jobs", Some(&id.to_string()), context).await? {
            found.insert(id, parent.status);
        }
    }
    Ok(found)
}

/// Only the name is needed.
#[derive(Deserialize)]
struct Schedule {
    name: String,
}

#[derive(Deserialize)]
struct Origin {
    workflow: String,
}

/// What the job refers to. If it no longer exists, the job is shown without it.
async fn found<T: DeserializeOwned>(
    kind: &str,
    id: Option<&str>,
    context: &CommandContext,
) -> Result<Option<T>, CommandError> {
    let Some(id) = id else { return Ok(None) };
    match context.client.get(&[kind, id]).send().await {
        Ok(answer) => Ok(Some(answer.read()?)),
        Err(error) if error.code() == Some(Code::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
