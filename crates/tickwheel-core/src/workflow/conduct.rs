//! Decisions about a run, put together into steps that the store carries out.

use std::collections::HashMap;
use std::time::Duration;

use super::begin::Maker;
use super::definition::{RunEvent, TriggerRule, Workflow};
use super::graph::{Graph, SCOPE_AFTER};
use super::notice::notices;
use super::place::{FIRST_INDEX, Part};
use super::prepare::{Material, ParentData, needs_of, prepare};
use super::review::{Review, review};
use super::run::{Look, Run, RunProgress, RunStatus, RunStep, RunTask};
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
}

impl Around<'_> {
    fn stall_after(&self) -> Option<Duration> {
        self.workflow.spec.stall_after_ms.map(Duration::from_millis)
    }

    /// Looks at the whole of the run.
    pub fn review(&self, tasks: &[RunTask]) -> Review {
        review(self.graph, self.run, tasks, self.stall_after(), self.now)
    }

    fn material<'m>(&'m self, status: RunStatus, jobs: &'m HashMap<JobId, ParentData>) -> Material<'m> {
        Material { graph: self.graph, run: self.run, status, parts_are_idle: false, jobs, now: self.now }
    }
}

/// The jobs whose results it takes to carry out what was found.
pub fn needs_of_review(graph: &Graph, tasks: &[RunTask], found: &Review) -> Vec<JobId> {
    let ready = found.ready.iter().filter_map(|index| tasks.get((index - FIRST_INDEX) as usize));
    let mut needs: Vec<JobId> = ready.flat_map(|task| needs_of(graph, task)).collect();
    needs.sort_unstable();
    needs.dedup();
    needs
}

/// The step that follows from a look at tasks whose parents all completed, or whose parts did or may go on. It does not say what was looked at.
pub fn step_of_tasks(around: &Around<'_>, tasks: &[&RunTask], jobs: &HashMap<JobId, ParentData>) -> RunStep {
    let mut step = RunStep::nothing(around.run, around.now);
    let mut next_index = around.run.progress.next_index;
    for task in tasks {
        prepare(&around.material(RunStatus::Running, jobs), task, &mut next_index).add_to(&mut step);
    }
    if next_index != around.run.progress.next_index {
        step.progress = Some(RunProgress { next_index, ..around.run.progress });
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
    let goes_on = run.progress.status == RunStatus::Running && !run.progress.cancel_requested;
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
    if progress.status != RunStatus::Running {
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
pub fn step_of_review(
    around: &Around<'_>,
    tasks: &[RunTask],
    found: &Review,
    jobs: &HashMap<JobId, ParentData>,
) -> RunStep {
    let mut step = RunStep::nothing(around.run, around.now);
    let mut progress = around.run.progress;
    if progress.status != RunStatus::Running {
        return step;
    }
    step.changes.clone_from(&found.changes);
    let material = Material { parts_are_idle: true, ..around.material(found.status, jobs) };
    for task in found.ready.iter().filter_map(|index| tasks.get((index - FIRST_INDEX) as usize)) {
        prepare(&material, task, &mut progress.next_index).add_to(&mut step);
    }
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
    if progress != around.run.progress || !found.changes.is_empty() {
        step.progress = Some(progress);
    }
    step
}

/// The tasks that come after all others. `false`: they cannot be made, which was seen when the run began.
fn add_after(around: &Around<'_>, found: &Review, progress: &mut RunProgress, step: &mut RunStep) -> bool {
    let maker = Maker::new(around.graph, around.run, found.status, around.now);
    let Ok(new) = maker.scope(SCOPE_AFTER, progress.next_index, None, &[]) else { return false };
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
    progress.stalls_at = None;
    progress.stalled = 0;
    let event = match status {
        RunStatus::Completed => RunEvent::Completed,
        RunStatus::Cancelled => RunEvent::Cancelled,
        RunStatus::Failed | RunStatus::Running => RunEvent::Failed,
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
    let failed = tasks
        .iter()
        .zip(all)
        .filter(|(task, standing)| *standing == Standing::Bad && task.state == State::Failed);
    failed.map(|(task, _)| around.graph.path_of(&task.place)).collect()
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
        let name =
            |index: &u32| Some(around.graph.path_of(&tasks.get((index - FIRST_INDEX) as usize)?.place));
        let names: Vec<String> = found.stalled.iter().filter_map(name).collect();
        step.notices.extend(notices(around.workflow, around.run, RunEvent::Stalled, &names, around.now));
    }
    progress.stalled = stalled;
    if progress.stalls_at.is_none_or(|at| at <= around.now) {
        let wait = (limit / LOOKS_PER_LIMIT).clamp(STALL_LOOK_MIN, STALL_LOOK_MAX);
        progress.stalls_at = Some(around.now + wait);
    }
}
