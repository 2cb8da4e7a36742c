//! Workflows into what a client reads. A definition that is answered and sent again makes the same one: what has its
//! default is left out.

use tickwheel_core::JsonText;
use tickwheel_core::schedule::JobTemplate;
use tickwheel_core::workflow::{
    Each, ForEach, MAX_ITEMS_DEFAULT, Notify, OnFailure, TaskSpec, TriggerRule, Work, Workflow, WorkflowSpec,
};
use tickwheel_protocol::{
    self as wire, DataPath, Span, SubmitJob, SubmitWorkflow, TaskJob, WorkflowSummary, WorkflowTask,
};

use super::answer::{job_template as wire_job, json, time};
use super::job_request::job_template;
use super::words;
use crate::error::ApiResult;

/// A version of a workflow.
pub fn workflow(workflow: &Workflow) -> ApiResult<wire::Workflow> {
    let Workflow { name, spec, .. } = workflow;
    Ok(wire::Workflow {
        name: name.to_string(),
        version: workflow.version,
        description: spec.description.clone(),
        tenant: workflow.tenant.to_string(),
        created_at: time(workflow.created_at),
        tasks_total: tasks_total(spec),
        definition: definition(name, spec)?,
    })
}

/// The same without its tasks.
pub fn workflow_summary(workflow: &Workflow) -> ApiResult<WorkflowSummary> {
    let spec = &workflow.spec;
    Ok(WorkflowSummary {
        name: workflow.name.to_string(),
        version: workflow.version,
        description: spec.description.clone(),
        tenant: workflow.tenant.to_string(),
        created_at: time(workflow.created_at),
        tasks_total: tasks_total(spec),
        schedule: spec.schedule.as_ref().map(json).transpose()?,
    })
}

/// What was requested.
pub fn definition(name: &str, spec: &WorkflowSpec) -> ApiResult<SubmitWorkflow> {
    Ok(SubmitWorkflow {
        name: name.to_owned(),
        description: spec.description.clone(),
        tasks: tasks(&spec.tasks)?,
        before: tasks(&spec.before)?,
        after: tasks(&spec.after)?,
        on_failure: unless_default(spec.on_failure, OnFailure::default()).map(words::wire_on_failure),
        stall_after: spec.stall_after_ms.map(Span::from_millis),
        notify: spec.notify.iter().map(notify).collect(),
        schedule: spec.schedule.as_ref().map(json).transpose()?,
    })
}

fn tasks_total(spec: &WorkflowSpec) -> usize {
    fn inside(tasks: &[TaskSpec]) -> usize {
        let inner = |task: &TaskSpec| match &task.work {
            Work::ForEach(ForEach { each: Each::Tasks(tasks), .. }) => inside(tasks),
            _ => 0,
        };
        tasks.len() + tasks.iter().map(inner).sum::<usize>()
    }
    inside(&spec.before) + inside(&spec.tasks) + inside(&spec.after)
}

fn tasks(specs: &[TaskSpec]) -> ApiResult<Vec<WorkflowTask>> {
    specs.iter().map(task).collect()
}

fn task(spec: &TaskSpec) -> ApiResult<WorkflowTask> {
    let mut task = WorkflowTask {
        name: spec.name.to_string(),
        depends_on: spec.depends_on.iter().map(ToString::to_string).collect(),
        trigger_rule: unless_default(spec.rule, TriggerRule::default()).map(words::wire_trigger_rule),
        when: spec.when.clone(),
        ..WorkflowTask::default()
    };
    match &spec.work {
        Work::Job(template) => task.job = Some(task_job(template, &spec.name)?),
        Work::ForEach(each) => {
            task.for_each = Some(DataPath(each.over.clone()));
            task.max_items = unless_default(each.max_items, MAX_ITEMS_DEFAULT);
            task.concurrency = each.concurrency;
            match &each.each {
                Each::Job(template) => task.job = Some(task_job(template, &spec.name)?),
                Each::Tasks(inner) => task.tasks = Some(tasks(inner)?),
            }
        }
    }
    Ok(task)
}

