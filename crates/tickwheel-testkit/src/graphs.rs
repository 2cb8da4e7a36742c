//! Workflows made up from a seed, small but with everything in them: rules, conditions, data, fan-outs inside of
//! fan-outs.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tickwheel_core::job::HttpTarget;
use tickwheel_core::retry::RetryPolicy;
use tickwheel_core::schedule::JobTemplate;
use tickwheel_core::workflow::{
    Each, ForEach, OnFailure, TaskSpec, TriggerRule, Work, Workflow, WorkflowSpec,
};
use tickwheel_core::{JobSpec, JsonText, Priority, Target, Timestamp};

/// So deep fan-outs are inside of each other.
const DEPTH_MAX: usize = 2;

/// Makes workflows up.
pub struct Graphs<'r> {
    /// By chance.
    pub rng: &'r mut StdRng,
    /// Tries of each task after the first.
    pub retries: u32,
    /// How long each may take.
    pub timeout: Duration,
}

impl Graphs<'_> {
    /// Some workflow.
    pub fn workflow(&mut self, on_failure: OnFailure, now: Timestamp) -> Workflow {
        let tasks = self.tasks(8, 0);
        let after = if self.chance(30) { vec![self.plain("last", Vec::new())] } else { Vec::new() };
        let before = if self.chance(30) { vec![self.plain("first", Vec::new())] } else { Vec::new() };
        let spec = WorkflowSpec { tasks, before, after, on_failure, ..WorkflowSpec::default() };
        Workflow {
            tenant: "a".into(),
            name: "some".into(),
            version: 1,
            created_at: now,
            spec: Arc::new(spec),
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn tasks(&mut self, len_max: usize, depth: usize) -> Vec<TaskSpec> {
        let len = self.rng.random_range(1..=len_max);
        (0..len).map(|number| self.task(number, depth)).collect()
    }

    fn task(&mut self, number: usize, depth: usize) -> TaskSpec {
        let mut parents: Vec<Arc<str>> = Vec::new();
        for parent in number.saturating_sub(4)..number {
            if self.chance(40) {
                parents.push(name(parent, depth));
            }
        }
        let mut task = self.plain("", parents);
        task.name = name(number, depth);
        if task.depends_on.is_empty() {
            return task;
        }
        task.rule = match self.rng.random_range(0..10) {
            0 => TriggerRule::AllDone,
            1 => TriggerRule::AnyFailed,
            _ => TriggerRule::AllSucceeded,
        };
        // What any_failed finds of its other parents depends on when it looks.
        if task.rule != TriggerRule::AnyFailed {
            self.use_data(&mut task, depth);
        }
        task
    }

    fn use_data(&mut self, task: &mut TaskSpec, depth: usize) {
        let parent = task.depends_on[self.rng.random_range(0..task.depends_on.len())].clone();
        if self.chance(25) {
            task.when = Some(format!("{parent}.result.n > {}", self.rng.random_range(0..3)));
        }
        match self.rng.random_range(0..10) {
            0..3 => {
                let concurrency = self.chance(50).then(|| self.rng.random_range(1..3));
                let each = if depth < DEPTH_MAX && self.chance(50) {
                    Each::Tasks(self.tasks(3, depth + 1))
                } else {
                    Each::Job(self.template(r#"{"element": {"$from": "item"}}"#))
                };
                let over = format!("{parent}.result.list");
                task.work = Work::ForEach(ForEach { over, max_items: 100, concurrency, each });
            }
            3..6 => {
                task.work = Work::Job(self.template(&format!(r#"{{"n": {{"$from": "{parent}.result.n"}}}}"#)))
            }
            _ => {}
        }
    }

    fn plain(&mut self, name: &str, depends_on: Vec<Arc<str>>) -> TaskSpec {
        TaskSpec {
            name: name.into(),
            depends_on,
            rule: TriggerRule::AllSucceeded,
            when: None,
            work: Work::Job(self.template("null")),
        }
    }

    fn template(&self, payload: &str) -> JobTemplate {
        let url = "http://127.0.0.1:9/".into();
        let target = Target::Http(HttpTarget { url, method: "POST".into(), headers: Vec::new() });
        let retry = RetryPolicy {
            max_retries: self.retries,
            initial_delay_ms: 100,
            max_delay_ms: 400,
            ..RetryPolicy::default()
        };
        let spec = JobSpec { retry, timeout_ms: self.timeout.as_millis() as u64, ..JobSpec::new(target) };
        JobTemplate {
            job_type: "work".into(),
            queue: "default".into(),
            priority: Priority::Normal,
            spec: Arc::new(spec),
            payload: JsonText::from_checked(payload),
            tags: Vec::new(),
        }
    }
}

/// Tasks of different depths have different names, so that nothing is found by mistake.
fn name(number: usize, depth: usize) -> Arc<str> {
    format!("{}{number}", ["t", "u", "v"][depth]).into()
}

/// What a task answers.
pub fn some_result(rng: &mut StdRng) -> JsonText {
    let len = rng.random_range(0..4);
    let list: Vec<String> = (0..len).map(|n| n.to_string()).collect();
    JsonText::from_checked(format!(r#"{{"n": {}, "list": [{}]}}"#, rng.random_range(0..4), list.join(", ")))
}
