//! How a run stands as a whole: which tasks are ready, which are stuck, what is to be ended, and whether it is over.
//!
//! Looks at states only. A task that can go on by itself is *live*; one that cannot without somebody's help, because something it needs ended badly,
//! is *stuck*, and shown as blocked. What stands for parts stands as they do. A run is over when nothing of it is live.

use std::time::Duration;

use super::definition::{OnFailure, TriggerRule};
use super::graph::{Graph, NodeEach, NodeWork, SCOPE_AFTER, SCOPE_TOP};
use super::place::{FIRST_INDEX, FanOut, Part};
use super::prepare::skipped;
use super::run::{Run, RunStatus, RunTask, TaskChange};
use super::wish::SKIPPED_BY_HAND;
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

/// How a job of a run stands, seen from those that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It ended well, or counts as if it had.
    Done,
    /// It was passed over.
    Skipped,
    /// It is to be passed over: no parent of it did anything, or none failed.
    Passed(&'static str),
    /// It failed or was cancelled.
    Bad,
    /// It cannot go on without help.
    Stuck,
    /// It goes on, or will.
    Live,
    /// Parts of it go on, but another one ended badly: it cannot end well without help.
    Doomed,
    /// It waits for nothing but to be prepared.
    Ready,
    /// It waits for its turn among the parts of a fan-out.
    Held,
}

impl Standing {
    /// Whether something will happen by itself.
    pub const fn is_going_on(self) -> bool {
        matches!(self, Self::Live | Self::Doomed | Self::Ready | Self::Held)
    }

    /// Whether it is over, and not well.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Bad | Self::Stuck)
    }

    /// Whether it keeps what depends on it from succeeding.
    const fn is_in_the_way(self) -> bool {
        matches!(self, Self::Bad | Self::Stuck | Self::Doomed)
    }

    const fn is_passed(self) -> bool {
        matches!(self, Self::Skipped | Self::Passed(_))
    }
}

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

/// How every job of a run stands, by number. `tasks` has them all, by number.
pub fn standings(graph: &Graph, run: &Run, tasks: &[RunTask]) -> Vec<Standing> {
    Eye::new(graph, run, tasks).standings
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
    if run.progress.status != RunStatus::Running {
        return review;
    }
    let end_all = eye.reason_to_end();
    let mut going_on = false;
    let mut after_going_on = false;
    for task in tasks {
        let standing = eye.standing(task.place.index);
        let is_after = eye.is_after(task);
        if is_after && !eye.is_current_after(task) {
            review.changes.extend(superseded(task).map(|change| (task.job_id, change)));
            continue;
        }
        let ended = end_all.as_ref().filter(|end| !is_after && end.concerns(graph, task));
        // What has all its parts ends well, whatever else is to end.
        let joins = standing == Standing::Ready && task.fan_out.is_some() && task.parents.open == 0;
        let will_be_stuck = ended.is_some_and(|end| !joins && eye.will_be_stuck(task, end));
        let change = match ended {
            Some(end) => ending(task, if will_be_stuck { Standing::Stuck } else { standing }, end),
            None => change_of(task, standing),
        };
        let ends = will_be_stuck || matches!(change, Some(TaskChange::End { .. }));
        if standing == Standing::Ready && (ended.is_none() || joins) {
            review.ready.push(task.place.index);
        }
        review.blocked += u32::from(eye.follows_others(task, change.as_ref()));
        if task.place.rounds.is_empty() && standing.is_going_on() && !ends {
            if is_after { after_going_on = true } else { going_on = true }
        }
        review.changes.extend(change.map(|change| (task.job_id, change)));
    }
    let has_after = !graph.scopes[SCOPE_AFTER].nodes.is_empty();
    review.add_after = !going_on && has_after && run.progress.after_first.is_none();
    review.over = !going_on && !after_going_on && !review.add_after;
    review.status = eye.status(end_all.is_some());
    if let Some(limit) = stall_after {
        review.stalled = eye.stalled(limit, now);
    }
    review
}

/// Why everything is to end that has not.
struct EndAll {
    failure: Failure,
    spare_sheltered: bool,
}

impl EndAll {
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

/// Sees all jobs of a run.
struct Eye<'r> {
    graph: &'r Graph,
    run: &'r Run,
    tasks: &'r [RunTask],
    standings: Vec<Standing>,
    /// Which wait for something that is doomed: nobody counts down to the moment when that is stuck.
    waits_for_doomed: Vec<bool>,
    /// Since when the work has been going on that a job waits for to end: its own, or the oldest of its parts'.
    since: Vec<Option<Timestamp>>,
}

