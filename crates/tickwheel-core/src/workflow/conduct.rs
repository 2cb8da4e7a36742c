//! Decisions about a run, put together into steps that the store carries out.

use std::collections::HashSet;
use std::time::Duration;

use super::begin::Maker;
use super::budget::{DataLimits, Making};
use super::definition::{RunEvent, TriggerRule, Workflow};
use super::graph::{Graph, SCOPE_AFTER};
use super::notice::notices;
use super::place::{FIRST_INDEX, Part};
use super::prepare::{Material, Needed, needs_of, prepare, refuse};
use super::review::{Review, review};
use super::run::{Look, Run, RunProgress, RunStatus, RunStep, RunTask, task_at};
use super::standing::{Standing, standings};
use crate::id::JobId;
use crate::parents::Parents;
use crate::state::State;
use crate::time::Timestamp;

/// How often, within the time after which a task is stalled, it is looked whether one is.
const LOOKS_PER_LIMIT: u32 = 4;
const STALL_LOOK_MIN: Duration = Duration::from_secs(1);
const STALL_LOOK_MAX: Duration = Duration::from_secs(60);

/// What a decision is about.
#[derive(Clone, Copy)]
pub struct Around<'r> {
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

impl<'r> Around<'r> {
    /// How long a task may take. In a run that is paused nobody expects anything.
    fn stall_after(&self) -> Option<Duration> {
        if self.run.progress.status == RunStatus::Paused {
            return None;
        }
        self.workflow.spec.stall_after_ms.map(Duration::from_millis)
    }

    /// Looks at the whole of the run.
    pub fn review(&self, tasks: &[RunTask]) -> Review {
        review(self.graph, self.run, tasks, self.stall_after(), self.now)
    }

