//! `tickwheel dead-letters discard`.

use clap::Args;

use super::CommandContext;
use crate::commands::each::each;
use crate::commands::ids;
use crate::failure::CommandError;
use crate::output::plain;

/// Options of `dead-letters discard`.
#[derive(Debug, Args)]
pub struct DiscardArgs {
    /// Ids of the jobs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Discards dead letters.
pub async fn run(args: DiscardArgs, context: &CommandContext) -> Result<(), CommandError> {
    let discard = async |id: &str| {
        let id = ids::whole(ids::Kind::DeadLetter, id, context).await?;
        let answer = context.client.delete(&["dead-letters", &id]).send().await?;
        context.print(&answer, |_| Ok(format!("{}  discarded", plain(&id))))
    };
    each("dead letter", &args.ids, context, discard).await
}
