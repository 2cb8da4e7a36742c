//! `tickwheel workflows runs`.

use clap::Args;
use tickwheel_protocol::workflow::RunStatus;

use super::{Session, view};
use crate::cli::one_of;
use crate::commands::paging::Listing;
use crate::failure::Failure;

/// Options of `workflows runs`.
#[derive(Debug, Args)]
#[command(after_help = "Example: tickwheel workflows runs etl --status failed")]
pub struct RunsArgs {
    /// Only runs of this workflow
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Only runs that stand like this
    #[arg(long, value_name = "STATUS", value_parser = one_of(RunStatus::ALL, RunStatus::as_str))]
    status: Option<RunStatus>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Lists runs.
pub async fn run(args: RunsArgs, session: &Session) -> Result<(), Failure> {
    let filters = [("workflow", args.name), ("status", args.status.map(|status| status.to_string()))];
    let limit = args.limit as usize;
    let listing = Listing { path: &["workflow-runs"], filters: &filters, items_max: Some(limit) };
    let found = listing.fetch(session).await?;
    found.print(&session.output, "no runs match", |runs| view::run_table(&session.output, runs))
}
