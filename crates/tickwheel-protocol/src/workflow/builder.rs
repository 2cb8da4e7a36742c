//! Definitions of workflows in Rust.
//!
//! ```
//! use serde_json::json;
//! use tickwheel_protocol::workflow::TriggerRule;
//! use tickwheel_protocol::workflow::builder::{Task, Workflow, from};
//!
//! let etl = Workflow::named("etl")
//!     .task(Task::named("extract").http("https://svc.example/extract"))
//!     .task(
//!         Task::named("transform")
//!             .depends_on("extract")
//!             .for_each("extract.result.files")
//!             .concurrency(4)
//!             .http("https://svc.example/transform")
//!             .payload(json!({"file": from("item")})),
//!     )
//!     .task(
//!         Task::named("load")
//!             .depends_on("transform")
//!             .when("transform.result != []")
//!             .http("https://svc.example/load")
//!             .payload(json!({"parts": from("transform.result")})),
//!     )
//!     .task(Task::named("clean").depends_on("load").rule(TriggerRule::AllDone).http("https://svc.example/clean"))
//!     .notify("https://svc.example/told")
//!     .build();
//!
//! assert_eq!(etl.tasks.len(), 4);
//! let sent = serde_json::to_value(&etl)?;
//! assert_eq!(sent["tasks"][1]["job"]["payload"], json!({"file": {"$from": "item"}}));
//! # Ok::<(), serde_json::Error>(())
//! ```
//! Nothing is checked here: the server does, and says all of it.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{
    DataPath, Notify, OnFailure, RunEvent, SubmitWorkflow, TaskJob, TriggerRule, WorkflowSchedule,
    WorkflowTask,
};
use crate::retry::Retry;
use crate::target::{HttpTarget, Target, WorkflowTarget};
use crate::time::Span;

/// A reference, for a payload, to the data at a path.
pub fn from(path: &str) -> Value {
    json!({ "$from": path })
}

/// The same, with a default for when the path leads nowhere.
pub fn from_or(path: &str, default: Value) -> Value {
    json!({ "$from": path, "default": default })
}

/// A workflow under construction.
#[derive(Clone, Debug, Default)]
pub struct Workflow(SubmitWorkflow);

impl Workflow {
    /// A workflow without tasks.
    pub fn named(name: impl Into<String>) -> Self {
        Self(SubmitWorkflow { name: name.into(), ..SubmitWorkflow::default() })
    }

    /// Sets what it is for.
    #[must_use]
    pub fn description(mut self, words: impl Into<String>) -> Self {
        self.0.description = Some(words.into());
        self
    }

    /// Adds a task.
    #[must_use]
    pub fn task(mut self, task: Task) -> Self {
        self.0.tasks.push(task.build());
        self
    }

    /// Adds a task that runs before all others.
    #[must_use]
    pub fn before(mut self, task: Task) -> Self {
        self.0.before.push(task.build());
        self
    }

    /// Adds a task that runs after all others have ended.
    #[must_use]
    pub fn after(mut self, task: Task) -> Self {
        self.0.after.push(task.build());
        self
    }

    /// Lets tasks go on that do not depend on a failed one.
    #[must_use]
    pub const fn continue_on_failure(mut self) -> Self {
        self.0.on_failure = Some(OnFailure::Continue);
        self
    }

    /// Sets after how long a waiting task counts as stalled.
    #[must_use]
    pub const fn stall_after(mut self, longest: Span) -> Self {
        self.0.stall_after = Some(longest);
        self
    }

    /// Notifies this URL of how its runs end.
    #[must_use]
    pub fn notify(mut self, url: impl Into<String>) -> Self {
        self.0.notify.push(Notify { url: url.into(), on: None });
        self
    }

    /// Notifies this URL of these events.
    #[must_use]
    pub fn notify_on(mut self, url: impl Into<String>, events: impl IntoIterator<Item = RunEvent>) -> Self {
        self.0.notify.push(Notify { url: url.into(), on: Some(events.into_iter().collect()) });
        self
    }

    /// Sets when it runs by itself.
    #[must_use]
    pub fn schedule(mut self, schedule: WorkflowSchedule) -> Self {
        self.0.schedule = Some(schedule);
        self
    }

    /// The request.
    pub fn build(self) -> SubmitWorkflow {
        self.0
    }
}

/// A task under construction.
#[derive(Clone, Debug, Default)]
pub struct Task(WorkflowTask);

