//! `tickwheel queues list`.

use tickwheel_protocol::Queue;

use super::Session;
use crate::commands::paging::Listing;
use crate::failure::Failure;
use crate::output::{Output, Table, Tone};

/// Lists queues.
pub async fn run(session: &Session) -> Result<(), Failure> {
    let found = Listing { path: &["queues"], filters: &[], items_max: None }.fetch(session).await?;
    found.print(&session.output, "no queues yet", |queues| table(&session.output, queues))
}

fn table(output: &Output, queues: &[Queue]) -> String {
    let mut table = Table::new(output, &["QUEUE", "STATE", "WAITING", "RUNNING"]);
    for queue in queues {
        let (state, tone) = if queue.paused { ("paused", Tone::Held) } else { ("open", Tone::Plain) };
        table.row([
            (queue.name.clone(), Tone::Plain),
            (state.into(), tone),
            (queue.waiting.to_string(), Tone::Plain),
            (queue.running.to_string(), Tone::Plain),
        ]);
    }
    table.finish()
}
