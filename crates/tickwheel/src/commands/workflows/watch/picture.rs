//! A run drawn in lines: one per task, with a mark, a bar for a fan-out, and what it waits for. Pure.
//!
//! If a run has more tasks than fit on a terminal, the active ones are shown and the others are counted.

use std::collections::HashMap;

use tickwheel_protocol::workflow::{RunItems, RunTask, WorkflowRun};
use tickwheel_protocol::{Status, Time};

use super::view;
use crate::output::{Output, Tone, plain};

/// How many lines tasks get.
const TASKS_SHOWN_MAX: usize = 18;
const BAR_CHARS: u32 = 20;
const NAME_CHARS_MAX: usize = 30;

/// What is drawn.
pub struct Picture<'r> {
    run: &'r WorkflowRun,
    now: Time,
}

impl<'r> Picture<'r> {
    /// The run as it is.
    pub const fn of(run: &'r WorkflowRun, now: Time) -> Self {
        Self { run, now }
    }

    /// The lines. The first one names the run, the last one sums it up.
    pub fn lines(&self, output: &Output) -> Vec<String> {
        let run = self.run;
        let heading = format!("{}  version {}  run {}", plain(&run.workflow), run.version, run.id);
        let shown = shown(self.tasks());
        let width = shown.iter().map(|task| name(task).chars().count()).max().unwrap_or_default();
        let mut lines = vec![heading];
        lines.extend(shown.iter().map(|task| self.line(task, width, output)));
        lines.extend(self.rest(&shown));
        lines.push(Tone::of_status(run.status.as_str()).paint(output, &summary(run, self.now)));
        lines
    }

    fn tasks(&self) -> &'r [RunTask] {
        self.run.tasks.as_deref().unwrap_or_default()
    }

    fn line(&self, task: &RunTask, width: usize, output: &Output) -> String {
        let tone = Tone::of_status(task.status.as_str());
        let mark = tone.paint(output, &mark(task.status).to_string());
        let attempt = (task.attempt > 1).then(|| format!("attempt {}", task.attempt));
        let bar = task.items.map(|items| bar(&items)).zip(view::items(task));
        let bar = bar.map(|(bar, items)| format!("{} {items}", tone.paint(output, &bar)));
        let remark = Some(plain(&view::remark(task))).filter(|remark| !remark.is_empty());
        let remark = remark.map(|remark| remark_tone(task.status).paint(output, &remark));
        let parts = [bar, view::task_took(task, self.now), attempt, remark];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("  {mark} {:width$}  {}", name(task), parts.join("  ")).trim_end().to_owned()
    }

    /// The states of the tasks that are not shown.
    fn rest(&self, shown: &[&RunTask]) -> Option<String> {
        let more = self.tasks().len() - shown.len();
        let mut counts = Counts::of(self.tasks());
        for task in shown {
            counts.remove(task.status);
        }
        (more > 0).then(|| format!("  … {more} more: {}", counts.said()))
    }
}

fn remark_tone(status: Status) -> Tone {
    if status == Status::Failed { Tone::Bad } else { Tone::Quiet }
}

