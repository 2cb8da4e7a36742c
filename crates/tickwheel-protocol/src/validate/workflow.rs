//! The rules for workflows and runs that each task can break by itself. The domain checks the graph.

use super::{Rules, Validate, text_fault};
use crate::pointer;
use crate::problem::FieldCode;
use crate::workflow::{
    CONDITION_CHARS_MAX, CompleteTask, DESCRIPTION_CHARS_MAX, MAX_ITEMS_RANGE, NOTIFY_MAX, Notify,
    SCHEDULE_PREFIX, STALL_AFTER_RANGE, StartRun, SubmitWorkflow, WorkflowSchedule, WorkflowTask,
};

impl Validate for SubmitWorkflow {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.workflow_name("/name", &self.name);
        if let Some(words) = &self.description {
            rules.note("/description", prose_fault(words, DESCRIPTION_CHARS_MAX));
        }
        for (list, tasks) in [("/before", &self.before), ("/tasks", &self.tasks), ("/after", &self.after)] {
            rules.tasks(list, tasks);
        }
        if self.stall_after.is_some_and(|span| !STALL_AFTER_RANGE.contains(&span)) {
            let (least, most) = (STALL_AFTER_RANGE.start(), STALL_AFTER_RANGE.end());
            rules.broken("/stall_after", FieldCode::OutOfRange, format!("must be from {least} to {most}"));
        }
        rules.notify(&self.notify);
        if let Some(schedule) = &self.schedule {
            rules.within("/schedule", |rules| rules.workflow_schedule(schedule));
        }
    }
}

impl Validate for StartRun {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.payload("/input", self.input.as_ref().map(|input| input.get()));
        rules.name("/idempotency_key", self.idempotency_key.as_deref());
    }
}

impl Validate for CompleteTask {
    fn check(&self, rules: &mut Rules<'_>) {
        rules.payload("/result", self.result.as_ref().map(|result| result.get()));
    }
}

impl Rules<'_> {
    /// The name of a workflow must leave room for the name of its schedule.
    pub(super) fn workflow_name(&mut self, pointer: &str, name: &str) {
        let chars_max = self.limits.name_chars_max.saturating_sub(SCHEDULE_PREFIX.len());
        let fault = match name {
            "" => Some((FieldCode::InvalidValue, "must not be empty".into())),
            name => text_fault(name, chars_max),
        };
        self.note(pointer, fault);
    }

    fn tasks(&mut self, list: &str, tasks: &[WorkflowTask]) {
        for (index, task) in tasks.iter().enumerate() {
            let mut place = list.to_owned();
            pointer::push_index(&mut place, index);
            self.within(&place, |rules| rules.task(task));
        }
    }

    fn task(&mut self, task: &WorkflowTask) {
        if let Some(condition) = &task.when {
            self.note("/when", prose_fault(condition, CONDITION_CHARS_MAX));
        }
        self.fan_out(task);
        match (&task.job, &task.tasks) {
            (Some(_), Some(_)) => {
                self.broken("/tasks", FieldCode::Conflict, "cannot be given together with job");
            }
            (None, None) => {
                self.broken("/job", FieldCode::InvalidValue, "is required, or tasks with for_each")
            }
            (Some(job), None) => {
                let job = job.clone().into_job(&task.name);
                self.within("/job", |rules| rules.work(&job));
            }
            (None, Some(tasks)) => self.tasks("/tasks", tasks),
        }
    }

    fn fan_out(&mut self, task: &WorkflowTask) {
        if task.max_items.is_some_and(|items| !MAX_ITEMS_RANGE.contains(&items)) {
            let (least, most) = (MAX_ITEMS_RANGE.start(), MAX_ITEMS_RANGE.end());
            self.broken("/max_items", FieldCode::OutOfRange, format!("must be from {least} to {most}"));
        }
        if task.concurrency == Some(0) {
            self.broken("/concurrency", FieldCode::OutOfRange, "must be 1 or more");
        }
        if task.for_each.is_some() {
            return;
        }
        for (is_given, pointer) in [
            (task.tasks.is_some(), "/tasks"),
            (task.max_items.is_some(), "/max_items"),
            (task.concurrency.is_some(), "/concurrency"),
        ] {
            if is_given {
                self.broken(pointer, FieldCode::Conflict, "is only for a task with for_each");
            }
        }
    }

    fn notify(&mut self, notify: &[Notify]) {
        self.at_most("/notify", notify.len(), NOTIFY_MAX);
        for (index, Notify { url, on }) in notify.iter().enumerate() {
            self.url(&format!("/notify/{index}/url"), Some(url));
            if on.as_ref().is_some_and(Vec::is_empty) {
                self.broken(format!("/notify/{index}/on"), FieldCode::InvalidValue, "must not be empty");
            }
        }
    }

    fn workflow_schedule(&mut self, schedule: &WorkflowSchedule) {
        self.recurrence(schedule.cron.as_deref(), schedule.every, schedule.anchor);
        self.missed(schedule.missed);
        self.ends_after_start(schedule.start_at, schedule.end_at);
        self.jitter(schedule.jitter);
        self.exclude(schedule.exclude.as_deref());
        self.payload("/input", schedule.input.as_ref().map(|input| input.get()));
        self.name("/queue", schedule.queue.as_deref());
        self.workflow_timeout("/timeout", schedule.timeout);
    }
}

