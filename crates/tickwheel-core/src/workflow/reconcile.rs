//! Decisions about a run, put together into steps that the store carries out.

use std::collections::HashSet;
use std::time::Duration;

use super::begin::Maker;
use super::budget::{DataLimits, StepBudget};
use super::definition::{RunEvent, TriggerRule, Workflow};
use super::effective_status::{EffectiveStatus, effective_statuses};
use super::graph::{Graph, SCOPE_AFTER};
use super::notice::notices;
use super::position::{FIRST_INDEX, TaskRole};
use super::prepare::{Material, ParentResults, needs_of, prepare, refuse};
use super::review::{Review, review};
use super::run::{ReconcileRequest, Run, RunProgress, RunStatus, RunStep, RunTask, task_at};
use crate::id::JobId;
use crate::parents::Parents;
use crate::state::State;
use crate::time::Timestamp;

/// How often, within the time after which a task is stalled, stalls are checked for.
const STALL_CHECKS_PER_LIMIT: u32 = 4;
const STALL_CHECK_MIN: Duration = Duration::from_secs(1);
const STALL_CHECK_MAX: Duration = Duration::from_secs(60);

/// What a decision is about.
#[derive(Clone, Copy)]
pub struct RunContext<'r> {
    /// The workflow, in the run's version.
    pub workflow: &'r Workflow,
    /// Its graph.
    pub graph: &'r Graph,
    /// The run.
    pub run: &'r Run,
    /// The time.
    pub now: Timestamp,
    /// How much it may make.
    pub limits: DataLimits,
}

impl<'r> RunContext<'r> {
    /// How long a task may take. In a run that is paused nobody expects anything.
    fn stall_after(&self) -> Option<Duration> {
        if self.run.progress.status == RunStatus::Paused {
            return None;
        }
        self.workflow.spec.stall_after_ms.map(Duration::from_millis)
    }

    /// Reviews the whole run.
    pub fn review(&self, tasks: &[RunTask]) -> Review {
        review(self.graph, self.run, tasks, self.stall_after(), self.now)
    }

    fn material(&self, status: RunStatus, needed: &'r ParentResults) -> Material<'r> {
        Material::new(self.graph, self.run, status, needed, self.now)
    }
}

/// Prepares tasks until the step is full, and answers those that are left.
fn prepare_some<'t>(
    material: &Material<'_>,
    needed: &ParentResults,
    tasks: impl IntoIterator<Item = &'t RunTask>,
    budget: &mut StepBudget,
    step: &mut RunStep,
) -> Vec<&'t RunTask> {
    let mut left = Vec::new();
    for (n, task) in tasks.into_iter().enumerate() {
        let is_enough = needed.is_enough_for(material.graph, task);
        if budget.is_full() || (!is_enough && n > 0) {
            left.push(task);
        } else if is_enough {
            prepare(material, task, budget).add_to(step);
        } else {
            // What the first needs was read first, and is too much.
            refuse(task).add_to(step);
        }
    }
    left
}

/// The jobs whose results it takes to carry out what was found.
pub fn needs_of_review(graph: &Graph, tasks: &[RunTask], found: &Review) -> Vec<JobId> {
    let ready = found.ready.iter().filter_map(|index| task_at(tasks, *index));
    needs_in_order(graph, ready)
}

/// The jobs whose results it takes to prepare tasks, those of the first ones first.
pub fn needs_in_order<'t>(graph: &Graph, tasks: impl IntoIterator<Item = &'t RunTask>) -> Vec<JobId> {
    let mut seen = HashSet::new();
    tasks.into_iter().flat_map(|task| needs_of(graph, task)).filter(|job| seen.insert(*job)).collect()
}

