//! Requests about workflows into the core's terms. What a definition has to keep to be a graph is checked by the core,
//! and told in the words of the wire.

use std::sync::Arc;

use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::{Idempotency, StartRun};
use tickwheel_core::workflow::{
    Each, ForEach, Graph, GraphFault, GraphFaultKind, GraphLimits, MAX_ITEMS_DEFAULT, Notify, RunEvent,
    StartRefused, TaskSpec, Work, WorkflowSpec,
};
use tickwheel_core::{JsonText, RunId, Timestamp};
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::{self as wire, Code, FieldError, Limits, Problem, SubmitWorkflow, WorkflowTask};

use super::cron::field;
use super::job_request::{fingerprint, job_template, new_uuid};
use super::{payload, words};

/// The spec of the request, if it is a graph. The request is valid by itself.
pub fn workflow_spec(request: SubmitWorkflow, limits: &Limits) -> Result<WorkflowSpec, Problem> {
    let schedule = request.schedule.map(|schedule| {
        let text = serde_json::to_string(&schedule).expect("what was read from JSON can be written as JSON");
        JsonText::from_checked(text)
    });
    let spec = WorkflowSpec {
        description: request.description,
        tasks: tasks(request.tasks),
        before: tasks(request.before),
        after: tasks(request.after),
        on_failure: request.on_failure.map(words::on_failure).unwrap_or_default(),
        stall_after_ms: request.stall_after.map(wire::Span::as_millis),
        notify: request.notify.into_iter().map(notify).collect(),
        schedule,
    };
    let limits = GraphLimits { tasks_max: limits.workflow_tasks_max, edges_max: limits.workflow_edges_max };
    match Graph::checked(&spec, limits) {
        Ok(_) => Ok(spec),
        Err(faults) => Err(no_graph(&faults)),
    }
}

fn tasks(tasks: Vec<WorkflowTask>) -> Vec<TaskSpec> {
    tasks.into_iter().map(task).collect()
}

fn task(task: WorkflowTask) -> TaskSpec {
    let name: Arc<str> = task.name.as_str().into();
    let each = match (task.job, task.tasks) {
        (Some(job), _) => Each::Job(job_template(job.into_job(&name))),
        (None, inner) => Each::Tasks(tasks(inner.unwrap_or_default())),
    };
    let work = match (task.for_each, each) {
        (None, Each::Job(job)) => Work::Job(job),
        // Tasks without for_each do not pass validation.
        (over, each) => Work::ForEach(ForEach {
            over: over.map(|path| path.0).unwrap_or_default(),
            max_items: task.max_items.unwrap_or(MAX_ITEMS_DEFAULT),
            concurrency: task.concurrency,
            each,
        }),
    };
    TaskSpec {
        name,
        depends_on: task.depends_on.iter().map(|name| name.as_str().into()).collect(),
        rule: task.trigger_rule.map(words::trigger_rule).unwrap_or_default(),
        when: task.when,
        work,
    }
}

fn notify(notify: wire::Notify) -> Notify {
    let usual = || wire::RunEvent::USUAL.to_vec();
    let mut on: Vec<RunEvent> = Vec::new();
    for event in notify.on.unwrap_or_else(usual).into_iter().map(words::run_event) {
        if !on.contains(&event) {
            on.push(event);
        }
    }
    Notify { url: notify.url, on }
}

/// Everything that keeps the definition from being a graph. The first fault that has a code of its own gives it to all
/// of them.
fn no_graph(faults: &[GraphFault]) -> Problem {
    let errors = faults.iter().map(|fault| {
        let (_, code) = codes(&fault.kind);
        field(&fault.pointer, code, fault.kind.to_string())
    });
    let problem = Problem::invalid(errors.collect());
    let Some(code) = faults.iter().find_map(|fault| codes(&fault.kind).0) else { return problem };
    Problem { errors: problem.errors, ..Problem::new(code, problem.detail) }
}

const fn codes(kind: &GraphFaultKind) -> (Option<Code>, FieldCode) {
    match kind {
        GraphFaultKind::Cycle(_) => (Some(Code::Cycle), FieldCode::Cycle),
        GraphFaultKind::Unknown(..) => (Some(Code::UnknownTask), FieldCode::UnknownTask),
        GraphFaultKind::Duplicate(_) => (Some(Code::DuplicateTask), FieldCode::DuplicateTask),
        GraphFaultKind::TooMany(..) => (None, FieldCode::TooMany),
        GraphFaultKind::NoTasks | GraphFaultKind::BadName(_) | GraphFaultKind::BadReference(_) => {
            (None, FieldCode::InvalidValue)
        }
    }
}

