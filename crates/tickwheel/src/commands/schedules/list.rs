//! `tickwheel schedules list`.

use clap::Args;
use tickwheel_protocol::{Fire, Schedule};

use super::strip::Signs;
use super::{CommandContext, view};
use crate::commands::paging::{Listing, PageArgs};
use crate::failure::CommandError;

const NONE_YET: &str = "no schedules yet; create one with `tickwheel schedules create`";

/// Options of `schedules list`.
#[derive(Debug, Args)]
#[command(
    after_help = "LAST shows the latest outcomes, the newest one on the right. Standard error has a legend of the signs.\n\n\
    Example: tickwheel schedules list --paused"
)]
pub struct ListArgs {
    /// Only paused schedules
    #[arg(long, conflicts_with = "active")]
    paused: bool,
    /// Only schedules that are not paused
    #[arg(long)]
    active: bool,
    #[command(flatten)]
    part: PageArgs,
}

/// Lists schedules.
pub async fn run(args: ListArgs, context: &CommandContext) -> Result<(), CommandError> {
    let paused = (args.paused || args.active).then(|| args.paused.to_string());
    let filters = [("paused", paused)];
    let listing = Listing { path: &["schedules"], filters: &filters, part: Some(&args.part) };
    let output = &context.output;
    let mut seen: Vec<Fire> = Vec::new();
    let nothing = if filters[0].1.is_some() { "no schedules match" } else { NONE_YET };
    let table = |schedules: &[Schedule]| {
        for fire in schedules.iter().flat_map(|schedule| &schedule.last_fires) {
            if seen.iter().all(|seen| seen.outcome != fire.outcome) {
                seen.push(fire.clone());
            }
        }
        view::table(output, schedules)
    };
    listing.show(context, nothing, table).await?;
    if let Some(legend) = Signs::detect().legend(seen.iter()) {
        output.note(&legend);
    }
    Ok(())
}
