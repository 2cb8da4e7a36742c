//! `tickwheel calendars delete`.

use clap::Args;

use super::Session;
use crate::commands::each::each;
use crate::failure::Failure;
use crate::output::plain;

/// Options of `calendars delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Names of the calendars
    #[arg(value_name = "CALENDAR", required = true)]
    names: Vec<String>,
}

/// Removes calendars.
pub async fn run(args: DeleteArgs, session: &Session) -> Result<(), Failure> {
    let delete = async |name: &str| {
        let answer = session.client.delete(&["calendars", name]).send().await?;
        session.print(&answer, |_| Ok(format!("{}  deleted", plain(name))))
    };
    each("calendar", &args.names, session, delete).await
}
