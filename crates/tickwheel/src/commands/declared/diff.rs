//! `tickwheel diff`. Scripts rely on its exit code: 0 without differences, 1 with, as that of `diff`.

use clap::Args;

use super::{Files, Session, show};
use crate::failure::Failure;

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

/// Shows what applying would do.
pub async fn run(args: DiffArgs, session: &Session) -> Result<(), Failure> {
    let plan = args.files.plan(session).await?;
    show(&plan, false, session)?;
    if plan.changes() { Err(Failure::Different) } else { Ok(()) }
}
