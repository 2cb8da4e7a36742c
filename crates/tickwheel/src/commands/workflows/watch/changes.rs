//! The differences between two reads of a run, one line each. Pure.

use std::collections::HashMap;

use tickwheel_protocol::workflow::{RunTask, WorkflowRun};
use tickwheel_protocol::{Status, Time};

use super::view;
use crate::output::plain;

/// The changes since `before`, as seen at `now`. For a run that is seen for the first time: everything that has begun.
pub fn between(before: Option<&WorkflowRun>, after: &WorkflowRun, now: Time) -> Vec<String> {
    let mut lines = Vec::new();
    if before.is_none() {
        let workflow = plain(&after.workflow);
        lines
            .push(format!("{}  run {} of {workflow}, version {}", after.created_at, after.id, after.version));
    }
    let known: HashMap<&str, &RunTask> = tasks(before).map(|task| (task.name.as_str(), task)).collect();
    let mut changed: Vec<&RunTask> = tasks(Some(after))
        .filter(|task| match known.get(task.name.as_str()) {
            Some(known) => is_news(known, task),
            None => has_begun(task),
        })
        .collect();
    let moment = |task: &RunTask| moment(task, known.get(task.name.as_str()).copied(), now);
    changed.sort_by_key(|task| moment(task));
    lines.extend(changed.into_iter().map(|task| line(task, moment(task))));
    lines
}

fn tasks(run: Option<&WorkflowRun>) -> impl Iterator<Item = &RunTask> {
    run.and_then(|run| run.tasks.as_deref()).unwrap_or_default().iter()
}

fn is_news(before: &RunTask, after: &RunTask) -> bool {
    let told =
        |task: &RunTask| (task.status, task.attempt, task.items.map(|items| items.total - items.waiting));
    told(before) != told(after) && has_begun(after)
}

/// Whether it does more than wait.
fn has_begun(task: &RunTask) -> bool {
    !matches!(task.status, Status::Pending) || task.items.is_some()
}

/// When the task reached this state. For the items of a fan-out nobody knows, so it is when the change was seen.
fn moment(task: &RunTask, before: Option<&RunTask>, now: Time) -> Option<Time> {
    let goes_on = before.is_some_and(|before| before.status == task.status) && task.items.is_some();
    task.completed_at.or(if goes_on { Some(now) } else { task.started_at })
}

fn line(task: &RunTask, at: Option<Time>) -> String {
    let mut text = format!("{}  {}", plain(&task.name), task.status);
    if task.attempt > 1 && !task.status.is_terminal() {
        text.push_str(&format!(" (attempt {})", task.attempt));
    }
    let took = task.completed_at.and_then(|at| view::task_took(task, at));
    let remark = Some(plain(&view::remark(task))).filter(|remark| !remark.is_empty());
    for part in [view::items(task), took, remark].into_iter().flatten() {
        text.push_str(&format!("  {part}"));
    }
    match at {
        Some(at) => format!("{at}  {text}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::picture::tests::{run, task};
    use super::*;

    fn now() -> Time {
        "2026-11-15T10:00:09Z".parse().expect("a time")
    }

    #[test]
    fn the_first_look_tells_what_has_begun_and_the_next_what_is_different() {
        let done = json!({"status": "completed", "attempt": 1, "started_at": "2026-11-15T10:00:00.100Z",
            "completed_at": "2026-11-15T10:00:00.350Z"});
        let busy = json!({"status": "running", "attempt": 2, "started_at": "2026-11-15T10:00:00.400Z"});
        let first = run(vec![task("extract", done.clone()), task("load", json!({}))]);
        assert_eq!(
            between(None, &first, now()),
            [
                "2026-11-15T10:00:00.000Z  run 00000000-0000-0000-0000-000000000000 of etl, version 3",
                "2026-11-15T10:00:00.350Z  extract  completed  250ms",
            ]
        );
        let second = run(vec![task("extract", done), task("load", busy)]);
        assert_eq!(
            between(Some(&first), &second, now()),
            ["2026-11-15T10:00:00.400Z  load  running (attempt 2)"]
        );
        assert!(between(Some(&second), &second, now()).is_empty());
    }

    #[test]
    fn a_fan_out_is_told_by_its_elements() {
        let items = |waiting: u32, completed: u32| {
            json!({"status": "running", "items": {"total": 4, "released": 4, "completed": completed, "failed": 0,
                "cancelled": 0, "skipped": 0, "running": 4 - waiting - completed, "waiting": waiting}})
        };
        let before = run(vec![task("transform", items(4, 0))]);
        let after = run(vec![task("transform", items(1, 2))]);
        let line = "2026-11-15T10:00:09.000Z  transform  running  2/4, 1 running";
        assert_eq!(between(Some(&before), &after, now()), [line]);
    }
}
