//! `tickwheel workflows`: definitions, their runs, and the tasks of a run.
//!
//! A workflow is named by its name, a run by its id; to look at a run, the name of its workflow stands for the latest one.

mod act;
mod apply;
mod delete;
mod get;
mod graph;
mod list;
mod run;
mod runs;
mod show;
mod view;
mod watch;

use clap::Subcommand;

use super::CommandContext;
use crate::failure::CommandError;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum WorkflowsCommand {
    /// Store workflows from files; what is the same already is left alone
    Apply(apply::ApplyArgs),
    /// List workflows by name
    #[command(after_help = "Example: tickwheel workflows list --all")]
    List(list::ListArgs),
    /// Show a workflow, its versions, or a run
    Get(get::GetArgs),
    /// Draw a workflow as a graph, in the language of Mermaid or Graphviz
    Graph(graph::GraphArgs),
    /// Start a run; prints its id
    Run(run::RunArgs),
    /// List runs, newest first
    Runs(runs::RunsArgs),
    /// Show a run and how its tasks stand
    #[command(after_help = "Examples:\n  \
        tickwheel workflows show etl\n  \
        tickwheel workflows show 5b0c2e800000 --wide")]
    Show(show::ShowArgs),
    /// Watch a run until it has ended; exit code 1 unless it completed
    Watch(watch::WatchArgs),
    /// Pause runs: none of their tasks starts until they are resumed; what runs goes on
    #[command(after_help = "Example: tickwheel workflows pause 5b0c2e800000")]
    Pause(act::RunIds),
    /// Let paused runs go on
    #[command(after_help = "Example: tickwheel workflows resume 5b0c2e800000")]
    Resume(act::RunIds),
    /// End runs: what waits is cancelled, what runs is asked to stop
    #[command(after_help = "Example: tickwheel workflows cancel 5b0c2e800000")]
    Cancel(act::RunIds),
    /// Let failed or cancelled runs go on where they stopped; what completed is not run again
    #[command(after_help = "Example: tickwheel workflows retry 5b0c2e800000")]
    Retry(act::RunIds),
    /// Pass over a task: what depends on it goes on as if it had completed
    Skip(act::TaskArgs),
    /// Count a task as completed without running it
    Complete(act::CompleteArgs),
    /// Run a task again that failed, was cancelled or was skipped
    #[command(after_help = "Example: tickwheel workflows retry-task 5b0c2e800000 'transform[3]'")]
    RetryTask(act::TaskArgs),
    /// Remove workflows and their schedules; their runs stay and go on
    Delete(delete::DeleteArgs),
}

/// Does what the command line says.
pub async fn run(command: WorkflowsCommand, context: &CommandContext) -> Result<(), CommandError> {
    match command {
        WorkflowsCommand::Apply(args) => apply::run(args, context).await,
        WorkflowsCommand::List(args) => list::run(args, context).await,
        WorkflowsCommand::Get(args) => get::run(args, context).await,
        WorkflowsCommand::Graph(args) => graph::run(args, context).await,
        WorkflowsCommand::Run(args) => run::run(args, context).await,
        WorkflowsCommand::Runs(args) => runs::run(args, context).await,
        WorkflowsCommand::Show(args) => show::run(args, context).await,
        WorkflowsCommand::Watch(args) => watch::run(args, context).await,
        WorkflowsCommand::Pause(runs) => act::on_runs("pause", &runs, context).await,
        WorkflowsCommand::Resume(runs) => act::on_runs("resume", &runs, context).await,
        WorkflowsCommand::Cancel(runs) => act::on_runs("cancel", &runs, context).await,
        WorkflowsCommand::Retry(runs) => act::on_runs("retry", &runs, context).await,
        WorkflowsCommand::Skip(args) => act::on_task("skip", &args, context).await,
        WorkflowsCommand::Complete(args) => act::complete(args, context).await,
        WorkflowsCommand::RetryTask(args) => act::on_task("retry", &args, context).await,
        WorkflowsCommand::Delete(args) => delete::run(args, context).await,
    }
}
