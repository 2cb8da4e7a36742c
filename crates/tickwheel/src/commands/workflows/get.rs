//! `tickwheel workflows get`.

use clap::Args;
use tickwheel_protocol::Code;
use uuid::Uuid;

use super::{Session, show, view};
use crate::commands::paging::Listing;
use crate::failure::Failure;

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
    /// Which version [default: the latest]
    #[arg(long, value_name = "N", conflicts_with = "versions")]
    version: Option<u32>,
    /// List its versions, the latest first
    #[arg(long)]
    versions: bool,
}

/// Shows a workflow in full, or a run.
pub async fn run(args: GetArgs, session: &Session) -> Result<(), Failure> {
    if args.versions {
        return versions(&args.name, session).await;
    }
    if args.version.is_none() && Uuid::parse_str(&args.name).is_ok() {
        match show::show(&args.name, session).await {
            // A workflow may have a name like that.
            Err(Failure::Refused(problem)) if problem.code == Code::NotFound.as_str() => {}
            shown => return shown,
        }
    }
    let version = args.version.map(|version| version.to_string());
    let call = session.client.get(&["workflows", &args.name]).query("version", version.as_deref());
    let answer = call.send().await?;
    session.print(&answer, |output| Ok(view::full(output, &answer.read()?)))
}

async fn versions(name: &str, session: &Session) -> Result<(), Failure> {
    let path = ["workflows", name, "versions"];
    let found = Listing { path: &path, filters: &[], items_max: None }.fetch(session).await?;
    found.print(&session.output, "there are no versions", |workflows| view::table(&session.output, workflows))
}