impl<'r> Eye<'r> {
    fn new(graph: &'r Graph, run: &'r Run, tasks: &'r [RunTask]) -> Self {
        let mut eye = Self {
            graph,
            run,
            tasks,
            standings: vec![Standing::Live; tasks.len()],
            waits_for_doomed: vec![false; tasks.len()],
            since: vec![None; tasks.len()],
        };
        eye.see_scope(SCOPE_TOP, FIRST_INDEX);
        if let Some(first) = run.progress.after_first {
            eye.see_scope(SCOPE_AFTER, first);
        }
        eye
    }

    fn task(&self, index: u32) -> Option<&'r RunTask> {
        self.tasks.get((index - FIRST_INDEX) as usize)
    }

    fn standing(&self, index: u32) -> Standing {
        self.standings[(index - FIRST_INDEX) as usize]
    }

    fn set(&mut self, index: u32, standing: Standing, since: Option<Timestamp>) {
        let at = (index - FIRST_INDEX) as usize;
        self.standings[at] = standing;
        self.since[at] = since;
    }

    fn see_scope(&mut self, scope: usize, first: u32) {
        let graph = self.graph;
        let scope = &graph.scopes[scope];
        for node in &scope.order {
            let index = first + (node - scope.nodes.start);
            let Some(task) = self.task(index) else { continue };
            let (standing, since) = self.see(task, |eye| {
                let parent = |node: &u32| eye.standing(first + (node - scope.nodes.start));
                let parents: Vec<Standing> = graph.node(*node).parents.iter().map(parent).collect();
                allowed(graph.node(*node).rule, &parents)
            });
            self.set(index, standing, since);
            let waits_for_doomed = graph.node(*node).parents.iter().any(|parent| {
                let at = (first - FIRST_INDEX + parent - scope.nodes.start) as usize;
                self.standings[at] == Standing::Doomed || self.waits_for_doomed[at]
            });
            self.waits_for_doomed[(index - FIRST_INDEX) as usize] =
                waits_for_doomed && standing.is_going_on();
        }
    }

    /// Whether a job that has not ended is going to only when others do: one that is blocked, that stands for parts, that waits for its turn,
    /// or for something that is doomed.
    fn follows_others(&self, task: &RunTask, change: Option<&TaskChange>) -> bool {
        let at = (task.place.index - FIRST_INDEX) as usize;
        match change {
            Some(TaskChange::Block) => true,
            Some(TaskChange::End { .. }) => false,
            _ if task.state.is_terminal() => false,
            _ if task.fan_out.is_some() || self.waits_for_doomed[at] => true,
            _ => matches!(self.standings[at], Standing::Stuck | Standing::Held),
        }
    }

    /// How a job stands; `rule` says it of one that waits and has no parts yet.
    fn see(&mut self, task: &RunTask, rule: impl Fn(&Self) -> Standing) -> (Standing, Option<Timestamp>) {
        let by_hand = |error: &Failure| error.code == SKIPPED_BY_HAND;
        let parts = task.fan_out.map(|parts| self.see_parts(task, parts));
        match task.state {
            State::Completed => (Standing::Done, None),
            State::Skipped if task.error.as_ref().is_some_and(by_hand) => (Standing::Done, None),
            State::Skipped => (Standing::Skipped, None),
            State::Failed | State::Cancelled => (Standing::Bad, None),
            State::Pending | State::Blocked => parts.unwrap_or_else(|| (rule(self), None)),
            _ => (Standing::Live, Some(task.started_at.unwrap_or(task.due_at))),
        }
    }

    fn see_parts(&mut self, task: &RunTask, parts: FanOut) -> (Standing, Option<Timestamp>) {
        let body = match &self.graph.node(task.place.node).work {
            NodeWork::ForEach { each: NodeEach::Scope(scope), .. } => Some(*scope),
            _ => None,
        };
        match (task.place.part, body) {
            (Part::Item, Some(scope)) => self.see_scope(scope, parts.first),
            _ => {
                for index in parts.indices() {
                    let Some(part) = self.task(index) else { continue };
                    let held = index >= parts.first + parts.released;
                    let (standing, since) =
                        self.see(part, |_| if held { Standing::Held } else { Standing::Ready });
                    self.set(index, standing, since);
                }
            }
        }
        let standings = || parts.indices().filter(|i| self.task(*i).is_some()).map(|i| self.standing(i));
        let since =
            parts.indices().filter_map(|i| self.since.get((i - FIRST_INDEX) as usize).copied()?).min();
        let goes_on = |s| matches!(s, Standing::Live | Standing::Doomed | Standing::Ready);
        let standing = if standings().any(goes_on) {
            if standings().any(Standing::is_in_the_way) { Standing::Doomed } else { Standing::Live }
        } else if standings().any(|s| s == Standing::Held) {
            Standing::Ready
        } else if standings().any(Standing::is_bad) {
            Standing::Stuck
        } else if standings().any(|s| matches!(s, Standing::Passed(_))) {
            Standing::Live
        } else {
            Standing::Ready
        };
        (standing, since)
    }

    fn is_after(&self, task: &RunTask) -> bool {
        self.graph.node(self.outermost_node(task)).scope == SCOPE_AFTER
    }

    /// Those of earlier rounds are history.
    fn is_current_after(&self, task: &RunTask) -> bool {
        self.run.progress.after_first.is_some_and(|first| task.place.index >= first)
    }

    /// The tasks that decide about the run: those that are parts of nothing, and of those that come after only the latest.
    fn outermost(&self) -> impl Iterator<Item = &'r RunTask> {
        let counts = |task: &&RunTask| {
            task.place.rounds.is_empty() && (!self.is_after(task) || self.is_current_after(task))
        };
        self.tasks.iter().filter(counts)
    }

    fn reason_to_end(&self) -> Option<EndAll> {
        if self.run.progress.cancel_requested {
            let failure = Failure::new(RUN_CANCELLED, "its run was cancelled");
            return Some(EndAll { failure, spare_sheltered: false });
        }
        if self.graph.on_failure == OnFailure::Continue {
            return None;
        }
        let failed = self.tasks.iter().find(|task| {
            let counts = !self.is_after(task) && self.is_part_of_something_open(task);
            task.state == State::Failed && counts
        })?;
        let message = format!("task {} failed", self.graph.path_of(&failed.place));
        Some(EndAll { failure: Failure::new(FAIL_FAST, message), spare_sheltered: true })
    }

    /// A failed part of something that has ended all the same (skipped, or completed by hand) is history.
    fn is_part_of_something_open(&self, task: &RunTask) -> bool {
        let outermost = self.task(FIRST_INDEX + self.outermost_node(task));
        task.place.rounds.is_empty() || outermost.is_none_or(|outer| !outer.state.is_terminal())
    }

    fn outermost_node(&self, task: &RunTask) -> u32 {
        let mut node = task.place.node;
        while let Some(owner) = self.graph.scopes[self.graph.node(node).scope].owner {
            node = owner;
        }
        node
    }

    /// A fan-out whose parts that wait are all being ended has nothing left to go on with, unless one of them runs or is spared.
    fn will_be_stuck(&self, task: &RunTask, end: &EndAll) -> bool {
        let waits = matches!(task.state, State::Pending | State::Blocked);
        waits && task.fan_out.is_some_and(|parts| !self.any_goes_on(parts, end))
    }

    fn any_goes_on(&self, parts: FanOut, end: &EndAll) -> bool {
        parts.indices().filter_map(|index| self.task(index)).any(|part| {
            let spared = !end.concerns(self.graph, part) && self.standing(part.place.index).is_going_on();
            let inside = part.fan_out.filter(|_| !part.state.is_terminal());
            part.state == State::Running || spared || inside.is_some_and(|inner| self.any_goes_on(inner, end))
        })
    }

    /// What the run comes to if nothing more happens.
    fn status(&self, something_failed: bool) -> RunStatus {
        if self.run.progress.cancel_requested {
            return RunStatus::Cancelled;
        }
        let bad = self.outermost().any(|task| self.standing(task.place.index).is_bad());
        if bad || something_failed { RunStatus::Failed } else { RunStatus::Completed }
    }

    fn stalled(&self, limit: Duration, now: Timestamp) -> Vec<u32> {
        let waits_for_too_long = |task: &&RunTask| {
            let waits =
                task.state == State::Pending && task.fan_out.is_none() && task.place.part == Part::Whole;
            waits
                && self.graph.node(task.place.node).parents.iter().any(|parent| {
                    let index = self.graph.index_seen_from(&task.place, *parent);
                    let since = self.since.get((index - FIRST_INDEX) as usize).copied().flatten();
                    since.is_some_and(|since| since != Timestamp::MAX && now.since(since) >= limit)
                })
        };
        self.tasks.iter().filter(waits_for_too_long).map(|task| task.place.index).collect()
    }
}

/// What its rule says of a task whose parents stand like this.
fn allowed(rule: TriggerRule, parents: &[Standing]) -> Standing {
    let any = |is: fn(Standing) -> bool| parents.iter().copied().any(is);
    let going_on = any(Standing::is_going_on);
    match rule {
        TriggerRule::AllSucceeded if any(Standing::is_in_the_way) => Standing::Stuck,
        TriggerRule::AllSucceeded if going_on => Standing::Live,
        TriggerRule::AllSucceeded if !parents.is_empty() && parents.iter().all(|p| p.is_passed()) => {
            Standing::Passed("everything it depends on was skipped")
        }
        TriggerRule::AnyFailed if any(Standing::is_in_the_way) => Standing::Ready,
        TriggerRule::AnyFailed | TriggerRule::AllDone if going_on => Standing::Live,
        TriggerRule::AnyFailed => Standing::Passed("nothing it depends on failed"),
        TriggerRule::AllSucceeded | TriggerRule::AllDone => Standing::Ready,
    }
}
