//! `tickwheel jobs callbacks`.

use clap::Args;
use tickwheel_protocol::Callback;

use super::CommandContext;
use crate::commands::paging::Listing;
use crate::commands::{ids, pretty};
use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, now, relative};

/// Options of `jobs callbacks`.
#[derive(Debug, Args)]
pub struct CallbacksArgs {
    /// Id of the job
    id: String,
    /// Send the outcome of the job to its callback URL again
    #[arg(long)]
    resend: bool,
}

/// Lists the callbacks about a job, or sends the outcome again.
pub async fn run(args: CallbacksArgs, context: &CommandContext) -> Result<(), CommandError> {
    let id = ids::whole(ids::Kind::Job, &args.id, context).await?;
    if args.resend {
        let answer = context.client.post(&["jobs", &id, "callbacks"]).send().await?;
        context.output.note("the outcome will be sent again");
        if context.output.json {
            context.output.print(&pretty(&answer)?)?;
        }
        return Ok(());
    }
    let listing = Listing { path: &["jobs", &id, "callbacks"], filters: &[], part: None };
    listing.show(context, "no callbacks", |callbacks| table(&context.output, callbacks)).await
}

fn table(output: &Output, callbacks: &[Callback]) -> Table {
    let now = now();
    let columns = [
        column("EVENT"),
        column("STATUS"),
        column("TRY"),
        column("WHEN"),
        column("ANSWER").cut(20),
        column("URL").cut(20),
    ];
    let mut table = Table::new(output, &columns);
    for callback in callbacks {
        for tried in &callback.tries {
            table.row([
                (callback.event.clone(), Tone::Plain),
                (tried.outcome.clone(), tone(&tried.outcome)),
                (tried.number.to_string(), Tone::Plain),
                (relative(tried.at, now), Tone::Plain),
                (tried.answer.clone(), Tone::Plain),
                (callback.url.clone(), Tone::Plain),
            ]);
        }
        if let Some(next) = callback.next_try_at {
            table.row([
                (callback.event.clone(), Tone::Plain),
                (callback.status.clone(), Tone::Plain),
                ((callback.tries.len() + 1).to_string(), Tone::Plain),
                (relative(next, now), Tone::Plain),
                (String::new(), Tone::Plain),
                (callback.url.clone(), Tone::Plain),
            ]);
        }
    }
    table
}

fn tone(outcome: &str) -> Tone {
    Tone::of_status(if outcome == "delivered" { "completed" } else { "failed" })
}
