//! Runs of workflows into what a client reads: how tasks stand for people, and what they wait for.
//!
//! A fan-out is a job that stands for its items: to clients it runs while one of them does, and ends as they do.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::parents::NOT_UNTIL_RELEASED;
use tickwheel_core::why::{Awaited, ParentTask, WaitingTask, explain_paused_run, explain_task};
use tickwheel_core::workflow::{
    DataLimits, Definition, EffectiveStatus, FIRST_INDEX, FanOut, Graph, Node, NodeEach, NodeWork, Run,
    RunContext, RunTask, SCOPE_AFTER, SCOPE_TOP, TaskRole, beginning, effective_statuses, task_at,
};
use tickwheel_core::{JobId, State, Timestamp};
use tickwheel_protocol::{self as wire, RunItems, Status};

use super::answer::{error, json, status, time};
use super::words;
use crate::error::ApiResult;

/// A run without its tasks.
pub fn run(run: &Run) -> ApiResult<wire::WorkflowRun> {
    let progress = &run.progress;
    Ok(wire::WorkflowRun {
        id: run.id.as_uuid(),
        workflow: run.workflow.to_string(),
        version: run.version,
        status: words::wire_run_status(progress.status),
        cancel_requested: progress.cancel_requested,
        tenant: run.tenant.to_string(),
        input: json(&run.input)?,
        created_at: time(run.created_at),
        ended_at: progress.ended_at.map(time),
        paused_at: progress.paused_at.map(time),
        tasks_total: run.total,
        tasks_open: run.open,
        stalled: progress.stalled,
        job_id: run.job_id.map(JobId::as_uuid),
        tasks: None,
    })
}

/// A run with all its jobs, as it was at one moment.
pub struct RunView {
    definition: Arc<Definition>,
    run: Run,
    tasks: Vec<RunTask>,
    effective_statuses: Vec<EffectiveStatus>,
    stalled: HashSet<u32>,
}

impl RunView {
    /// `tasks` has all jobs of the run, by number.
    pub fn new(definition: Arc<Definition>, run: Run, tasks: Vec<RunTask>, now: Timestamp) -> Self {
        let Definition { workflow, graph } = &*definition;
        let context = RunContext { workflow, graph, run: &run, now, limits: DataLimits::default() };
        let stalled = context.review(&tasks).stalled.into_iter().collect();
        let effective_statuses = effective_statuses(graph, &run, &tasks);
        Self { definition, run, tasks, effective_statuses, stalled }
    }

    /// The run without its tasks.
    pub fn run(&self) -> ApiResult<wire::WorkflowRun> {
        run(&self.run)
    }

