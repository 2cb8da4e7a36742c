//! `tickwheel halt` and `tickwheel resume`: the stop switch of the whole system.

use tickwheel_protocol::SystemStatus;

use super::CommandContext;
use crate::failure::CommandError;

/// Which way to turn it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Nothing is started any more.
    Halt,
    /// Everything goes on.
    Resume,
}

/// Turns the switch and says how things stand.
pub async fn run(switch: Switch, context: &CommandContext) -> Result<(), CommandError> {
    let verb = match switch {
        Switch::Halt => "halt",
        Switch::Resume => "resume",
    };
    let answer = context.client.post(&["admin", verb]).send().await?;
    context.print(&answer, |_| {
        let status: SystemStatus = answer.read()?;
        let switch = if status.halted {
            "halted: nothing new is started until `tickwheel resume`"
        } else {
            "running: due jobs are started"
        };
        Ok(format!("{switch}\n{} running, {} due and waiting", status.running, status.waiting))
    })
}