/// A run that somebody wants. A key stands for the workflow as well as for the input: used for another one it is a
/// conflict.
pub fn start_run(workflow: String, request: wire::StartRun, now: Timestamp) -> serde_json::Result<StartRun> {
    let text = serde_json::to_string(&Fingerprinted { run_of: &workflow, request: &request })?;
    Ok(StartRun {
        tenant: DEFAULT_TENANT.into(),
        workflow,
        id: RunId::fresh(new_uuid(now)),
        input: request.input.as_deref().map_or_else(JsonText::null, payload),
        job_id: None,
        idempotency: request.idempotency_key.map(|key| Idempotency { key, fingerprint: fingerprint(&text) }),
    })
}

#[derive(serde::Serialize)]
struct Fingerprinted<'a> {
    run_of: &'a str,
    #[serde(flatten)]
    request: &'a wire::StartRun,
}

/// The input lacks something that a task needs.
pub fn bad_input(refused: &StartRefused) -> FieldError {
    field("/input", FieldCode::InvalidValue, refused.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tickwheel_core::Target;
    use tickwheel_protocol::workflow::MAX_ITEMS_RANGE;

    use super::*;

    fn requested(request: Value) -> Result<WorkflowSpec, Problem> {
        workflow_spec(serde_json::from_value(request).expect("a request"), &Limits::default())
    }

    #[test]
    fn what_is_left_out_has_the_default_of_the_core() {
        let spec = requested(json!({"name": "w", "tasks": [
            {"name": "a", "job": {}}, {"name": "b", "for_each": "input", "job": {"type": "t"}}],
            "notify": [{"url": "http://a/"}]}))
        .expect("a graph");
        let Work::Job(job) = &spec.tasks[0].work else { panic!("a job") };
        assert_eq!((&*job.job_type, &job.spec.target), ("a", &Target::Worker));
        let Work::ForEach(each) = &spec.tasks[1].work else { panic!("a fan-out") };
        assert_eq!((each.max_items, each.concurrency), (MAX_ITEMS_DEFAULT, None));
        assert_eq!(spec.notify[0].on, [RunEvent::Completed, RunEvent::Failed, RunEvent::Cancelled]);
    }

    #[test]
    fn the_bounds_of_the_wire_are_those_of_the_core() {
        assert_eq!(*MAX_ITEMS_RANGE.end(), MAX_ITEMS_DEFAULT);
        let (ours, theirs) = (Limits::default(), GraphLimits::default());
        assert_eq!((ours.workflow_tasks_max, ours.workflow_edges_max), (theirs.tasks_max, theirs.edges_max));
    }

    #[test]
    fn every_fault_has_its_place_and_the_first_with_a_code_names_the_problem() {
        let problem = requested(json!({"name": "w", "tasks": [
            {"name": "1st", "job": {}}, {"name": "b", "depends_on": ["c"], "job": {}}, {"name": "b", "job": {}}]}))
        .expect_err("no graph");
        let faults: Vec<_> = problem.errors.iter().map(|e| (e.pointer.as_str(), e.code)).collect();
        assert_eq!(
            faults,
            [
                ("/tasks/0/name", FieldCode::InvalidValue),
                ("/tasks/2/name", FieldCode::DuplicateTask),
                ("/tasks/1/depends_on/0", FieldCode::UnknownTask),
            ]
        );
        assert_eq!((problem.code.as_str(), problem.status), ("duplicate_task", 422));
    }

    #[test]
    fn a_key_of_a_run_stands_for_the_workflow_and_the_input() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let print = |workflow: &str, json: Value| {
            let request = serde_json::from_value(json).expect("a request");
            let start = start_run(workflow.into(), request, now).expect("writable");
            start.idempotency.expect("a key").fingerprint
        };
        let first = print("w", json!({"idempotency_key": "k", "input": {"a": 1, "b": 2}}));
        assert_eq!(first, print("w", json!({"input": {"b": 2, "a": 1}, "idempotency_key": "k"})));
        assert_ne!(first, print("w", json!({"idempotency_key": "k"})));
        assert_ne!(first, print("x", json!({"idempotency_key": "k", "input": {"a": 1, "b": 2}})));
    }
}