    /// The tasks of the run, in the order of the definition, each made when it is asked for.
    pub fn into_overview(self) -> impl Iterator<Item = wire::RunTask> + Send + 'static {
        let top = self.graph().scopes[SCOPE_TOP].nodes.len() as u32;
        let after = self.graph().scopes[SCOPE_AFTER].nodes.clone();
        (0..top + after.len() as u32).filter_map(move |number| match number.checked_sub(top) {
            None => Some(self.task_answer(self.task(FIRST_INDEX + number)?)),
            Some(number) => match self.run.progress.after_first {
                Some(first) => Some(self.task_answer(self.task(first + number)?)),
                None => Some(self.yet_to_come(self.graph().node(after.start + number))),
            },
        })
    }

    fn graph(&self) -> &Graph {
        &self.definition.graph
    }

    fn task(&self, index: u32) -> Option<&RunTask> {
        task_at(&self.tasks, index)
    }

    /// The task that this job carries out.
    pub fn of_job(&self, id: JobId) -> Option<&RunTask> {
        self.tasks.iter().find(|task| task.job_id == id)
    }

    /// The job that people call so. Of those that come after all others, and may have come more than once, the latest.
    pub fn find(&self, path: &str) -> Option<&RunTask> {
        self.tasks.iter().rev().find(|task| self.graph().path_of(&task.position) == path)
    }

    /// Whether it is done for each element of an array, or one element of those for which tasks are.
    pub fn is_fan_out(&self, task: &RunTask) -> bool {
        match (&self.graph().node(task.position.node).work, task.position.role) {
            (NodeWork::Job(_), _) => false,
            (NodeWork::ForEach { .. }, TaskRole::Whole) => true,
            (NodeWork::ForEach { each, .. }, TaskRole::Item) => matches!(each, NodeEach::Scope(_)),
        }
    }

    /// The items of a fan-out from number `skip` on, each with its number; none as long as there are none.
    pub fn item_tasks(&self, task: &RunTask, skip: u32) -> impl Iterator<Item = (u32, &RunTask)> {
        let indices = task.fan_out.map_or(0..0, FanOut::indices);
        indices
            .enumerate()
            .skip(skip as usize)
            .filter_map(|(number, index)| Some((number as u32, self.task(index)?)))
    }

    /// A task, or one element of a fan-out.
    pub fn task_answer(&self, task: &RunTask) -> wire::RunTask {
        let node = self.graph().node(task.position.node);
        let shown = self.shown(task);
        let is_item = task.position.role == TaskRole::Item;
        wire::RunTask {
            name: self.graph().path_of(&task.position),
            status: status(shown),
            job_id: Some(task.job_id.as_uuid()),
            job_type: task.job_type.to_string(),
            attempt: task.attempt,
            due_at: Some(task.due_at).filter(|due_at| *due_at != NOT_UNTIL_RELEASED).map(time),
            started_at: self.started_at(task).map(time),
            completed_at: task.completed_at.map(time),
            depends_on: if is_item { Vec::new() } else { self.names(&node.parents) },
            trigger_rule: words::wire_trigger_rule(if is_item { Default::default() } else { node.rule }),
            error: task
                .error
                .as_ref()
                .map(|found| wire::JobError { truncated: found.is_cut, ..error(&found.failure) }),
            why_waiting: self.why_waiting(task, shown),
            items: task.fan_out.map(|fan_out| self.items(fan_out)),
            item: task.position.iterations.last().filter(|_| is_item).map(|iteration| iteration.item),
        }
    }

    /// One of those that come after all others, before they are there.
    fn yet_to_come(&self, node: &Node) -> wire::RunTask {
        let job_type = match &node.work {
            NodeWork::Job(template) | NodeWork::ForEach { each: NodeEach::Job(template), .. } => {
                &template.job.job_type
            }
            NodeWork::ForEach { .. } => &node.name,
        };
        let waiting = WaitingTask {
            path: node.name.to_string(),
            blocked: false,
            since: self.run.created_at,
            awaits: Awaited::TheOthers,
        };
        wire::RunTask {
            name: node.name.to_string(),
            status: Status::Pending,
            job_id: None,
            job_type: job_type.to_string(),
            attempt: 0,
            due_at: None,
            started_at: None,
            completed_at: None,
            depends_on: self.names(&node.parents),
            trigger_rule: words::wire_trigger_rule(node.rule),
            error: None,
            why_waiting: Some(explain_task(&waiting).sentence),
            items: None,
            item: None,
        }
    }

    fn names(&self, nodes: &[u32]) -> Vec<String> {
        nodes.iter().map(|node| self.graph().node(*node).name.to_string()).collect()
    }

    fn effective_status(&self, task: &RunTask) -> EffectiveStatus {
        self.effective_statuses[(task.position.index - FIRST_INDEX) as usize]
    }

    /// Where a task stands for people.
    fn shown(&self, task: &RunTask) -> State {
        match task.fan_out.filter(|_| !task.state.is_terminal()) {
            None => task.state,
            Some(fan_out) if self.effective_status(task) == EffectiveStatus::Stuck => {
                let RunItems { failed, cancelled, .. } = self.items(fan_out);
                if failed == 0 && cancelled > 0 { State::Cancelled } else { State::Failed }
            }
            Some(_) => State::Running,
        }
    }

    /// When it started; a fan-out, with the first of its items.
    fn started_at(&self, task: &RunTask) -> Option<Timestamp> {
        match task.fan_out {
            None => task.started_at,
            Some(_) => self.item_tasks(task, 0).filter_map(|(_, item)| self.started_at(item)).min(),
        }
    }

    fn items(&self, fan_out: FanOut) -> RunItems {
        let mut items = RunItems { total: fan_out.items, released: fan_out.released, ..RunItems::default() };
        for item in fan_out.indices().filter_map(|index| self.task(index)) {
            let count = match self.shown(item) {
                State::Completed => &mut items.completed,
                State::Failed => &mut items.failed,
                State::Cancelled => &mut items.cancelled,
                State::Skipped => &mut items.skipped,
                State::Running | State::Dispatched => &mut items.running,
                State::Pending | State::Scheduled | State::Paused | State::Blocked => &mut items.waiting,
            };
            *count += 1;
        }
        items
    }

    /// In words. The error of a parent is cut: all its children repeat it.
    fn why_waiting(&self, task: &RunTask, shown: State) -> Option<String> {
        match (shown, self.run.progress.paused_at) {
            (State::Pending | State::Blocked, _) => {}
            (State::Scheduled, Some(since)) => return Some(explain_paused_run(since).sentence),
            _ => return None,
        }
        let mut waiting = self.waiting(task, self.run.created_at);
        if let Awaited::Tasks { parents, .. } = &mut waiting.awaits {
            for error in parents.iter_mut().filter_map(|parent| parent.error.as_mut()) {
                error.message = beginning(&error.message).to_owned();
            }
        }
        Some(explain_task(&waiting).sentence)
    }

    /// What a task waits for that has waited since then.
    pub fn waiting(&self, task: &RunTask, since: Timestamp) -> WaitingTask {
        let awaits = match task.fan_out {
            Some(fan_out) => {
                let RunItems { total, completed, failed, cancelled, skipped, .. } = self.items(fan_out);
                let ended = completed + failed + cancelled + skipped;
                Awaited::Items { total, ended, failed: failed + cancelled }
            }
            None if self.effective_status(task) == EffectiveStatus::Held => Awaited::ItsTurn,
            None => Awaited::Tasks { parents: self.parents(task), stalled_for: self.stalled_for(task) },
        };
        let blocked = task.state == State::Blocked || self.effective_status(task).is_bad();
        WaitingTask { path: self.graph().path_of(&task.position), blocked, since, awaits }
    }

    fn stalled_for(&self, task: &RunTask) -> Option<Duration> {
        let limit = self.definition.workflow.spec.stall_after_ms.map(Duration::from_millis);
        limit.filter(|_| self.stalled.contains(&task.position.index))
    }

    fn parents(&self, task: &RunTask) -> Vec<ParentTask> {
        if task.position.role == TaskRole::Item {
            return Vec::new();
        }
        let nodes = &self.graph().node(task.position.node).parents;
        let parent = |node: &u32| {
            let parent = self.task(self.graph().index_seen_from(&task.position, *node))?;
            Some(ParentTask {
                name: self.graph().node(*node).name.clone(),
                state: self.shown(parent),
                ended_at: parent.completed_at,
                error: parent.error.as_ref().map(|error| error.failure.clone()),
            })
        };
        nodes.iter().filter_map(parent).collect()
    }
}
