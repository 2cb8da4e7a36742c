//! `tickwheel queues`: the lanes jobs wait in.

mod list;
mod switch;

use clap::{Args, Subcommand};

use super::CommandContext;
use crate::failure::CommandError;

/// `queues` alone lists them.
#[derive(Debug, Args)]
pub struct QueuesArgs {
    #[command(subcommand)]
    command: Option<QueuesCommand>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum QueuesCommand {
    /// List queues (also without a verb)
    List,
    /// Start nothing of a queue until it is resumed
    Pause(switch::PauseArgs),
    /// Let a paused queue go on
    #[command(after_help = "Example: tickwheel queues resume mail")]
    Resume(switch::QueueName),
}

/// Does what the command line says.
pub async fn run(args: QueuesArgs, context: &CommandContext) -> Result<(), CommandError> {
    match args.command.unwrap_or(QueuesCommand::List) {
        QueuesCommand::List => list::run(context).await,
        QueuesCommand::Pause(args) => switch::pause(args, context).await,
        QueuesCommand::Resume(queue) => switch::resume(queue, context).await,
    }
}
