//! `tickwheel workflows`: definitions, their runs, and the tasks of a run.
//!
//! A workflow is given by its name, a run by its id. To read a run, the name of a workflow stands for its latest run.

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
    /// Store workflows from files; unchanged ones get no new version
    Apply(apply::ApplyArgs),
    /// List workflows by name
    #[command(after_help = "Example: tickwheel workflows list --all")]
    List(list::ListArgs),
    /// Show a workflow, its versions, or a run
    Get(get::GetArgs),
    /// Print a workflow as a graph, for Mermaid or Graphviz
    Graph(graph::GraphArgs),
    /// Start a run; prints its id
    Run(run::RunArgs),
    /// List runs, newest first
    Runs(runs::RunsArgs),
    /// Show a run and its tasks
    #[command(after_help = "Examples:\n  \
        tickwheel workflows show etl\n  \
        tickwheel workflows show 5b0c2e800000 --wide")]
    Show(show::ShowArgs),
    /// Watch a run until it has ended; exits with 1 unless it completed
    Watch(watch::WatchArgs),
    /// Pause runs: no task starts until they are resumed; running tasks go on
    #[command(after_help = "Example: tickwheel workflows pause 5b0c2e800000")]
    Pause(act::RunIds),
    /// Resume paused runs
    #[command(after_help = "Example: tickwheel workflows resume 5b0c2e800000")]
    Resume(act::RunIds),
    /// Cancel runs: waiting tasks are cancelled, running ones are asked to stop
    #[command(after_help = "Example: tickwheel workflows cancel 5b0c2e800000")]
    Cancel(act::RunIds),
    /// Retry failed or cancelled runs from where they stopped; completed tasks do not run again
    #[command(after_help = "Example: tickwheel workflows retry 5b0c2e800000")]
    Retry(act::RunIds),
    /// Skip a task: tasks that depend on it go on as if it had completed
    Skip(act::TaskArgs),
    /// Mark a task as completed without running it
    Complete(act::CompleteArgs),
    /// Retry a task that failed, was cancelled or was skipped
    #[command(after_help = "Example: tickwheel workflows retry-task 5b0c2e800000 'transform[3]'")]
    RetryTask(act::TaskArgs),
    /// Delete workflows and their schedules; their runs stay and go on
    Delete(delete::DeleteArgs),
}

/// Runs the command.
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
