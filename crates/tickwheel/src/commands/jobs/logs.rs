//! `tickwheel jobs logs`.

use clap::Args;
use tickwheel_protocol::{Job, LogLine};

use super::Session;
use crate::commands::paging::Listing;
use crate::failure::Failure;
use crate::output::plain;

/// Options of `jobs logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Id of the job
    id: String,
    /// Which attempt [default: the latest]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
}

/// Shows what an attempt wrote.
pub async fn run(args: LogsArgs, session: &Session) -> Result<(), Failure> {
    let attempt = match args.attempt {
        Some(attempt) => attempt,
        None => session.client.get(&["jobs", &args.id]).send().await?.read::<Job>()?.attempt,
    };
    if attempt == 0 {
        return Err(Failure::BadInput(format!("job {} has not been tried yet", args.id)));
    }
    let path = ["jobs", &args.id, "attempts", &attempt.to_string(), "logs"];
    let found = Listing { path: &path, filters: &[], items_max: None }.fetch(session).await?;
    found.print(&session.output, "this attempt wrote nothing", |lines: &[LogLine]| {
        let lines: Vec<_> =
            lines.iter().map(|line| format!("{}  {}", line.time, plain(&line.message))).collect();
        lines.join("\n")
    })
}
