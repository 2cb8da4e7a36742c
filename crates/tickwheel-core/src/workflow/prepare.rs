//! What it takes to let a task go when its rule allows it: its condition and its data. Fan-outs are next door.
//!
//! Pure: the run, the task and the results it needs in, changes and new jobs out. Whoever calls it has seen that the
//! task is ready; it is written only if the run has not changed meanwhile.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use serde_json::Value;

use super::begin::{Maker, NewJobs};
use super::budget::{DATA_LEN_MAX, StepBudget};
use super::data::{DataFault, Found, Lookup, Pattern, references};
use super::graph::{Graph, Node, NodeEach, NodeWork, Template};
use super::path::Path;
use super::position::{Iteration, TaskRole};
use super::references::{is_for_good, kept_in_input};
use super::run::{Run, RunStatus, RunStep, RunTask, TaskChange};
use crate::attempt::Failure;
use crate::id::JobId;
use crate::job::{Job, JsonText};
use crate::parents::Release;
use crate::payload::Payload;
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
/// So many bytes the results may have that a task uses.
pub const PARENT_RESULTS_BYTES_MAX: usize = 16 << 20;

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

/// Results of parents that tasks use, as far as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentResults {
    /// The jobs that were found.
    pub jobs: HashMap<JobId, ParentData>,
    /// Reading stopped before the end, because there was too much.
    pub is_cut: bool,
}

impl From<HashMap<JobId, ParentData>> for ParentResults {
    fn from(jobs: HashMap<JobId, ParentData>) -> Self {
        Self { jobs, is_cut: false }
    }
}

impl ParentResults {
    /// Whether all was read that it takes to prepare a task.
    pub fn is_enough_for(&self, graph: &Graph, task: &RunTask) -> bool {
        !self.is_cut || needs_of(graph, task).iter().all(|job| self.jobs.contains_key(job))
    }
}

/// What tasks are prepared from in one step.
pub struct Material<'r> {
    /// The graph.
    pub graph: &'r Graph,
    /// None of the released items of a fan-out goes on: whoever is blocked takes nobody's turn.
    pub items_are_idle: bool,
    /// Makes the jobs, and knows what can be known without asking tasks.
    pub(super) maker: Maker<'r>,
    /// The jobs that [`needs_of`] named.
    needed: &'r ParentResults,
    /// The same as paths see them. A result is read when it is asked for, and once.
    values: HashMap<JobId, OnceCell<Value>>,
}

impl<'r> Material<'r> {
    /// Of a run that stands like this, for those that come after all others.
    pub fn new(
        graph: &'r Graph,
        run: &'r Run,
        status: RunStatus,
        needed: &'r ParentResults,
        now: Timestamp,
    ) -> Self {
        let values = needed.jobs.keys().map(|job| (*job, OnceCell::new())).collect();
        let maker = Maker::new(graph, run, status, now);
        Self { graph, items_are_idle: false, maker, needed, values }
    }

    /// A job that was read.
    pub(super) fn job(&self, id: JobId) -> Option<&'r ParentData> {
        self.needed.jobs.get(&id)
    }

    fn value(&self, id: JobId) -> Option<(&'r ParentData, &Value)> {
        let (job, value) = (self.job(id)?, self.values.get(&id)?);
        Some((job, value.get_or_init(|| as_value(job))))
    }
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
    pub(super) fn only(job: JobId, change: TaskChange) -> Self {
        Self { changes: vec![(job, change)], ..Self::default() }
    }

    /// Makes it part of a step.
    pub fn add_to(self, step: &mut RunStep) {
        step.changes.extend(self.changes);
        step.jobs.extend(self.new.jobs);
        step.reconcile_requests.extend(self.new.reconcile_requests);
    }
}

