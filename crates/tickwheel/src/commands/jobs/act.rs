//! `tickwheel jobs cancel|retry|run|pause|resume`: one call per job, all of the same shape.

use clap::Args;
use tickwheel_protocol::{Job, Status};

use super::filter::FilterArgs;
use super::{CommandContext, bulk, view};
use crate::cli::whole;
use crate::commands::each::each;
use crate::commands::ids;
use crate::failure::CommandError;

/// The jobs to act on.
#[derive(Debug, Args)]
pub struct JobIds {
    /// Ids of the jobs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// What can be done to many jobs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Cancel them.
    Cancel,
    /// Retry them.
    Retry,
}

impl Verb {
    /// The name of the verb.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
        }
    }

    /// Whether it is possible for a job in this state.
    pub const fn applies_to(self, status: Status) -> bool {
        match self {
            Self::Cancel => !status.is_terminal(),
            Self::Retry => matches!(status, Status::Failed | Status::Cancelled),
        }
    }

    /// The verb in the past tense.
    pub fn done(self, count: u64) -> String {
        match self {
            Self::Cancel => format!("{count} cancelled, or asked to stop"),
            Self::Retry => format!("{count} will run again"),
        }
    }
}

/// The jobs to act on: by id, or all that match.
#[derive(Debug, Args)]
#[command(
    after_help = "Without ids, filters select the jobs. The command shows how many match before it asks for confirmation.\n\n\
    Examples:\n  \
    tickwheel jobs cancel 5b0c2e8f0013\n  \
    tickwheel jobs cancel --queue mail --status pending,scheduled\n  \
    tickwheel jobs retry --type send_email --status failed --from yesterday --yes"
)]
pub struct ManyArgs {
    /// Ids of the jobs
    #[arg(value_name = "ID", conflicts_with_all = ["JobFilter", "limit", "dry_run"])]
    ids: Vec<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Act on no more than this many matching jobs, newest first
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX), allow_negative_numbers = true)]
    pub limit: Option<u32>,
    /// Only show how many jobs match
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Applies `verb` to every job.
pub async fn run(verb: &str, jobs: &JobIds, context: &CommandContext) -> Result<(), CommandError> {
    each("job", &jobs.ids, context, async |id| act(verb, id, context).await).await
}

/// Applies `verb` to the jobs with these ids, or to all that match.
pub async fn many(verb: Verb, args: &ManyArgs, context: &CommandContext) -> Result<(), CommandError> {
    if !args.ids.is_empty() {
        return each("job", &args.ids, context, async |id| act(verb.word(), id, context).await).await;
    }
    if args.filter.is_empty() {
        let which =
            format!("say which jobs to {}: their ids, or filters such as --queue and --status", verb.word());
        return Err(CommandError::BadInput(format!(
            "{which}\nhint: `tickwheel jobs {} --help` lists them",
            verb.word()
        )));
    }
    bulk::run(verb, args, context).await
}

async fn act(verb: &str, id: &str, context: &CommandContext) -> Result<(), CommandError> {
    let id = ids::whole(ids::Kind::Job, id, context).await?;
    let answer = context.client.post(&["jobs", &id, verb]).send().await?;
    context.print(&answer, |_| {
        let job: Job = answer.read()?;
        Ok(view::line(&job))
    })
}
