//! `tickwheel workflows apply`: sends files to the server as they are.
//!
//! All of them are checked before the first one is stored. An unchanged workflow gets no new version, so there is no
//! question to confirm.

use std::path::PathBuf;

use clap::Args;
use http::StatusCode;
use serde::Serialize;
use tickwheel_protocol::Code;
use tickwheel_protocol::workflow::Workflow;

use super::CommandContext;
use crate::commands::declared::workflows;
use crate::failure::CommandError;
use crate::output::{plain, pretty};

/// Options of `workflows apply`.
#[derive(Debug, Args)]
#[command(
    after_help = "A file contains one workflow, or several under `workflows:`. For files that also have schedules or calendars, \
    use `tickwheel apply`.\n\n\
    Examples:\n  \
    tickwheel workflows apply -f etl.yaml\n  \
    tickwheel workflows apply -f workflows/"
)]
pub struct ApplyArgs {
    /// File with workflows (.yaml, .yml, .toml or .json), a directory of them, or `-` for YAML on standard input; may
    /// be repeated
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Only let the server check them, and show what would be stored
    #[arg(long)]
    dry_run: bool,
}

/// What happened to a workflow, or would happen.
#[derive(Serialize)]
struct Applied {
    name: String,
    version: u32,
    created: bool,
}

/// Stores workflows.
pub async fn run(args: ApplyArgs, context: &CommandContext) -> Result<(), CommandError> {
    let declared = workflows::read(&args.files)?;
    let tried = workflows::try_all(&declared, context).await?;
    let mut applied = Vec::new();
    for (declared, tried) in declared.iter().zip(tried) {
        let (created, workflow) = if args.dry_run {
            (is_new(&tried, context).await?, tried)
        } else {
            let answer = declared.store(context).await?;
            (answer.status == StatusCode::CREATED, answer.read::<Workflow>()?)
        };
        let Workflow { name, version, .. } = workflow;
        if !context.output.json {
            let what = if created { "created" } else { "unchanged" };
            context.output.print(&format!("{}  version {version}  {what}", plain(&name)))?;
        }
        applied.push(Applied { name, version, created });
    }
    if args.dry_run {
        context.output.note("nothing was stored: it was a dry run");
    }
    if context.output.json {
        let text = serde_json::to_string(&applied).map_err(anyhow::Error::from)?;
        context.output.print(&pretty(&text))?;
    }
    Ok(())
}

/// Whether storing it would make a new version.
async fn is_new(tried: &Workflow, context: &CommandContext) -> Result<bool, CommandError> {
    let version = tried.version.to_string();
    let call = context.client.get(&["workflows", &tried.name]).query("version", Some(&version));
    match call.send().await {
        Ok(_) => Ok(false),
        Err(error) if error.code() == Some(Code::NotFound) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
