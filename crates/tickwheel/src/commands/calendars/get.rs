//! `tickwheel calendars get`. Prints one day per line, for use by other programs.

use clap::Args;
use tickwheel_protocol::Calendar;

use super::{CommandContext, weekdays};
use crate::failure::CommandError;
use crate::output::plain_lines;

/// Options of `calendars get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Name of the calendar
    #[arg(value_name = "CALENDAR")]
    name: String,
}

/// Shows the days of a calendar.
pub async fn run(args: GetArgs, context: &CommandContext) -> Result<(), CommandError> {
    let answer = context.client.get(&["calendars", &args.name]).send().await?;
    if context.output.json {
        return context.print(&answer, |_| Ok(String::new()));
    }
    let calendar: Calendar = answer.read()?;
    if !calendar.weekdays.is_empty() {
        context.output.note(&format!("every {}", weekdays(&calendar.weekdays)));
    }
    if calendar.days.is_empty() {
        context.output.note("no days");
        return Ok(());
    }
    Ok(context.output.print(&plain_lines(&calendar.days.join("\n")))?)
}
