//! `tickwheel dead-letters`: jobs that were given up.

mod discard;
mod get;
mod list;
mod redrive;

use clap::Subcommand;

use super::Session;
use crate::failure::Failure;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// List dead letters, latest first
    #[command(after_help = "Example: tickwheel dead-letters list --type send_email")]
    List(list::ListArgs),
    /// Show one dead letter
    #[command(after_help = "Example: tickwheel dead-letters get 5b0c2e8f0013")]
    Get(get::GetArgs),
    /// Run dead letters again: some by id, or all that match
    Redrive(redrive::RedriveArgs),
    /// Discard dead letters; their jobs stay failed
    #[command(after_help = "Example: tickwheel dead-letters discard 5b0c2e8f0013")]
    Discard(discard::DiscardArgs),
}

/// Does what the command line says.
pub async fn run(command: DeadLettersCommand, session: &Session) -> Result<(), Failure> {
    match command {
        DeadLettersCommand::List(args) => list::run(args, session).await,
        DeadLettersCommand::Get(args) => get::run(args, session).await,
        DeadLettersCommand::Redrive(args) => redrive::run(args, session).await,
        DeadLettersCommand::Discard(args) => discard::run(args, session).await,
    }
}
