//! `tickwheel halt` and `tickwheel resume`: the stop switch of the whole system.

use tickwheel_protocol::SystemStatus;

use super::CommandContext;
use crate::failure::CommandError;

/// The direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Start no more jobs.
    Halt,
    /// Start jobs again.
    Resume,
}

/// Turns the switch and prints the state.
pub async fn run(switch: Switch, context: &CommandContext) -> Result<(), CommandError> {
    let verb = match switch {
        Switch::Halt => "halt",
        Switch::Resume => "resume",
    };
    let answer = context.client.post(&["admin", verb]).send().await?;
    context.print(&answer, |_| {
        let status: SystemStatus = answer.read()?;
        let switch = if status.halted {
            "halted: no job starts until `tickwheel resume`"
        } else {
            "running: due jobs start"
        };
        Ok(format!("{switch}\n{} running, {} due and waiting", status.running, status.waiting))
    })
}
