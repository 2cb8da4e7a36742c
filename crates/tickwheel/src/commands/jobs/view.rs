//! How a job is printed: in a line, in a table, in full.

use std::collections::HashMap;

use tickwheel_protocol::{Job, JobError, Status, Target, Time};
use uuid::Uuid;

use crate::output::{Output, Table, Tone, column, facts, moment, now, plain, relative};

/// How many parents are listed one by one. If there are more, only their number is shown.
const PARENTS_SHOWN_MAX: usize = 10;

/// A job in one line.
pub fn line(job: &Job) -> String {
    let when = when(job, now());
    format!(
        "{}  {}  {}{}",
        job.id,
        plain(&job.job_type),
        status(job),
        if when.is_empty() { when } else { format!("  {when}") }
    )
}

/// Jobs in a table.
pub fn table(output: &Output, jobs: &[Job]) -> Table {
    let now = now();
    let columns = [
        column("ID").id(),
        column("TYPE").cut(12),
        column("TASK").cut(12).optional(),
        column("STATUS"),
        column("QUEUE").cut(8).spare(5),
        column("PRIORITY").spare(3),
        column("ATTEMPT").spare(4),
        column("RETRIES").spare(2),
        column("WHEN"),
        column("CREATED").spare(1),
    ];
    let mut table = Table::new(output, &columns);
    for job in jobs {
        table.row([
            (job.id.to_string(), Tone::Plain),
            (job.job_type.to_string(), Tone::Plain),
            (job.task.clone().unwrap_or_default(), Tone::Plain),
            (job.status.to_string(), Tone::of_status(job.status.as_str())),
            (job.queue.to_string(), Tone::Plain),
            (job.priority.to_string(), Tone::Plain),
            (job.attempt.to_string(), Tone::Plain),
            (retries(job), Tone::Plain),
            (when(job, now), Tone::Plain),
            (relative(job.created_at, now), Tone::Quiet),
        ]);
    }
    table
}

/// The most relevant time of a job: when it will start, when it started, or when it ended.
fn when(job: &Job, now: Time) -> String {
    let moment = match job.status {
        Status::Running => job.started_at,
        status if status.is_terminal() => job.completed_at,
        _ => job.next_run_at,
    };
    moment.map_or_else(String::new, |at| relative(at, now))
}

fn status(job: &Job) -> String {
    match job.cancel_requested && !job.status.is_terminal() {
        true => format!("{} (asked to stop)", job.status),
        false => job.status.to_string(),
    }
}

/// How far the running attempt has come, as it says.
fn progress(job: &Job, now: Time) -> Option<String> {
    let at = job.progress_at?;
    let percent = job.progress.map(|percent| format!("{percent} %"));
    let said = percent.into_iter().chain(job.progress_message.as_deref().map(plain)).collect::<Vec<_>>();
    Some(format!("{} ({})", said.join("  "), relative(at, now)))
}

/// Not the same as attempts: a retry by hand restores all retries.
fn retries(job: &Job) -> String {
    format!("{}/{}", job.retries, job.max_retries)
}

/// The jobs it depends on, each once, as many as are shown.
pub fn shown_parents(job: &Job) -> Vec<Uuid> {
    let mut parents = distinct_parents(job);
    parents.truncate(PARENTS_SHOWN_MAX);
    parents
}

fn distinct_parents(job: &Job) -> Vec<Uuid> {
    let mut parents = Vec::new();
    for id in &job.depends_on {
        if !parents.contains(id) {
            parents.push(*id);
        }
    }
    parents
}

fn depends_on(job: &Job, states: &HashMap<Uuid, Status>) -> Option<String> {
    let shown: Vec<String> = shown_parents(job)
        .iter()
        .map(|id| states.get(id).map_or_else(|| id.to_string(), |status| format!("{id} ({status})")))
        .collect();
    match distinct_parents(job).len() - shown.len() {
        0 => Some(shown.join(", ")).filter(|shown| !shown.is_empty()),
        more => Some(format!("{} and {more} more", shown.join(", "))),
    }
}

/// What is known about a job beyond the server's answer.
#[derive(Default)]
pub struct Context {
    /// The states of the jobs it depends on, as far as they are shown and known.
    pub parents: HashMap<Uuid, Status>,
    /// The name of its schedule.
    pub schedule: Option<String>,
    /// The name of the workflow of its run.
    pub workflow: Option<String>,
}

/// Everything about a job.
pub fn full(output: &Output, job: &Job, context: &Context) -> String {
    let now = now();
    let plainly = |name, value: Option<String>| (name, value, Tone::Plain);
    let time = |name, at: Option<Time>| (name, at.map(|at| moment(at, now)), Tone::Plain);
    facts(
        output,
        &[
            plainly("id", Some(job.id.to_string())),
            plainly("type", Some(job.job_type.to_string())),
            ("status", Some(status(job)), Tone::of_status(job.status.as_str())),
            plainly("progress", progress(job, now)),
            ("error", job.error.as_ref().map(error), Tone::Bad),
            plainly("result", job.result.iter().flatten().next().map(|result| result.get().to_owned())),
            plainly("schedule", named(context.schedule.as_ref(), job.schedule_id.as_ref())),
            plainly("workflow run", named(context.workflow.as_ref(), job.workflow_run_id.as_ref())),
            plainly("task", job.task.as_deref().map(task)),
            plainly("queue", Some(job.queue.to_string())),
            plainly("priority", Some(job.priority.to_string())),
            plainly(
                "attempt",
                Some(format!("{} ({} of {} retries used)", job.attempt, job.retries, job.max_retries)),
            ),
            time("created", Some(job.created_at)),
            time("execute at", Some(job.execute_at)),
            time("next run", job.next_run_at),
            plainly("depends on", depends_on(job, &context.parents)),
            time("started", job.started_at),
            time("deadline", job.deadline),
            time("ended", job.completed_at),
            plainly("target", Some(target(&job.target))),
            plainly("timeout", Some(job.timeout.to_string())),
            plainly("delivery", Some(job.delivery.to_string())),
            plainly(
                "payload",
                job.payload
                    .as_ref()
                    .map(|payload| payload.get().to_owned())
                    .filter(|payload| payload != "null"),
            ),
            plainly("metadata", Some(job.metadata.get().to_owned()).filter(|metadata| metadata != "{}")),
            plainly("tags", Some(job.tags.join(", ")).filter(|tags| !tags.is_empty())),
            plainly("concurrency key", job.concurrency_key.clone()),
            plainly("callback", job.callback_url.clone()),
            plainly("created by", job.created_by.clone()),
        ],
    )
}

fn named(name: Option<&String>, id: Option<&String>) -> Option<String> {
    id.map(|id| name.map_or_else(|| id.clone(), |name| format!("{name} ({id})")))
}

/// `load[3].check` is a task in the fourth iteration of a fan-out.
fn task(path: &str) -> String {
    let items: Vec<&str> = path.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0)).collect();
    match items.as_slice() {
        [] => path.to_owned(),
        [one] => format!("{path} (item {one})"),
        several => format!("{path} (items {})", several.join(", ")),
    }
}

/// An error in one line.
pub fn error(error: &JobError) -> String {
    format!("{}: {}", error.code, error.message)
}

fn target(target: &Target) -> String {
    match target {
        Target::Http(http) => format!("{} {}", http.method, http.url),
        Target::Workflow(workflow) => format!("workflow {}", workflow.name),
        Target::Worker(_) => "a worker".into(),
        Target::FanOut(_) => "its items".into(),
        Target::Process(process) => plain(&process.command.join(" ")),
        Target::Message(_) => "a message".into(),
    }
}
