//! `tickwheel jobs get`.

use clap::Args;

use super::{Session, view};
use crate::failure::Failure;

/// Options of `jobs get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Id of the job
    id: String,
}

/// Shows a job in full.
pub async fn run(args: GetArgs, session: &Session) -> Result<(), Failure> {
    let answer = session.client.get(&["jobs", &args.id]).send().await?;
    session.print(&answer, |output| Ok(view::full(output, &answer.read()?)))
}
