//! `tickwheel schedules fires`: the ledger of a schedule.

use clap::Args;
use tickwheel_protocol::{Fire, FireOutcome};

use super::CommandContext;
use crate::cli::one_of;
use crate::commands::paging::{Listing, PageArgs};
use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, now, relative, short};

/// Options of `schedules fires`.
#[derive(Debug, Args)]
#[command(after_help = "Example: tickwheel schedules fires daily-report --outcome missed")]
pub struct FiresArgs {
    /// Name or id of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Only firings with this outcome
    #[arg(long, value_name = "OUTCOME", value_parser = one_of(FireOutcome::ALL, FireOutcome::as_str))]
    outcome: Option<FireOutcome>,
    #[command(flatten)]
    part: PageArgs,
}

/// Lists the ledger of a schedule.
pub async fn run(args: FiresArgs, context: &CommandContext) -> Result<(), CommandError> {
    let filters = [("outcome", args.outcome.map(|outcome| outcome.to_string()))];
    let path = ["schedules", &args.schedule, "fires"];
    let listing = Listing { path: &path, filters: &filters, part: Some(&args.part) };
    listing.show(context, "no firings yet", |fires| table(&context.output, fires)).await
}

fn table(output: &Output, fires: &[Fire]) -> Table {
    let now = now();
    let columns = [
        column("NOMINAL TIME"),
        column("WHEN").spare(1),
        column("OUTCOME"),
        column("REASON").cut(10),
        column("FIRINGS").cut(8),
        column("JOB").id(),
    ];
    let mut table = Table::new(output, &columns);
    for fire in fires {
        table.row([
            (short(fire.nominal_time), Tone::Plain),
            (relative(fire.nominal_time, now), Tone::Quiet),
            (fire.outcome.to_string(), tone(fire.outcome)),
            (fire.reason.clone(), Tone::Plain),
            (firings(fire), Tone::Plain),
            (fire.job_id.map(|id| id.to_string()).unwrap_or_default(), Tone::Plain),
        ]);
    }
    table
}

/// A span of firings with the same outcome is one line.
fn firings(fire: &Fire) -> String {
    match fire.count {
        1 => "1".into(),
        count => format!("{count}, up to {}", short(fire.last_nominal_time)),
    }
}

const fn tone(outcome: FireOutcome) -> Tone {
    match outcome {
        FireOutcome::Fired | FireOutcome::Triggered | FireOutcome::Backfilled => Tone::Good,
        FireOutcome::Missed => Tone::Bad,
        FireOutcome::Skipped | FireOutcome::Coalesced => Tone::Quiet,
    }
}
