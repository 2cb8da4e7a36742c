//! How a run stands as a whole: which tasks are ready, which are stuck, what is to be ended, and whether it is over.
//!
//! Looks at states only. A run is over when nothing of it goes on by itself.

use std::time::Duration;

use super::definition::OnFailure;
use super::graph::{Graph, SCOPE_AFTER};
use super::place::{FIRST_INDEX, FanOut};
use super::prepare::skipped;
use super::run::{Run, RunStatus, RunTask, TaskChange};
use super::standing::{Eye, Standing};
use crate::attempt::Failure;
use crate::id::JobId;
use crate::state::State;
use crate::time::Timestamp;

/// The code of a task that was cancelled because another one failed.
pub const FAIL_FAST: &str = "fail_fast";
/// The code of a task that was cancelled with its run.
pub const RUN_CANCELLED: &str = "run_cancelled";
/// The code of a task that comes last and was cancelled because another one of its kind takes its place.
pub const SUPERSEDED: &str = "superseded";

/// What a look at the whole of a run found.
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

/// Looks at the whole of a run. `tasks` has all its jobs, by number.
pub fn review(
    graph: &Graph,
    run: &Run,
    tasks: &[RunTask],
    stall_after: Option<Duration>,
    now: Timestamp,
) -> Review {
    let eye = Eye::new(graph, run, tasks);
    let mut review = Review { status: run.progress.status, ..Review::default() };
    if run.progress.status.is_over() {
        return review;
    }
    let end_all = EndAll::wanted(&eye);
    let (mut going_on, mut after_going_on) = (false, false);
    for task in tasks {
        let is_after = graph.comes_after(&task.place);
        if is_after && !eye.is_current_after(task) {
            review.changes.extend(superseded(task).map(|change| (task.job_id, change)));
            continue;
        }
        let end = end_all.as_ref().filter(|end| !is_after && end.concerns(graph, task));
        let verdict = judge(&eye, task, end);
        if verdict.goes_on && task.place.rounds.is_empty() {
            *(if is_after { &mut after_going_on } else { &mut going_on }) = true;
        }
        review.ready.extend(verdict.is_ready.then_some(task.place.index));
        review.blocked += u32::from(eye.follows_others(task, verdict.change.as_ref()));
        review.changes.extend(verdict.change.map(|change| (task.job_id, change)));
    }
    // Whoever is to be ended may have started meanwhile. If not, its end asks for the look that finds the run over.
    let ends_some = review.changes.iter().any(|(_, change)| matches!(change, TaskChange::End { .. }));
    let others_over = !going_on && !ends_some;
    let has_after = !graph.scopes[SCOPE_AFTER].nodes.is_empty();
    review.add_after = others_over && has_after && run.progress.after_first.is_none();
    review.over = others_over && !after_going_on && !review.add_after;
    review.status = status(&eye, end_all.is_some());
    if let Some(limit) = stall_after {
        review.stalled = eye.stalled(limit, now);
    }
    review
}

/// What is to be done about one task.
struct Verdict {
    change: Option<TaskChange>,
    is_ready: bool,
    goes_on: bool,
}

fn judge(eye: &Eye<'_>, task: &RunTask, end: Option<&EndAll>) -> Verdict {
    let standing = eye.standing(task.place.index);
    let Some(end) = end else {
        let change = change_of(task, standing);
        let ends = matches!(change, Some(TaskChange::End { .. }));
        return Verdict {
            change,
            is_ready: standing == Standing::Ready,
            goes_on: standing.is_going_on() && !ends,
        };
    };
    // What has all its parts ends well, whatever else is to end.
    let joins = standing == Standing::Ready && task.fan_out.is_some() && task.parents.open == 0;
    let will_be_stuck = !joins && end.leaves_nothing_of(eye, task);
    let change = ending(task, if will_be_stuck { Standing::Stuck } else { standing }, end);
    let ends = will_be_stuck || matches!(change, Some(TaskChange::End { .. }));
    Verdict { change, is_ready: joins, goes_on: standing.is_going_on() && !ends }
}

