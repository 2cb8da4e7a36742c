//! `tickwheel workers`: who asks this system for jobs, and what they run.

mod get;
mod list;
mod switch;

use clap::{Args, Subcommand};

use tickwheel_protocol::Worker;

use super::CommandContext;
use crate::failure::CommandError;

/// `workers` without a verb lists them.
#[derive(Debug, Args)]
pub struct WorkersArgs {
    #[command(subcommand)]
    command: Option<WorkersCommand>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum WorkersCommand {
    /// List workers (also the default)
    List,
    /// Show a worker and the jobs that it executes
    #[command(after_help = "Example: tickwheel workers get 01a1ed0a")]
    Get(switch::WorkerName),
    /// Ask a worker to finish what it has and to take no new jobs
    #[command(after_help = "The worker stays connected. `workers resume` lets it take jobs again.\n\n\
        Example: tickwheel workers drain 01a1ed0a")]
    Drain(switch::WorkerName),
    /// Let a draining worker take jobs again
    Resume(switch::WorkerName),
}

/// The built-in executors of a worker.
fn executors(worker: &Worker) -> String {
    worker.executors.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
}

/// Runs the command.
pub async fn run(args: WorkersArgs, context: &CommandContext) -> Result<(), CommandError> {
    match args.command.unwrap_or(WorkersCommand::List) {
        WorkersCommand::List => list::run(context).await,
        WorkersCommand::Get(worker) => get::run(worker, context).await,
        WorkersCommand::Drain(worker) => switch::turn("drain", worker, context).await,
        WorkersCommand::Resume(worker) => switch::turn("resume", worker, context).await,
    }
}
