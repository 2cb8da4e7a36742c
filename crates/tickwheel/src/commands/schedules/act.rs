//! `tickwheel schedules pause|resume|delete`: one call per schedule.

use clap::Args;
use tickwheel_client::Call;
use tickwheel_protocol::PauseSchedule;

use super::{CommandContext, view};
use crate::commands::each::each;
use crate::failure::CommandError;
use crate::output::plain;

/// The schedules to act on.
#[derive(Debug, Args)]
pub struct Names {
    /// Names or ids of the schedules
    #[arg(value_name = "SCHEDULE", required = true)]
    schedules: Vec<String>,
}

/// Options of `schedules pause`.
#[derive(Debug, Args)]
#[command(after_help = "Firings that come due meanwhile are recorded as skipped and not made up for.\n\n\
    Example: tickwheel schedules pause daily-report --note 'the warehouse is being moved'")]
pub struct PauseArgs {
    #[command(flatten)]
    names: Names,
    /// Why it is paused, for whoever wonders
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// Pauses schedules.
pub async fn pause(args: PauseArgs, context: &CommandContext) -> Result<(), CommandError> {
    let pause = PauseSchedule { note: args.note };
    let pause = async |name: &str| {
        change(context.client.post(&["schedules", name, "pause"]).json(&pause)?, context).await
    };
    each("schedule", &args.names.schedules, context, pause).await
}

/// Resumes schedules.
pub async fn resume(names: Names, context: &CommandContext) -> Result<(), CommandError> {
    let resume =
        async |name: &str| change(context.client.post(&["schedules", name, "resume"]), context).await;
    each("schedule", &names.schedules, context, resume).await
}

/// Deletes schedules.
pub async fn delete(names: Names, context: &CommandContext) -> Result<(), CommandError> {
    let delete = async |name: &str| {
        let answer = context.client.delete(&["schedules", name]).send().await?;
        context.print(&answer, |_| Ok(format!("{}  deleted", plain(name))))
    };
    each("schedule", &names.schedules, context, delete).await
}

async fn change(call: Call<'_>, context: &CommandContext) -> Result<(), CommandError> {
    let answer = call.send().await?;
    context.print(&answer, |_| Ok(view::line(&answer.read()?)))
}
