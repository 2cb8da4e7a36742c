//! How workflows and runs are printed: in a line, in a table, in full.

use tickwheel_protocol::workflow::{
    RunStatus, RunTask, TriggerRule, Workflow, WorkflowRun, WorkflowSchedule, WorkflowSummary, WorkflowTask,
};
use tickwheel_protocol::{JobError, Status, Target, Time};

use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, facts, length, moment, now, plain, relative};

/// Workflows in a table.
pub fn table(output: &Output, workflows: &[WorkflowSummary]) -> Table {
    let now = now();
    let columns = [
        column("NAME").cut(16),
        column("VERSION"),
        column("TASKS"),
        column("RUNS").cut(10).optional(),
        column("STORED").spare(1),
        column("DESCRIPTION").cut(16).optional(),
    ];
    let mut table = Table::new(output, &columns);
    for workflow in workflows {
        let runs = workflow.schedule.as_ref().map(rule).unwrap_or_default();
        table.row([
            (workflow.name.clone(), Tone::Plain),
            (workflow.version.to_string(), Tone::Plain),
            (workflow.tasks_total.to_string(), Tone::Plain),
            (runs, Tone::Plain),
            (relative(workflow.created_at, now), Tone::Quiet),
            (workflow.description.clone().unwrap_or_default(), Tone::Quiet),
        ]);
    }
    table
}

/// When it runs by itself.
fn rule(schedule: &WorkflowSchedule) -> String {
    let every = schedule.every.map(|every| format!("every {every}"));
    let rule = schedule.cron.clone().or(every).unwrap_or_default();
    match &schedule.timezone {
        Some(zone) => format!("{rule} ({zone})"),
        None => rule,
    }
}

/// Everything about a version of a workflow.
pub fn full(output: &Output, workflow: &Workflow) -> String {
    let definition = &workflow.definition;
    let plainly = |name, value: Option<String>| (name, value, Tone::Plain);
    let told: Vec<String> = definition.notify.iter().map(|notify| notify.url.clone()).collect();
    let about = facts(
        output,
        &[
            plainly("name", Some(workflow.name.clone())),
            plainly("version", Some(workflow.version.to_string())),
            plainly("about", workflow.description.clone()),
            plainly("stored", Some(moment(workflow.created_at, now()))),
            plainly("runs", definition.schedule.as_ref().map(rule)),
            plainly("on failure", definition.on_failure.map(|policy| policy.to_string())),
            plainly("stall after", definition.stall_after.map(|span| span.to_string())),
            plainly("notifies", Some(told.join(", ")).filter(|told| !told.is_empty())),
        ],
    );
    let columns = [
        column("TASK").cut(16),
        column("DEPENDS ON").cut(14).optional(),
        column("WHEN").cut(12).optional(),
        column("DOES").cut(20),
    ];
    let mut table = Table::new(output, &columns);
    for (tasks, place) in
        [(&definition.before, "before: "), (&definition.tasks, ""), (&definition.after, "after: ")]
    {
        add_tasks(&mut table, tasks, place);
    }
    format!("{about}\n\n{}", table.finish())
}

fn add_tasks(table: &mut Table, tasks: &[WorkflowTask], before: &str) {
    for task in tasks {
        table.row([
            (format!("{before}{}", task.name), Tone::Plain),
            (depends_on(task), Tone::Plain),
            (task.when.clone().unwrap_or_default(), Tone::Plain),
            (work(task), Tone::Quiet),
        ]);
        if let Some(tasks) = &task.tasks {
            add_tasks(table, tasks, &format!("{before}{}[].", task.name));
        }
    }
}

fn depends_on(task: &WorkflowTask) -> String {
    let parents = task.depends_on.join(", ");
    match task.trigger_rule {
        None | Some(TriggerRule::AllSucceeded) => parents,
        Some(rule) => format!("{parents} ({rule})"),
    }
}

