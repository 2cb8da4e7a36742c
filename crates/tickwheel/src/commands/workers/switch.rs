//! `tickwheel workers drain|resume`.

use clap::Args;
use tickwheel_protocol::{WorkerDetails, WorkerState};

use super::CommandContext;
use crate::commands::ids;
use crate::failure::CommandError;
use crate::output::plain;

/// The worker to act on.
#[derive(Debug, Args)]
pub struct WorkerName {
    /// Id of the worker
    id: String,
}

impl WorkerName {
    /// Its complete id.
    pub async fn whole(&self, context: &CommandContext) -> Result<String, CommandError> {
        ids::whole(ids::Kind::Worker, &self.id, context).await
    }
}

/// Asks the worker to take nothing new, or to take jobs again.
pub async fn turn(verb: &str, worker: WorkerName, context: &CommandContext) -> Result<(), CommandError> {
    let id = worker.whole(context).await?;
    let answer = context.client.post(&["workers", &id, verb]).send().await?;
    context.print(&answer, |_| {
        let WorkerDetails { worker, .. } = answer.read()?;
        let state = match worker.state {
            WorkerState::Draining => "is draining: it takes no new jobs",
            WorkerState::Active => "takes jobs",
        };
        Ok(format!("worker {} ({}) {state}; {} running", worker.id, plain(&worker.name), worker.running))
    })
}