/// The step for tasks whose parents all completed, or whose items did or may go on. It does not say which requests it
/// answers. A step makes only so much: for what is left a reconcile is requested again. What [the first ones
/// need](needs_in_order) was read first.
pub fn step_of_tasks(context: &RunContext<'_>, tasks: &[&RunTask], needed: &ParentResults) -> RunStep {
    let mut step = RunStep::nothing(context.run, context.now);
    let mut budget = StepBudget::of(context.limits, &context.run.progress);
    let material = context.material(RunStatus::Running, needed);
    let left = prepare_some(&material, needed, tasks.iter().copied(), &mut budget, &mut step);
    step.reconcile_requests.extend(left.iter().map(|task| task.job_id));
    let StepBudget { next_index, data_bytes, .. } = budget;
    let progress = RunProgress { next_index, data_bytes, ..context.run.progress };
    // Whoever decided to make the same jobs at the same time comes too late.
    if progress != context.run.progress || !step.jobs.is_empty() {
        step.progress = Some(progress);
    }
    step
}

/// What it takes to reconcile one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileScope {
    /// It is as it should be.
    Nothing,
    /// [`step_of_tasks`] knows what to do.
    Task,
    /// The whole run has to be reviewed.
    Whole,
}

/// What it takes to reconcile a task, as far as the task itself says.
pub fn reconcile_scope(graph: &Graph, run: &Run, task: &RunTask) -> ReconcileScope {
    let waits = matches!(task.state, State::Pending | State::Blocked);
    let goes_on = !run.progress.status.is_over() && !run.progress.cancel_requested;
    let rule = graph.node(task.position.node).rule;
    match task.parents {
        _ if !waits || !goes_on => ReconcileScope::Nothing,
        // An item that was held back counts itself; it is reconciled when it is its turn.
        _ if task.position.role == TaskRole::Item && task.fan_out.is_none() => ReconcileScope::Task,
        // Those that are open may be blocked for good.
        Parents { open: 1.., .. } if rule == TriggerRule::AllDone && task.fan_out.is_none() => {
            if run.progress.blocked > 0 { ReconcileScope::Whole } else { ReconcileScope::Nothing }
        }
        Parents { open: 1.., .. } if task.fan_out.is_none() => ReconcileScope::Nothing,
        Parents { open: 1.., .. } => ReconcileScope::Task,
        Parents { failed: 1.., .. } => ReconcileScope::Whole,
        // Whether none of several failed is known only of all of them.
        _ if rule == TriggerRule::AnyFailed && task.fan_out.is_none() => ReconcileScope::Whole,
        _ => ReconcileScope::Task,
    }
}

/// The step for a whole run, where the counts of the run say enough: it is over, or all its jobs have completed and
/// none are to come. The same as [`step_of_review`], without reading the tasks.
pub fn step_from_counts(context: &RunContext<'_>) -> Option<RunStep> {
    let Run { open, had_failure, progress, .. } = context.run;
    let mut step = RunStep::nothing(context.run, context.now);
    if progress.status.is_over() {
        return Some(step);
    }
    let none_to_come = progress.after_first.is_some() || context.graph.scopes[SCOPE_AFTER].nodes.is_empty();
    if *open > 0 || *had_failure || progress.cancel_requested || progress.blocked > 0 || !none_to_come {
        return None;
    }
    let mut progress = *progress;
    finish(context, RunStatus::Completed, &[], &mut progress, &mut step);
    step.progress = Some(progress);
    Some(step)
}

/// The step for a whole run. It does not say which requests it answers.
pub fn step_of_review(
    context: &RunContext<'_>,
    tasks: &[RunTask],
    found: &Review,
    needed: &ParentResults,
) -> RunStep {
    let mut step = RunStep::nothing(context.run, context.now);
    let mut progress = context.run.progress;
    if progress.status.is_over() {
        return step;
    }
    step.changes.clone_from(&found.changes);
    let mut material = context.material(found.status, needed);
    material.items_are_idle = true;
    let mut budget = StepBudget::of(context.limits, &progress);
    let ready = found.ready.iter().filter_map(|index| task_at(tasks, *index));
    if !prepare_some(&material, needed, ready, &mut budget, &mut step).is_empty() {
        step.reconcile_requests.push(ReconcileRequest::id_of_run(context.run.id));
    }
    (progress.next_index, progress.data_bytes) = (budget.next_index, budget.data_bytes);
    if progress.blocked != found.blocked {
        // Somebody may have ended the last open one since; whoever did knew of fewer that are blocked.
        progress.blocked = found.blocked;
        step.reconcile_requests.push(ReconcileRequest::id_of_run(context.run.id));
    }
    let mut over = found.over;
    if found.add_after {
        over = !add_after(context, found, &mut progress, &mut step);
    }
    watch_for_stalls(context, tasks, found, &mut progress, &mut step);
    if over {
        finish(context, found.status, &failed_tasks(context, tasks), &mut progress, &mut step);
    }
    // What somebody else decided without knowing of these changes is not to be carried out: it may add items to a task
    // that ends here.
    if progress != context.run.progress || !found.changes.is_empty() || !step.jobs.is_empty() {
        step.progress = Some(progress);
    }
    step
}

