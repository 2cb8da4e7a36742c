//! `tickwheel workers get`.

use tickwheel_protocol::{Label, WorkerDetails};

use super::switch::WorkerName;
use super::{CommandContext, executors};
use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, facts, moment, now, relative};

/// Shows a worker and the jobs that it executes.
pub async fn run(worker: WorkerName, context: &CommandContext) -> Result<(), CommandError> {
    let id = worker.whole(context).await?;
    let answer = context.client.get(&["workers", &id]).send().await?;
    context.print(&answer, |output| Ok(shown(output, &answer.read()?)))
}

fn shown(output: &Output, details: &WorkerDetails) -> String {
    let (worker, now) = (&details.worker, now());
    let plainly = |name, value: Option<String>| (name, value, Tone::Plain);
    let labels: Vec<String> =
        worker.labels.iter().map(|(name, label)| format!("{name}={}", said(label))).collect();
    let facts = facts(
        output,
        &[
            plainly("id", Some(worker.id.clone())),
            plainly("name", Some(worker.name.clone())),
            plainly("state", Some(worker.state.to_string())),
            plainly("running", Some(format!("{} of {}", worker.running, worker.capacity))),
            plainly("stuck", Some(worker.stuck).filter(|stuck| *stuck > 0).map(|stuck| stuck.to_string())),
            plainly("queues", Some(worker.queues.join(", "))),
            plainly("types", Some(worker.types.join(", ")).filter(|types| !types.is_empty())),
            plainly("executors", Some(executors(worker)).filter(|kinds| !kinds.is_empty())),
            plainly("labels", Some(labels.join(", ")).filter(|labels| !labels.is_empty())),
            plainly("registered", Some(moment(worker.registered_at, now))),
            plainly("last seen", Some(moment(worker.last_seen, now))),
            plainly("last poll", worker.last_poll.map(|at| moment(at, now))),
            plainly("lease", Some(format!("{}, ends {}", worker.lease, relative(worker.lease_ends_at, now)))),
            plainly("library", worker.library.clone()),
            plainly("host", worker.host.clone()),
            plainly("pid", worker.pid.map(|pid| pid.to_string())),
        ],
    );
    if details.attempts.is_empty() {
        return facts;
    }
    let columns = [
        column("JOB").id(),
        column("TYPE").cut(16),
        column("ATTEMPT"),
        column("STARTED"),
        column("DEADLINE"),
    ];
    let mut table = Table::new(output, &columns);
    for attempt in &details.attempts {
        let time = |at: Option<_>| at.map_or_else(String::new, |at| relative(at, now));
        table.row([
            (attempt.job_id.clone(), Tone::Plain),
            (attempt.job_type.clone(), Tone::Plain),
            (attempt.attempt.to_string(), Tone::Plain),
            (time(attempt.started_at), Tone::Plain),
            (time(attempt.deadline), Tone::Plain),
        ]);
    }
    format!("{facts}\n\n{}", table.finish())
}

fn said(label: &Label) -> String {
    match label {
        Label::Flag(flag) => flag.to_string(),
        Label::Number(number) => number.to_string(),
        Label::Text(text) => text.clone(),
    }
}
