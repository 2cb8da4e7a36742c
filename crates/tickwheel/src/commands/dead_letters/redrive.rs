//! `tickwheel dead-letters redrive`.

use std::time::Duration;

use clap::Args;
use tickwheel_protocol::{Job, Redrive, RedriveFilter, RedriveProgress, RedriveStatus};

use super::Session;
use crate::client::Answer;
use crate::commands::input::json_argument;
use crate::failure::Failure;
use crate::output::plain;

const POLL: Duration = Duration::from_millis(500);
/// So often a line says how far it is.
const POLLS_PER_LINE: u32 = 4;

/// Options of `dead-letters redrive`.
#[derive(Debug, Args)]
pub struct RedriveArgs {
    /// Ids of the jobs
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with_all = ["all", "job_type", "queue", "limit"])]
    ids: Vec<String>,
    /// All that match
    #[arg(long)]
    all: bool,
    /// With --all: only of this type
    #[arg(long = "type", value_name = "TYPE", requires = "all")]
    job_type: Option<String>,
    /// With --all: only of this queue
    #[arg(long, value_name = "QUEUE", requires = "all")]
    queue: Option<String>,
    /// With --all: how many at the most
    #[arg(long, value_name = "N", requires = "all")]
    limit: Option<usize>,
    /// Another payload: JSON, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON", conflicts_with = "all")]
    payload: Option<String>,
}

/// Runs dead letters again.
pub async fn run(args: RedriveArgs, session: &Session) -> Result<(), Failure> {
    if args.all {
        let filter = RedriveFilter {
            all: true,
            job_type: args.job_type,
            queue: args.queue,
            failed_before: None,
            limit: args.limit,
        };
        return redrive_matching(filter, session).await;
    }
    let payload = args.payload.map(|payload| json_argument("--payload", &payload)).transpose()?;
    let redrive = Redrive { payload };
    for id in &args.ids {
        let answer = session.client.post(&["dead-letters", id, "redrive"]).json(&redrive)?.send().await?;
        session.print(&answer, |_| {
            let job: Job = answer.read()?;
            Ok(format!("{}  {}  {}", job.id, plain(&job.job_type), job.status))
        })?;
    }
    Ok(())
}

async fn redrive_matching(mut filter: RedriveFilter, session: &Session) -> Result<(), Failure> {
    let (mut before, mut polls) = (0, 0_u32);
    let mut answer = begin(&filter, session).await?;
    loop {
        let progress: RedriveProgress = answer.read()?;
        match progress.status {
            RedriveStatus::Running => {}
            RedriveStatus::Completed => {
                let redriven = before + progress.redriven;
                return session.print(&answer, |_| {
                    Ok(format!("{redriven} will run again, {} that match are left", progress.remaining))
                });
            }
            RedriveStatus::Stopped => {
                let why = progress.error.unwrap_or_default();
                let RedriveProgress { redriven, remaining, .. } = progress;
                let told = format!("stopped after {redriven}, {remaining} are left: {}", plain(&why));
                return Err(Failure::NotGood(told));
            }
        }
        polls += 1;
        if polls % POLLS_PER_LINE == 0 {
            let RedriveProgress { redriven, remaining, .. } = progress;
            session.output.note(&format!("{} will run again so far, {remaining} to go", before + redriven));
        }
        tokio::time::sleep(POLL).await;
        let id = progress.id.to_string();
        answer = match session.client.get(&["dead-letters", "redrive", &id]).send().await {
            // A server that was started anew does not know of it. What is left can be asked for again: nothing runs twice.
            Err(Failure::Refused(refusal)) if refusal.status == 404 => {
                (before, filter.failed_before) = (before + progress.redriven, Some(progress.failed_before));
                begin(&filter, session).await?
            }
            answer => answer?,
        };
    }
}

async fn begin(filter: &RedriveFilter, session: &Session) -> Result<Answer, Failure> {
    session.client.post(&["dead-letters", "redrive"]).json(filter)?.send().await
}
