//! How a run stands as a whole: which tasks are ready, which are stuck, what is to be ended, and whether it is over.
//!
//! Reads states only. A run is over when nothing of it goes on by itself.

use std::time::Duration;

use super::effective_status::{EffectiveStatus, StatusClassifier};
use super::end_all::EndAll;
use super::graph::{Graph, SCOPE_AFTER};
use super::position::FanOut;
use super::prepare::skipped;
use super::run::{Run, RunStatus, RunTask, TaskChange};
use crate::attempt::Failure;
use crate::id::JobId;
use crate::state::State;
use crate::time::Timestamp;

/// The code of a task that comes last and was cancelled because another one of its kind takes its place.
pub const SUPERSEDED: &str = "superseded";

/// What a review of a whole run found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    /// What becomes of jobs.
    pub changes: Vec<(JobId, TaskChange)>,
    /// The numbers of those that are to be prepared.
    pub ready: Vec<u32>,
    /// So many that have not ended will only when others do.
    pub blocked: u32,
    /// Tasks that wait for longer than they should: their numbers.
    pub stalled: Vec<u32>,
    /// All but the tasks that come after all others is over, and those are to be added.
    pub add_after: bool,
    /// How the run stands, once nothing goes on; and how it would, for those that come after.
    pub status: RunStatus,
    /// Whether it is over.
    pub over: bool,
}

/// Reviews a whole run. `tasks` has all its jobs, by number.
pub fn review(
    graph: &Graph,
    run: &Run,
    tasks: &[RunTask],
    stall_after: Option<Duration>,
    now: Timestamp,
) -> Review {
    let classifier = StatusClassifier::new(graph, run, tasks);
    let mut review = Review { status: run.progress.status, ..Review::default() };
    if run.progress.status.is_over() {
        return review;
    }
    let end_all = classifier.end_all.as_ref();
    let (mut going_on, mut after_going_on) = (false, false);
    for task in tasks {
        let is_after = graph.comes_after(&task.position);
        if is_after && !classifier.is_current_after(task) {
            review.changes.extend(superseded(task).map(|change| (task.job_id, change)));
            continue;
        }
        let end = end_all.filter(|end| !is_after && end.concerns(graph, task));
        let verdict = judge(&classifier, task, end);
        if verdict.goes_on && task.position.iterations.is_empty() {
            *(if is_after { &mut after_going_on } else { &mut going_on }) = true;
        }
        review.ready.extend(verdict.is_ready.then_some(task.position.index));
        review.blocked += u32::from(classifier.follows_others(task, verdict.change.as_ref()));
        review.changes.extend(verdict.change.map(|change| (task.job_id, change)));
    }
    // Whoever is to be ended may have started meanwhile. If not, its end requests the reconcile that finds the run
    // over.
    let ends_some = review.changes.iter().any(|(_, change)| matches!(change, TaskChange::End { .. }));
    let others_over = !going_on && !ends_some;
    let has_after = !graph.scopes[SCOPE_AFTER].nodes.is_empty();
    review.add_after = others_over && has_after && run.progress.after_first.is_none();
    review.over = others_over && !after_going_on && !review.add_after;
    review.status = status(&classifier, end_all.is_some());
    if let Some(limit) = stall_after {
        review.stalled = classifier.stalled(limit, now);
    }
    review
}

/// What is to be done about one task.
struct TaskVerdict {
    change: Option<TaskChange>,
    is_ready: bool,
    goes_on: bool,
}

