//! `tickwheel dead-letters get`.

use clap::Args;
use tickwheel_protocol::DeadLetter;

use super::CommandContext;
use crate::commands::ids;
use crate::failure::CommandError;
use crate::output::{Tone, facts, moment, now};

/// Options of `dead-letters get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Id of the job
    id: String,
}

/// Shows a dead letter in full.
pub async fn run(args: GetArgs, context: &CommandContext) -> Result<(), CommandError> {
    let id = ids::whole(ids::Kind::DeadLetter, &args.id, context).await?;
    let answer = context.client.get(&["dead-letters", &id]).send().await?;
    context.print(&answer, |output| {
        let letter: DeadLetter = answer.read()?;
        let plainly = |name, value| (name, Some(value), Tone::Plain);
        let error = letter.error.map(|error| format!("{}: {}", error.code, error.message));
        Ok(facts(
            output,
            &[
                plainly("job", letter.job_id.to_string()),
                plainly("type", letter.job_type),
                ("reason", Some(letter.reason), Tone::Bad),
                ("error", error, Tone::Bad),
                plainly("failed", moment(letter.failed_at, now())),
                plainly("attempts", letter.attempts.to_string()),
                plainly("queue", letter.queue),
                plainly("priority", letter.priority.to_string()),
                plainly("payload", letter.payload.get().to_owned()),
                ("tags", Some(letter.tags.join(", ")).filter(|tags| !tags.is_empty()), Tone::Plain),
            ],
        ))
    })
}
