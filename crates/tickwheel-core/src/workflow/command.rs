//! What people do to a run: pause it, resume it, cancel it, run again what failed, pass over a task, or say that it is
//! done.

use std::collections::BTreeMap;

use super::definition::RunEvent;
use super::notice::notices;
use super::position::FanOut;
use super::prepare::ParentResults;
use super::reconcile::{RunContext, step_of_review};
use super::review::review;
use super::run::{ReconcileRequest, Run, RunProgress, RunStatus, RunStep, RunTask, TaskChange, task_at};
use crate::attempt::Failure;
use crate::id::JobId;
use crate::job::JsonText;
use crate::state::State;

/// The code of a task that somebody passed over.
pub const SKIPPED_BY_HAND: &str = "skipped_by_hand";

/// So many runs may be paused at the same time: every server keeps them in mind.
pub const PAUSED_RUNS_MAX: usize = 10_000;

/// A command. Tasks are named as people see them: `load`, `load[3]`, `load[3].check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunCommand {
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

/// Why a command is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandRejected {
    /// The run is over.
    #[error("the run is {0} already")]
    Over(RunStatus),
    /// It was asked to end, which a pause would hold up.
    #[error("the run was asked to stop, and can no longer be paused")]
    Ending,
    /// Too many are paused already.
    #[error("{PAUSED_RUNS_MAX} runs are paused already; resume or cancel some of them first")]
    TooManyPaused,
    /// Nothing of it failed or was cancelled.
    #[error("no task of the run failed or was cancelled")]
    NothingToRetry,
    /// It has no such task.
    #[error("the run has no task {0:?}")]
    UnknownTask(String),
    /// The task's state does not allow it.
    #[error("task {task} is {state} and cannot be {verb}")]
    TaskState {
        /// Which task.
        task: String,
        /// How it stands.
        state: State,
        /// What was to be done to it.
        verb: &'static str,
    },
    /// Items of the task are running.
    #[error("{running} items of task {task} are running; cancel them first, or wait for them")]
    ItemsRunning {
        /// Which task.
        task: String,
        /// So many.
        running: usize,
    },
}

/// The step that applies a command. `tasks` has all jobs of the run, by number. `None`: it is in force already.
pub fn apply_command(
    context: &RunContext<'_>,
    tasks: &[RunTask],
    command: &RunCommand,
) -> Result<Option<RunStep>, CommandRejected> {
    match command {
        RunCommand::Pause => pause(context),
        RunCommand::Resume => resume(context),
        RunCommand::Cancel => cancel(context, tasks),
        RunCommand::Retry => retry(context, tasks).map(Some),
        RunCommand::Skip(task) => {
            let error = Some(Failure::new(SKIPPED_BY_HAND, "somebody skipped it"));
            let end = TaskChange::End { state: State::Skipped, result: None, error };
            end_by_command(context, tasks, task, end, "skipped").map(Some)
        }
        RunCommand::Complete(task, result) => {
            let end = TaskChange::End { state: State::Completed, result: result.clone(), error: None };
            end_by_command(context, tasks, task, end, "completed").map(Some)
        }
        RunCommand::RetryTask(task) => retry_task(context, tasks, task).map(Some),
    }
}

/// Whether one more run may be paused where so many are.
pub const fn room_to_pause(paused: usize) -> Result<(), CommandRejected> {
    if paused < PAUSED_RUNS_MAX { Ok(()) } else { Err(CommandRejected::TooManyPaused) }
}

fn pause(context: &RunContext<'_>) -> Result<Option<RunStep>, CommandRejected> {
    let progress = context.run.progress;
    match progress.status {
        RunStatus::Paused => return Ok(None),
        RunStatus::Running if progress.cancel_requested => return Err(CommandRejected::Ending),
        RunStatus::Running => {}
        over => return Err(CommandRejected::Over(over)),
    }
    let paused = RunProgress { status: RunStatus::Paused, paused_at: Some(context.now), ..progress };
    Ok(Some(RunStep { progress: Some(paused), ..RunStep::nothing(context.run, context.now) }))
}

fn resume(context: &RunContext<'_>) -> Result<Option<RunStep>, CommandRejected> {
    let progress = context.run.progress;
    match progress.status {
        RunStatus::Running => return Ok(None),
        RunStatus::Paused => {}
        over => return Err(CommandRejected::Over(over)),
    }
    let running = RunProgress { status: RunStatus::Running, paused_at: None, ..progress };
    Ok(Some(RunStep { progress: Some(running), ..RunStep::nothing(context.run, context.now) }))
}

fn cancel(context: &RunContext<'_>, tasks: &[RunTask]) -> Result<Option<RunStep>, CommandRejected> {
    let progress = context.run.progress;
    match progress.status {
        RunStatus::Cancelled => return Ok(None),
        RunStatus::Running if progress.cancel_requested => return Ok(None),
        RunStatus::Running | RunStatus::Paused => {}
        over => return Err(CommandRejected::Over(over)),
    }
    let mut run = context.run.clone();
    run.progress.cancel_requested = true;
    // A run that is to end has to start what comes last.
    (run.progress.status, run.progress.paused_at) = (RunStatus::Running, None);
    let found = review(context.graph, &run, tasks, None, context.now);
    let context = RunContext { run: &run, ..*context };
    let mut step = step_of_review(&context, tasks, &found, &ParentResults::default());
    step.progress.get_or_insert(run.progress);
    Ok(Some(step))
}

