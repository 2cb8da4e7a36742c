//! `tickwheel workflows runs`.

use clap::Args;
use tickwheel_protocol::workflow::RunStatus;

use super::{CommandContext, view};
use crate::cli::one_of;
use crate::commands::paging::{Listing, PageArgs};
use crate::failure::CommandError;

/// Options of `workflows runs`.
#[derive(Debug, Args)]
#[command(after_help = "Example: tickwheel workflows runs etl --status failed")]
pub struct RunsArgs {
    /// Only runs of this workflow
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Only runs in this state
    #[arg(long, value_name = "STATUS", value_parser = one_of(RunStatus::ALL, RunStatus::as_str))]
    status: Option<RunStatus>,
    #[command(flatten)]
    part: PageArgs,
}

/// Lists runs.
pub async fn run(args: RunsArgs, context: &CommandContext) -> Result<(), CommandError> {
    let filters = [("workflow", args.name), ("status", args.status.map(|status| status.to_string()))];
    let nothing = match filters.iter().all(|(_, value)| value.is_none()) {
        true => "no runs yet; start one with `tickwheel workflows run`",
        false => "no runs match",
    };
    let listing = Listing { path: &["workflow-runs"], filters: &filters, part: Some(&args.part) };
    listing.show(context, nothing, |runs| view::run_table(&context.output, runs)).await
}
