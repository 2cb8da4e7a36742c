//! `tickwheel schedules get`.

use clap::Args;

use super::{Session, view};
use crate::failure::Failure;

/// Options of `schedules get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Name or id of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
}

/// Shows a schedule in full.
pub async fn run(args: GetArgs, session: &Session) -> Result<(), Failure> {
    let answer = session.client.get(&["schedules", &args.schedule]).send().await?;
    session.print(&answer, |output| Ok(view::full(output, &answer.read()?)))
}
