//! `tickwheel schedules pause|resume|delete`: one call a schedule.

use clap::Args;
use tickwheel_protocol::PauseSchedule;

use super::{Session, view};
use crate::client::Call;
use crate::failure::Failure;
use crate::output::plain;

/// The schedules to act on.
#[derive(Debug, Args)]
pub struct Names {
    /// Names or ids of the schedules
    #[arg(value_name = "SCHEDULE", required = true)]
    schedules: Vec<String>,
}

/// Options of `schedules pause`.
#[derive(Debug, Args)]
#[command(after_help = "Firings that come meanwhile are recorded as skipped and not made up for.\n\n\
    Example: tickwheel schedules pause daily-report --note 'the warehouse is being moved'")]
pub struct PauseArgs {
    #[command(flatten)]
    names: Names,
    /// Why, for whoever finds it paused
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// Pauses schedules.
pub async fn pause(args: PauseArgs, session: &Session) -> Result<(), Failure> {
    let pause = PauseSchedule { note: args.note };
    for name in &args.names.schedules {
        change(session.client.post(&["schedules", name, "pause"]).json(&pause)?, session).await?;
    }
    Ok(())
}

/// Resumes schedules.
pub async fn resume(names: Names, session: &Session) -> Result<(), Failure> {
    for name in &names.schedules {
        change(session.client.post(&["schedules", name, "resume"]), session).await?;
    }
    Ok(())
}

/// Removes schedules.
pub async fn delete(names: Names, session: &Session) -> Result<(), Failure> {
    for name in &names.schedules {
        let answer = session.client.delete(&["schedules", name]).send().await?;
        session.print(&answer, |_| Ok(format!("{}  deleted", plain(name))))?;
    }
    Ok(())
}

async fn change(call: Call<'_>, session: &Session) -> Result<(), Failure> {
    let answer = call.send().await?;
    session.print(&answer, |_| Ok(view::line(&answer.read()?)))
}
