//! Rules that take more than one part of the module. What a run does over time is tested with a store, in the testkit.

mod bounds;
mod by_hand;
mod checks;
mod decisions;

use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::job::{HttpTarget, JobSpec, JsonText, Priority, Target};
use crate::parents::{Parents, Release};
use crate::schedule::JobTemplate;
use crate::state::State;
use crate::time::Timestamp;
use crate::{Failure, RunId};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn template(payload: &str) -> JobTemplate {
    let target =
        Target::Http(HttpTarget { url: "http://localhost/".into(), method: "POST".into(), headers: vec![] });
    JobTemplate {
        job_type: "work".into(),
        queue: "default".into(),
        priority: Priority::Normal,
        spec: Arc::new(JobSpec::new(target)),
        payload: JsonText::from_checked(payload),
        tags: Vec::new(),
    }
}

fn task(name: &str, depends_on: &[&str]) -> TaskSpec {
    TaskSpec {
        name: name.into(),
        depends_on: depends_on.iter().map(|name| (*name).into()).collect(),
        rule: TriggerRule::AllSucceeded,
        when: None,
        work: Work::Job(template("null")),
    }
}

fn with_payload(task: TaskSpec, payload: &str) -> TaskSpec {
    TaskSpec { work: Work::Job(template(payload)), ..task }
}

fn fanned(task: TaskSpec, over: &str, concurrency: Option<u32>, each: Each) -> TaskSpec {
    let work = Work::ForEach(ForEach { over: over.into(), max_items: 5, concurrency, each });
    TaskSpec { work, ..task }
}

fn spec(tasks: Vec<TaskSpec>) -> WorkflowSpec {
    WorkflowSpec { tasks, on_failure: OnFailure::Continue, ..WorkflowSpec::default() }
}

fn workflow(spec: WorkflowSpec) -> Workflow {
    Workflow { tenant: "default".into(), name: "w".into(), version: 1, created_at: NOW, spec: Arc::new(spec) }
}

/// A run whose tasks can be put into any state.
struct Stage {
    workflow: Workflow,
    graph: Graph,
    run: Run,
    tasks: Vec<RunTask>,
    limits: DataLimits,
}

impl Stage {
    fn new(spec: WorkflowSpec) -> Self {
        let workflow = workflow(spec);
        let graph = Graph::stored(&workflow.spec).expect("a graph");
        let id = RunId::fresh(Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0000));
        let begun =
            begin(&graph, &workflow, id, JsonText::from_checked("{\"n\":1}"), None, NOW).expect("begins");
        let tasks = begun.jobs.jobs.iter().map(|job| RunTask::of(job).expect("a task")).collect();
        Self { workflow, graph, run: begun.run, tasks, limits: DataLimits::default() }
    }

    fn context(&self) -> RunContext<'_> {
        RunContext {
            workflow: &self.workflow,
            graph: &self.graph,
            run: &self.run,
            now: NOW,
            limits: self.limits,
        }
    }

    fn put(&mut self, name: &str, state: State) {
        let node = self.graph.nodes.iter().position(|node| &*node.name == name).expect("a task");
        self.tasks[node].state = state;
    }

    fn put_all(&mut self, states: &[(&str, State)]) {
        states.iter().for_each(|(name, state)| self.put(name, *state));
    }

    fn review(&self) -> Review {
        self.context().review(&self.tasks)
    }

    /// The names of the tasks that are to be prepared.
    fn ready(&self) -> Vec<String> {
        let name = |index: &u32| self.graph.path_of(&self.tasks[*index as usize - 1].position);
        self.review().ready.iter().map(name).collect()
    }

    /// What becomes of which task: `name: blocked`.
    fn changes(&self) -> Vec<String> {
        self.described(&self.review().changes)
    }

    fn described(&self, changes: &[(crate::JobId, TaskChange)]) -> Vec<String> {
        let describe = |(id, change): &(crate::JobId, TaskChange)| {
            let task = self.tasks.iter().find(|task| task.job_id == *id).expect("a task");
            let word = match change {
                TaskChange::Block => "blocked".into(),
                TaskChange::Unblock => "unblocked".into(),
                TaskChange::Stop => "stopped".into(),
                TaskChange::Retry => "retried".into(),
                TaskChange::Restart => "restarted".into(),
                TaskChange::Release { .. } => "released".into(),
                TaskChange::Expand { .. } => "expanded".into(),
                TaskChange::End { state, .. } => state.to_string(),
            };
            format!("{}: {word}", self.graph.path_of(&task.position))
        };
        changes.iter().map(describe).collect()
    }
}
