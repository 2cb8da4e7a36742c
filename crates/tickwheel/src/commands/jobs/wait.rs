//! `tickwheel jobs wait`: waits until a job has ended, and exits with its outcome.

use std::time::Duration;

use clap::Args;
use tickwheel_protocol::{Job, Span, Status};

use super::{CommandContext, view};
use crate::commands::ids;
use crate::commands::waiting::until_ended;
use crate::failure::CommandError;

/// Options of `jobs wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Id of the job
    id: String,
    /// Stop waiting after this long, and exit with 1 [default: never]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
}

/// Waits for the job and shows it.
pub async fn run(args: WaitArgs, context: &CommandContext) -> Result<(), CommandError> {
    let id = ids::whole(ids::Kind::Job, &args.id, context).await?;
    wait_and_show(&id, args.timeout.map(Span::as_duration), context).await
}

/// Waits until the job has ended, shows it, and fails unless it completed.
pub async fn wait_and_show(
    id: &str,
    timeout: Option<Duration>,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let answer = until_ended(&["jobs", id], &format!("job {id}"), timeout, context).await?;
    // How its parents stand is not what was waited for.
    context.print(&answer, |output| Ok(view::full(output, &answer.read()?, &view::Context::default())))?;
    let job: Job = answer.read()?;
    match job.status {
        Status::Completed => Ok(()),
        status => Err(CommandError::NotGood(format!("job {id} {}", outcome(status)))),
    }
}

fn outcome(status: Status) -> &'static str {
    match status {
        Status::Failed => "failed",
        Status::Cancelled => "was cancelled",
        Status::Skipped => "was skipped",
        _ => "has not completed",
    }
}
