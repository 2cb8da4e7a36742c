//! `tickwheel diff`. Scripts rely on its exit code: 0 without differences, 1 with differences, like `diff`.

use clap::Args;

use super::{CommandContext, Files, show};
use crate::failure::CommandError;

/// Options of `diff`.
#[derive(Debug, Args)]
#[command(
    after_help = "Changes nothing. Exit codes: 0 no differences, 1 there are differences, 2 bad usage or input, 3 no connection.\n\n\
    Examples:\n  \
    tickwheel diff -f schedules.yaml\n  \
    tickwheel diff -f schedules/ --prune --horizon 7d\n  \
    tickwheel import crontab /etc/crontab | tickwheel diff -f -"
)]
pub struct DiffArgs {
    #[command(flatten)]
    files: Files,
}

/// Shows the changes that applying would make.
pub async fn run(args: DiffArgs, context: &CommandContext) -> Result<(), CommandError> {
    let plan = args.files.plan(context).await?;
    show(&plan, false, context)?;
    if plan.changes() { Err(CommandError::Different) } else { Ok(()) }
}
