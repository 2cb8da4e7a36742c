//! The status of each job of a run, as those that wait for it see it.
//!
//! A task that can go on by itself is *live*; one that cannot without somebody's help, because something it needs ended
//! badly, is *stuck*, and shown as blocked. A fan-out has the status of its items; while some of them go on and another
//! one ended badly, it *will fail*.

use std::time::Duration;

use super::command::SKIPPED_BY_HAND;
use super::definition::TriggerRule;
use super::end_all::EndAll;
use super::graph::{Graph, NodeEach, NodeWork, SCOPE_AFTER, SCOPE_TOP};
use super::position::{FIRST_INDEX, FanOut, TaskRole};
use super::run::{Run, RunTask, TaskChange, TaskError, task_at};
use crate::state::State;
use crate::time::Timestamp;

/// The status of a job of a run, as those that wait for it see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectiveStatus {
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
    /// Items of it go on, but another one ended badly: it cannot end well without help.
    WillFail,
    /// It waits for nothing but to be prepared.
    Ready,
    /// It waits for its turn among the items of a fan-out.
    Held,
}

impl EffectiveStatus {
    /// Whether something will happen by itself.
    pub const fn is_going_on(self) -> bool {
        matches!(self, Self::Live | Self::WillFail | Self::Ready | Self::Held)
    }

    /// Whether it is over, and not well.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Bad | Self::Stuck)
    }

    /// Whether it keeps what depends on it from succeeding.
    const fn is_in_the_way(self) -> bool {
        matches!(self, Self::Bad | Self::Stuck | Self::WillFail)
    }

    const fn is_passed(self) -> bool {
        matches!(self, Self::Skipped | Self::Passed(_))
    }
}

/// The status of every job of a run, by number. `tasks` has them all, by number.
pub fn effective_statuses(graph: &Graph, run: &Run, tasks: &[RunTask]) -> Vec<EffectiveStatus> {
    StatusClassifier::new(graph, run, tasks).statuses
}

/// Classifies all jobs of a run.
pub(super) struct StatusClassifier<'r> {
    pub graph: &'r Graph,
    pub run: &'r Run,
    pub tasks: &'r [RunTask],
    statuses: Vec<EffectiveStatus>,
    /// Which wait for something that will fail: nobody counts down to the moment when that is stuck.
    waits_for_failing: Vec<bool>,
    /// Since when the work has been going on that a job waits for to end: its own, or the oldest of its items'.
    since: Vec<Option<Timestamp>>,
    /// Everything is to end that has not, and why.
    pub end_all: Option<EndAll>,
}

impl<'r> StatusClassifier<'r> {
    pub(super) fn new(graph: &'r Graph, run: &'r Run, tasks: &'r [RunTask]) -> Self {
        // Numbers may be missing in between.
        let numbers = tasks.last().map_or(0, |task| task.position.index - FIRST_INDEX + 1) as usize;
        let mut classifier = Self {
            graph,
            run,
            tasks,
            statuses: vec![EffectiveStatus::Live; numbers],
            waits_for_failing: vec![false; numbers],
            since: vec![None; numbers],
            end_all: EndAll::wanted(graph, run, tasks),
        };
        classifier.classify_scope(SCOPE_TOP, FIRST_INDEX);
        if let Some(first) = run.progress.after_first {
            classifier.classify_scope(SCOPE_AFTER, first);
        }
        classifier
    }

