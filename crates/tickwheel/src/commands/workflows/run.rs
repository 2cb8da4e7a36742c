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
    /// Input of the run, as JSON: the text, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Key that makes it safe to repeat the command
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Wait until the run has ended, for up to this long; exits with 1 unless it completed
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true)]
    wait: Option<Option<Span>>,
    /// Watch the run until it has ended; exits with 1 unless it completed
    #[arg(long, conflicts_with = "wait")]
    watch: bool,
}

/// Starts a run and, if requested, waits for it or watches it.
pub async fn run(args: RunArgs, context: &CommandContext) -> Result<(), CommandError> {
    let input = args.input.map(|input| json_argument("--input", &input)).transpose()?;
    let request = StartRun { input, idempotency_key: args.idempotency_key };
    let call = context.client.post(&["workflows", &args.name, "runs"]);
    let answer = call.json(&request)?.send().await?;
    if answer.status == StatusCode::OK {
        context.output.note("this idempotency key was used before: this is the first run");
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
