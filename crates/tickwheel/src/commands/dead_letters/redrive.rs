//! `tickwheel dead-letters redrive`.

use std::time::Duration;

use clap::Args;
use tickwheel_client::Answer;
use tickwheel_protocol::{Job, Redrive, RedriveFilter, RedriveProgress, RedriveStatus};

use super::CommandContext;
use crate::cli::whole;
use crate::commands::each::each;
use crate::commands::ids;
use crate::commands::input::json_argument;
use crate::failure::CommandError;
use crate::output::plain;

const POLL: Duration = Duration::from_millis(500);
/// A progress line is printed after this many reads.
const POLLS_PER_LINE: u32 = 4;

const WHICH: &str = "say which dead letters to redrive: ids of jobs, or --all";
const HINT: &str = "hint: --all takes --type, --queue and --limit to narrow it; `tickwheel dead-letters list` shows what there is";

/// Options of `dead-letters redrive`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tickwheel dead-letters redrive 5b0c2e8f0013 --payload '{\"to\": \"ann\"}'\n  \
    tickwheel dead-letters redrive --all --type send_email --limit 100")]
pub struct RedriveArgs {
    /// Ids of the jobs
    #[arg(value_name = "ID", conflicts_with_all = ["all", "job_type", "queue", "limit"])]
    ids: Vec<String>,
    /// Redrive all that match
    #[arg(long)]
    all: bool,
    /// With --all: only jobs of this type
    #[arg(long = "type", value_name = "TYPE", requires = "all")]
    job_type: Option<String>,
    /// With --all: only jobs of this queue
    #[arg(long, value_name = "QUEUE", requires = "all")]
    queue: Option<String>,
    /// With --all: redrive no more than this many
    #[arg(long, value_name = "N", requires = "all", value_parser = whole(1..=u32::MAX), allow_negative_numbers = true)]
    limit: Option<u32>,
    /// New payload as JSON: the text, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON", conflicts_with = "all")]
    payload: Option<String>,
}

/// Redrives dead letters.
pub async fn run(args: RedriveArgs, context: &CommandContext) -> Result<(), CommandError> {
    if args.all {
        let filter = RedriveFilter {
            all: true,
            job_type: args.job_type,
            queue: args.queue,
            failed_before: None,
            limit: args.limit.map(|limit| limit as usize),
        };
        return redrive_matching(filter, context).await;
    }
    if args.ids.is_empty() {
        return Err(CommandError::BadInput(format!("{WHICH}\n{HINT}")));
    }
    let payload = args.payload.map(|payload| json_argument("--payload", &payload)).transpose()?;
    let redrive = Redrive { payload };
    let again = async |id: &str| {
        let id = ids::whole(ids::Kind::DeadLetter, id, context).await?;
        let answer = context.client.post(&["dead-letters", &id, "redrive"]).json(&redrive)?.send().await?;
        context.print(&answer, |_| {
            let job: Job = answer.read()?;
            Ok(format!("{}  {}  {}", job.id, plain(&job.job_type), job.status))
        })
    };
    each("dead letter", &args.ids, context, again).await
}

async fn redrive_matching(mut filter: RedriveFilter, context: &CommandContext) -> Result<(), CommandError> {
    let (mut before, mut polls) = (0, 0_u32);
    let mut answer = begin(&filter, context).await?;
    loop {
        let progress: RedriveProgress = answer.read()?;
        match progress.status {
            RedriveStatus::Running => {}
            RedriveStatus::Completed => {
                let redriven = before + progress.redriven;
                return context.print(&answer, |_| {
                    Ok(format!("{redriven} will run again, {} that match are left", progress.remaining))
                });
            }
            RedriveStatus::Stopped => {
                let why = progress.error.unwrap_or_default();
                let RedriveProgress { redriven, remaining, .. } = progress;
                let told = format!("stopped after {redriven}, {remaining} are left: {}", plain(&why));
                return Err(CommandError::NotGood(told));
            }
        }
        polls += 1;
        if polls % POLLS_PER_LINE == 0 {
            let RedriveProgress { redriven, remaining, .. } = progress;
            context.output.note(&format!("{} will run again so far, {remaining} to go", before + redriven));
        }
        tokio::time::sleep(POLL).await;
        let id = progress.id.to_string();
        answer = match context.client.get(&["dead-letters", "redrive", &id]).send().await {
            // A server that was started anew does not know of it. What is left can be asked for again: nothing runs twice.
            Err(error) if error.problem().is_some_and(|problem| problem.status == 404) => {
                (before, filter.failed_before) = (before + progress.redriven, Some(progress.failed_before));
                begin(&filter, context).await?
            }
            answer => answer?,
        };
    }
}

async fn begin(filter: &RedriveFilter, context: &CommandContext) -> Result<Answer, CommandError> {
    Ok(context.client.post(&["dead-letters", "redrive"]).json(filter)?.send().await?)
}