    pub(super) fn task(&self, index: u32) -> Option<&'r RunTask> {
        task_at(self.tasks, index)
    }

    pub(super) fn status(&self, index: u32) -> EffectiveStatus {
        self.statuses[(index - FIRST_INDEX) as usize]
    }

    fn set(&mut self, index: u32, status: EffectiveStatus, since: Option<Timestamp>) {
        let at = (index - FIRST_INDEX) as usize;
        self.statuses[at] = status;
        self.since[at] = since;
    }

    fn classify_scope(&mut self, scope: usize, first: u32) {
        let graph = self.graph;
        let scope = &graph.scopes[scope];
        for node in &scope.order {
            let index = first + (node - scope.nodes.start);
            let Some(task) = self.task(index) else { continue };
            let (status, since) = self.classify(task, |classifier| {
                let parent = |node: &u32| classifier.status(first + (node - scope.nodes.start));
                let parents: Vec<EffectiveStatus> = graph.node(*node).parents.iter().map(parent).collect();
                allowed(graph.node(*node).rule, &parents)
            });
            self.set(index, status, since);
            let waits_for_failing = graph.node(*node).parents.iter().any(|parent| {
                let at = (first - FIRST_INDEX + parent - scope.nodes.start) as usize;
                self.statuses[at] == EffectiveStatus::WillFail || self.waits_for_failing[at]
            });
            self.waits_for_failing[(index - FIRST_INDEX) as usize] =
                waits_for_failing && status.is_going_on();
        }
    }

    /// Whether a job that has not ended is going to only when others do: one that is blocked, a fan-out, one that waits
    /// for its turn, or for something that will fail.
    pub(super) fn follows_others(&self, task: &RunTask, change: Option<&TaskChange>) -> bool {
        let at = (task.position.index - FIRST_INDEX) as usize;
        match change {
            Some(TaskChange::Block) => true,
            Some(TaskChange::End { .. }) => false,
            _ if task.state.is_terminal() => false,
            _ if task.fan_out.is_some() || self.waits_for_failing[at] => true,
            _ => matches!(self.statuses[at], EffectiveStatus::Stuck | EffectiveStatus::Held),
        }
    }

    /// The status of a job; `rule` says it of one that waits and has no items yet.
    fn classify(
        &mut self,
        task: &RunTask,
        rule: impl Fn(&Self) -> EffectiveStatus,
    ) -> (EffectiveStatus, Option<Timestamp>) {
        let by_hand = |error: &TaskError| error.failure.code == SKIPPED_BY_HAND;
        let fan_out = task.fan_out.map(|fan_out| self.classify_items(task, fan_out));
        match task.state {
            State::Completed => (EffectiveStatus::Done, None),
            State::Skipped if task.error.as_ref().is_some_and(by_hand) => (EffectiveStatus::Done, None),
            State::Skipped => (EffectiveStatus::Skipped, None),
            State::Failed | State::Cancelled => (EffectiveStatus::Bad, None),
            State::Pending | State::Blocked => fan_out.unwrap_or_else(|| (rule(self), None)),
            _ => (EffectiveStatus::Live, Some(task.started_at.unwrap_or(task.due_at))),
        }
    }

    fn classify_items(&mut self, task: &RunTask, fan_out: FanOut) -> (EffectiveStatus, Option<Timestamp>) {
        let body = match &self.graph.node(task.position.node).work {
            NodeWork::ForEach { each: NodeEach::Scope(scope), .. } => Some(*scope),
            _ => None,
        };
        match (task.position.role, body) {
            (TaskRole::Item, Some(scope)) => self.classify_scope(scope, fan_out.first),
            _ => {
                for index in fan_out.indices() {
                    let Some(item) = self.task(index) else { continue };
                    let held = index >= fan_out.first + fan_out.released;
                    let (status, since) = self.classify(item, |_| {
                        if held { EffectiveStatus::Held } else { EffectiveStatus::Ready }
                    });
                    self.set(index, status, since);
                }
            }
        }
        let statuses = || fan_out.indices().filter(|i| self.task(*i).is_some()).map(|i| self.status(i));
        let since =
            fan_out.indices().filter_map(|i| self.since.get((i - FIRST_INDEX) as usize).copied()?).min();
        let goes_on =
            |s| matches!(s, EffectiveStatus::Live | EffectiveStatus::WillFail | EffectiveStatus::Ready);
        let is_ending = self.end_all.as_ref().is_some_and(|end| end.concerns(self.graph, task));
        // What has not been made by then never is.
        let is_cut_short = is_ending && fan_out.unmade > 0;
        let status = if fan_out.unmade > 0 && !is_ending {
            // Whatever the others do, the next ones are to be made.
            EffectiveStatus::Ready
        } else if statuses().any(goes_on) {
            if is_cut_short || statuses().any(EffectiveStatus::is_in_the_way) {
                EffectiveStatus::WillFail
            } else {
                EffectiveStatus::Live
            }
        } else if statuses().any(|s| s == EffectiveStatus::Held) {
            EffectiveStatus::Ready
        } else if is_cut_short || statuses().any(EffectiveStatus::is_bad) {
            EffectiveStatus::Stuck
        } else if statuses().any(|s| matches!(s, EffectiveStatus::Passed(_))) {
            EffectiveStatus::Live
        } else {
            EffectiveStatus::Ready
        };
        (status, since)
    }

    /// Those of earlier passes are history.
    pub(super) fn is_current_after(&self, task: &RunTask) -> bool {
        self.run.progress.after_first.is_some_and(|first| task.position.index >= first)
    }

    /// The tasks that decide about the run: those that are items of nothing, and of those that come after only the
    /// latest.
    pub(super) fn outermost(&self) -> impl Iterator<Item = &'r RunTask> {
        let counts = |task: &&RunTask| {
            task.position.iterations.is_empty()
                && (!self.graph.comes_after(&task.position) || self.is_current_after(task))
        };
        self.tasks.iter().filter(counts)
    }

    pub(super) fn stalled(&self, limit: Duration, now: Timestamp) -> Vec<u32> {
        let waits_for_too_long = |task: &&RunTask| {
            let waits = task.state == State::Pending
                && task.fan_out.is_none()
                && task.position.role == TaskRole::Whole;
            waits
                && self.graph.node(task.position.node).parents.iter().any(|parent| {
                    let index = self.graph.index_seen_from(&task.position, *parent);
                    let since = self.since.get((index - FIRST_INDEX) as usize).copied().flatten();
                    since.is_some_and(|since| since != Timestamp::MAX && now.since(since) >= limit)
                })
        };
        self.tasks.iter().filter(waits_for_too_long).map(|task| task.position.index).collect()
    }
}

/// What its rule says of a task whose parents stand like this.
fn allowed(rule: TriggerRule, parents: &[EffectiveStatus]) -> EffectiveStatus {
    let any = |is: fn(EffectiveStatus) -> bool| parents.iter().copied().any(is);
    let going_on = any(EffectiveStatus::is_going_on);
    match rule {
        TriggerRule::AllSucceeded if any(EffectiveStatus::is_in_the_way) => EffectiveStatus::Stuck,
        TriggerRule::AllSucceeded if going_on => EffectiveStatus::Live,
        TriggerRule::AllSucceeded if !parents.is_empty() && parents.iter().all(|p| p.is_passed()) => {
            EffectiveStatus::Passed("everything it depends on was skipped")
        }
        TriggerRule::AnyFailed if any(EffectiveStatus::is_in_the_way) => EffectiveStatus::Ready,
        TriggerRule::AnyFailed | TriggerRule::AllDone if going_on => EffectiveStatus::Live,
        TriggerRule::AnyFailed => EffectiveStatus::Passed("nothing it depends on failed"),
        TriggerRule::AllSucceeded | TriggerRule::AllDone => EffectiveStatus::Ready,
    }
}
