//! `tickwheel queues pause|resume`.

use clap::Args;
use tickwheel_protocol::Queue;

use super::Session;
use crate::failure::Failure;
use crate::output::plain;

/// Which queue.
#[derive(Debug, Args)]
pub struct QueueName {
    /// Name of the queue
    name: String,
}

/// Does `verb` to the queue.
pub async fn run(verb: &str, queue: &QueueName, session: &Session) -> Result<(), Failure> {
    let answer = session.client.post(&["queues", &queue.name, verb]).send().await?;
    session.print(&answer, |_| {
        let queue: Queue = answer.read()?;
        let state = if queue.paused { "is paused" } else { "is open" };
        Ok(format!(
            "queue {} {state}; {} waiting, {} running",
            plain(&queue.name),
            queue.waiting,
            queue.running
        ))
    })
}