fn retry(context: &RunContext<'_>, tasks: &[RunTask]) -> Result<RunStep, CommandRejected> {
    let ended_badly = |task: &&RunTask| matches!(task.state, State::Failed | State::Cancelled);
    let is_history = |task: &RunTask| context.graph.comes_after(&task.position);
    let again: Vec<JobId> =
        tasks.iter().filter(ended_badly).filter(|task| !is_history(task)).map(|task| task.job_id).collect();
    let only_after_failed = again.is_empty() && tasks.iter().any(|task| ended_badly(&task));
    if again.is_empty() && !(only_after_failed && context.run.progress.status == RunStatus::Failed) {
        return Err(CommandRejected::NothingToRetry);
    }
    let mut step = resumed(context);
    step.changes = again.into_iter().map(|job| (job, TaskChange::Retry)).collect();
    Ok(step)
}

fn retry_task(context: &RunContext<'_>, tasks: &[RunTask], path: &str) -> Result<RunStep, CommandRejected> {
    let task = find(context, tasks, path)?;
    let ended_badly = |task: &RunTask| matches!(task.state, State::Failed | State::Cancelled);
    let mut step = resumed(context);
    if context.graph.comes_after(&task.position) {
        // Those that come last are begun anew, all of them.
        let anew = context.run.progress.status == RunStatus::Failed && ended_badly(task);
        let refused = CommandRejected::TaskState { task: path.into(), state: task.state, verb: "run again" };
        return if anew { Ok(step) } else { Err(refused) };
    }
    if ended_badly(task) || task.state == State::Skipped {
        step.changes.push((task.job_id, TaskChange::Retry));
        if task.state == State::Skipped {
            let again = dependants(tasks, task).into_iter().filter(|task| ended_badly(task));
            step.changes.extend(again.map(|task| (task.job_id, TaskChange::Restart)));
        }
    } else if let Some(fan_out) = task.fan_out.filter(|_| !task.state.is_terminal()) {
        let mut inside = Vec::new();
        collect_items(tasks, fan_out, &mut inside);
        let again = inside.into_iter().filter(|item| ended_badly(item));
        step.changes.extend(again.map(|item| (item.job_id, TaskChange::Retry)));
    }
    if step.changes.is_empty() {
        return Err(CommandRejected::TaskState { task: path.into(), state: task.state, verb: "run again" });
    }
    Ok(step)
}

/// The tasks that depend on one, and those that depend on them. They went on without what it would have brought.
fn dependants<'t>(tasks: &'t [RunTask], of: &RunTask) -> Vec<&'t RunTask> {
    let mut found: BTreeMap<u32, &RunTask> = BTreeMap::new();
    let mut open: Vec<u32> = of.position.children.clone();
    while let Some(index) = open.pop() {
        let Some(task) = task_at(tasks, index).filter(|_| !found.contains_key(&index)) else { continue };
        found.insert(index, task);
        open.extend(&task.position.children);
    }
    found.into_values().collect()
}

fn end_by_command(
    context: &RunContext<'_>,
    tasks: &[RunTask],
    path: &str,
    end: TaskChange,
    verb: &'static str,
) -> Result<RunStep, CommandRejected> {
    let task = find(context, tasks, path)?;
    let mut step = resumed(context);
    match task.state {
        State::Pending | State::Blocked | State::Scheduled | State::Paused => {}
        State::Failed | State::Cancelled => step.changes.push((task.job_id, TaskChange::Retry)),
        state => return Err(CommandRejected::TaskState { task: path.into(), state, verb }),
    }
    let mut inside = Vec::new();
    if let Some(fan_out) = task.fan_out {
        collect_items(tasks, fan_out, &mut inside);
    }
    let running = inside.iter().filter(|item| item.state == State::Running).count();
    if running > 0 {
        return Err(CommandRejected::ItemsRunning { task: path.into(), running });
    }
    step.changes.push((task.job_id, end));
    let why = Some(Failure::new(SKIPPED_BY_HAND, format!("task {path} was {verb} by hand")));
    let ended = TaskChange::End { state: State::Cancelled, result: None, error: why };
    let left = inside.into_iter().filter(|item| !item.state.is_terminal());
    step.changes.extend(left.map(|item| (item.job_id, ended.clone())));
    Ok(step)
}

/// A step after which the run goes on and is reconciled.
fn resumed(context: &RunContext<'_>) -> RunStep {
    let Run { id, progress, .. } = *context.run;
    let mut step = RunStep::nothing(context.run, context.now);
    if progress.status.is_over() {
        step.progress = Some(progress.retried());
        step.notices = notices(context.workflow, context.run, RunEvent::Running, &[], context.now);
    } else {
        // Whatever was decided about the run meanwhile did not know of this.
        step.progress = Some(progress);
    }
    step.reconcile_requests.push(ReconcileRequest::id_of_run(id));
    step
}

fn find<'t>(
    context: &RunContext<'_>,
    tasks: &'t [RunTask],
    path: &str,
) -> Result<&'t RunTask, CommandRejected> {
    // Of those that come after all others the latest is meant.
    let named = tasks.iter().rev().find(|task| context.graph.path_of(&task.position) == path);
    named.ok_or_else(|| CommandRejected::UnknownTask(path.to_owned()))
}

fn collect_items<'t>(tasks: &'t [RunTask], fan_out: FanOut, into: &mut Vec<&'t RunTask>) {
    for index in fan_out.indices() {
        let Some(item) = task_at(tasks, index) else { continue };
        into.push(item);
        if let Some(inner) = item.fan_out {
            collect_items(tasks, inner, into);
        }
    }
}
