//! `tickwheel jobs logs`.

use std::time::{Duration, Instant};

use clap::Args;
use tickwheel_protocol::{Job, LogLine, Status};

use super::CommandContext;
use crate::cli::whole;
use crate::commands::ids;
use crate::commands::paging::Listing;
use crate::failure::CommandError;
use crate::output::plain;

/// How long to look for a server that went away while its log was followed.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait before the next try.
const PAUSE: Duration = Duration::from_secs(1);

/// Options of `jobs logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Id of the job
    id: String,
    /// Number of the attempt [default: all of them]
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX), allow_negative_numbers = true)]
    attempt: Option<u32>,
    /// Go on with new lines until the job has ended
    #[arg(long, short)]
    follow: bool,
}

/// Shows the log of a job.
pub async fn run(args: LogsArgs, context: &CommandContext) -> Result<(), CommandError> {
    let id = ids::whole(ids::Kind::Job, &args.id, context).await?;
    if args.follow {
        return follow(&id, args.attempt, context).await;
    }
    let number = args.attempt.map(|attempt| attempt.to_string());
    let path = match &number {
        // An attempt that does not exist is a mistake.
        Some(number) => vec!["jobs", &id, "attempts", number, "logs"],
        None => vec!["jobs", &id, "logs"],
    };
    let listing = Listing { path: &path, filters: &[], part: None };
    if context.output.json {
        return listing.show_json(context).await;
    }
    let (mut pages, mut is_silent) = (listing.pages(context), true);
    while let Some(lines) = pages.items::<LogLine>().await? {
        for line in &lines {
            context.output.print(&shown(line))?;
            is_silent = false;
        }
    }
    if is_silent {
        context.output.note(if number.is_some() { "this attempt has no log" } else { "this job has no log" });
    }
    Ok(())
}

/// A line for people.
fn shown(line: &LogLine) -> String {
    let fields = line.fields.as_ref().map_or_else(String::new, |fields| format!("  {}", plain(fields.get())));
    let cut = if line.truncated { " (cut)" } else { "" };
    format!("{}  {}  {:<5}  {}{cut}{fields}", line.time, line.attempt, line.level, plain(&line.message))
}

/// Shows lines as they come. When the server goes away, it is looked for, and the log goes on where it stopped.
async fn follow(id: &str, attempt: Option<u32>, context: &CommandContext) -> Result<(), CommandError> {
    let number = attempt.map(|attempt| attempt.to_string());
    let (mut cursor, mut heard_at): (Option<String>, Option<Instant>) = (None, None);
    loop {
        let call = context.client.get(&["jobs", id, "logs"]).query("follow", Some("true"));
        let call = call.query("attempt", number.as_deref()).query("cursor", cursor.as_deref());
        match call.lines().await.map_err(CommandError::from) {
            Ok(mut lines) => {
                heard_at = Some(Instant::now());
                while let Some(text) = lines.next().await {
                    let line: LogLine = serde_json::from_str(&text).map_err(anyhow::Error::from)?;
                    context.output.print(&if context.output.json { text } else { shown(&line) })?;
                    cursor = line.cursor.or(cursor);
                    heard_at = Some(Instant::now());
                }
                let asked = context.client.get(&["jobs", id]).send().await;
                if let Ok(answer) = asked
                    && is_over(&answer.read::<Job>()?, attempt)
                {
                    return Ok(());
                }
            }
            Err(CommandError::NoConnection { .. }) if heard_at.is_some_and(|at| at.elapsed() < PATIENCE) => {}
            Err(failure) => return Err(failure),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn is_over(job: &Job, attempt: Option<u32>) -> bool {
    let attempt_is_over =
        |attempt| job.attempt > attempt || (job.attempt == attempt && job.status != Status::Running);
    job.status.is_terminal() || attempt.is_some_and(attempt_is_over)
}