/// What the run comes to if nothing more happens.
fn status(eye: &Eye<'_>, something_failed: bool) -> RunStatus {
    if eye.run.progress.cancel_requested {
        return RunStatus::Cancelled;
    }
    let bad = eye.outermost().any(|task| eye.standing(task.place.index).is_bad());
    if bad || something_failed { RunStatus::Failed } else { RunStatus::Completed }
}

/// Why everything is to end that has not.
struct EndAll {
    failure: Failure,
    spare_sheltered: bool,
}

impl EndAll {
    /// Somebody wants the run to end, or a task failed where that ends it.
    fn wanted(eye: &Eye<'_>) -> Option<Self> {
        if eye.run.progress.cancel_requested {
            let failure = Failure::new(RUN_CANCELLED, "its run was cancelled");
            return Some(Self { failure, spare_sheltered: false });
        }
        if eye.graph.on_failure == OnFailure::Continue {
            return None;
        }
        let failed = eye.tasks.iter().find(|task| {
            let counts = !eye.graph.comes_after(&task.place) && is_part_of_something_open(eye, task);
            task.state == State::Failed && counts
        })?;
        let message = format!("task {} failed", eye.graph.path_of(&failed.place));
        Some(Self { failure: Failure::new(FAIL_FAST, message), spare_sheltered: true })
    }

    fn concerns(&self, graph: &Graph, task: &RunTask) -> bool {
        if !self.spare_sheltered {
            return true;
        }
        let mut node = Some(task.place.node);
        while let Some(at) = node {
            if graph.node(at).sheltered {
                return false;
            }
            node = graph.scopes[graph.node(at).scope].owner;
        }
        true
    }

    /// A fan-out whose parts that wait are all being ended has nothing left to go on with, unless one of them runs or is spared.
    fn leaves_nothing_of(&self, eye: &Eye<'_>, task: &RunTask) -> bool {
        let waits = matches!(task.state, State::Pending | State::Blocked);
        waits && task.fan_out.is_some_and(|parts| !self.leaves_any(eye, parts))
    }

    fn leaves_any(&self, eye: &Eye<'_>, parts: FanOut) -> bool {
        parts.indices().filter_map(|index| eye.task(index)).any(|part| {
            let spared = !self.concerns(eye.graph, part) && eye.standing(part.place.index).is_going_on();
            let inside = part.fan_out.filter(|_| !part.state.is_terminal());
            part.state == State::Running || spared || inside.is_some_and(|inner| self.leaves_any(eye, inner))
        })
    }
}

/// A failed part of something that has ended all the same (skipped, or completed by hand) is history.
fn is_part_of_something_open(eye: &Eye<'_>, task: &RunTask) -> bool {
    let outermost = eye.task(FIRST_INDEX + eye.graph.outermost(task.place.node));
    task.place.rounds.is_empty() || outermost.is_none_or(|outer| !outer.state.is_terminal())
}

/// The tasks that come last begin anew after a retry: one of an earlier round that somebody brought back has no place any more.
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
fn ending(task: &RunTask, standing: Standing, end: &EndAll) -> Option<TaskChange> {
    let cancelled =
        || TaskChange::End { state: State::Cancelled, result: None, error: Some(end.failure.clone()) };
    match task.state {
        State::Running => (!task.cancel_requested).then_some(TaskChange::Stop),
        State::Scheduled | State::Dispatched | State::Paused => Some(cancelled()),
        // What has parts ends with them. What depends on the one that failed is not ended but blocked, and goes on when that one is run again.
        State::Pending if standing == Standing::Stuck => Some(TaskChange::Block),
        State::Pending | State::Blocked if task.fan_out.is_some() => None,
        State::Blocked if standing == Standing::Stuck => None,
        State::Pending | State::Blocked => Some(cancelled()),
        _ => None,
    }
}

/// What becomes of a task by itself.
fn change_of(task: &RunTask, standing: Standing) -> Option<TaskChange> {
    match (task.state, standing) {
        (State::Pending, Standing::Stuck) => Some(TaskChange::Block),
        (State::Blocked, Standing::Live | Standing::Doomed | Standing::Held) => Some(TaskChange::Unblock),
        (State::Pending | State::Blocked, Standing::Passed(why)) => Some(skipped(why)),
        _ => None,
    }
}
