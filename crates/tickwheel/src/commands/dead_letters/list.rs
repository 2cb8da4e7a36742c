//! `tickwheel dead-letters list`.

use clap::Args;
use tickwheel_protocol::DeadLetter;

use super::CommandContext;
use crate::commands::paging::{Listing, PageArgs};
use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, now, relative};

/// Options of `dead-letters list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Only jobs of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    #[command(flatten)]
    part: PageArgs,
}

/// Lists dead letters.
pub async fn run(args: ListArgs, context: &CommandContext) -> Result<(), CommandError> {
    let filters = [("type", args.job_type), ("queue", args.queue)];
    let listing = Listing { path: &["dead-letters"], filters: &filters, part: Some(&args.part) };
    listing.show(context, "no dead letters", |letters| table(&context.output, letters)).await
}

fn table(output: &Output, letters: &[DeadLetter]) -> Table {
    let now = now();
    let columns = [
        column("JOB").id(),
        column("TYPE").cut(12),
        column("QUEUE").cut(8).spare(2),
        column("REASON").spare(3),
        column("ATTEMPTS").spare(1),
        column("FAILED"),
        column("ERROR").cut(20),
    ];
    let mut table = Table::new(output, &columns);
    for letter in letters {
        let error = letter.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        table.row([
            (letter.job_id.to_string(), Tone::Plain),
            (letter.job_type.clone(), Tone::Plain),
            (letter.queue.clone(), Tone::Plain),
            (letter.reason.clone(), Tone::Bad),
            (letter.attempts.to_string(), Tone::Plain),
            (relative(letter.failed_at, now), Tone::Plain),
            (error, Tone::Plain),
        ]);
    }
    table
}
