//! `tickwheel jobs get`.

use std::collections::HashMap;

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tickwheel_protocol::{Code, Job, Status};
use uuid::Uuid;

use super::{Session, view};
use crate::commands::ids;
use crate::failure::Failure;

/// Options of `jobs get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Id of the job
    id: String,
}

/// Shows a job in full.
pub async fn run(args: GetArgs, session: &Session) -> Result<(), Failure> {
    let id = ids::whole(ids::Kind::Job, &args.id, session).await?;
    let answer = session.client.get(&["jobs", &id]).send().await?;
    if session.output.json {
        return Ok(session.output.print(&answer.pretty()?)?);
    }
    let job: Job = answer.read()?;
    let context = view::Context {
        parents: parents(&job, session).await?,
        schedule: found::<Schedule>("schedules", job.schedule_id.as_deref(), session)
            .await?
            .map(|it| it.name),
        workflow: found::<Origin>("workflow-runs", job.workflow_run_id.as_deref(), session)
            .await?
            .map(|run| run.workflow),
    };
    Ok(session.output.print(&view::full(&session.output, &job, &context))?)
}

/// How the jobs stand that it depends on, as far as they will be shown.
async fn parents(job: &Job, session: &Session) -> Result<HashMap<Uuid, Status>, Failure> {
    let mut found = HashMap::new();
    for id in view::shown_parents(job) {
        if let Some(parent) = self::found::<Job>("jobs", Some(&id.to_string()), session).await? {
            found.insert(id, parent.status);
        }
    }
    Ok(found)
}

/// The name is all that is wanted of it.
#[derive(Deserialize)]
struct Schedule {
    name: String,
}

#[derive(Deserialize)]
struct Origin {
    workflow: String,
}

/// What the job refers to; it may be gone, and the job is shown all the same.
async fn found<T: DeserializeOwned>(
    kind: &str,
    id: Option<&str>,
    session: &Session,
) -> Result<Option<T>, Failure> {
    let Some(id) = id else { return Ok(None) };
    match session.client.get(&[kind, id]).send().await {
        Ok(answer) => answer.read().map(Some),
        Err(Failure::Refused(problem)) if problem.code == Code::NotFound.as_str() => Ok(None),
        Err(failure) => Err(failure),
    }
}
