//! The jobs of a run: all of the graph's at its start, those of fan-outs and of the tasks that come after all others
//! when it is their time.

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::{Value, json};

use super::budget::{DATA_LEN_MAX, DataLimits, StepBudget};
use super::data::{DataFault, Found, Lookup, Pattern};
use super::definition::{RunEvent, Workflow};
use super::fan_out::elements;
use super::graph::{Graph, Node, NodeEach, NodeWork, SCOPE_AFTER, SCOPE_TOP, Template};
use super::notice::notices;
use super::path::{INDEX, INPUT, ITEM, OUTER, Path, RUN};
use super::position::{FIRST_INDEX, Iteration, TaskPosition, TaskRole};
use super::references::kept_in_input;
use super::run::{Run, RunNotice, RunProgress, RunStatus};
use crate::id::{JobId, Partition, RunId};
use crate::job::{Job, JobSpec, JsonText, Target};
use crate::parents::{Parents, Release};
use crate::payload::Payload;
use crate::state::State;
use crate::time::Timestamp;

/// Why a run cannot be started with this input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task {task}: {why}")]
pub struct StartRefused {
    /// Which task cannot be made.
    pub task: String,
    /// Why.
    pub why: DataFault,
}

/// A run and the jobs it begins with.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The run.
    pub run: Run,
    /// Its jobs.
    pub jobs: NewJobs,
    /// What is to be told of it.
    pub notices: Vec<RunNotice>,
}

/// Jobs to be added to a run.
#[derive(Clone, Debug, Default)]
pub struct NewJobs {
    /// The jobs, by number.
    pub jobs: Vec<Job>,
    /// Which of them to reconcile.
    pub reconcile_requests: Vec<JobId>,
}

/// A run with this input, and the jobs of its graph.
pub fn begin(
    graph: &Graph,
    workflow: &Workflow,
    id: RunId,
    input: JsonText,
    job_id: Option<JobId>,
    now: Timestamp,
) -> Result<Beginning, StartRefused> {
    let total = graph.begins_with();
    let stall_after = workflow.spec.stall_after_ms.map(std::time::Duration::from_millis);
    let run = Run {
        id,
        partition: Partition::of_run(id),
        tenant: workflow.tenant.clone(),
        workflow: workflow.name.clone(),
        version: workflow.version,
        input,
        job_id,
        created_at: now,
        total,
        open: total,
        had_failure: false,
        revision: 1,
        progress: RunProgress {
            status: RunStatus::Running,
            cancel_requested: false,
            ended_at: None,
            paused_at: None,
            next_index: FIRST_INDEX + total,
            after_first: None,
            blocked: 0,
            stalled: 0,
            stalls_at: stall_after.map(|limit| now + limit),
            data_bytes: 0,
        },
    };
    let maker = Maker::new(graph, &run, RunStatus::Running, now);
    let mut budget = StepBudget::of(DataLimits::default(), &run.progress);
    let jobs = maker.scope(SCOPE_TOP, FIRST_INDEX, None, &[], &mut budget)?;
    // Those that come after all others are made later; what is missing for them is told now.
    maker.scope(SCOPE_AFTER, FIRST_INDEX + total, None, &[], &mut { budget })?;
    let notices = notices(workflow, &run, RunEvent::Running, &[], now);
    let progress = RunProgress { data_bytes: budget.data_bytes, ..run.progress };
    Ok(Beginning { run: Run { progress, ..run }, jobs, notices })
}

/// What is known in a run without asking any task. The input is read when it is asked for, and once.
pub(super) struct DataContext<'r> {
    input_text: &'r JsonText,
    input: OnceCell<Value>,
    run: Value,
}

impl<'r> DataContext<'r> {
    pub fn of(run: &'r Run, status: RunStatus) -> Self {
        Self {
            input_text: &run.input,
            input: OnceCell::new(),
            run: json!({
                "id": run.id.to_string(),
                "workflow": &*run.workflow,
                "version": run.version,
                "status": status.as_str(),
            }),
        }
    }

    fn input(&self) -> &Value {
        self.input.get_or_init(|| serde_json::from_str(self.input_text.as_str()).unwrap_or_default())
    }

    /// What a path leads to that does not begin with a task; `None`: it does.
    pub fn resolve(&self, path: &Path, iterations: &[Iteration]) -> Option<Found<'_>> {
        let iteration = |depth: usize| iterations.len().checked_sub(1 + depth).map(|at| &iterations[at]);
        let value = match path.root.as_str() {
            INPUT => return Some(path.walk(self.input()).map(Cow::Borrowed)),
            RUN => return Some(path.walk(&self.run).map(Cow::Borrowed)),
            INDEX => iteration(0).map(|iteration| Value::from(iteration.item)),
            ITEM => iteration(0).and_then(element),
            OUTER => iteration(1).and_then(element),
            _ => return None,
        };
        let found = value.ok_or_else(|| format!("{path} is not known here"));
        Some(found.and_then(|value| path.walk(&value).cloned().map(Cow::Owned)))
    }
}

fn element(iteration: &Iteration) -> Option<Value> {
    serde_json::from_str(iteration.element.as_ref()?.as_str()).ok()
}