fn work(task: &WorkflowTask) -> String {
    let target = task.job.as_ref().map(|job| match &job.target {
        Some(Target::Http(http)) => format!("{} {}", http.method, http.url),
        Some(Target::Workflow(workflow)) => format!("workflow {}", workflow.name),
        Some(Target::Worker(_)) | None => "a worker".into(),
        Some(Target::FanOut(_)) => "its items".into(),
        Some(Target::Process(process)) => plain(&process.command.join(" ")),
        Some(Target::Message(_)) => "a message".into(),
    });
    let each = task.for_each.as_ref().map(|over| match task.concurrency {
        Some(at_once) => format!("for each of {}, {at_once} at a time", over.0),
        None => format!("for each of {}", over.0),
    });
    [each, target].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// A run in one line.
pub fn run_line(run: &WorkflowRun) -> String {
    format!("{}  {}  {}  {}", run.id, plain(&run.workflow), run_status(run), done(run))
}

/// Runs in a table.
pub fn run_table(output: &Output, runs: &[WorkflowRun]) -> Table {
    let now = now();
    let columns = [
        column("RUN").id(),
        column("WORKFLOW").cut(12),
        column("VERSION").spare(1),
        column("STATUS"),
        column("ENDED"),
        column("STARTED"),
        column("TOOK").spare(2),
    ];
    let mut table = Table::new(output, &columns);
    for run in runs {
        table.row([
            (run.id.to_string(), Tone::Plain),
            (run.workflow.clone(), Tone::Plain),
            (run.version.to_string(), Tone::Plain),
            (run_status(run), Tone::of_status(run.status.as_str())),
            (format!("{} of {}", ended(run), run.tasks_total), Tone::Plain),
            (relative(run.created_at, now), Tone::Quiet),
            (took(run, now), Tone::Plain),
        ]);
    }
    table
}

fn run_status(run: &WorkflowRun) -> String {
    match (run.status, run.stalled) {
        (RunStatus::Running, _) if run.cancel_requested => "running (asked to stop)".into(),
        (RunStatus::Running, 1..) => format!("running ({} stalled)", run.stalled),
        (status, _) => status.to_string(),
    }
}

/// With any outcome: only a run with its tasks tells how many of them failed.
const fn ended(run: &WorkflowRun) -> u32 {
    run.tasks_total.saturating_sub(run.tasks_open)
}

/// The progress. A failed task has ended, but is not done.
fn done(run: &WorkflowRun) -> String {
    let Some(tasks) = &run.tasks else { return format!("{} of {} ended", ended(run), run.tasks_total) };
    let count = |status: Status| tasks.iter().filter(|task| task.status == status).count();
    let mut text = format!("{} of {} completed", count(Status::Completed), tasks.len());
    for status in [Status::Failed, Status::Cancelled, Status::Blocked, Status::Skipped] {
        match count(status) {
            0 => {}
            some => text.push_str(&format!(", {some} {status}")),
        }
    }
    text
}

/// How long it took, or has been running.
pub fn took(run: &WorkflowRun, now: Time) -> String {
    span(run.created_at, run.ended_at.unwrap_or(now))
}

fn span(from: Time, to: Time) -> String {
    length((to.as_millis() - from.as_millis()).max(0))
}

/// How long a task took, or has been running. Empty if it never ran.
pub fn task_took(task: &RunTask, now: Time) -> Option<String> {
    let end = task.completed_at.or((task.status == Status::Running).then_some(now))?;
    task.started_at.map(|started| span(started, end))
}

/// Everything about a run, with its tasks.
pub fn run_full(output: &Output, run: &WorkflowRun) -> String {
    let now = now();
    let plainly = |name, value: Option<String>| (name, value, Tone::Plain);
    let about = facts(
        output,
        &[
            plainly("run", Some(run.id.to_string())),
            plainly("workflow", Some(format!("{}, version {}", run.workflow, run.version))),
            ("status", Some(run_status(run)), Tone::of_status(run.status.as_str())),
            plainly("input", Some(run.input.get().to_owned()).filter(|input| input != "null")),
            plainly("started", Some(moment(run.created_at, now))),
            plainly("paused", run.paused_at.map(|at| moment(at, now))),
            plainly("ended", run.ended_at.map(|at| moment(at, now))),
            plainly("took", Some(took(run, now))),
            plainly("tasks", Some(done(run))),
            plainly("for job", run.job_id.map(|id| id.to_string())),
        ],
    );
    format!("{about}\n\n{}", task_table(output, run.tasks.as_deref().unwrap_or_default(), now))
}

fn task_table(output: &Output, tasks: &[RunTask], now: Time) -> String {
    let columns = [
        column("TASK").cut(16),
        column("STATUS"),
        column("ATTEMPT").spare(2),
        column("STARTED").spare(1),
        column("TOOK"),
        column("ITEMS").cut(12).optional(),
        column("REMARK").cut(20).optional(),
    ];
    let mut table = Table::new(output, &columns);
    for task in tasks {
        let started = task.started_at.map(|at| relative(at, now));
        table.row([
            (task.name.clone(), Tone::Plain),
            (task.status.to_string(), Tone::of_status(task.status.as_str())),
            (Some(task.attempt).filter(|n| *n > 0).map(|n| n.to_string()).unwrap_or_default(), Tone::Plain),
            (started.unwrap_or_default(), Tone::Quiet),
            (task_took(task, now).unwrap_or_default(), Tone::Plain),
            (items(task).unwrap_or_default(), Tone::Plain),
            (remark(task), if task.status == Status::Failed { Tone::Bad } else { Tone::Quiet }),
        ]);
    }
    table.finish()
}

/// How many items of a fan-out are done, and the states of the others where that says something.
pub fn items(task: &RunTask) -> Option<String> {
    let items = task.items?;
    let mut text = format!("{}/{}", items.completed + items.skipped, items.total);
    for (count, word) in
        [(items.running, "running"), (items.failed, "failed"), (items.cancelled, "cancelled")]
    {
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    Some(text)
}

/// Why it is in this state.
pub fn remark(task: &RunTask) -> String {
    let error = |error: &JobError| match task.status {
        // Of one that failed the code can be looked up.
        Status::Skipped | Status::Cancelled => error.message.clone(),
        _ => format!("{}: {}", error.code, error.message),
    };
    // Which task it is about stands beside it.
    let waiting = |why: &String| {
        let name = format!("task {} ", task.name);
        why.strip_prefix(&name).unwrap_or(why).to_owned()
    };
    let why = task.error.as_ref().map(error).or_else(|| task.why_waiting.as_ref().map(waiting));
    why.filter(|_| task.status != Status::Completed).unwrap_or_default()
}

/// Fails unless the run completed.
pub fn verdict(run: &WorkflowRun) -> Result<(), CommandError> {
    let how = match run.status {
        RunStatus::Completed => return Ok(()),
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "was cancelled",
        RunStatus::Running | RunStatus::Paused => "has not ended",
    };
    Err(CommandError::NotGood(format!("run {} {how}", run.id)))
}