fn name(task: &RunTask) -> String {
    let name = plain(&task.name);
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

const fn mark(status: Status) -> char {
    match status {
        Status::Completed => '✓',
        Status::Failed => '✗',
        Status::Running | Status::Dispatched => '▶',
        Status::Scheduled => '▷',
        Status::Pending => '·',
        Status::Skipped => '○',
        Status::Cancelled => '⊘',
        Status::Paused => '‖',
        Status::Blocked => '!',
    }
}

fn bar(items: &RunItems) -> String {
    let ended = u64::from(items.completed + items.skipped + items.failed + items.cancelled);
    let full = (ended * u64::from(BAR_CHARS)).checked_div(u64::from(items.total)).unwrap_or(BAR_CHARS.into());
    let full = usize::try_from(full).unwrap_or_default();
    format!("{}{}", "━".repeat(full), "─".repeat(BAR_CHARS as usize - full))
}

/// The tasks that get a line, in the order of the definition: active ones first, then waiting ones, then ended ones.
fn shown(tasks: &[RunTask]) -> Vec<&RunTask> {
    let interest = |task: &RunTask| match task.status {
        Status::Running | Status::Dispatched | Status::Failed => 0,
        Status::Scheduled | Status::Paused | Status::Blocked => 1,
        Status::Pending => 2,
        Status::Completed | Status::Cancelled | Status::Skipped => 3,
    };
    let mut places: Vec<usize> = (0..tasks.len()).collect();
    places.sort_by_key(|place| interest(&tasks[*place]));
    places.truncate(TASKS_SHOWN_MAX);
    places.sort_unstable();
    places.into_iter().map(|place| &tasks[place]).collect()
}

/// A run in one line: its state, its tasks by state, and how long it has been running.
pub fn summary(run: &WorkflowRun, now: Time) -> String {
    let counts = Counts::of(run.tasks.as_deref().unwrap_or_default()).said();
    let stalled = if run.stalled > 0 { format!(", {} stalled", run.stalled) } else { String::new() };
    format!("{}: {counts}{stalled}  {}", run.status, view::took(run, now))
}

/// How many tasks are in which state.
struct Counts(HashMap<Status, usize>);

impl Counts {
    fn of(tasks: &[RunTask]) -> Self {
        let mut counts = HashMap::new();
        for task in tasks {
            *counts.entry(task.status).or_default() += 1;
        }
        Self(counts)
    }

    fn remove(&mut self, status: Status) {
        if let Some(count) = self.0.get_mut(&status) {
            *count -= 1;
        }
    }

    fn said(&self) -> String {
        let some = Status::ALL.iter().filter_map(|status| {
            let count = self.0.get(status).copied().filter(|count| *count > 0)?;
            Some(format!("{count} {status}"))
        });
        Some(some.collect::<Vec<_>>().join(", ")).filter(|said| !said.is_empty()).unwrap_or("no tasks".into())
    }
}

#[cfg(test)]
pub mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub fn task(name: &str, fields: Value) -> Value {
        let mut task = json!({"name": name, "status": "pending", "job_id": null, "type": name, "attempt": 0,
            "due_at": null, "started_at": null, "completed_at": null, "depends_on": [],
            "trigger_rule": "all_succeeded", "error": null});
        for (name, value) in fields.as_object().expect("fields") {
            task[name] = value.clone();
        }
        task
    }

    pub fn run(tasks: Vec<Value>) -> WorkflowRun {
        let run = json!({"id": "00000000-0000-0000-0000-000000000000", "workflow": "etl", "version": 3,
            "status": "running", "cancel_requested": false, "tenant": "default", "input": null,
            "created_at": "2026-11-15T10:00:00Z", "ended_at": null, "tasks_total": tasks.len(),
            "tasks_open": 1, "stalled": 0, "job_id": null, "tasks": tasks});
        serde_json::from_value(run).expect("a run")
    }

    fn drawn(run: &WorkflowRun, color: bool) -> Vec<String> {
        let now = "2026-11-15T10:00:05Z".parse().expect("a time");
        Picture::of(run, now).lines(&Output { json: false, color, width: None })
    }

    #[test]
    fn every_task_has_a_line_and_the_last_one_sums_up() {
        let items = json!({"total": 6, "released": 6, "completed": 3, "failed": 0, "cancelled": 0, "skipped": 0,
            "running": 2, "waiting": 1});
        let run = run(vec![
            task(
                "extract",
                json!({"status": "completed", "attempt": 1, "started_at": "2026-11-15T10:00:00Z",
                "completed_at": "2026-11-15T10:00:00.800Z"}),
            ),
            task("transform", json!({"status": "running", "items": items})),
            task("check", json!({"status": "running", "attempt": 2, "started_at": "2026-11-15T10:00:03Z"})),
            task("load", json!({"why_waiting": "task load waits for transform (running)"})),
            task(
                "old\u{1b}[2J",
                json!({"status": "failed", "attempt": 1, "error": {"code": "x", "message": "no"}}),
            ),
        ]);
        assert_eq!(
            drawn(&run, false),
            [
                "etl  version 3  run 00000000-0000-0000-0000-000000000000",
                "  ✓ extract    800ms",
                "  ▶ transform  ━━━━━━━━━━────────── 3/6, 2 running",
                "  ▶ check      2s  attempt 2",
                "  · load       waits for transform (running)",
                "  ✗ old\u{fffd}[2J    x: no",
                "running: 1 pending, 2 running, 1 completed, 1 failed  5s",
            ]
        );
        assert!(drawn(&run, true)[1].contains("\u{1b}[32m✓"));
    }

    #[test]
    fn of_many_tasks_those_are_shown_on_which_something_happens() {
        let mut tasks: Vec<Value> =
            (0..100).map(|n| task(&format!("t{n}"), json!({"status": "completed"}))).collect();
        tasks[50] = task("t50", json!({"status": "running"}));
        tasks[70] = task("t70", json!({}));
        let lines = drawn(&run(tasks), false);
        assert_eq!(lines.len(), TASKS_SHOWN_MAX + 3);
        assert!(
            lines.iter().any(|line| line.contains("▶ t50"))
                && lines.iter().any(|line| line.contains("· t70"))
        );
        assert_eq!(lines[TASKS_SHOWN_MAX + 1], "  … 82 more: 82 completed");
    }

    #[test]
    fn a_bar_is_full_when_everything_has_ended() {
        let items = |completed, total| RunItems { total, completed, ..RunItems::default() };
        assert_eq!(bar(&items(0, 3)), "─".repeat(20));
        assert_eq!(bar(&items(9_999, 10_000)), format!("{}─", "━".repeat(19)));
        assert_eq!(bar(&items(3, 3)), "━".repeat(20));
    }
}
