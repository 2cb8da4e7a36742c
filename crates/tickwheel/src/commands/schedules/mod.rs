//! `tickwheel schedules`: recurring jobs. A schedule is given by its name or its id.

mod act;
mod backfill;
mod create;
mod edit;
mod fires;
mod get;
mod list;
mod next;
mod options;
mod strip;
mod trigger;
mod view;
mod when;

use clap::Subcommand;

use super::CommandContext;
use crate::failure::CommandError;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum SchedulesCommand {
    /// Create a schedule, from options or from a file
    Create(Box<create::CreateArgs>),
    /// List schedules by name
    List(list::ListArgs),
    /// Show a schedule
    #[command(after_help = "Example: tickwheel schedules get daily-report")]
    Get(get::GetArgs),
    /// Pause schedules until they are resumed
    Pause(act::PauseArgs),
    /// Resume paused schedules with their next firing
    #[command(after_help = "Example: tickwheel schedules resume daily-report")]
    Resume(act::Names),
    /// Trigger a schedule now, even a paused one; prints the job's id
    Trigger(trigger::TriggerArgs),
    /// List the next firings
    Next(next::NextArgs),
    /// List the record of every firing, latest first
    Fires(fires::FiresArgs),
    /// Backfill a past range: make a job for every firing in it that has none
    Backfill(backfill::BackfillArgs),
    /// Change a schedule, from its next firing on
    Edit(Box<edit::EditArgs>),
    /// Delete schedules and their record of firings; their jobs stay
    #[command(after_help = "Example: tickwheel schedules delete daily-report")]
    Delete(act::Names),
}

/// Runs the command.
pub async fn run(command: SchedulesCommand, context: &CommandContext) -> Result<(), CommandError> {
    match command {
        SchedulesCommand::Create(args) => create::run(*args, context).await,
        SchedulesCommand::List(args) => list::run(args, context).await,
        SchedulesCommand::Get(args) => get::run(args, context).await,
        SchedulesCommand::Pause(args) => act::pause(args, context).await,
        SchedulesCommand::Resume(names) => act::resume(names, context).await,
        SchedulesCommand::Trigger(args) => trigger::run(args, context).await,
        SchedulesCommand::Next(args) => next::run(args, context).await,
        SchedulesCommand::Fires(args) => fires::run(args, context).await,
        SchedulesCommand::Backfill(args) => backfill::run(args, context).await,
        SchedulesCommand::Edit(args) => edit::run(*args, context).await,
        SchedulesCommand::Delete(names) => act::delete(names, context).await,
    }
}
