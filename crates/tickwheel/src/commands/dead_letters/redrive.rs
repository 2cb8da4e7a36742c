//! `tickwheel dead-letters redrive`.

use clap::Args;
use tickwheel_protocol::{Job, Redrive, RedriveFilter, RedriveSummary};

use super::Session;
use crate::commands::input::json_argument;
use crate::failure::Failure;
use crate::output::plain;

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
        let filter = RedriveFilter { job_type: args.job_type, queue: args.queue, limit: args.limit };
        return redrive_matching(&filter, session).await;
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

async fn redrive_matching(filter: &RedriveFilter, session: &Session) -> Result<(), Failure> {
    let answer = session.client.post(&["dead-letters", "redrive"]).json(filter)?.send().await?;
    session.print(&answer, |_| {
        let summary: RedriveSummary = answer.read()?;
        Ok(format!("{} will run again, {} dead letters are left", summary.redriven, summary.remaining))
    })
}
