//! `tickwheel jobs cancel|retry|run|pause|resume`: one call a job, all of the same shape.

use clap::Args;
use tickwheel_protocol::Job;

use super::Session;
use super::view;
use crate::failure::Failure;

/// The jobs to act on.
#[derive(Debug, Args)]
pub struct JobIds {
    /// Ids of the jobs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Does `verb` to every job. One that cannot be done does not keep the others from it; the first failure decides the
/// exit code.
pub async fn run(verb: &str, jobs: &JobIds, session: &Session) -> Result<(), Failure> {
    let mut first_failure = None;
    for id in &jobs.ids {
        if let Err(failure) = act(verb, id, session).await {
            match first_failure {
                None => first_failure = Some(failure),
                Some(_) => session.output.note(&format!("error: {failure}")),
            }
        }
    }
    first_failure.map_or(Ok(()), Err)
}

async fn act(verb: &str, id: &str, session: &Session) -> Result<(), Failure> {
    let answer = session.client.post(&["jobs", id, verb]).send().await?;
    session.print(&answer, |_| {
        let job: Job = answer.read()?;
        Ok(view::line(&job))
    })
}
