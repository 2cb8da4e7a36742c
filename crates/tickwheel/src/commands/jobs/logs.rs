//! `tickwheel jobs logs`.

use clap::Args;
use tickwheel_protocol::{Job, LogLine};

use super::CommandContext;
use crate::cli::whole;
use crate::commands::ids;
use crate::commands::paging::Listing;
use crate::failure::CommandError;
use crate::output::plain;

/// Options of `jobs logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Id of the job
    id: String,
    /// Number of the attempt [default: the latest]
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX), allow_negative_numbers = true)]
    attempt: Option<u32>,
}

/// Shows the log of an attempt.
pub async fn run(args: LogsArgs, context: &CommandContext) -> Result<(), CommandError> {
    let id = ids::whole(ids::Kind::Job, &args.id, context).await?;
    let attempt = match args.attempt {
        Some(attempt) => attempt,
        None => context.client.get(&["jobs", &id]).send().await?.read::<Job>()?.attempt,
    };
    if attempt == 0 {
        return Err(CommandError::BadInput(format!("job {id} has no attempt yet")));
    }
    let path = ["jobs", &id, "attempts", &attempt.to_string(), "logs"];
    let listing = Listing { path: &path, filters: &[], part: None };
    if context.output.json {
        return listing.show_json(context).await;
    }
    let (mut pages, mut is_silent) = (listing.pages(context), true);
    while let Some(lines) = pages.items::<LogLine>().await? {
        for line in lines {
            context.output.print(&format!("{}  {}", line.time, plain(&line.message)))?;
            is_silent = false;
        }
    }
    if is_silent {
        context.output.note("this attempt has no log");
    }
    Ok(())
}
