//! `tickwheel queues pause|resume`.

use clap::Args;
use tickwheel_protocol::Queue;

use super::CommandContext;
use crate::commands::consent;
use crate::commands::paging::Listing;
use crate::failure::CommandError;
use crate::output::plain;

/// The queue to act on.
#[derive(Debug, Args)]
pub struct QueueName {
    /// Name of the queue
    name: String,
}

/// Options of `queues pause`.
#[derive(Debug, Args)]
#[command(
    after_help = "A queue can be paused before its first job. The command then asks whether the name is right.\n\n\
    Example: tickwheel queues pause mail"
)]
pub struct PauseArgs {
    #[command(flatten)]
    queue: QueueName,
    /// Do not ask for confirmation, even if the queue is unknown
    #[arg(long, short = 'y')]
    yes: bool,
}

/// Pauses a queue.
pub async fn pause(args: PauseArgs, context: &CommandContext) -> Result<(), CommandError> {
    let PauseArgs { queue, yes } = args;
    if !yes {
        let known: Vec<Queue> = Listing { path: &["queues"], filters: &[], part: None }.read(context).await?;
        if !known.iter().any(|known| known.name == queue.name) {
            consent::require(&unknown(&queue.name, &known), yes, context)?;
        }
    }
    turn("pause", &queue, context).await
}

/// Resumes a queue.
pub async fn resume(queue: QueueName, context: &CommandContext) -> Result<(), CommandError> {
    turn("resume", &queue, context).await
}

fn unknown(name: &str, known: &[Queue]) -> String {
    const NAMED_MAX: usize = 10;
    let mut names: Vec<String> = known.iter().take(NAMED_MAX).map(|queue| plain(&queue.name)).collect();
    if known.len() > NAMED_MAX {
        names.push("…".into());
    }
    let others = if names.is_empty() { String::new() } else { format!(" (there are {})", names.join(", ")) };
    format!("unknown queue {:?}{others}. Pause it anyway?", plain(name))
}

async fn turn(verb: &str, queue: &QueueName, context: &CommandContext) -> Result<(), CommandError> {
    let answer = context.client.post(&["queues", &queue.name, verb]).send().await?;
    context.print(&answer, |_| {
        let queue: Queue = answer.read()?;
        let state = if queue.paused { "is paused" } else { "is open" };
        Ok(format!(
            "queue {} {state}; {} waiting, {} running",
            plain(&queue.name),
            super::waiting(&queue),
            queue.running
        ))
    })
}
