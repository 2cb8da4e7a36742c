//! `tickwheel queues list`.

use tickwheel_protocol::Queue;

use super::Session;
use crate::commands::paging::Listing;
use crate::failure::Failure;
use crate::output::{Output, Table, Tone, column};

/// Lists queues.
pub async fn run(session: &Session) -> Result<(), Failure> {
    let listing = Listing { path: &["queues"], filters: &[], part: None };
    let nothing = "no queues yet; the first job of a queue makes it known";
    listing.show(session, nothing, |queues| table(&session.output, queues)).await
}

fn table(output: &Output, queues: &[Queue]) -> Table {
    let columns = [column("QUEUE").cut(20), column("STATE"), column("WAITING"), column("RUNNING")];
    let mut table = Table::new(output, &columns);
    for queue in queues {
        let (state, tone) = if queue.paused { ("paused", Tone::Held) } else { ("open", Tone::Plain) };
        table.row([
            (queue.name.clone(), Tone::Plain),
            (state.into(), tone),
            (queue.waiting.to_string(), Tone::Plain),
            (queue.running.to_string(), Tone::Plain),
        ]);
    }
    table
}
