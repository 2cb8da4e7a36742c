//! Runs of workflows into what a client reads: how tasks stand for people, and what they wait for.
//!
//! A fan-out is a job that stands for its elements: for people it runs while one of them does, and ends as they do.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::parents::NOT_UNTIL_RELEASED;
use tickwheel_core::why::{Awaited, ParentTask, WaitingTask, explain_paused_run, explain_task};
use tickwheel_core::workflow::{
    Around, DataLimits, FIRST_INDEX, FanOut, Graph, Node, NodeEach, NodeWork, Part, Run, RunTask,
    SCOPE_AFTER, SCOPE_TOP, Standing, beginning, standings, task_at,
};
use tickwheel_core::{JobId, State, Timestamp};
use tickwheel_protocol::{self as wire, RunItems, Status};

use super::answer::{error, json, status, time};
use super::words;
use crate::definitions::Definition;
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
    standings: Vec<Standing>,
    stalled: HashSet<u32>,
}

impl RunView {
    /// `tasks` has all jobs of the run, by number.
    pub fn new(definition: Arc<Definition>, run: Run, tasks: Vec<RunTask>, now: Timestamp) -> Self {
        let Definition { workflow, graph } = &*definition;
        let around = Around { workflow, graph, run: &run, now, limits: DataLimits::default() };
        let stalled = around.review(&tasks).stalled.into_iter().collect();
        let standings = standings(graph, &run, &tasks);
        Self { definition, run, tasks, standings, stalled }
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
        self.tasks.iter().rev().find(|task| self.graph().path_of(&task.place) == path)
    }

    /// Whether it is done for each element of an array, or one element of those for which tasks are.
    pub fn is_fan_out(&self, task: &RunTask) -> bool {
        match (&self.graph().node(task.place.node).work, task.place.part) {
            (NodeWork::Job(_), _) => false,
            (NodeWork::ForEach { .. }, Part::Whole) => true,
            (NodeWork::ForEach { each, .. }, Part::Item) => matches!(each, NodeEach::Scope(_)),
        }
    }

    /// The parts of a fan-out from number `skip` on, each with its number; none as long as there are none.
    pub fn parts(&self, task: &RunTask, skip: u32) -> impl Iterator<Item = (u32, &RunTask)> {
        let indices = task.fan_out.map_or(0..0, FanOut::indices);
        indices
            .enumerate()
            .skip(skip as usize)
            .filter_map(|(number, index)| Some((number as u32, self.task(index)?)))
    }

    /// A task, or one element of a fan-out.
    pub fn task_answer(&self, task: &RunTask) -> wire::RunTask {
        let node = self.graph().node(task.place.node);
        let shown = self.shown(task);
        let is_item = task.place.part == Part::Item;
        wire::RunTask {
            name: self.graph().path_of(&task.place),
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
            items: task.fan_out.map(|parts| self.items(parts)),
            item: task.place.rounds.last().filter(|_| is_item).map(|round| round.item),
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

    fn standing(&self, task: &RunTask) -> Standing {
        self.standings[(task.place.index - FIRST_INDEX) as usize]
    }

    /// Where a task stands for people.
    fn shown(&self, task: &RunTask) -> State {
        match task.fan_out.filter(|_| !task.state.is_terminal()) {
            None => task.state,
            Some(parts) if self.standing(task) == Standing::Stuck => {
                let RunItems { failed, cancelled, .. } = self.items(parts);
                if failed == 0 && cancelled > 0 { State::Cancelled } else { State::Failed }
            }
            Some(_) => State::Running,
        }
    }

    /// When it started; what has parts, with the first of them.
    fn started_at(&self, task: &RunTask) -> Option<Timestamp> {
        match task.fan_out {
            None => task.started_at,
            Some(_) => self.parts(task, 0).filter_map(|(_, part)| self.started_at(part)).min(),
        }
    }

    fn items(&self, parts: FanOut) -> RunItems {
        let mut items = RunItems { total: parts.items, released: parts.released, ..RunItems::default() };
        for part in parts.indices().filter_map(|index| self.task(index)) {
            let count = match self.shown(part) {
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
            Some(parts) => {
                let RunItems { total, completed, failed, cancelled, skipped, .. } = self.items(parts);
                let ended = completed + failed + cancelled + skipped;
                Awaited::Items { total, ended, failed: failed + cancelled }
            }
            None if self.standing(task) == Standing::Held => Awaited::ItsTurn,
            None => Awaited::Tasks { parents: self.parents(task), stalled_for: self.stalled_for(task) },
        };
        let blocked = task.state == State::Blocked || self.standing(task).is_bad();
        WaitingTask { path: self.graph().path_of(&task.place), blocked, since, awaits }
    }

    fn stalled_for(&self, task: &RunTask) -> Option<Duration> {
        let limit = self.definition.workflow.spec.stall_after_ms.map(Duration::from_millis);
        limit.filter(|_| self.stalled.contains(&task.place.index))
    }

    fn parents(&self, task: &RunTask) -> Vec<ParentTask> {
        if task.place.part == Part::Item {
            return Vec::new();
        }
        let nodes = &self.graph().node(task.place.node).parents;
        let parent = |node: &u32| {
            let parent = self.task(self.graph().index_seen_from(&task.place, *node))?;
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
