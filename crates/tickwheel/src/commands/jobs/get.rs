//! `tickwheel jobs get`.

use std::collections::HashMap;

use clap::Args;
use tickwheel_protocol::{Code, Job, Status};
use uuid::Uuid;

use super::{Session, view};
use crate::failure::Failure;

/// Options of `jobs get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Id of the job
    id: String,
}

/// Shows a job in full.
pub async fn run(args: GetArgs, session: &Session) -> Result<(), Failure> {
    let answer = session.client.get(&["jobs", &args.id]).send().await?;
    if session.output.json {
        return Ok(session.output.print(&answer.pretty()?)?);
    }
    let job: Job = answer.read()?;
    let parents = parents(&job, session).await?;
    Ok(session.output.print(&view::full(&session.output, &job, &parents))?)
}

/// How the jobs stand that it depends on, as far as they will be shown.
async fn parents(job: &Job, session: &Session) -> Result<HashMap<Uuid, Status>, Failure> {
    let mut found = HashMap::new();
    for id in view::shown_parents(job) {
        match session.client.get(&["jobs", &id.to_string()]).send().await {
            Ok(answer) => found.insert(id, answer.read::<Job>()?.status),
            Err(Failure::Refused(problem)) if problem.code == Code::NotFound.as_str() => None,
            Err(failure) => return Err(failure),
        };
    }
    Ok(found)
}