/// Makes the jobs of a run.
pub(super) struct Maker<'r> {
    pub graph: &'r Graph,
    pub run: &'r Run,
    pub data: DataContext<'r>,
    pub now: Timestamp,
}

impl<'r> Maker<'r> {
    /// For a run that stands like this.
    pub fn new(graph: &'r Graph, run: &'r Run, status: RunStatus, now: Timestamp) -> Self {
        Self { graph, run, data: DataContext::of(run, status), now }
    }

    /// The jobs of a scope, the first of which has the number `first`. If they are items of a fan-out, `fan_out_task`
    /// is its number.
    pub fn scope(
        &self,
        scope: usize,
        first: u32,
        fan_out_task: Option<u32>,
        iterations: &[Iteration],
        budget: &mut StepBudget,
    ) -> Result<NewJobs, StartRefused> {
        let nodes = self.graph.scopes[scope].nodes.clone();
        let began_at = budget.data_bytes;
        let number = |node: u32| first + (node - nodes.start);
        let numbers = |nodes: &[u32]| nodes.iter().copied().map(number).collect();
        let mut new = NewJobs::default();
        for node in nodes.clone() {
            let Node { release, parents, children, .. } = self.graph.node(node);
            // Whatever is made up of the results of others later on needs its element then.
            let keep = |iteration: &Iteration| Iteration {
                element: iteration.element.clone().filter(|_| *release != Release::Task),
                ..*iteration
            };
            let position = TaskPosition {
                run: self.run.id,
                index: number(node),
                node,
                role: TaskRole::Whole,
                release: *release,
                iterations: iterations.iter().map(keep).collect(),
                parents: numbers(parents),
                children: numbers(children),
                fan_out_task,
            };
            let refused = |why| StartRefused { task: self.graph.nodes[node as usize].name.to_string(), why };
            let job = self.whole(position, iterations)?;
            budget.charge_together(&job, began_at).map_err(refused)?;
            if job.state == State::Pending && job.parents.open == 0 {
                new.reconcile_requests.push(job.id);
            }
            new.jobs.push(job);
        }
        Ok(new)
    }

    fn whole(&self, position: TaskPosition, iterations: &[Iteration]) -> Result<Job, StartRefused> {
        let node = self.graph.node(position.node);
        let (open, release) = (position.parents.len() as u32, position.release);
        let refused = |position: &TaskPosition, why| StartRefused { task: self.graph.path_of(position), why };
        let mut job = match &node.work {
            NodeWork::Job(template) => {
                let payload = match &template.payload {
                    Some(payload) if !template.uses_results => {
                        self.resolve(payload, iterations).map_err(|why| refused(&position, why))?
                    }
                    _ => template.job.payload.clone().into(),
                };
                self.job(template, position, payload)
            }
            NodeWork::ForEach { over, max_items, each, .. } => {
                // What is missing of the input is told now, except to a task that may be skipped because of just that.
                if over.root == INPUT && node.when.is_none() {
                    let found = self.data.resolve(over, iterations).unwrap_or_else(|| Err(String::new()));
                    elements(over, *max_items, found).map_err(|why| refused(&position, why))?;
                }
                self.fan_out_job(&self.type_of_items(&node.name, each), position)
            }
        };
        if open > 0 || release != Release::Task {
            hold(&mut job, open);
        }
        Ok(job)
    }

    fn type_of_items(&self, name: &str, each: &NodeEach) -> String {
        match each {
            NodeEach::Job(template) => template.job.job_type.to_string(),
            NodeEach::Scope(_) => name.to_owned(),
        }
    }

    fn resolve(&self, payload: &Value, iterations: &[Iteration]) -> Result<Payload, DataFault> {
        let resolve = |path: &Path| {
            self.data.resolve(path, iterations).unwrap_or_else(|| Err(format!("{path} is not known yet")))
        };
        let lookup = Lookup { varies: &|_| false, resolve: &resolve, kept: &kept_in_input };
        Pattern::read(payload, &lookup, DATA_LEN_MAX)?.payload(&resolve)
    }

    /// A job that is ready to go.
    pub fn job(&self, template: &Template, position: TaskPosition, payload: Payload) -> Job {
        let (template_job, id) = (&template.job, position.job_id());
        let spec = JobSpec { position: Some(position), ..JobSpec::clone(&template_job.spec) };
        Job {
            partition: self.run.partition,
            tenant: self.run.tenant.clone(),
            queue: template_job.queue.clone(),
            priority: template_job.priority,
            tags: template_job.tags.clone(),
            payload,
            ..Job::new(id, &template_job.job_type, spec, self.now)
        }
    }

    /// A fan-out.
    pub fn fan_out_job(&self, job_type: &str, position: TaskPosition) -> Job {
        let id = position.job_id();
        let spec = JobSpec { position: Some(position), ..JobSpec::new(Target::FanOut) };
        Job {
            partition: self.run.partition,
            tenant: self.run.tenant.clone(),
            ..Job::new(id, job_type, spec, self.now)
        }
    }
}

/// The job waits, for so many others.
pub(super) fn hold(job: &mut Job, open: u32) {
    job.hold().expect("a new job is scheduled");
    job.parents = Parents { open, failed: 0 };
}
