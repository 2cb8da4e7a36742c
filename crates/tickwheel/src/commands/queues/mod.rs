//! `tickwheel queues`: list, pause and resume queues.

mod list;
mod switch;

use clap::{Args, Subcommand};
use tickwheel_protocol::Queue;

use super::CommandContext;
use crate::failure::CommandError;

/// `queues` without a verb lists them.
#[derive(Debug, Args)]
pub struct QueuesArgs {
    #[command(subcommand)]
    command: Option<QueuesCommand>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum QueuesCommand {
    /// List queues (also the default)
    List,
    /// Pause a queue: start none of its jobs until it is resumed
    Pause(switch::PauseArgs),
    /// Resume a paused queue
    #[command(after_help = "Example: tickwheel queues resume mail")]
    Resume(switch::QueueName),
}

/// Runs the command.
pub async fn run(args: QueuesArgs, context: &CommandContext) -> Result<(), CommandError> {
    match args.command.unwrap_or(QueuesCommand::List) {
        QueuesCommand::List => list::run(context).await,
        QueuesCommand::Pause(args) => switch::pause(args, context).await,
        QueuesCommand::Resume(queue) => switch::resume(queue, context).await,
    }
}

/// How many jobs wait in it, with a plus sign where there may be more.
fn waiting(queue: &Queue) -> String {
    format!("{}{}", queue.waiting, if queue.more_waiting { "+" } else { "" })
}
