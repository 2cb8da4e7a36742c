//! `tickwheel workflows run`.

use clap::Args;
use http::StatusCode;
use tickwheel_protocol::Span;
use tickwheel_protocol::workflow::{StartRun, WorkflowRun};

use super::{CommandContext, view, watch};
use crate::commands::input::json_argument;
use crate::commands::waiting::until_ended;
use crate::failure::CommandError;

/// Options of `workflows run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tickwheel workflows run etl\n  \
    tickwheel workflows run etl --input '{\"day\": \"2026-11-15\"}' --idempotency-key etl-15 --wait\n  \
    tickwheel workflows run etl --input @input.json --watch")]
pub struct RunArgs {
    /// Name of the workflow
    #[arg(value_name = "NAME")]
    name: String,
    /// What the run is given: JSON, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Makes a repeated command harmless
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Wait until it has ended, for this long at the most; exit code 1 unless it completed
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true)]
    wait: Option<Option<Span>>,
    /// Watch it until it has ended; exit code 1 unless it completed
    #[arg(long, conflicts_with = "wait")]
    watch: bool,
}

/// Starts a run and, if asked to, stays with it.
pub async fn run(args: RunArgs, context: &CommandContext) -> Result<(), CommandError> {
    let input = args.input.map(|input| json_argument("--input", &input)).transpose()?;
    let request = StartRun { input, idempotency_key: args.idempotency_key };
    let call = context.client.post(&["workflows", &args.name, "runs"]);
    let answer = call.json(&request)?.send().await?;
    if answer.status == StatusCode::OK {
        context.output.note("this idempotency key was seen before: here is the first run");
    }
    let id = answer.read::<WorkflowRun>()?.id.to_string();
    match args.wait {
        _ if args.watch => watch::watch(&id, context).await,
        Some(timeout) => {
            context.output.note(&format!("waiting for run {id}"));
            let (path, what) = (["workflow-runs", id.as_str()], format!("run {id}"));
            let ended = until_ended(&path, &what, timeout.map(Span::as_duration), context).await?;
            context.print(&ended, |output| Ok(view::run_full(output, &ended.read()?)))?;
            view::verdict(&ended.read()?)
        }
        None => context.print(&answer, |_| Ok(id)),
    }
}
