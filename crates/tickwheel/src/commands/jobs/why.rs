//! `tickwheel jobs why`.

use clap::Args;
use tickwheel_protocol::Why;

use super::CommandContext;
use crate::commands::ids;
use crate::failure::CommandError;
use crate::output::{Tone, facts, moment, now};

/// Options of `jobs why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// Id of the job
    id: String,
}

/// Explains why the job is not running.
pub async fn run(args: WhyArgs, context: &CommandContext) -> Result<(), CommandError> {
    let id = ids::whole(ids::Kind::Job, &args.id, context).await?;
    let answer = context.client.get(&["jobs", &id, "why"]).send().await?;
    context.print(&answer, |output| {
        let why: Why = answer.read()?;
        let now = now();
        Ok(facts(
            output,
            &[
                ("status", Some(why.status.to_string()), Tone::of_status(why.status.as_str())),
                ("because", Some(why.sentence), Tone::Plain),
                ("waits for", why.waits_for, Tone::Plain),
                ("since", why.since.map(|at| moment(at, now)), Tone::Plain),
                ("expected start", why.expected_start.map(|at| moment(at, now)), Tone::Plain),
                ("code", Some(why.code), Tone::Quiet),
            ],
        ))
    })
}
