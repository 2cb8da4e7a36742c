//! What people do to a run: pause it, resume it, cancel it, run again what failed, pass over a task, or say that it is
//! done.

use std::collections::BTreeMap;

use super::conduct::{Around, step_of_review};
use super::definition::RunEvent;
use super::notice::notices;
use super::place::FanOut;
use super::prepare::Needed;
use super::review::review;
use super::run::{Look, Run, RunProgress, RunStatus, RunStep, RunTask, TaskChange, task_at};
use crate::attempt::Failure;
use crate::id::JobId;
use crate::job::JsonText;
use crate::state::State;

/// The code of a task that somebody passed over.
pub const SKIPPED_BY_HAND: &str = "skipped_by_hand";

/// So many runs may be paused at the same time: every server keeps them in mind.
pub const PAUSED_RUNS_MAX: usize = 10_000;

/// A wish. Tasks are named as people see them: `load`, `load[3]`, `load[3].check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Start nothing more of it. What runs goes on.
    Pause,
    /// Let it start jobs again.
    Resume,
    /// End it: what has not started is cancelled, what runs is asked to stop.
    Cancel,
    /// Run again what failed or was cancelled, and go on from there.
    Retry,
    /// Go on as if the task had completed, without a result.
    Skip(String),
    /// Go on as if the task had completed, with this result.
    Complete(String, Option<JsonText>),
    /// Run the task again.
    RetryTask(String),
}

/// Why a wish cannot be fulfilled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandRefused {
    /// The run is over.
    #[error("the run is {0} already")]
    Over(RunStatus),
    /// It was asked to end, which a pause would hold up.
    #[error("the run was asked to stop, and cannot be paused any more")]
    Ending,
    /// Too many are paused already.
    #[error("{PAUSED_RUNS_MAX} runs are paused already; resume or cancel some of them first")]
    TooManyPaused,
    /// Nothing of it failed or was cancelled.
    #[error("nothing of the run failed or was cancelled")]
    NothingToRetry,
    /// It has no such task.
    #[error("the run has no task {0:?}")]
    UnknownTask(String),
    /// The task's state does not allow it.
    #[error("task {task} is {state} and cannot be {wish}")]
    TaskState {
        /// Which task.
        task: String,
        /// How it stands.
        state: State,
        /// What was wished for.
        wish: &'static str,
    },
    /// Parts of the task are running.
    #[error("{running} parts of task {task} are running; cancel them first, or wait for them")]
    PartsRun {
        /// Which task.
        task: String,
        /// So many.
        running: usize,
    },
}

/// The step that fulfils a wish. `tasks` has all jobs of the run, by number. `None`: it is fulfilled already.
pub fn fulfil(around: &Around<'_>, tasks: &[RunTask], wish: &Wish) -> Result<Option<RunStep>, HandRefused> {
    match wish {
        Wish::Pause => pause(around),
        Wish::Resume => resume(around),
        Wish::Cancel => cancel(around, tasks),
        Wish::Retry => retry(around, tasks).map(Some),
        Wish::Skip(task) => {
            let error = Some(Failure::new(SKIPPED_BY_HAND, "somebody skipped it"));
            let end = TaskChange::End { state: State::Skipped, result: None, error };
            conclude(around, tasks, task, end, "skipped").map(Some)
        }
        Wish::Complete(task, result) => {
            let end = TaskChange::End { state: State::Completed, result: result.clone(), error: None };
            conclude(around, tasks, task, end, "completed").map(Some)
        }
        Wish::RetryTask(task) => retry_task(around, tasks, task).map(Some),
    }
}

/// Whether one more run may be paused where so many are.
pub const fn room_to_pause(paused: usize) -> Result<(), HandRefused> {
    if paused < PAUSED_RUNS_MAX { Ok(()) } else { Err(HandRefused::TooManyPaused) }
}

fn pause(around: &Around<'_>) -> Result<Option<RunStep>, HandRefused> {
    let progress = around.run.progress;
    match progress.status {
        RunStatus::Paused => return Ok(None),
        RunStatus::Running if progress.cancel_requested => return Err(HandRefused::Ending),
        RunStatus::Running => {}
        over => return Err(HandRefused::Over(over)),
    }
    let paused = RunProgress { status: RunStatus::Paused, paused_at: Some(around.now), ..progress };
    Ok(Some(RunStep { progress: Some(paused), ..RunStep::nothing(around.run, around.now) }))
}

fn resume(around: &Around<'_>) -> Result<Option<RunStep>, HandRefused> {
    let progress = around.run.progress;
    match progress.status {
        RunStatus::Running => return Ok(None),
        RunStatus::Paused => {}
        over => return Err(HandRefused::Over(over)),
    }
    let running = RunProgress { status: RunStatus::Running, paused_at: None, ..progress };
    Ok(Some(RunStep { progress: Some(running), ..RunStep::nothing(around.run, around.now) }))
}

fn cancel(around: &Around<'_>, tasks: &[RunTask]) -> Result<Option<RunStep>, HandRefused> {
    let progress = around.run.progress;
    match progress.status {
        RunStatus::Cancelled => return Ok(None),
        RunStatus::Running if progress.cancel_requested => return Ok(None),
        RunStatus::Running | RunStatus::Paused => {}
        over => return Err(HandRefused::Over(over)),
    }
    let mut run = around.run.clone();
    run.progress.cancel_requested = true;
    // A run that is to end has to start what comes last.
    (run.progress.status, run.progress.paused_at) = (RunStatus::Running, None);
    let found = review(around.graph, &run, tasks, None, around.now);
    let around = Around { run: &run, ..*around };
    let mut step = step_of_review(&around, tasks, &found, &Needed::default());
    step.progress.get_or_insert(run.progress);
    Ok(Some(step))
}