    fn material(&self, status: RunStatus, needed: &'r Needed) -> Material<'r> {
        Material::new(self.graph, self.run, status, needed, self.now)
    }
}

/// Prepares tasks until the step is full, and answers those that are left.
fn prepare_some<'t>(
    material: &Material<'_>,
    needed: &Needed,
    tasks: impl IntoIterator<Item = &'t RunTask>,
    making: &mut Making,
    step: &mut RunStep,
) -> Vec<&'t RunTask> {
    let mut left = Vec::new();
    for (n, task) in tasks.into_iter().enumerate() {
        let is_enough = needed.is_enough_for(material.graph, task);
        if making.is_full() || (!is_enough && n > 0) {
            left.push(task);
        } else if is_enough {
            prepare(material, task, making).add_to(step);
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

/// The step that follows from a look at tasks whose parents all completed, or whose parts did or may go on. It does not say what was looked at.
/// A step makes only so much: what is left is to be looked at again. What [the first ones need](needs_in_order) was read first.
pub fn step_of_tasks(around: &Around<'_>, tasks: &[&RunTask], needed: &Needed) -> RunStep {
    let mut step = RunStep::nothing(around.run, around.now);
    let mut making = Making::of(around.limits, &around.run.progress);
    let material = around.material(RunStatus::Running, needed);
    let left = prepare_some(&material, needed, tasks.iter().copied(), &mut making, &mut step);
    step.looks.extend(left.iter().map(|task| task.job_id));
    let Making { next_index, data_bytes, .. } = making;
    let progress = RunProgress { next_index, data_bytes, ..around.run.progress };
    // Whoever decided to make the same jobs at the same time comes too late.
    if progress != around.run.progress || !step.jobs.is_empty() {
        step.progress = Some(progress);
    }
    step
}

/// What a look at one task leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// It is as it should be.
    Nothing,
    /// [`step_of_tasks`] knows what to do.
    Task,
    /// It takes a look at the whole of the run.
    Whole,
}

/// What there is to be done about a task that is to be looked at, as far as it can be told without looking at others.
pub fn glance(graph: &Graph, run: &Run, task: &RunTask) -> Glance {
    let waits = matches!(task.state, State::Pending | State::Blocked);
    let goes_on = !run.progress.status.is_over() && !run.progress.cancel_requested;
    let rule = graph.node(task.place.node).rule;
    match task.parents {
        _ if !waits || !goes_on => Glance::Nothing,
        // An item that was held back counts itself; it is looked at when it is its turn.
        _ if task.place.part == Part::Item && task.fan_out.is_none() => Glance::Task,
        // Those that are open may be blocked for good.
        Parents { open: 1.., .. } if rule == TriggerRule::AllDone && task.fan_out.is_none() => {
            if run.progress.blocked > 0 { Glance::Whole } else { Glance::Nothing }
        }
        Parents { open: 1.., .. } if task.fan_out.is_none() => Glance::Nothing,
        Parents { open: 1.., .. } => Glance::Task,
        Parents { failed: 1.., .. } => Glance::Whole,
        // Whether none of several failed is known only of all of them.
        _ if rule == TriggerRule::AnyFailed && task.fan_out.is_none() => Glance::Whole,
        _ => Glance::Task,
    }
}

/// The step that follows from a look at the whole of a run, where the run itself says enough: it is over, or all its jobs have completed and none are to
/// come. The same as [`step_of_review`], without reading the tasks.
pub fn step_at_a_glance(around: &Around<'_>) -> Option<RunStep> {
    let Run { open, spoiled, progress, .. } = around.run;
    let mut step = RunStep::nothing(around.run, around.now);
    if progress.status.is_over() {
        return Some(step);
    }
    let none_to_come = progress.after_first.is_some() || around.graph.scopes[SCOPE_AFTER].nodes.is_empty();
    if *open > 0 || *spoiled || progress.cancel_requested || progress.blocked > 0 || !none_to_come {
        return None;
    }
    let mut progress = *progress;
    finish(around, RunStatus::Completed, &[], &mut progress, &mut step);
    step.progress = Some(progress);
    Some(step)
}

/// The step that follows from a look at the whole of a run. It does not say what was looked at.
pub fn step_of_review(around: &Around<'_>, tasks: &[RunTask], found: &Review, needed: &Needed) -> RunStep {
    let mut step = RunStep::nothing(around.run, around.now);
    let mut progress = around.run.progress;
    if progress.status.is_over() {
        return step;
    }
    step.changes.clone_from(&found.changes);
    let mut material = around.material(found.status, needed);
    material.parts_are_idle = true;
    let mut making = Making::of(around.limits, &progress);
    let ready = found.ready.iter().filter_map(|index| task_at(tasks, *index));
    if !prepare_some(&material, needed, ready, &mut making, &mut step).is_empty() {
        step.looks.push(Look::place_of(around.run.id));
    }
    (progress.next_index, progress.data_bytes) = (making.next_index, making.data_bytes);
    if progress.blocked != found.blocked {
        // Somebody may have ended the last open one since; whoever did knew of fewer that are blocked.
        progress.blocked = found.blocked;
        step.looks.push(Look::place_of(around.run.id));
    }
    let mut over = found.over;
    if found.add_after {
        over = !add_after(around, found, &mut progress, &mut step);
    }
    watch_for_stalls(around, tasks, found, &mut progress, &mut step);
    if over {
        finish(around, found.status, &failed_tasks(around, tasks), &mut progress, &mut step);
    }
    // What somebody else decided without knowing of these changes is not to be carried out: it may add parts to a task that ends here.
    if progress != around.run.progress || !found.changes.is_empty() || !step.jobs.is_empty() {
        step.progress = Some(progress);
    }
    step
}

/// The tasks that come after all others. `false`: they cannot be made, which was seen when the run began.
fn add_after(around: &Around<'_>, found: &Review, progress: &mut RunProgress, step: &mut RunStep) -> bool {
    let maker = Maker::new(around.graph, around.run, found.status, around.now);
    // They are there for when things go wrong: what the others have made is not held against them.
    let mut making = Making::of(around.limits, &RunProgress { data_bytes: 0, ..*progress });
    let made = maker.scope(SCOPE_AFTER, progress.next_index, None, &[], &mut making);
    let Ok(new) = made else { return false };
    progress.after_first = Some(progress.next_index);
    progress.next_index += new.jobs.len() as u32;
    step.jobs.extend(new.jobs);
    step.looks.extend(new.looks);
    true
}

fn finish(
    around: &Around<'_>,
    status: RunStatus,
    failed: &[String],
    progress: &mut RunProgress,
    step: &mut RunStep,
) {
    progress.status = status;
    progress.ended_at = Some(around.now);
    progress.paused_at = None;
    progress.stalls_at = None;
    progress.stalled = 0;
    let event = match status {
        RunStatus::Completed => RunEvent::Completed,
        RunStatus::Cancelled => RunEvent::Cancelled,
        RunStatus::Failed | RunStatus::Running | RunStatus::Paused => RunEvent::Failed,
    };
    if around.run.job_id.is_some() {
        // The job that waits for the run ends after it, also if nobody is there to end it at once.
        step.looks.push(Look::place_of(around.run.id));
    }
    step.notices.extend(notices(around.workflow, around.run, event, failed, around.now));
}

/// The tasks that failed, by name.
pub(super) fn failed_tasks(around: &Around<'_>, tasks: &[RunTask]) -> Vec<String> {
    let all = standings(around.graph, around.run, tasks);
    let failed = tasks.iter().filter(|task| {
        let standing = all[(task.place.index - FIRST_INDEX) as usize];
        standing == Standing::Bad && task.state == State::Failed
    });
    failed.map(|task| around.graph.path_of(&task.place)).collect()
}

fn watch_for_stalls(
    around: &Around<'_>,
    tasks: &[RunTask],
    found: &Review,
    progress: &mut RunProgress,
    step: &mut RunStep,
) {
    let Some(limit) = around.stall_after() else { return };
    let stalled = found.stalled.len() as u32;
    if stalled > progress.stalled {
        let name = |index: &u32| Some(around.graph.path_of(&task_at(tasks, *index)?.place));
        let names: Vec<String> = found.stalled.iter().filter_map(name).collect();
        step.notices.extend(notices(around.workflow, around.run, RunEvent::Stalled, &names, around.now));
    }
    progress.stalled = stalled;
    if progress.stalls_at.is_none_or(|at| at <= around.now) {
        let wait = (limit / LOOKS_PER_LIMIT).clamp(STALL_LOOK_MIN, STALL_LOOK_MAX);
        progress.stalls_at = Some(around.now + wait);
    }
}
