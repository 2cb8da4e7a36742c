//! What it takes to let a task go when its rule allows it: its condition, its data, its fan-out, and the join of its parts.
//!
//! Pure: the run, the task and the results it needs in, changes and new jobs out. Whoever calls it has seen that the task is ready; it
//! is written only if the run has not changed meanwhile.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::begin::{Maker, NewJobs, StartRefused, hold};
use super::data::{Unresolved, references, resolve};
use super::graph::{Graph, Node, NodeEach, NodeWork, Template};
use super::path::Path;
use super::place::{FanOut, Part, Place, Round};
use super::run::{Look, Run, RunStatus, RunStep, RunTask, TaskChange};
use crate::attempt::Failure;
use crate::id::{JobId, RunId};
use crate::job::{Job, JsonText};
use crate::parents::Release;
use crate::state::State;
use crate::time::Timestamp;

/// The code of a task that was skipped because its condition does not hold, or its rule does not apply.
pub const CONDITION_FALSE: &str = "condition_false";
/// The code of a task that refers to something that is not there.
pub const UNRESOLVED: &str = "unresolved_reference";
/// The code of a task that would fan out too far.
pub const TOO_MANY_ITEMS: &str = "too_many_items";

/// The code of a task whose data would be too large.
pub const TOO_LARGE: &str = "data_too_large";
/// So many bytes a payload may have that is made of results, and a result that is made of others.
pub const DATA_LEN_MAX: usize = 8 << 20;

impl From<Job> for ParentData {
    fn from(job: Job) -> Self {
        Self { state: job.state, result: job.result, error: job.error }
    }
}

/// What is known of a job that another one uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentData {
    /// How it ended.
    pub state: State,
    /// With which result.
    pub result: Option<JsonText>,
    /// For which reason.
    pub error: Option<Failure>,
}

/// What a task is prepared from.
pub struct Material<'r> {
    /// The graph.
    pub graph: &'r Graph,
    /// The run.
    pub run: &'r Run,
    /// How the run stands, for those that come after all others.
    pub status: RunStatus,
    /// None of the parts of a fan-out that were let go goes on: whoever is blocked takes nobody's turn.
    pub parts_are_idle: bool,
    /// The jobs that [`needs_of`] named.
    pub jobs: &'r HashMap<JobId, ParentData>,
    /// The time.
    pub now: Timestamp,
}

/// What follows, to be added to a step.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// What becomes of jobs that are there.
    pub changes: Vec<(JobId, TaskChange)>,
    /// Jobs that are added.
    pub new: NewJobs,
}

impl Prepared {
    fn only(job: JobId, change: TaskChange) -> Self {
        Self { changes: vec![(job, change)], ..Self::default() }
    }

    /// Makes it part of a step.
    pub fn add_to(self, step: &mut RunStep) {
        step.changes.extend(self.changes);
        step.jobs.extend(self.new.jobs);
        step.looks.extend(self.new.looks);
    }
}

/// The jobs whose results it takes to prepare a task.
pub fn needs_of(graph: &Graph, task: &RunTask) -> Vec<JobId> {
    let place = &task.place;
    let node = graph.node(place.node);
    if let Some(parts) = task.fan_out {
        let all = parts.indices().map(|index| JobId::of_task(place.run, index));
        return if task.parents.open == 0 { all.collect() } else { Vec::new() };
    }
    if place.release == Release::Task {
        return Vec::new();
    }
    let mut paths: Vec<Path> = node.when.iter().flat_map(|when| when.paths()).cloned().collect();
    let template = match &node.work {
        NodeWork::Job(template) => Some(template),
        NodeWork::ForEach { over, each, .. } => {
            paths.push(over.clone());
            match each {
                NodeEach::Job(template) => Some(template),
                NodeEach::Scope(_) => None,
            }
        }
    };
    if let Some(payload) = template.and_then(|template| template.payload.as_ref()) {
        paths.extend(references(payload).ok().flatten().into_iter().flatten());
    }
    let mut jobs: Vec<JobId> = paths
        .iter()
        .filter_map(|path| graph.source(place.node, &path.root))
        .map(|source| graph.job_seen_from(place, source))
        .collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// What becomes of a task that is ready. New jobs get the numbers from `next_index` on.
pub fn prepare(material: &Material<'_>, task: &RunTask, next_index: &mut u32) -> Prepared {
    let maker = Maker::new(material.graph, material.run, material.status, material.now);
    let preparation = Preparation { material, maker, task, node: material.graph.node(task.place.node) };
    preparation.prepared(next_index).unwrap_or_else(|failure| {
        let end = TaskChange::End { state: State::Failed, result: None, error: Some(failure) };
        Prepared::only(task.job_id, end)
    })
}

struct Preparation<'r> {
    material: &'r Material<'r>,
    maker: Maker<'r>,
    task: &'r RunTask,
    node: &'r Node,
}

