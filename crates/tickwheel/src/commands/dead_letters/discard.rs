//! `tickwheel dead-letters discard`.

use clap::Args;

use super::Session;
use crate::commands::each::each;
use crate::commands::ids;
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
    let discard = async |id: &str| {
        let id = ids::whole(ids::Kind::DeadLetter, id, session).await?;
        let answer = session.client.delete(&["dead-letters", &id]).send().await?;
        session.print(&answer, |_| Ok(format!("{}  discarded", plain(&id))))
    };
    each("dead letter", &args.ids, session, discard).await
}