/// What is wrong with a text of several lines.
fn prose_fault(text: &str, chars_max: usize) -> Option<(FieldCode, String)> {
    text_fault(&text.replace(['\n', '\r', '\t'], " "), chars_max)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::limits::Limits;
    use crate::strict_json;

    fn judged(request: &Value) -> Vec<(String, FieldCode)> {
        let text = request.to_string();
        let request: SubmitWorkflow = strict_json::read(text.as_bytes(), 64).expect(&text);
        match request.validate(&Limits::default()) {
            Ok(()) => Vec::new(),
            Err(problem) => problem.errors.into_iter().map(|e| (e.pointer, e.code)).collect(),
        }
    }

    fn with(mut whole: Value, fields: &Value) -> Value {
        for (name, value) in fields.as_object().expect("fields") {
            whole[name] = value.clone();
        }
        whole
    }

    /// A good workflow with these fields on top.
    fn workflow(fields: &Value) -> Value {
        with(json!({"name": "w", "tasks": [{"name": "a", "job": {}}]}), fields)
    }

    /// A good workflow whose second task has these fields on top.
    fn task(fields: &Value) -> Value {
        let task = with(json!({"name": "b", "job": {}}), fields);
        json!({"name": "w", "tasks": [{"name": "a", "job": {}}, task]})
    }

    #[test]
    fn a_definition_with_everything_in_it_is_valid() {
        let whole = json!({
            "name": "etl", "description": "what it\nis for", "on_failure": "continue", "stall_after": "1h",
            "before": [{"name": "check", "job": {"type": "check", "queue": "small"}}],
            "tasks": [
                {"name": "extract", "job": {"payload": {"day": {"$from": "input.day", "default": null}}}},
                {"name": "each", "depends_on": ["extract"], "for_each": {"$from": "extract.result"}, "max_items": 10_000,
                 "concurrency": 1, "tasks": [{"name": "one", "job": {"retry": {"max_retries": 3}}}]},
                {"name": "load", "depends_on": ["each"], "for_each": "each.result", "job": {}, "when": "input.day\n!= 1",
                 "trigger_rule": "all_done", "tasks": null}],
            "after": [{"name": "tell", "job": {"target": {"workflow": {"name": "tell"}}, "timeout": "7d"}}],
            "notify": [{"url": "https://svc/told"}, {"url": "https://svc/told", "on": ["running", "stalled"]}],
            "schedule": {"cron": "@daily", "timezone": "UTC", "overlap": "skip", "input": {"day": 1}, "queue": "q",
                "priority": "high", "paused": true, "timeout": "7d"},
        });
        assert_eq!(judged(&whole), []);
        assert_eq!(judged(&workflow(&json!({"before": null, "after": null, "notify": null}))), []);
    }

    #[test]
    fn every_broken_rule_of_a_workflow_is_reported_with_its_place() {
        use FieldCode::*;
        let url = json!({"url": "https://svc/told"});
        let cases = [
            (json!({"name": ""}), "/name", InvalidValue),
            (json!({"name": "a\nb"}), "/name", InvalidValue),
            (json!({"name": "n".repeat(247)}), "/name", TooLong),
            (json!({"description": "d".repeat(4_097)}), "/description", TooLong),
            (json!({"description": "\u{0}"}), "/description", InvalidValue),
            (json!({"stall_after": "999ms"}), "/stall_after", OutOfRange),
            (json!({"stall_after": "367d"}), "/stall_after", OutOfRange),
            (json!({"notify": vec![url; 11]}), "/notify", TooMany),
            (json!({"notify": [{"url": "file:///x"}]}), "/notify/0/url", InvalidValue),
            (json!({"notify": [{"url": "http://a/", "on": []}]}), "/notify/0/on", InvalidValue),
            (json!({"before": [{"name": "x"}]}), "/before/0/job", InvalidValue),
            (json!({"after": [{"name": "x"}]}), "/after/0/job", InvalidValue),
            (json!({"schedule": {"cron": "@daily", "every": 60}}), "/schedule/every", Conflict),
            (json!({"schedule": {"jitter": "25h"}}), "/schedule/jitter", OutOfRange),
            (json!({"schedule": {"queue": ""}}), "/schedule/queue", InvalidValue),
            (json!({"schedule": {"missed": {"window": 0}}}), "/schedule/missed/window", OutOfRange),
            (json!({"schedule": {"timeout": "8d"}}), "/schedule/timeout", OutOfRange),
            (json!({"schedule": {"timeout": 0}}), "/schedule/timeout", OutOfRange),
            (
                json!({"schedule": {"start_at": "2026-01-02T00:00:00Z", "end_at": "2026-01-01T00:00:00Z"}}),
                "/schedule/end_at",
                Conflict,
            ),
        ];
        for (fields, pointer, code) in cases {
            assert_eq!(judged(&workflow(&fields)), [(pointer.to_owned(), code)], "{fields}");
        }
    }

    #[test]
    fn every_broken_rule_of_a_task_is_reported_with_its_place() {
        use FieldCode::*;
        let one = json!([{"name": "c", "job": {}}]);
        let cases = [
            (json!({"job": null}), "/job", InvalidValue),
            (json!({"job": null, "for_each": "input"}), "/job", InvalidValue),
            (json!({"for_each": "input", "tasks": one}), "/tasks", Conflict),
            (json!({"job": null, "tasks": one}), "/tasks", Conflict),
            (json!({"max_items": 5}), "/max_items", Conflict),
            (json!({"concurrency": 5}), "/concurrency", Conflict),
            (json!({"for_each": "input", "max_items": 0}), "/max_items", OutOfRange),
            (json!({"for_each": "input", "max_items": 10_001}), "/max_items", OutOfRange),
            (json!({"for_each": "input", "concurrency": 0}), "/concurrency", OutOfRange),
            (json!({"when": "x".repeat(4_097)}), "/when", TooLong),
            (json!({"job": {"type": ""}}), "/job/type", InvalidValue),
            (json!({"job": {"timeout": "25h"}}), "/job/timeout", OutOfRange),
            (json!({"job": {"target": {"fan_out": {}}}}), "/job/target/fan_out", Reserved),
            (json!({"job": {"retry": {"jitter": 2}}}), "/job/retry/jitter", OutOfRange),
            (json!({"job": {"requires": {"gpu": ""}}}), "/job/requires/gpu", InvalidValue),
            (json!({"job": {"target": {"http": {"url": "ftp://a/"}}}}), "/job/target/http/url", InvalidValue),
            (
                json!({"job": null, "for_each": "input", "tasks": [{"name": "c", "job": {"queue": ""}}]}),
                "/tasks/0/job/queue",
                InvalidValue,
            ),
        ];
        for (fields, pointer, code) in cases {
            assert_eq!(judged(&task(&fields)), [(format!("/tasks/1{pointer}"), code)], "{fields}");
        }
    }

    #[test]
    fn what_has_the_wrong_shape_is_refused_with_its_place() {
        let refusal = |request: &Value| {
            let problem =
                strict_json::read::<SubmitWorkflow>(request.to_string().as_bytes(), 64).expect_err("bad");
            (problem.code, problem.errors.into_iter().next().map(|error| error.pointer).unwrap_or_default())
        };
        for (fields, code, pointer) in [
            (json!({"depends": ["a"]}), "unknown_field", "/tasks/1/depends"),
            (json!({"depends_on": "a"}), "wrong_type", "/tasks/1/depends_on"),
            (json!({"name": null}), "wrong_type", "/tasks/1/name"),
            (json!({"trigger_rule": "one"}), "validation_failed", "/tasks/1/trigger_rule"),
            (json!({"for_each": ["a"]}), "wrong_type", "/tasks/1/for_each"),
            (json!({"for_each": {"from": "a"}}), "unknown_field", "/tasks/1/for_each/from"),
            (json!({"for_each": {}}), "missing_field", "/tasks/1/for_each/$from"),
            (json!({"max_items": -1}), "validation_failed", "/tasks/1/max_items"),
            (json!({"job": {"delay": 1}}), "unknown_field", "/tasks/1/job/delay"),
            (json!({"job": {"depends_on": []}}), "unknown_field", "/tasks/1/job/depends_on"),
        ] {
            assert_eq!(refusal(&task(&fields)), (code.to_owned(), pointer.to_owned()), "{fields}");
        }
        assert_eq!(refusal(&json!({"name": "w"})), ("missing_field".into(), "/tasks".into()));
        assert_eq!(refusal(&json!({"tasks": []})), ("missing_field".into(), "/name".into()));
        let odd = workflow(&json!({"schedule": {"cron": "@daily", "job": {}}}));
        assert_eq!(refusal(&odd), ("unknown_field".into(), "/schedule/job".into()));
    }

    #[test]
    fn a_payload_that_is_too_large_is_found_inside_of_a_task() {
        let large = task(&json!({"job": {"payload": "x".repeat(256 << 10)}}));
        let request: SubmitWorkflow = serde_json::from_value(large).expect("well-formed");
        let problem = request.validate(&Limits::default()).expect_err("too large");
        assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (413, "/tasks/1/job/payload"));
    }
}
