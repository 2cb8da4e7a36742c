//! `tickwheel schedules next`.

use clap::Args;
use tickwheel_protocol::cron::COUNT_RANGE;
use tickwheel_protocol::{NextFire, Time};

use super::CommandContext;
use crate::cli::whole;
use crate::commands::local;
use crate::commands::paging::Listing;
use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, now, relative, short};

/// Options of `schedules next`.
#[derive(Debug, Args)]
#[command(
    after_help = "Firings on excluded days are left out.\n\nExample: tickwheel schedules next daily-report --count 3 --after 2027-03-13T00:00:00Z"
)]
pub struct NextArgs {
    /// Name or id of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// How many firings to show, 1 to 1000 [default: 10]
    #[arg(long, value_name = "N", value_parser = whole(COUNT_RANGE), allow_negative_numbers = true)]
    count: Option<u32>,
    /// Only firings after this time (RFC 3339) [default: now]
    #[arg(long, value_name = "TIME")]
    after: Option<Time>,
}

/// Shows the next firings.
pub async fn run(args: NextArgs, context: &CommandContext) -> Result<(), CommandError> {
    let filters = [
        ("count", args.count.map(|count| count.to_string())),
        ("after", args.after.map(|after| after.to_string())),
    ];
    let path = ["schedules", &args.schedule, "next"];
    let seen_from = args.after.unwrap_or_else(now);
    let listing = Listing { path: &path, filters: &filters, part: None };
    let table = |fires: &[NextFire]| table(&context.output, fires, seen_from);
    listing.show(context, "never: there is no further firing", table).await
}

fn table(output: &Output, fires: &[NextFire], seen_from: Time) -> Table {
    let here = local::zone();
    let columns = [column("ITS TIME"), column("YOUR TIME").spare(2), column("UTC").spare(1), column("WHEN")];
    let mut table = Table::new(output, &columns);
    for fire in fires {
        table.row([
            (local::shown(fire.local_time), Tone::Plain),
            (local::clock(fire.nominal_time, here), Tone::Plain),
            (short(fire.nominal_time), Tone::Quiet),
            (relative(fire.nominal_time, seen_from), Tone::Plain),
        ]);
    }
    table
}
