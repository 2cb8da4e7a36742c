//! Workflows of the server under test, and how their runs go.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::api::{Answer, Api, text, time};
use crate::e2e::{Stage, with};
use crate::eventually::{PATIENCE, eventually};

impl Stage {
    /// A task that calls `/name` of the target after `parents`, changed by `fields`.
    pub fn task(&self, name: &str, parents: &[&str], fields: Value) -> Value {
        let target = json!({"http": {"url": self.target.url(&format!("/{name}"))}});
        let mut task = json!({"name": name, "depends_on": parents, "job": {"target": target}});
        let Value::Object(mut fields) = fields else { panic!("only objects have members") };
        // What is said of the job is added to it; a task of tasks has none.
        if let Some(job) = fields.remove("job") {
            task["job"] = with(task["job"].take(), job);
        }
        if fields.contains_key("tasks") {
            task.as_object_mut().expect("a task").remove("job");
        }
        with(task, Value::Object(fields))
    }

    /// Such a task with this payload.
    pub fn task_with(&self, name: &str, parents: &[&str], payload: Value) -> Value {
        self.task(name, parents, json!({"job": {"payload": payload}}))
    }

    /// Stores a workflow as a new version.
    pub async fn store(&self, name: &str, tasks: Vec<Value>, fields: Value) -> Value {
        let workflow = with(json!({"name": name, "tasks": tasks}), fields);
        self.api.post("/api/v1/workflows", &workflow).await.expect(201).json()
    }

    /// Starts a run; its id.
    pub async fn start(&self, name: &str, input: Value) -> String {
        let answer = self.api.post(&format!("/api/v1/workflows/{name}/runs"), &json!({"input": input})).await;
        text(&answer.expect(201).json(), "id").to_owned()
    }

    /// Stores a workflow and runs it to its end.
    pub async fn run_to_end(&self, name: &str, tasks: Vec<Value>, fields: Value) -> Value {
        self.store(name, tasks, fields).await;
        let id = self.start(name, Value::Null).await;
        self.api.run_ended(&id).await
    }

    /// The run, once it is as `holds` says.
    pub async fn until_run(&self, id: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let what = format!("run {id} {what}");
        eventually(&what, PATIENCE, async || Some(self.api.run(id).await).filter(&holds)).await
    }

    /// The run, once a task of it stands like this.
    pub async fn until_task(&self, id: &str, task: &str, status: &str) -> Value {
        let holds = |run: &Value| status_of(run, task) == status;
        self.until_run(id, &format!("to have {task} {status}"), holds).await
    }

    /// Does `verb` to a run.
    pub async fn act_on_run(&self, id: &str, verb: &str) -> Answer {
        self.api.act(&format!("/api/v1/workflow-runs/{id}/{verb}")).await
    }

    /// The elements of a fan-out.
    pub async fn items(&self, run: &str, task: &str) -> Vec<Value> {
        self.api.list(&format!("/api/v1/workflow-runs/{run}/items?task={task}")).await
    }
}

impl Api {
    /// A run as it is.
    pub async fn run(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/workflow-runs/{id}")).await.expect(200).json()
    }

    /// A run once it has ended.
    pub async fn run_ended(&self, id: &str) -> Value {
        let began = Instant::now();
        loop {
            let answer = self.get(&format!("/api/v1/workflow-runs/{id}?wait=20s")).await;
            match answer.status {
                200 => return answer.json(),
                408 if began.elapsed() < PATIENCE => {}
                status => {
                    let stands = self.get(&format!("/api/v1/workflow-runs/{id}")).await.text();
                    panic!("waiting for run {id}: {status} {}, {stands}", answer.text())
                }
            }
        }
    }
}

/// A task of a run.
#[track_caller]
pub fn task_of<'r>(run: &'r Value, name: &str) -> &'r Value {
    let tasks = run["tasks"].as_array().unwrap_or_else(|| panic!("no tasks in {run}"));
    let found = tasks.iter().find(|task| task["name"] == name);
    found.unwrap_or_else(|| panic!("no task {name} in {run:#}"))
}

/// How a task of a run stands.
#[track_caller]
pub fn status_of<'r>(run: &'r Value, name: &str) -> &'r str {
    text(task_of(run, name), "status")
}

/// How all tasks of a run stand, in the order of the definition.
pub fn statuses(run: &Value) -> Vec<(&str, &str)> {
    let tasks = run["tasks"].as_array().unwrap_or_else(|| panic!("no tasks in {run}"));
    tasks.iter().map(|task| (text(task, "name"), text(task, "status"))).collect()
}

/// I8: no task of the run started before those it depends on were over.
#[track_caller]
pub fn assert_in_order(run: &Value) {
    let tasks = run["tasks"].as_array().unwrap_or_else(|| panic!("no tasks in {run}"));
    let by_name: HashMap<&str, &Value> = tasks.iter().map(|task| (text(task, "name"), task)).collect();
    for task in tasks.iter().filter(|task| task["started_at"].is_string()) {
        let started = time(task, "started_at");
        for parent in task["depends_on"].as_array().expect("a list") {
            let parent = by_name[parent.as_str().expect("a name")];
            let ended = time(parent, "completed_at");
            assert!(started >= ended, "I8: {task} started before {parent} was over");
        }
    }
}