impl Preparation<'_> {
    fn prepared(&self, next_index: &mut u32) -> Result<Prepared, Failure> {
        if let Some(parts) = self.task.fan_out {
            return self.go_on(parts);
        }
        if self.task.place.part == Part::Item {
            return self.open_body(next_index);
        }
        if self.task.place.release == Release::Task {
            // Its data was known from the beginning.
            return Ok(Prepared::only(self.task.job_id, TaskChange::Release { payload: None }));
        }
        if let Some(when) = &self.node.when
            && !when.holds(&|path| self.look(path, &self.task.place.rounds).ok())
        {
            return Ok(Prepared::only(self.task.job_id, skipped("its condition does not hold")));
        }
        match &self.node.work {
            NodeWork::Job(template) => {
                let payload = self.payload(template, &self.task.place.rounds)?;
                Ok(Prepared::only(self.task.job_id, TaskChange::Release { payload: Some(payload) }))
            }
            NodeWork::ForEach { over, max_items, concurrency, each } => {
                let elements = self.elements(over, *max_items)?;
                self.fan_out(elements, concurrency.unwrap_or(u32::MAX), each, next_index)
            }
        }
    }

    fn look(&self, path: &Path, rounds: &[Round]) -> Result<Value, String> {
        if let Some(found) = self.maker.around.look(path, rounds) {
            return found;
        }
        let graph = self.material.graph;
        let source = graph.source(self.task.place.node, &path.root);
        let source = source.ok_or_else(|| format!("there is no task named {:?}", path.root))?;
        let job = graph.job_seen_from(&self.task.place, source);
        let data = self.material.jobs.get(&job).ok_or_else(|| format!("{:?} has not ended", path.root))?;
        path.walk(&as_value(data)).cloned().map_err(|why| match data.state {
            State::Completed => why,
            state => format!("{why}; {} is {state}", path.root),
        })
    }

    fn payload(&self, template: &Template, rounds: &[Round]) -> Result<JsonText, Failure> {
        let Some(payload) = &template.payload else { return Ok(template.job.payload.clone()) };
        let value = resolve(payload, &|path| self.look(path, rounds)).map_err(|why| unresolved(&why))?;
        bounded(&value, "its payload")
    }

    fn elements(&self, over: &Path, max: u32) -> Result<Vec<Value>, Failure> {
        let found = self.look(over, &self.task.place.rounds);
        let value = found.map_err(|why| Failure::new(UNRESOLVED, format!("for_each over {over}: {why}")))?;
        match value {
            Value::Array(elements) if elements.len() <= max as usize => Ok(elements),
            Value::Array(elements) => Err(Failure::new(
                TOO_MANY_ITEMS,
                format!("for_each over {over}: {} elements, of which {max} are allowed", elements.len()),
            )),
            other => Err(Failure::new(
                UNRESOLVED,
                format!("for_each over {over}: that is {} and no array", super::path::kind(&other)),
            )),
        }
    }

    fn fan_out(
        &self,
        elements: Vec<Value>,
        concurrency: u32,
        each: &NodeEach,
        next_index: &mut u32,
    ) -> Result<Prepared, Failure> {
        if elements.is_empty() {
            return Ok(Prepared::only(self.task.job_id, completed(Value::Array(Vec::new()))?));
        }
        let items = elements.len() as u32;
        let parts = FanOut { first: *next_index, items, released: items.min(concurrency) };
        if parts.indices().end > RunId::TASK_INDEX_MAX {
            return Err(Failure::new(TOO_MANY_ITEMS, "the run has as many tasks as a run can have"));
        }
        let mut prepared =
            Prepared::only(self.task.job_id, TaskChange::Expand { fan_out: parts, fresh: true });
        for (item, element) in elements.into_iter().enumerate() {
            self.add_item(item as u32, element, parts, each, &mut prepared.new)?;
        }
        *next_index += items;
        Ok(prepared)
    }

    fn add_item(
        &self,
        item: u32,
        element: Value,
        parts: FanOut,
        each: &NodeEach,
        new: &mut NewJobs,
    ) -> Result<(), Failure> {
        let held = item >= parts.released;
        let element = Some(JsonText::from_checked(element.to_string()));
        let mut rounds = self.task.place.rounds.clone();
        rounds.push(Round { item, first: 0, element });
        let place = |rounds, release| Place {
            index: parts.first + item,
            part: Part::Item,
            release,
            rounds,
            parents: Vec::new(),
            children: Vec::new(),
            group: Some(self.task.place.index),
            counted: false,
            ..self.task.place
        };
        let mut job = match each {
            NodeEach::Job(template) => {
                let payload = self.payload(template, &rounds).map_err(|failure| at_item(failure, item))?;
                // The element is in the payload: nobody needs it again.
                let numbers = rounds.iter().map(|round| Round { element: None, ..*round }).collect();
                let release = if held { Release::Conducted } else { Release::Task };
                self.maker.job(template, place(numbers, release), payload)
            }
            NodeEach::Scope(_) => self.maker.parts(&self.node.name, place(rounds, Release::Conducted)),
        };
        let is_body = matches!(each, NodeEach::Scope(_));
        if held || is_body {
            hold(&mut job, u32::from(held));
        }
        if is_body && !held {
            new.looks.push(job.id);
        }
        new.jobs.push(job);
        Ok(())
    }

    /// The tasks of one round.
    fn open_body(&self, next_index: &mut u32) -> Result<Prepared, Failure> {
        let NodeWork::ForEach { each: NodeEach::Scope(scope), .. } = &self.node.work else {
            // A job of a fan-out that was held back: it has its data.
            return Ok(Prepared::only(self.task.job_id, TaskChange::Release { payload: None }));
        };
        let first = *next_index;
        let mut rounds = self.task.place.rounds.clone();
        rounds.last_mut().expect("an item is in a round").first = first;
        let items = self.material.graph.scopes[*scope].nodes.len() as u32;
        let parts = FanOut { first, items, released: items };
        if parts.indices().end > RunId::TASK_INDEX_MAX {
            return Err(Failure::new(TOO_MANY_ITEMS, "the run has as many tasks as a run can have"));
        }
        let group = Some(self.task.place.index);
        let new = self.maker.scope(*scope, first, group, &rounds).map_err(|refused| of_refused(&refused))?;
        *next_index += items;
        let expand = TaskChange::Expand { fan_out: parts, fresh: true };
        Ok(Prepared { changes: vec![(self.task.job_id, expand)], new })
    }

    /// More of the parts may go, or all are done.
    fn go_on(&self, parts: FanOut) -> Result<Prepared, Failure> {
        let id = |index| JobId::of_task(self.task.place.run, index);
        if self.task.parents.open == 0 {
            let data = |index| self.material.jobs.get(&id(index));
            let fine =
                |index| data(index).is_some_and(|d| matches!(d.state, State::Completed | State::Skipped));
            if !parts.indices().all(fine) {
                return Ok(Prepared::default());
            }
            return Ok(Prepared::only(self.task.job_id, completed(self.joined(parts))?));
        }
        let NodeWork::ForEach { concurrency: Some(concurrency), each, .. } = &self.node.work else {
            return Ok(Prepared::default());
        };
        let not_ended = (parts.released + self.task.parents.open).saturating_sub(parts.items);
        let under_way = if self.material.parts_are_idle { 0 } else { not_ended };
        let released = parts.items.min(parts.released + concurrency.saturating_sub(under_way));
        if self.task.place.part == Part::Item || parts.released == parts.items {
            return Ok(Prepared::default());
        }
        if released == parts.released {
            // Whether those under way are blocked, and the next may go after all, is seen only from the whole.
            let looks = vec![Look::place_of(self.task.place.run)];
            return Ok(Prepared { new: NewJobs { looks, ..NewJobs::default() }, ..Prepared::default() });
        }
        let next = (parts.first + parts.released)..(parts.first + released);
        let fan_out = FanOut { released, ..parts };
        let mut prepared = Prepared::only(self.task.job_id, TaskChange::Expand { fan_out, fresh: false });
        match each {
            NodeEach::Job(_) => {
                prepared.changes.extend(next.map(|index| (id(index), TaskChange::Release { payload: None })));
            }
            NodeEach::Scope(_) => prepared.new.looks.extend(next.map(id)),
        }
        Ok(prepared)
    }

    /// The results of the parts: of the items in their order, of a round those of the tasks that nothing waits for.
    fn joined(&self, parts: FanOut) -> Value {
        let result = |index| {
            let data = self.material.jobs.get(&JobId::of_task(self.task.place.run, index));
            let text = data.and_then(|data| data.result.as_ref());
            text.and_then(|text| serde_json::from_str(text.as_str()).ok()).unwrap_or(Value::Null)
        };
        match &self.node.work {
            NodeWork::ForEach { each: NodeEach::Scope(scope), .. } if self.task.place.part == Part::Item => {
                let scope = &self.material.graph.scopes[*scope];
                let index = |node: u32| parts.first + (node - scope.nodes.start);
                match scope.sinks.as_slice() {
                    [one] => result(index(*one)),
                    several => {
                        let named = |node: &u32| {
                            (self.material.graph.node(*node).name.to_string(), result(index(*node)))
                        };
                        Value::Object(several.iter().map(named).collect::<Map<_, _>>())
                    }
                }
            }
            _ => Value::Array(parts.indices().map(result).collect()),
        }
    }
}

