//! `tickwheel workflows delete`.

use clap::Args;

use super::Session;
use crate::commands::each::each;
use crate::failure::Failure;
use crate::output::plain;

/// Options of `workflows delete`.
#[derive(Debug, Args)]
#[command(
    after_help = "No run of them can be started any more. What is stored under such a name again is its next version.\n\n\
    Example: tickwheel workflows delete etl"
)]
pub struct DeleteArgs {
    /// Names of the workflows
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

/// Removes workflows.
pub async fn run(args: DeleteArgs, session: &Session) -> Result<(), Failure> {
    let delete = async |name: &str| {
        let answer = session.client.delete(&["workflows", name]).send().await?;
        session.print(&answer, |_| Ok(format!("{}  deleted", plain(name))))
    };
    each("workflow", &args.names, session, delete).await
}
