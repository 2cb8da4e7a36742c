//! `tickwheel jobs edit`: changes the time, priority, payload or tags of jobs that have not started.

use clap::Args;
use tickwheel_protocol::{Job, PatchJob, Priority, Span, Time};

use super::{CommandContext, view};
use crate::cli::one_of;
use crate::commands::each::each;
use crate::commands::input::json_argument;
use crate::commands::{ids, times};
use crate::failure::CommandError;
use crate::output::now;

const EXAMPLES: &str = "Examples:\n  \
    tickwheel jobs edit 5b0c2e8f0013 --at 'tomorrow 9:00'\n  \
    tickwheel jobs edit 5b0c2e8f0013 --priority high --tag urgent --tag mail\n  \
    tickwheel jobs edit 5b0c2e8f0013 --payload @payload.json";

/// Options of `jobs edit`.
#[derive(Debug, Args)]
#[command(after_help = format!("Fields without an option keep their value. {}\n\n{EXAMPLES}", times::FORMS))]
pub struct EditArgs {
    /// Ids of the jobs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    changes: Changes,
}

/// What to change.
#[derive(Debug, Args)]
struct Changes {
    /// Start at this time, such as 'tomorrow 9:00'
    #[arg(long, value_name = "TIME", value_parser = times::appointment)]
    at: Option<Time>,
    /// Start after this delay, such as 30s, 5m, 4h
    #[arg(long, value_name = "DURATION", conflicts_with = "at")]
    delay: Option<Span>,
    /// Priority of the job
    #[arg(long, value_name = "PRIORITY", value_parser = one_of(Priority::ALL, Priority::as_str))]
    priority: Option<Priority>,
    /// Payload as JSON: the text, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// New tag, replacing all existing ones; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Remove all tags
    #[arg(long, conflicts_with = "tags")]
    no_tags: bool,
}

/// Changes jobs.
pub async fn run(args: EditArgs, context: &CommandContext) -> Result<(), CommandError> {
    let patch = args.changes.into_patch(now())?;
    let edit = async |id: &str| {
        let id = ids::whole(ids::Kind::Job, id, context).await?;
        let answer = context.client.patch(&["jobs", &id]).json(&patch)?.send().await?;
        context.print(&answer, |_| Ok(view::line(&answer.read::<Job>()?)))
    };
    each("job", &args.ids, context, edit).await
}

impl Changes {
    fn into_patch(self, now: Time) -> Result<PatchJob, CommandError> {
        let later = |delay: Span| {
            let ms = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
            Time::from_millis(now.as_millis().saturating_add(ms))
        };
        let patch = PatchJob {
            execute_at: self.at.or_else(|| self.delay.map(later)),
            priority: self.priority,
            payload: self.payload.map(|payload| json_argument("--payload", &payload)).transpose()?,
            tags: Some(self.tags).filter(|tags| !tags.is_empty() || self.no_tags),
            status: None,
        };
        let PatchJob { execute_at: None, priority: None, payload: None, tags: None, status: None } = patch
        else {
            return Ok(patch);
        };
        let hint = "--at, --delay, --priority, --payload, --tag or --no-tags";
        Err(CommandError::BadInput(format!("nothing to change: use {hint}")))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::commands::jobs::JobsCommand;

    fn patch(line: &[&str]) -> Result<Value, CommandError> {
        let cli = Cli::try_parse_from(["tickwheel", "jobs", "edit", "x"].iter().chain(line)).unwrap();
        let Command::Jobs(JobsCommand::Edit(args)) = cli.command else { unreachable!("the line says edit") };
        let patch = args.changes.into_patch("2026-11-16T12:00:00Z".parse().unwrap())?;
        Ok(serde_json::to_value(patch).unwrap())
    }

    #[test]
    fn only_what_is_said_is_changed() {
        assert!(patch(&[]).unwrap_err().to_string().starts_with("nothing to change"));
        assert_eq!(patch(&["--delay=1h"]).unwrap(), json!({"execute_at": "2026-11-16T13:00:00.000Z"}));
        assert_eq!(patch(&["--payload=null"]).unwrap(), json!({"payload": null}));
        assert_eq!(patch(&["--no-tags"]).unwrap(), json!({"tags": []}));
        assert_eq!(
            patch(&["--priority=low", "--tag=a", "--tag=b", "--at=2030-01-01T00:00:00Z"]).unwrap(),
            json!({"priority": "low", "tags": ["a", "b"], "execute_at": "2030-01-01T00:00:00.000Z"})
        );
    }
}