/// The job of the task of that name, without what it would have anyway.
fn task_job(template: &JobTemplate, task: &str) -> ApiResult<TaskJob> {
    let said = wire_job(template)?;
    let (spec, target) = (&template.spec, said.target.clone());
    let silent = job_template(SubmitJob { target: target.clone(), ..SubmitJob::default() });
    Ok(TaskJob {
        job_type: unless_default(said.job_type.as_str(), task).map(Into::into),
        target: target.filter(|target| *target != wire::Target::default()),
        payload: said.payload.filter(|_| template.payload != silent.payload),
        queue: said.queue.filter(|_| template.queue != silent.queue),
        priority: said.priority.filter(|_| template.priority != silent.priority),
        retry: said.retry.filter(|_| spec.retry != silent.spec.retry),
        timeout: said.timeout.filter(|_| spec.timeout_ms != silent.spec.timeout_ms),
        delivery: said.delivery.filter(|_| spec.delivery != silent.spec.delivery),
        tags: said.tags.filter(|tags| !tags.is_empty()),
        metadata: said.metadata.filter(|_| spec.metadata != JsonText::empty_object()),
        concurrency_key: said.concurrency_key,
        requires: said.requires.filter(|labels| !labels.is_empty()),
        callback_url: said.callback_url,
        created_by: said.created_by,
    })
}

fn notify(notify: &Notify) -> wire::Notify {
    let on: Vec<_> = notify.on.iter().copied().map(words::wire_run_event).collect();
    wire::Notify { url: notify.url.clone(), on: Some(on).filter(|on| on[..] != wire::RunEvent::USUAL) }
}

fn unless_default<T: PartialEq>(value: T, default: T) -> Option<T> {
    (value != default).then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tickwheel_protocol::Limits;

    use super::*;
    use crate::convert::workflow_spec;

    fn spec(request: &Value) -> WorkflowSpec {
        let request = serde_json::from_value(request.clone()).expect("a request");
        workflow_spec(request, &Limits::default()).expect("a graph")
    }

    fn answered(request: &Value) -> Value {
        let answer = definition(request["name"].as_str().expect("a name"), &spec(request)).expect("readable");
        serde_json::to_value(answer).expect("JSON")
    }

    #[test]
    fn what_was_written_is_answered_and_makes_the_same_again() {
        let request = json!({
            "name": "etl", "description": "d", "on_failure": "continue", "stall_after": "1h",
            "before": [{"name": "check", "job": {"type": "other", "queue": "q", "priority": "high"}}],
            "tasks": [
                {"name": "extract", "job": {"target": {"http": {"url": "https://svc/x", "method": "GET", "headers": {"a": "b"}}},
                    "payload": {"day": {"$from": "input.day"}}, "timeout": "10s", "delivery": "at_most_once",
                    "tags": ["t"], "metadata": {"m": 1}, "concurrency_key": "k", "callback_url": "https://svc/told",
                    "created_by": "me"}},
                {"name": "each", "depends_on": ["extract"], "trigger_rule": "all_done", "when": "input.go",
                 "for_each": "extract.result", "max_items": 5, "concurrency": 2, "tasks": [{"name": "one", "job": {}}]},
                {"name": "load", "for_each": "input.files", "job": {"target": {"workflow": {"name": "w"}}}}],
            "after": [{"name": "tell", "job": {}}],
            "notify": [{"url": "https://svc/a"}, {"url": "https://svc/b", "on": ["stalled"]}],
            "schedule": {"cron": "@daily", "input": {"day": 1}, "paused": true},
        });
        assert_eq!(answered(&request), request);
    }

    #[test]
    fn what_has_its_default_is_left_out_and_what_has_not_is_whole() {
        let dressed = json!({"name": "w", "on_failure": "fail_fast", "before": [], "notify": [
                {"url": "https://svc/a", "on": ["completed", "failed", "cancelled"]}],
            "tasks": [{"name": "a", "depends_on": [], "trigger_rule": "all_succeeded", "for_each": {"$from": "input"},
                "max_items": 10_000, "job": {"type": "a", "target": {"worker": {}}, "payload": null, "queue": "default",
                "priority": "normal", "timeout": "300s", "retry": {"max_retries": 3}, "tags": [], "metadata": {}}}]});
        let plain = json!({"name": "w", "notify": [{"url": "https://svc/a"}],
            "tasks": [{"name": "a", "for_each": "input", "job": {}}]});
        assert_eq!(answered(&dressed), plain);
        assert_eq!(spec(&dressed), spec(&plain));

        let delays =
            json!({"name": "w", "tasks": [{"name": "a", "job": {"retry": {"delays": ["1s", "2h"]}}}]});
        let again = answered(&delays);
        assert_eq!(again["tasks"][0]["job"]["retry"]["max_delay"], "2h");
        assert_eq!(spec(&again), spec(&delays));
    }

    #[test]
    fn a_job_that_starts_a_workflow_has_the_time_a_run_may_take() {
        let request =
            json!({"name": "w", "tasks": [{"name": "a", "job": {"target": {"workflow": {"name": "b"}}}}]});
        let Work::Job(job) = &spec(&request).tasks[0].work else { panic!("a job") };
        assert_eq!((job.spec.timeout_ms, job.spec.retry.max_retries), (7 * 86_400_000, 0));
        assert_eq!(answered(&request), request);
    }
}
