//! `tickwheel jobs attempts`.

use clap::Args;
use tickwheel_protocol::Attempt;

use super::{CommandContext, view};
use crate::commands::ids;
use crate::commands::paging::Listing;
use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, length, now, relative};

/// Options of `jobs attempts`.
#[derive(Debug, Args)]
pub struct AttemptsArgs {
    /// Id of the job
    id: String,
}

/// Lists the attempts of a job.
pub async fn run(args: AttemptsArgs, context: &CommandContext) -> Result<(), CommandError> {
    let id = ids::whole(ids::Kind::Job, &args.id, context).await?;
    let listing = Listing { path: &["jobs", &id, "attempts"], filters: &[], part: None };
    listing.show(context, "no attempts yet", |attempts| table(&context.output, attempts)).await
}

fn table(output: &Output, attempts: &[Attempt]) -> Table {
    let now = now();
    let columns =
        [column("ATTEMPT"), column("OUTCOME"), column("STARTED"), column("TOOK"), column("ERROR").cut(20)];
    let mut table = Table::new(output, &columns);
    for attempt in attempts {
        let outcome = attempt.outcome.as_deref().unwrap_or("running");
        let took = attempt.ended_at.unwrap_or(now).as_millis() - attempt.started_at.as_millis();
        table.row([
            (attempt.number.to_string(), Tone::Plain),
            (outcome.to_owned(), Tone::of_status(outcome)),
            (relative(attempt.started_at, now), Tone::Plain),
            (length(took.max(0)), Tone::Plain),
            (attempt.error.as_ref().map(view::error).unwrap_or_default(), Tone::Plain),
        ]);
    }
    table
}
