//! `tickwheel workflows delete`.

use clap::Args;

use super::CommandContext;
use crate::commands::each::each;
use crate::failure::CommandError;
use crate::output::plain;

/// Options of `workflows delete`.
#[derive(Debug, Args)]
#[command(
    after_help = "No more runs of them can start. A workflow that is stored under the same name later becomes the next version.\n\n\
    Example: tickwheel workflows delete etl"
)]
pub struct DeleteArgs {
    /// Names of the workflows
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

/// Deletes workflows.
pub async fn run(args: DeleteArgs, context: &CommandContext) -> Result<(), CommandError> {
    let delete = async |name: &str| {
        let answer = context.client.delete(&["workflows", name]).send().await?;
        context.print(&answer, |_| Ok(format!("{}  deleted", plain(name))))
    };
    each("workflow", &args.names, context, delete).await
}