fn retry(around: &Around<'_>, tasks: &[RunTask]) -> Result<RunStep, HandRefused> {
    let ended_badly = |task: &&RunTask| matches!(task.state, State::Failed | State::Cancelled);
    let is_history = |task: &RunTask| around.graph.comes_after(&task.place);
    let again: Vec<JobId> =
        tasks.iter().filter(ended_badly).filter(|task| !is_history(task)).map(|task| task.job_id).collect();
    let only_after_failed = again.is_empty() && tasks.iter().any(|task| ended_badly(&task));
    if again.is_empty() && !(only_after_failed && around.run.progress.status == RunStatus::Failed) {
        return Err(HandRefused::NothingToRetry);
    }
    let mut step = resumed(around);
    step.changes = again.into_iter().map(|job| (job, TaskChange::Revive)).collect();
    Ok(step)
}

fn retry_task(around: &Around<'_>, tasks: &[RunTask], path: &str) -> Result<RunStep, HandRefused> {
    let task = find(around, tasks, path)?;
    let ended_badly = |task: &RunTask| matches!(task.state, State::Failed | State::Cancelled);
    let mut step = resumed(around);
    if around.graph.comes_after(&task.place) {
        // Those that come last are begun anew, all of them.
        let anew = around.run.progress.status == RunStatus::Failed && ended_badly(task);
        let refused = HandRefused::TaskState { task: path.into(), state: task.state, wish: "run again" };
        return if anew { Ok(step) } else { Err(refused) };
    }
    if ended_badly(task) || task.state == State::Skipped {
        step.changes.push((task.job_id, TaskChange::Revive));
        if task.state == State::Skipped {
            let again = dependants(tasks, task).into_iter().filter(|task| ended_badly(task));
            step.changes.extend(again.map(|task| (task.job_id, TaskChange::Restart)));
        }
    } else if let Some(parts) = task.fan_out.filter(|_| !task.state.is_terminal()) {
        let mut inside = Vec::new();
        collect_parts(tasks, parts, &mut inside);
        let again = inside.into_iter().filter(|part| ended_badly(part));
        step.changes.extend(again.map(|part| (part.job_id, TaskChange::Revive)));
    }
    if step.changes.is_empty() {
        return Err(HandRefused::TaskState { task: path.into(), state: task.state, wish: "run again" });
    }
    Ok(step)
}

/// The tasks that depend on one, and those that depend on them. They went on without what it would have brought.
fn dependants<'t>(tasks: &'t [RunTask], of: &RunTask) -> Vec<&'t RunTask> {
    let mut found: BTreeMap<u32, &RunTask> = BTreeMap::new();
    let mut open: Vec<u32> = of.place.children.clone();
    while let Some(index) = open.pop() {
        let Some(task) = task_at(tasks, index).filter(|_| !found.contains_key(&index)) else { continue };
        found.insert(index, task);
        open.extend(&task.place.children);
    }
    found.into_values().collect()
}

fn conclude(
    around: &Around<'_>,
    tasks: &[RunTask],
    path: &str,
    end: TaskChange,
    wish: &'static str,
) -> Result<RunStep, HandRefused> {
    let task = find(around, tasks, path)?;
    let mut step = resumed(around);
    match task.state {
        State::Pending | State::Blocked | State::Scheduled | State::Paused => {}
        State::Failed | State::Cancelled => step.changes.push((task.job_id, TaskChange::Revive)),
        state => return Err(HandRefused::TaskState { task: path.into(), state, wish }),
    }
    let mut inside = Vec::new();
    if let Some(parts) = task.fan_out {
        collect_parts(tasks, parts, &mut inside);
    }
    let running = inside.iter().filter(|part| part.state == State::Running).count();
    if running > 0 {
        return Err(HandRefused::PartsRun { task: path.into(), running });
    }
    step.changes.push((task.job_id, end));
    let why = Some(Failure::new(SKIPPED_BY_HAND, format!("task {path} was {wish} by hand")));
    let ended = TaskChange::End { state: State::Cancelled, result: None, error: why };
    let left = inside.into_iter().filter(|part| !part.state.is_terminal());
    step.changes.extend(left.map(|part| (part.job_id, ended.clone())));
    Ok(step)
}

/// A step after which the run goes on and is looked at.
fn resumed(around: &Around<'_>) -> RunStep {
    let Run { id, progress, .. } = *around.run;
    let mut step = RunStep::nothing(around.run, around.now);
    if progress.status.is_over() {
        step.progress = Some(progress.revived());
        step.notices = notices(around.workflow, around.run, RunEvent::Running, &[], around.now);
    } else {
        // Whatever was decided about the run meanwhile did not know of this.
        step.progress = Some(progress);
    }
    step.looks.push(Look::place_of(id));
    step
}

fn find<'t>(around: &Around<'_>, tasks: &'t [RunTask], path: &str) -> Result<&'t RunTask, HandRefused> {
    // Of those that come after all others the latest is meant.
    let named = tasks.iter().rev().find(|task| around.graph.path_of(&task.place) == path);
    named.ok_or_else(|| HandRefused::UnknownTask(path.to_owned()))
}

fn collect_parts<'t>(tasks: &'t [RunTask], parts: FanOut, into: &mut Vec<&'t RunTask>) {
    for index in parts.indices() {
        let Some(part) = task_at(tasks, index) else { continue };
        into.push(part);
        if let Some(inner) = part.fan_out {
            collect_parts(tasks, inner, into);
        }
    }
}
