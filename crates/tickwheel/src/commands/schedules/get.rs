//! `tickwheel schedules get`.

use clap::Args;

use super::{CommandContext, view};
use crate::failure::CommandError;

/// Options of `schedules get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Name or id of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
}

/// Shows a schedule in full.
pub async fn run(args: GetArgs, context: &CommandContext) -> Result<(), CommandError> {
    let answer = context.client.get(&["schedules", &args.schedule]).send().await?;
    context.print(&answer, |output| Ok(view::full(output, &answer.read()?)))
}
