//! How each job of a run stands, seen from those that wait for it.
//!
//! A task that can go on by itself is *live*; one that cannot without somebody's help, because something it needs ended badly, is *stuck*, and shown
//! as blocked. What stands for parts stands as they do; while some of them go on and another one ended badly, it is *doomed*.

use std::time::Duration;

use super::definition::TriggerRule;
use super::graph::{Graph, NodeEach, NodeWork, SCOPE_AFTER, SCOPE_TOP};
use super::place::{FIRST_INDEX, FanOut, Part};
use super::run::{Run, RunTask, TaskChange, TaskError, task_at};
use super::wish::SKIPPED_BY_HAND;
use crate::state::State;
use crate::time::Timestamp;

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

/// How every job of a run stands, by number. `tasks` has them all, by number.
pub fn standings(graph: &Graph, run: &Run, tasks: &[RunTask]) -> Vec<Standing> {
    Eye::new(graph, run, tasks).standings
}

/// Sees all jobs of a run.
pub(super) struct Eye<'r> {
    pub graph: &'r Graph,
    pub run: &'r Run,
    pub tasks: &'r [RunTask],
    standings: Vec<Standing>,
    /// Which wait for something that is doomed: nobody counts down to the moment when that is stuck.
    waits_for_doomed: Vec<bool>,
    /// Since when the work has been going on that a job waits for to end: its own, or the oldest of its parts'.
    since: Vec<Option<Timestamp>>,
}

impl<'r> Eye<'r> {
    pub(super) fn new(graph: &'r Graph, run: &'r Run, tasks: &'r [RunTask]) -> Self {
        // Numbers may be missing in between.
        let numbers = tasks.last().map_or(0, |task| task.place.index - FIRST_INDEX + 1) as usize;
        let mut eye = Self {
            graph,
            run,
            tasks,
            standings: vec![Standing::Live; numbers],
            waits_for_doomed: vec![false; numbers],
            since: vec![None; numbers],
        };
        eye.see_scope(SCOPE_TOP, FIRST_INDEX);
        if let Some(first) = run.progress.after_first {
            eye.see_scope(SCOPE_AFTER, first);
        }
        eye
    }

    pub(super) fn task(&self, index: u32) -> Option<&'r RunTask> {
        task_at(self.tasks, index)
    }

    pub(super) fn standing(&self, index: u32) -> Standing {
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
    pub(super) fn follows_others(&self, task: &RunTask, change: Option<&TaskChange>) -> bool {
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
        let by_hand = |error: &TaskError| error.failure.code == SKIPPED_BY_HAND;
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
        let standing = if parts.unmade > 0 {
            // Whatever the others do, the next ones are to be made.
            Standing::Ready
        } else if standings().any(goes_on) {
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

    /// Those of earlier rounds are history.
    pub(super) fn is_current_after(&self, task: &RunTask) -> bool {
        self.run.progress.after_first.is_some_and(|first| task.place.index >= first)
    }

    /// The tasks that decide about the run: those that are parts of nothing, and of those that come after only the latest.
    pub(super) fn outermost(&self) -> impl Iterator<Item = &'r RunTask> {
        let counts = |task: &&RunTask| {
            task.place.rounds.is_empty()
                && (!self.graph.comes_after(&task.place) || self.is_current_after(task))
        };
        self.tasks.iter().filter(counts)
    }

    pub(super) fn stalled(&self, limit: Duration, now: Timestamp) -> Vec<u32> {
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
