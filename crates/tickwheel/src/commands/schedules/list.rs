//! `tickwheel schedules list`.

use clap::Args;
use tickwheel_protocol::Schedule;

use super::strip::Signs;
use super::{Session, view};
use crate::commands::paging::Listing;
use crate::failure::Failure;

/// Options of `schedules list`.
#[derive(Debug, Args)]
#[command(
    after_help = "LAST has the latest outcomes, the newest one at the right; what the signs mean is told on standard error.\n\n\
    Example: tickwheel schedules list --paused"
)]
pub struct ListArgs {
    /// Only paused ones
    #[arg(long, conflicts_with = "active")]
    paused: bool,
    /// Only those that are not paused
    #[arg(long)]
    active: bool,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Lists schedules.
pub async fn run(args: ListArgs, session: &Session) -> Result<(), Failure> {
    let paused = (args.paused || args.active).then(|| args.paused.to_string());
    let filters = [("paused", paused)];
    let listing = Listing { path: &["schedules"], filters: &filters, items_max: Some(args.limit as usize) };
    let found = listing.fetch(session).await?;
    let output = &session.output;
    let mut legend = None;
    found.print(output, "no schedules match", |schedules: &[Schedule]| {
        legend = Signs::detect().legend(schedules.iter().flat_map(|schedule| &schedule.last_fires));
        view::table(output, schedules)
    })?;
    if let Some(legend) = legend {
        output.note(&legend);
    }
    Ok(())
}
