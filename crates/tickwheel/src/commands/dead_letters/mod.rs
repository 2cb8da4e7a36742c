//! `tickwheel dead-letters`: jobs that were given up.

mod discard;
mod get;
mod list;
mod redrive;

use clap::Subcommand;

use super::CommandContext;
use crate::failure::CommandError;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    /// List dead letters, latest first
    #[command(after_help = "Example: tickwheel dead-letters list --type send_email")]
    List(list::ListArgs),
    /// Show a dead letter
    #[command(after_help = "Example: tickwheel dead-letters get 5b0c2e8f0013")]
    Get(get::GetArgs),
    /// Redrive dead letters: run them again, by id or all that match
    Redrive(redrive::RedriveArgs),
    /// Discard dead letters; their jobs stay failed
    #[command(after_help = "Example: tickwheel dead-letters discard 5b0c2e8f0013")]
    Discard(discard::DiscardArgs),
}

/// Runs the command.
pub async fn run(command: DeadLettersCommand, context: &CommandContext) -> Result<(), CommandError> {
    match command {
        DeadLettersCommand::List(args) => list::run(args, context).await,
        DeadLettersCommand::Get(args) => get::run(args, context).await,
        DeadLettersCommand::Redrive(args) => redrive::run(args, context).await,
        DeadLettersCommand::Discard(args) => discard::run(args, context).await,
    }
}