impl Task {
    /// A task without a job.
    pub fn named(name: impl Into<String>) -> Self {
        Self(WorkflowTask { name: name.into(), ..WorkflowTask::default() })
    }

    /// Adds a task it depends on.
    #[must_use]
    pub fn depends_on(mut self, task: impl Into<String>) -> Self {
        self.0.depends_on.push(task.into());
        self
    }

    /// Sets when it may start, depending on how the tasks it depends on ended.
    #[must_use]
    pub const fn rule(mut self, rule: TriggerRule) -> Self {
        self.0.trigger_rule = Some(rule);
        self
    }

    /// Skips the task unless this condition is true.
    #[must_use]
    pub fn when(mut self, condition: impl Into<String>) -> Self {
        self.0.when = Some(condition.into());
        self
    }

    /// Runs the task for each element of the array at this path.
    #[must_use]
    pub fn for_each(mut self, path: impl Into<String>) -> Self {
        self.0.for_each = Some(DataPath(path.into()));
        self
    }

    /// Fails the task if the array has more elements.
    #[must_use]
    pub const fn max_items(mut self, items: u32) -> Self {
        self.0.max_items = Some(items);
        self
    }

    /// Sets how many items may run at once.
    #[must_use]
    pub const fn concurrency(mut self, items: u32) -> Self {
        self.0.concurrency = Some(items);
        self
    }

    /// Adds a task that runs for each element, instead of a job.
    #[must_use]
    pub fn task(mut self, task: Self) -> Self {
        self.0.tasks.get_or_insert_default().push(task.build());
        self
    }

    /// Sets its job.
    #[must_use]
    pub fn job(mut self, job: TaskJob) -> Self {
        self.0.job = Some(job);
        self
    }

    /// Makes it call this URL.
    #[must_use]
    pub fn http(self, url: impl Into<String>) -> Self {
        self.target(Target::Http(HttpTarget::post(url)))
    }

    /// Makes it run this workflow.
    #[must_use]
    pub fn workflow(self, name: impl Into<String>) -> Self {
        self.target(Target::Workflow(WorkflowTarget { name: name.into() }))
    }

    /// Sets what executes it.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.job_mut().target = Some(target);
        self
    }

    /// Sets the data for the target. [`from`] refers to data of other tasks.
    #[must_use]
    pub fn payload(mut self, payload: Value) -> Self {
        self.job_mut().payload = Some(raw(&payload));
        self
    }

    /// Sets how often and when to try again after a failure.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.job_mut().retry = Some(retry);
        self
    }

    /// Sets how long an attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Span) -> Self {
        self.job_mut().timeout = Some(timeout);
        self
    }

    /// The task as it is sent.
    pub fn build(self) -> WorkflowTask {
        self.0
    }

    fn job_mut(&mut self) -> &mut TaskJob {
        self.0.job.get_or_insert_default()
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("a JSON value can be written as JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::strict_json;
    use crate::validate::Validate;

    #[test]
    fn what_is_built_is_what_would_be_written_by_hand() {
        let built = Workflow::named("w")
            .description("a test")
            .before(Task::named("check").workflow("other"))
            .task(Task::named("each").for_each("input.files").max_items(10).concurrency(2).task(
                Task::named("copy").http("https://svc/copy").payload(from_or("item.name", json!("none"))),
            ))
            .after(Task::named("tell").job(TaskJob::default()))
            .continue_on_failure()
            .stall_after(Span::from_millis(60_000))
            .notify("https://svc/told")
            .notify_on("https://svc/stalled", [RunEvent::Stalled])
            .build();
        let written = json!({
            "name": "w", "description": "a test",
            "before": [{"name": "check", "job": {"target": {"workflow": {"name": "other"}}}}],
            "tasks": [{"name": "each", "for_each": "input.files", "max_items": 10, "concurrency": 2, "tasks": [
                {"name": "copy", "job": {
                    "target": {"http": {"url": "https://svc/copy", "method": "POST", "headers": {}}},
                    "payload": {"$from": "item.name", "default": "none"}}}]}],
            "after": [{"name": "tell", "job": {}}],
            "on_failure": "continue", "stall_after": "60s",
            "notify": [{"url": "https://svc/told"}, {"url": "https://svc/stalled", "on": ["stalled"]}],
        });
        assert_eq!(serde_json::to_value(&built).expect("JSON"), written);
        let read: SubmitWorkflow =
            strict_json::read(written.to_string().as_bytes(), 64).expect("well-formed");
        assert_eq!(read.validate(&Limits::default()), Ok(()));
    }
}
