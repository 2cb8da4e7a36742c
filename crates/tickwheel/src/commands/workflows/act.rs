//! `tickwheel workflows pause|resume|cancel|retry|skip|complete|retry-task`: one call each, which answers with the run.

use clap::Args;
use tickwheel_client::Call;
use tickwheel_protocol::workflow::CompleteTask;

use super::{CommandContext, view};
use crate::commands::each::each;
use crate::commands::ids;
use crate::commands::input::json_argument;
use crate::failure::CommandError;

/// The runs to act on.
#[derive(Debug, Args)]
pub struct RunIds {
    /// Ids of the runs
    #[arg(value_name = "RUN", required = true)]
    ids: Vec<String>,
}

/// The task to act on.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tickwheel workflows skip 01a1df02-7c51-7a40-9d3e-5b0c2e800000 'transform[3]'"
)]
pub struct TaskArgs {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run: String,
    /// Name of the task, or its path inside a fan-out: `load[3].check`
    #[arg(value_name = "TASK")]
    task: String,
}

/// Options of `workflows complete`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tickwheel workflows complete 01a1df02-7c51-7a40-9d3e-5b0c2e800000 extract --result '{\"files\": []}'"
)]
pub struct CompleteArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// Result for other tasks, as JSON: the text, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    result: Option<String>,
}

/// Applies `verb` to every run.
pub async fn on_runs(verb: &str, runs: &RunIds, context: &CommandContext) -> Result<(), CommandError> {
    let on_run = async |id: &str| {
        let id = ids::whole(ids::Kind::Run, id, context).await?;
        act(context.client.post(&["workflow-runs", &id, verb]), context).await
    };
    each("run", &runs.ids, context, on_run).await
}

/// Applies `verb` to a task.
pub async fn on_task(verb: &str, args: &TaskArgs, context: &CommandContext) -> Result<(), CommandError> {
    act(task_call(verb, args, context).await?, context).await
}

/// Marks a task as completed.
pub async fn complete(args: CompleteArgs, context: &CommandContext) -> Result<(), CommandError> {
    let result = args.result.map(|result| json_argument("--result", &result)).transpose()?;
    let call = task_call("complete", &args.task, context).await?;
    act(call.json(&CompleteTask { result })?, context).await
}

async fn task_call<'s>(
    verb: &str,
    args: &TaskArgs,
    context: &'s CommandContext,
) -> Result<Call<'s>, CommandError> {
    let run = ids::whole(ids::Kind::Run, &args.run, context).await?;
    Ok(context.client.post(&["workflow-runs", &run, "tasks", &args.task, verb]))
}

async fn act(call: Call<'_>, context: &CommandContext) -> Result<(), CommandError> {
    let answer = call.send().await?;
    context.print(&answer, |_| Ok(view::run_line(&answer.read()?)))
}
