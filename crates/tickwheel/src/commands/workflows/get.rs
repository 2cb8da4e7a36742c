//! `tickwheel workflows get`.

use clap::Args;
use tickwheel_protocol::Code;
use uuid::Uuid;

use super::{CommandContext, show, view};
use crate::cli::whole;
use crate::commands::ids;
use crate::commands::paging::Listing;
use crate::failure::CommandError;

/// Options of `workflows get`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tickwheel workflows get etl\n  \
    tickwheel workflows get etl --version 3 --json\n  \
    tickwheel workflows get 01a1df02-7c51-7a40-9d3e-5b0c2e800000")]
pub struct GetArgs {
    /// Name of the workflow, or id of a run
    #[arg(value_name = "NAME|RUN")]
    name: String,
    /// Version to show [default: the latest]
    #[arg(long, value_name = "N", conflicts_with = "versions", value_parser = whole(1..=u32::MAX), allow_negative_numbers = true)]
    version: Option<u32>,
    /// List the versions, latest first
    #[arg(long)]
    versions: bool,
}

/// Shows a workflow in full, or a run.
pub async fn run(args: GetArgs, context: &CommandContext) -> Result<(), CommandError> {
    if args.versions {
        return versions(&args.name, context).await;
    }
    if args.version.is_none() && Uuid::parse_str(&args.name).is_ok() {
        match show::show(&args.name, context).await {
            // A workflow may have a name like that.
            Err(CommandError::Refused(problem)) if problem.code == Code::NotFound.as_str() => {}
            shown => return shown,
        }
    }
    let version = args.version.map(|version| version.to_string());
    let call = context.client.get(&["workflows", &args.name]).query("version", version.as_deref());
    let answer = match call.send().await.map_err(CommandError::from) {
        Err(CommandError::Refused(problem))
            if problem.code == Code::NotFound.as_str() && version.is_none() =>
        {
            match ids::whole(ids::Kind::Run, &args.name, context).await {
                Ok(id) if id != args.name => return show::show(&id, context).await,
                _ => return Err(CommandError::Refused(problem).about("workflow", &args.name)),
            }
        }
        answer => answer?,
    };
    context.print(&answer, |output| Ok(view::full(output, &answer.read()?)))
}

async fn versions(name: &str, context: &CommandContext) -> Result<(), CommandError> {
    let path = ["workflows", name, "versions"];
    let listing = Listing { path: &path, filters: &[], part: None };
    listing.show(context, "no versions", |workflows| view::table(&context.output, workflows)).await
}