/// What paths can ask of a task.
fn as_value(data: &ParentData) -> Value {
    let result: Option<Value> =
        data.result.as_ref().and_then(|text| serde_json::from_str(text.as_str()).ok());
    let error = data.error.as_ref().map(|e| serde_json::json!({"code": e.code, "message": e.message}));
    serde_json::json!({"status": data.state.as_str(), "result": result, "error": error})
}

/// It is passed over by itself.
pub(super) fn skipped(why: &str) -> TaskChange {
    TaskChange::End { state: State::Skipped, result: None, error: Some(Failure::new(CONDITION_FALSE, why)) }
}

fn completed(result: Value) -> Result<TaskChange, Failure> {
    let result = Some(bounded(&result, "the result of all its parts")?);
    Ok(TaskChange::End { state: State::Completed, result, error: None })
}

fn bounded(value: &Value, what: &str) -> Result<JsonText, Failure> {
    let text = value.to_string();
    if text.len() > DATA_LEN_MAX {
        let message = format!("{what} would be {} bytes, of which {DATA_LEN_MAX} are allowed", text.len());
        return Err(Failure::new(TOO_LARGE, message));
    }
    Ok(JsonText::from_checked(text))
}

fn unresolved(why: &Unresolved) -> Failure {
    Failure::new(UNRESOLVED, why.to_string())
}

fn of_refused(refused: &StartRefused) -> Failure {
    Failure::new(UNRESOLVED, refused.to_string())
}

fn at_item(failure: Failure, item: u32) -> Failure {
    Failure { message: format!("item {item}: {}", failure.message), ..failure }
}
