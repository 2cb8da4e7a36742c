//! `tickwheel dead-letters discard`.

use clap::Args;

use super::Session;
use crate::failure::Failure;
use crate::output::plain;

/// Options of `dead-letters discard`.
#[derive(Debug, Args)]
pub struct DiscardArgs {
    /// Ids of the jobs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Discards dead letters.
pub async fn run(args: DiscardArgs, session: &Session) -> Result<(), Failure> {
    for id in &args.ids {
        let answer = session.client.delete(&["dead-letters", id]).send().await?;
        session.print(&answer, |_| Ok(format!("{}  discarded", plain(id))))?;
    }
    Ok(())
}
