//! `tickwheel calendars`: named sets of days on which schedules do not fire.

mod delete;
mod get;
mod import;
mod list;

use clap::Subcommand;

use super::CommandContext;
use crate::failure::CommandError;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum CalendarsCommand {
    /// List calendars
    List,
    /// Show a calendar and its days
    #[command(after_help = "Example: tickwheel calendars get holidays")]
    Get(get::GetArgs),
    /// Import the days of an iCalendar file (.ics)
    Import(import::ImportArgs),
    /// Delete calendars; schedules that refer to them fire on those days from then on
    #[command(after_help = "Example: tickwheel calendars delete holidays")]
    Delete(delete::DeleteArgs),
}

/// Runs the command.
pub async fn run(command: CalendarsCommand, context: &CommandContext) -> Result<(), CommandError> {
    match command {
        CalendarsCommand::List => list::run(context).await,
        CalendarsCommand::Get(args) => get::run(args, context).await,
        CalendarsCommand::Import(args) => import::run(args, context).await,
        CalendarsCommand::Delete(args) => delete::run(args, context).await,
    }
}

fn weekdays(weekdays: &[tickwheel_protocol::Weekday]) -> String {
    weekdays.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
