//! `tickwheel workflows pause|resume|cancel|retry|skip|complete|retry-task`: one call each; the run is the answer.

use clap::Args;
use tickwheel_protocol::workflow::CompleteTask;

use super::{Session, view};
use crate::client::Call;
use crate::commands::each::each;
use crate::commands::ids;
use crate::commands::input::json_argument;
use crate::failure::Failure;

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
    /// Name of the task, or the path of one inside of a fan-out: `load[3].check`
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
    /// What other tasks are to find as its result: JSON, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    result: Option<String>,
}

/// Does `verb` to every run.
pub async fn on_runs(verb: &str, runs: &RunIds, session: &Session) -> Result<(), Failure> {
    let on_run = async |id: &str| {
        let id = ids::whole(ids::Kind::Run, id, session).await?;
        act(session.client.post(&["workflow-runs", &id, verb]), session).await
    };
    each("run", &runs.ids, session, on_run).await
}

/// Does `verb` to a task.
pub async fn on_task(verb: &str, args: &TaskArgs, session: &Session) -> Result<(), Failure> {
    act(task_call(verb, args, session).await?, session).await
}

/// Counts a task as completed.
pub async fn complete(args: CompleteArgs, session: &Session) -> Result<(), Failure> {
    let result = args.result.map(|result| json_argument("--result", &result)).transpose()?;
    let call = task_call("complete", &args.task, session).await?;
    act(call.json(&CompleteTask { result })?, session).await
}

async fn task_call<'s>(verb: &str, args: &TaskArgs, session: &'s Session) -> Result<Call<'s>, Failure> {
    let run = ids::whole(ids::Kind::Run, &args.run, session).await?;
    Ok(session.client.post(&["workflow-runs", &run, "tasks", &args.task, verb]))
}

async fn act(call: Call<'_>, session: &Session) -> Result<(), Failure> {
    let answer = call.send().await?;
    session.print(&answer, |_| Ok(view::run_line(&answer.read()?)))
}
