//! `tickwheel queues list`.

use tickwheel_protocol::Queue;

use super::CommandContext;
use crate::commands::paging::Listing;
use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column};

/// Lists queues.
pub async fn run(context: &CommandContext) -> Result<(), CommandError> {
    let listing = Listing { path: &["queues"], filters: &[], part: None };
    let nothing = "no queues yet; the first job of a queue makes it known";
    listing.show(context, nothing, |queues| table(&context.output, queues)).await
}

fn table(output: &Output, queues: &[Queue]) -> Table {
    let columns = [column("QUEUE").cut(20), column("STATE"), column("WAITING"), column("RUNNING")];
    let mut table = Table::new(output, &columns);
    for queue in queues {
        let (state, tone) = if queue.paused { ("paused", Tone::Held) } else { ("open", Tone::Plain) };
        table.row([
            (queue.name.clone(), Tone::Plain),
            (state.into(), tone),
            (super::waiting(queue), Tone::Plain),
            (queue.running.to_string(), Tone::Plain),
        ]);
    }
    table
}
