//! `tickwheel jobs list`.

use clap::Args;

use super::filter::FilterArgs;
use super::{CommandContext, view};
use crate::commands::paging::{Listing, PageArgs};
use crate::commands::times;
use crate::failure::CommandError;

const EXAMPLES: &str = "Examples:\n  \
    tickwheel jobs list --status failed,cancelled --from yesterday\n  \
    tickwheel jobs list --schedule daily-report --limit 5\n  \
    tickwheel jobs list --workflow-run 5b0c2e800000\n  \
    tickwheel jobs list --queue mail --all --json";
const SHORT_IDS: &str = "If the terminal is too narrow, ids are shortened to their last 12 characters and the least important columns are left \
    out. --wide shows everything. Commands accept a short id, or any beginning or end of an id that is unique.";

/// Options of `jobs list`.
#[derive(Debug, Args)]
#[command(after_help = format!("{SHORT_IDS}\n\n{}\n\n{EXAMPLES}", times::FORMS))]
pub struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    part: PageArgs,
}

/// Lists jobs.
pub async fn run(args: ListArgs, context: &CommandContext) -> Result<(), CommandError> {
    let mut filters = args.filter.query(context).await?;
    // The table shows neither; a machine gets whole jobs.
    filters.push(("include", context.output.json.then(|| "payload,result".into())));
    let nothing = match args.filter.is_empty() {
        true => "no jobs yet; submit one with `tickwheel jobs submit`",
        false => "no jobs match",
    };
    let listing = Listing { path: &["jobs"], filters: &filters, part: Some(&args.part) };
    listing.show(context, nothing, |jobs| view::table(&context.output, jobs)).await
}
