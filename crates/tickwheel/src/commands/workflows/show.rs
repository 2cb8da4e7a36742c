//! `tickwheel workflows show`.

use clap::Args;
use tickwheel_protocol::List;
use tickwheel_protocol::workflow::WorkflowRun;
use uuid::Uuid;

use super::{CommandContext, view};
use crate::commands::ids;
use crate::failure::CommandError;
use crate::output::plain;

/// Options of `workflows show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    run: RunToLookAt,
}

/// The run to show.
#[derive(Debug, Args)]
pub struct RunToLookAt {
    /// Id of the run, or name of a workflow for its latest run
    #[arg(value_name = "RUN|NAME")]
    run: String,
}

impl RunToLookAt {
    /// Its id.
    pub async fn id(&self, context: &CommandContext) -> Result<String, CommandError> {
        if Uuid::parse_str(&self.run).is_ok() {
            return Ok(self.run.clone());
        }
        let call = context.client.get(&["workflow-runs"]).query("workflow", Some(&self.run));
        let latest: List<WorkflowRun> = call.query("limit", Some("1")).send().await?.read()?;
        if let Some(run) = latest.items.first() {
            return Ok(run.id.to_string());
        }
        match ids::whole(ids::Kind::Run, &self.run, context).await? {
            // Nothing that could be a part of an id.
            same if same == self.run => {
                Err(CommandError::BadInput(format!("there is no run of a workflow {:?}", plain(&self.run))))
            }
            id => Ok(id),
        }
    }
}

/// Shows a run in full.
pub async fn run(args: ShowArgs, context: &CommandContext) -> Result<(), CommandError> {
    show(&args.run.id(context).await?, context).await
}

/// Shows the run with this id.
pub async fn show(id: &str, context: &CommandContext) -> Result<(), CommandError> {
    let answer = context.client.get(&["workflow-runs", id]).send().await?;
    context.print(&answer, |output| Ok(view::run_full(output, &answer.read()?)))
}
