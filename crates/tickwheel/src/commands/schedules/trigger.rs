//! `tickwheel schedules trigger`.

use clap::Args;
use http::StatusCode;
use tickwheel_protocol::{Job, TriggerSchedule};

use super::CommandContext;
use crate::commands::input::json_argument;
use crate::failure::CommandError;

/// Options of `schedules trigger`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tickwheel schedules trigger daily-report --payload '{\"day\":\"2026-11-14\"}' --idempotency-key again-14"
)]
pub struct TriggerArgs {
    /// Name or id of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Payload to use instead of the schedule's, as JSON: the text, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Key that makes it safe to repeat the command
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Triggers a schedule.
pub async fn run(args: TriggerArgs, context: &CommandContext) -> Result<(), CommandError> {
    let payload = args.payload.map(|payload| json_argument("--payload", &payload)).transpose()?;
    let trigger = TriggerSchedule { payload, idempotency_key: args.idempotency_key };
    let call = context.client.post(&["schedules", &args.schedule, "trigger"]);
    let answer = call.json(&trigger)?.send().await?;
    if answer.status == StatusCode::OK {
        context.output.note("this idempotency key was used before: this is the first job");
    }
    context.print(&answer, |_| Ok(answer.read::<Job>()?.id.to_string()))
}