/// The jobs whose results it takes to prepare a task.
pub fn needs_of(graph: &Graph, task: &RunTask) -> Vec<JobId> {
    let position = &task.position;
    let node = graph.node(position.node);
    match task.fan_out {
        Some(fan_out) if task.parents.open == 0 => {
            return fan_out.indices().map(|index| JobId::of_task(position.run, index)).collect();
        }
        // What is still to be made takes what the first took.
        Some(fan_out) if fan_out.unmade == 0 => return Vec::new(),
        _ if position.release == Release::Task => return Vec::new(),
        _ => {}
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
        .filter_map(|path| graph.source(position.node, &path.root))
        .map(|source| graph.job_seen_from(position, source))
        .collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// What becomes of a task that is ready.
pub(super) fn prepare(material: &Material<'_>, task: &RunTask, budget: &mut StepBudget) -> Prepared {
    let preparation = Preparation { material, task, node: material.graph.node(task.position.node) };
    let before = *budget;
    preparation.prepared(budget).unwrap_or_else(|failure| {
        *budget = before;
        failed(task, failure)
    })
}

/// What becomes of a task that is ready, but uses more than can be read.
pub(super) fn refuse(task: &RunTask) -> Prepared {
    let message =
        format!("the results that it uses have over {PARENT_RESULTS_BYTES_MAX} bytes, which are allowed");
    failed(task, Failure::new(TOO_LARGE, message))
}

fn failed(task: &RunTask, failure: Failure) -> Prepared {
    let end = TaskChange::End { state: State::Failed, result: None, error: Some(failure) };
    Prepared::only(task.job_id, end)
}

/// One task that is being prepared.
pub(super) struct Preparation<'r> {
    pub material: &'r Material<'r>,
    pub task: &'r RunTask,
    pub node: &'r Node,
}

impl<'r> Preparation<'r> {
    fn prepared(&self, budget: &mut StepBudget) -> Result<Prepared, Failure> {
        if let Some(fan_out) = self.task.fan_out {
            return self.go_on(fan_out, budget);
        }
        if self.task.position.role == TaskRole::Item {
            return self.open_body(budget);
        }
        if self.task.position.release == Release::Task {
            // Its data was known from the beginning.
            return Ok(Prepared::only(self.task.job_id, TaskChange::Release { payload: None }));
        }
        if let Some(when) = &self.node.when
            && !when.holds(&|path| self.resolve(path).ok().map(Cow::into_owned))
        {
            return Ok(Prepared::only(self.task.job_id, skipped("its condition does not hold")));
        }
        match &self.node.work {
            NodeWork::Job(template) => {
                let payload = self.payload(template).map_err(|fault| failure(&fault))?;
                let len = payload.as_str().len();
                budget.charge(len).map_err(|fault| failure(&fault))?;
                budget.made(0, len);
                Ok(Prepared::only(self.task.job_id, TaskChange::Release { payload: Some(payload) }))
            }
            NodeWork::ForEach { .. } => self.fan_out(budget),
        }
    }

    /// What a path leads to.
    pub fn resolve(&self, path: &Path) -> Found<'r> {
        self.resolve_from(path, &self.task.position.iterations)
    }

    /// The same from inside of these iterations.
    pub fn resolve_from(&self, path: &Path, iterations: &[Iteration]) -> Found<'r> {
        if let Some(found) = self.material.maker.data.resolve(path, iterations) {
            return found;
        }
        let graph = self.material.graph;
        let source = graph.source(self.task.position.node, &path.root);
        let source = source.ok_or_else(|| format!("there is no task named {:?}", path.root))?;
        let job = graph.job_seen_from(&self.task.position, source);
        let found = self.material.value(job).ok_or_else(|| format!("{:?} has not ended", path.root))?;
        path.walk(found.1).map(Cow::Borrowed).map_err(|why| match found.0.state {
            State::Completed => why,
            state => format!("{why}; {} is {state}", path.root),
        })
    }

    /// Under which number payloads can refer to what a path leads to.
    pub fn kept(&self, path: &Path) -> Option<u32> {
        kept_in_input(path).or_else(|| {
            let graph = self.material.graph;
            let job =
                graph.job_seen_from(&self.task.position, graph.source(self.task.position.node, &path.root)?);
            is_for_good(path, self.material.job(job)?).then(|| job.task_index())
        })
    }

    fn payload(&self, template: &Template) -> Result<Payload, DataFault> {
        let Some(payload) = &template.payload else { return Ok(template.job.payload.clone().into()) };
        let resolve = |path: &Path| self.resolve(path);
        let lookup = Lookup { varies: &|_| false, resolve: &resolve, kept: &|path| self.kept(path) };
        Pattern::read(payload, &lookup, DATA_LEN_MAX)?.payload(&resolve)
    }
}

/// What paths can ask of a task.
pub(super) fn as_value(data: &ParentData) -> Value {
    let result: Option<Value> =
        data.result.as_ref().and_then(|text| serde_json::from_str(text.as_str()).ok());
    let error = data.error.as_ref().map(|e| serde_json::json!({"code": e.code, "message": e.message}));
    serde_json::json!({"status": data.state.as_str(), "result": result, "error": error})
}

/// It is passed over by itself.
pub(super) fn skipped(why: &str) -> TaskChange {
    TaskChange::End { state: State::Skipped, result: None, error: Some(Failure::new(CONDITION_FALSE, why)) }
}

/// Why a task fails whose data cannot be put together.
pub(super) fn failure(fault: &DataFault) -> Failure {
    let code = match fault {
        DataFault::Unresolved(_) | DataFault::NoArray(_) => UNRESOLVED,
        DataFault::TooManyItems(_) => TOO_MANY_ITEMS,
        DataFault::TooLarge(_) => TOO_LARGE,
    };
    Failure::new(code, fault.to_string())
}