/// The tasks that come after all others. `false`: they cannot be made, which was seen when the run began.
fn add_after(
    context: &RunContext<'_>,
    found: &Review,
    progress: &mut RunProgress,
    step: &mut RunStep,
) -> bool {
    let maker = Maker::new(context.graph, context.run, found.status, context.now);
    // They are there for when things go wrong: what the others have made is not held against them.
    let mut budget = StepBudget::of(context.limits, &RunProgress { data_bytes: 0, ..*progress });
    let made = maker.scope(SCOPE_AFTER, progress.next_index, None, &[], &mut budget);
    let Ok(new) = made else { return false };
    progress.after_first = Some(progress.next_index);
    progress.next_index += new.jobs.len() as u32;
    step.jobs.extend(new.jobs);
    step.reconcile_requests.extend(new.reconcile_requests);
    true
}

fn finish(
    context: &RunContext<'_>,
    status: RunStatus,
    failed: &[String],
    progress: &mut RunProgress,
    step: &mut RunStep,
) {
    progress.status = status;
    progress.ended_at = Some(context.now);
    progress.paused_at = None;
    progress.stalls_at = None;
    progress.stalled = 0;
    let event = match status {
        RunStatus::Completed => RunEvent::Completed,
        RunStatus::Cancelled => RunEvent::Cancelled,
        RunStatus::Failed | RunStatus::Running | RunStatus::Paused => RunEvent::Failed,
    };
    if context.run.job_id.is_some() {
        // The job that waits for the run ends after it, also if nobody is there to end it at once.
        step.reconcile_requests.push(ReconcileRequest::id_of_run(context.run.id));
    }
    step.notices.extend(notices(context.workflow, context.run, event, failed, context.now));
}

/// The tasks that failed, by name.
pub(super) fn failed_tasks(context: &RunContext<'_>, tasks: &[RunTask]) -> Vec<String> {
    let all = effective_statuses(context.graph, context.run, tasks);
    let failed = tasks.iter().filter(|task| {
        let status = all[(task.position.index - FIRST_INDEX) as usize];
        status == EffectiveStatus::Bad && task.state == State::Failed
    });
    failed.map(|task| context.graph.path_of(&task.position)).collect()
}

fn watch_for_stalls(
    context: &RunContext<'_>,
    tasks: &[RunTask],
    found: &Review,
    progress: &mut RunProgress,
    step: &mut RunStep,
) {
    let Some(limit) = context.stall_after() else { return };
    let stalled = found.stalled.len() as u32;
    if stalled > progress.stalled {
        let name = |index: &u32| Some(context.graph.path_of(&task_at(tasks, *index)?.position));
        let names: Vec<String> = found.stalled.iter().filter_map(name).collect();
        step.notices.extend(notices(context.workflow, context.run, RunEvent::Stalled, &names, context.now));
    }
    progress.stalled = stalled;
    if progress.stalls_at.is_none_or(|at| at <= context.now) {
        let wait = (limit / STALL_CHECKS_PER_LIMIT).clamp(STALL_CHECK_MIN, STALL_CHECK_MAX);
        progress.stalls_at = Some(context.now + wait);
    }
}
