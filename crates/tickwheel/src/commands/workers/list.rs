//! `tickwheel workers list`.

use tickwheel_protocol::{Worker, WorkerState};

use super::{CommandContext, executors};
use crate::commands::paging::Listing;
use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, now, relative};

/// Lists workers.
pub async fn run(context: &CommandContext) -> Result<(), CommandError> {
    let listing = Listing { path: &["workers"], filters: &[], part: None };
    let nothing = "no workers are connected";
    listing.show(context, nothing, |workers| table(&context.output, workers)).await
}

fn table(output: &Output, workers: &[Worker]) -> Table {
    let columns = [
        column("ID").id(),
        column("NAME").cut(12),
        column("STATE"),
        column("RUNNING"),
        column("SEEN").spare(2),
        column("TYPES").cut(12).spare(3),
        column("QUEUES").cut(10).spare(4),
        column("LIBRARY").spare(5),
    ];
    let (mut table, now) = (Table::new(output, &columns), now());
    for worker in workers {
        let tone = if worker.state == WorkerState::Draining { Tone::Held } else { Tone::Plain };
        table.row([
            (worker.id.clone(), Tone::Plain),
            (worker.name.clone(), Tone::Plain),
            (worker.state.to_string(), tone),
            (format!("{}/{}", worker.running, worker.capacity), Tone::Plain),
            (relative(worker.last_seen, now), Tone::Plain),
            (types(worker), Tone::Plain),
            (worker.queues.join(", "), Tone::Plain),
            (worker.library.clone().unwrap_or_default(), Tone::Plain),
        ]);
    }
    table
}

/// The types that it has handlers for, or the kinds of targets that it runs.
fn types(worker: &Worker) -> String {
    if worker.types.is_empty() { format!("({})", executors(worker)) } else { worker.types.join(", ") }
}
