//! `tickwheel calendars delete`.

use clap::Args;

use super::CommandContext;
use crate::commands::each::each;
use crate::failure::CommandError;
use crate::output::plain;

/// Options of `calendars delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Names of the calendars
    #[arg(value_name = "CALENDAR", required = true)]
    names: Vec<String>,
}

/// Deletes calendars.
pub async fn run(args: DeleteArgs, context: &CommandContext) -> Result<(), CommandError> {
    let delete = async |name: &str| {
        let answer = context.client.delete(&["calendars", name]).send().await?;
        context.print(&answer, |_| Ok(format!("{}  deleted", plain(name))))
    };
    each("calendar", &args.names, context, delete).await
}