fn judge(classifier: &StatusClassifier<'_>, task: &RunTask, end: Option<&EndAll>) -> TaskVerdict {
    let status = classifier.status(task.position.index);
    let Some(end) = end else {
        let change = change_of(task, status);
        let ends = matches!(change, Some(TaskChange::End { .. }));
        return TaskVerdict {
            change,
            is_ready: status == EffectiveStatus::Ready,
            goes_on: status.is_going_on() && !ends,
        };
    };
    // What has all its items ends well, whatever else is to end.
    let joins = status == EffectiveStatus::Ready && task.fan_out.is_some() && task.parents.open == 0;
    let will_be_stuck = !joins && leaves_nothing_of(end, classifier, task);
    let change = ending(task, if will_be_stuck { EffectiveStatus::Stuck } else { status }, end);
    let ends = will_be_stuck || matches!(change, Some(TaskChange::End { .. }));
    TaskVerdict { change, is_ready: joins, goes_on: status.is_going_on() && !ends }
}

/// What the run comes to if nothing more happens.
fn status(classifier: &StatusClassifier<'_>, something_failed: bool) -> RunStatus {
    if classifier.run.progress.cancel_requested {
        return RunStatus::Cancelled;
    }
    let bad = classifier.outermost().any(|task| classifier.status(task.position.index).is_bad());
    if bad || something_failed { RunStatus::Failed } else { RunStatus::Completed }
}

/// A fan-out whose waiting items are all being ended has nothing left to go on with, unless one of them runs or is
/// spared.
fn leaves_nothing_of(end: &EndAll, classifier: &StatusClassifier<'_>, task: &RunTask) -> bool {
    let waits = matches!(task.state, State::Pending | State::Blocked);
    waits && task.fan_out.is_some_and(|fan_out| !leaves_any(end, classifier, fan_out))
}

fn leaves_any(end: &EndAll, classifier: &StatusClassifier<'_>, fan_out: FanOut) -> bool {
    fan_out.indices().filter_map(|index| classifier.task(index)).any(|item| {
        let spared =
            !end.concerns(classifier.graph, item) && classifier.status(item.position.index).is_going_on();
        let inside = item.fan_out.filter(|_| !item.state.is_terminal());
        item.state == State::Running
            || spared
            || inside.is_some_and(|inner| leaves_any(end, classifier, inner))
    })
}

/// The tasks that come last begin anew after a retry: one of an earlier pass that somebody brought back is not needed
/// any more.
fn superseded(task: &RunTask) -> Option<TaskChange> {
    let waits = matches!(task.state, State::Pending | State::Blocked | State::Scheduled | State::Paused);
    let error = Some(Failure::new(SUPERSEDED, "the tasks that come last begin anew"));
    (waits && task.fan_out.is_none()).then_some(TaskChange::End {
        state: State::Cancelled,
        result: None,
        error,
    })
}

/// What becomes of a task when everything is to end.
fn ending(task: &RunTask, status: EffectiveStatus, end: &EndAll) -> Option<TaskChange> {
    let cancelled =
        || TaskChange::End { state: State::Cancelled, result: None, error: Some(end.failure.clone()) };
    match task.state {
        State::Running => (!task.cancel_requested).then_some(TaskChange::Stop),
        State::Scheduled | State::Dispatched | State::Paused => Some(cancelled()),
        // A fan-out ends with its items. What depends on the one that failed is not ended but blocked, and goes on when
        // that one is run again.
        State::Pending if status == EffectiveStatus::Stuck => Some(TaskChange::Block),
        State::Pending | State::Blocked if task.fan_out.is_some() => None,
        State::Blocked if status == EffectiveStatus::Stuck => None,
        State::Pending | State::Blocked => Some(cancelled()),
        _ => None,
    }
}

/// What becomes of a task by itself.
fn change_of(task: &RunTask, status: EffectiveStatus) -> Option<TaskChange> {
    match (task.state, status) {
        (State::Pending, EffectiveStatus::Stuck) => Some(TaskChange::Block),
        (State::Blocked, EffectiveStatus::Live | EffectiveStatus::WillFail | EffectiveStatus::Held) => {
            Some(TaskChange::Unblock)
        }
        (State::Pending | State::Blocked, EffectiveStatus::Passed(why)) => Some(skipped(why)),
        _ => None,
    }
}
