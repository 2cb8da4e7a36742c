//! What has to hold for runs of workflows, at every claim and when everything is over.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_core::workflow::{
    Graph, NodeWork, RunStatus, RunTask, TaskPosition, TaskRole, TriggerRule, task_at,
};
use tickwheel_core::{Job, RunId, State, Timestamp};
use tickwheel_testkit::Model;

use crate::Violation;
use crate::checks::violation;

/// What is known of the runs.
#[derive(Debug, Default)]
pub struct WorkflowChecks {
    /// Every run that was stored, and what it follows.
    pub runs: BTreeMap<RunId, Graph>,
    /// Those that somebody did something to.
    pub disturbed: BTreeSet<RunId>,
    /// Steps that were written.
    pub steps: usize,
    /// How often a run was paused.
    pub pauses: usize,
}

impl WorkflowChecks {
    /// A task was claimed: its rule allows it (I8).
    pub fn claimed(&self, model: &Model, job: &Job, now: Timestamp) -> Result<(), Violation> {
        let Some(position) = &job.spec.position else { return Ok(()) };
        let graph = &self.runs[&position.run];
        let node = graph.node(position.node);
        self.comes_last(model, graph, position, now)?;
        let parents = job.spec.parents().filter_map(|id| model.job(id));
        let states: Vec<State> = parents.map(|parent| parent.state()).collect();
        let fine = match node.rule {
            // Somebody may have brought a parent back since, after it was passed over by hand.
            _ if self.disturbed.contains(&position.run) => true,
            TriggerRule::AllSucceeded => {
                states.iter().all(|s| matches!(s, State::Completed | State::Skipped))
            }
            TriggerRule::AllDone => {
                states.iter().all(|s| s.is_terminal() || *s == State::Blocked || *s == State::Pending)
            }
            TriggerRule::AnyFailed => states.iter().any(|s| *s != State::Completed),
        };
        if fine {
            return Ok(());
        }
        let what = format!("{} started while its parents are {states:?}", graph.path_of(position));
        Err(violation("I8", now, what))
    }

    /// What comes after all others does so: none of them goes on.
    fn comes_last(
        &self,
        model: &Model,
        graph: &Graph,
        position: &TaskPosition,
        now: Timestamp,
    ) -> Result<(), Violation> {
        if !graph.comes_after(position) || self.disturbed.contains(&position.run) {
            return Ok(());
        }
        let tasks = model.read_run(position.run).map(|(_, tasks)| tasks).unwrap_or_default();
        let others = tasks.iter().filter(|task| !graph.comes_after(&task.position));
        let mut going_on = others.filter(|task| !task.state.is_terminal() && task.state != State::Blocked);
        match going_on.next() {
            Some(task) => {
                let other = graph.path_of(&task.position);
                let what = format!("{} started while {other} is {}", graph.path_of(position), task.state);
                Err(violation("I8", now, what))
            }
            None => Ok(()),
        }
    }

    /// At any time: a limited fan-out keeps its limit, and a run counts what is open.
    pub fn inspect(&self, model: &Model, now: Timestamp) -> Result<(), Violation> {
        for (id, graph) in &self.runs {
            let Some((run, tasks)) = model.read_run(*id) else {
                return Err(violation("I1", now, format!("run {id} is lost")));
            };
            let open = tasks.iter().filter(|task| !task.state.is_terminal()).count();
            if open != run.open as usize {
                return Err(violation(
                    "I1",
                    now,
                    format!("run {id} counts {} open and has {open}", run.open),
                ));
            }
            if !self.disturbed.contains(id) {
                tasks.iter().try_for_each(|task| within_limit(graph, task, &tasks, now))?;
            }
        }
        Ok(())
    }

    /// Everything is over: every run is, with the status its tasks have, and nothing of it waits for nothing.
    pub fn finished(&self, model: &Model, now: Timestamp) -> Result<(), Violation> {
        self.inspect(model, now)?;
        for (id, graph) in &self.runs {
            let (run, tasks) = model.read_run(*id).expect("it was just inspected");
            let path = |task: &RunTask| graph.path_of(&task.position);
            if !run.progress.status.is_over() {
                let open: Vec<String> = tasks
                    .iter()
                    .filter(|task| !task.state.is_terminal())
                    .map(|task| format!("{} {}", path(task), task.state))
                    .collect();
                return Err(violation("I1", now, format!("run {id} does not come to its end: {open:?}")));
            }
            let waits = tasks.iter().find(|task| !task.state.is_terminal() && task.state != State::Blocked);
            if let Some(task) = waits.filter(|task| task.position.iterations.is_empty()) {
                let what =
                    format!("run {id} is {} and {} is {}", run.progress.status, path(task), task.state);
                return Err(violation("I1", now, what));
            }
            let outermost = tasks.iter().filter(|task| task.position.iterations.is_empty());
            let all_well =
                outermost.clone().all(|task| matches!(task.state, State::Completed | State::Skipped));
            if run.progress.status == RunStatus::Completed && !all_well && !self.disturbed.contains(id) {
                let ends: Vec<String> =
                    outermost.map(|task| format!("{} {}", path(task), task.state)).collect();
                return Err(violation("I8", now, format!("run {id} completed with {ends:?}")));
            }
        }
        Ok(())
    }

    /// Whether nothing of any run can go on by itself.
    pub fn all_over(&self, model: &Model) -> bool {
        let ids: Vec<RunId> = self.runs.keys().copied().collect();
        let over = model.get_runs(&ids).iter().all(|run| run.progress.status.is_over());
        over && model.reconcile_requests(None, 1).is_empty()
    }
}

fn within_limit(graph: &Graph, task: &RunTask, tasks: &[RunTask], now: Timestamp) -> Result<(), Violation> {
    let NodeWork::ForEach { concurrency: Some(limit), .. } = &graph.node(task.position.node).work else {
        return Ok(());
    };
    let Some(parts) = task.fan_out.filter(|_| task.position.role == TaskRole::Whole) else {
        return Ok(());
    };
    let goes_on = |part: &&RunTask| {
        match part.state {
            State::Pending => part.fan_out.is_some(),
            // What is blocked takes nobody's turn.
            State::Blocked => false,
            state => !state.is_terminal(),
        }
    };
    let going = parts.indices().filter_map(|index| task_at(tasks, index)).filter(goes_on).count();
    if going > *limit as usize {
        let what = format!("{} has {going} items going, of which {limit} may", graph.path_of(&task.position));
        return Err(violation("I8", now, what));
    }
    Ok(())
}
