//! `tickwheel dead-letters list`.

use clap::Args;
use tickwheel_protocol::DeadLetter;

use super::Session;
use crate::commands::paging::Listing;
use crate::failure::Failure;
use crate::output::{Output, Table, Tone, now, relative};

/// Options of `dead-letters list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Only of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Lists dead letters.
pub async fn run(args: ListArgs, session: &Session) -> Result<(), Failure> {
    let filters = [("type", args.job_type), ("queue", args.queue)];
    let listing =
        Listing { path: &["dead-letters"], filters: &filters, items_max: Some(args.limit as usize) };
    let found = listing.fetch(session).await?;
    found.print(&session.output, "no dead letters", |letters| table(&session.output, letters))
}

fn table(output: &Output, letters: &[DeadLetter]) -> String {
    let now = now();
    let mut table = Table::new(output, &["JOB", "TYPE", "QUEUE", "REASON", "ATTEMPTS", "FAILED", "ERROR"]);
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
    table.finish()
}
