//! Workflows that are removed: nothing starts them any more, and what they started goes on.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::{id_of, text};
use crate::e2e::{Stage, on_both_stores};
use crate::e2e_cli::cli;
use crate::program::Run;
use crate::server::StoreKind;
use crate::target::{Gate, Reply};
use crate::workflows::statuses;

on_both_stores! {
    a_workflow_can_be_removed_while_a_run_is_going,
    a_job_keeps_its_run_when_the_workflow_is_removed,
    workflows_are_deleted_on_the_command_line,
    workflows_in_no_file_are_pruned_if_the_files_speak_of_workflows,
}

fn two_tasks(stage: &Stage) -> Vec<Value> {
    vec![stage.task("first", &[], json!({})), stage.task("second", &["first"], json!({}))]
}

/// A gate that holds up the first task.
fn closed_gate(stage: &Stage) -> Gate {
    let gate = Gate::closed();
    stage.target.reply("/first", Reply::ok().behind(&gate));
    gate
}

async fn names(stage: &Stage) -> Vec<String> {
    let workflows = stage.api.list("/api/v1/workflows").await;
    workflows.iter().map(|workflow| text(workflow, "name").to_owned()).collect()
}

#[track_caller]
fn assert_says(run: &Run, code: i32, parts: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:?}");
    for part in parts {
        assert!(run.stdout.contains(part) || run.stderr.contains(part), "{part:?} in {run:?}");
    }
}

async fn a_workflow_can_be_removed_while_a_run_is_going(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let gate = closed_gate(&stage);
    let schedule = json!({"schedule": {"cron": "0 2 * * *"}});
    stage.store("etl", two_tasks(&stage), schedule.clone()).await;
    let id = stage.start("etl", Value::Null).await;
    stage.target.called("/first", 1).await;

    stage.api.delete("/api/v1/workflows/etl").await.expect(204);
    stage.api.delete("/api/v1/workflows/etl").await.expect(404);
    stage.api.post("/api/v1/workflows/etl/runs", &json!({})).await.expect(404);
    stage.api.get("/api/v1/workflows/etl").await.expect(404);
    stage.api.get("/api/v1/schedules/workflow.etl").await.expect(404);
    assert!(names(&stage).await.is_empty());

    // Nothing but the store knows the definition now.
    stage.restart().await;
    gate.open();
    let run = stage.api.run_ended(&id).await;
    assert_eq!((text(&run, "status"), &run["version"]), ("completed", &json!(1)), "{run}");
    assert_eq!(statuses(&run), [("first", "completed"), ("second", "completed")]);
    stage.api.get("/api/v1/workflows/etl?version=1").await.expect(200);

    let again = stage.store("etl", two_tasks(&stage), schedule).await;
    assert_eq!(again["version"], 2, "the same definition, and yet a new version");
    assert_eq!(text(&stage.read("workflow.etl").await, "cron"), "0 2 * * *");
    let run = stage.start("etl", Value::Null).await;
    assert_eq!(stage.api.run_ended(&run).await["version"], 2);
}

async fn a_job_keeps_its_run_when_the_workflow_is_removed(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let gate = closed_gate(&stage);
    stage.store("etl", two_tasks(&stage), json!({})).await;
    let nightly =
        json!({"type": "nightly", "target": {"workflow": {"name": "etl"}}, "retry": {"max_retries": 0}});
    let job = id_of(&stage.api.submit(&nightly).await);
    stage.target.called("/first", 1).await;
    stage.api.delete("/api/v1/workflows/etl").await.expect(204);
    // Whoever takes the job over asks for its run once more.
    stage.restart().await;
    gate.open();
    let done = stage.api.wait(&job).await;
    assert_eq!(text(&done, "status"), "completed", "{done}");
    assert_eq!(stage.api.list("/api/v1/workflow-runs?workflow=etl").await.len(), 1);

    let late = stage.api.wait(&id_of(&stage.api.submit(&nightly).await)).await;
    assert_eq!((text(&late, "status"), text(&late["error"], "code")), ("failed", "unknown_workflow"));
}

async fn workflows_are_deleted_on_the_command_line(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    for name in ["a", "b", "c"] {
        stage.store(name, two_tasks(&stage), json!({})).await;
    }
    let deleted = cli(&stage, &["workflows", "delete", "a", "c"]).await;
    assert_says(&deleted, 0, &["a  deleted\nc  deleted"]);
    assert_eq!(names(&stage).await, ["b"]);
    assert_says(&cli(&stage, &["workflows", "delete", "a"]).await, 2, &["not_found"]);
    assert_says(&cli(&stage, &["workflows", "run", "a"]).await, 2, &["not_found"]);
    assert_says(&cli(&stage, &["workflows", "get", "a", "--version", "1"]).await, 0, &["first", "second"]);
}

async fn workflows_in_no_file_are_pruned_if_the_files_speak_of_workflows(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let directory = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let schedule = json!({"schedule": {"cron": "@daily"}});
    stage.store("old", two_tasks(&stage), schedule).await;
    let file = write("new.yaml", "name: new\ntasks: [{ name: a, job: {} }]\n");
    let apply = async |file: &str, more: &[&str]| {
        cli(&stage, &[&["apply", "-f", file, "--yes"], more].concat()).await
    };
    assert_says(&apply(&file, &[]).await, 0, &["created workflow new"]);
    let silent = write("silent.yaml", "schedules: []");
    assert_says(&apply(&silent, &["--prune"]).await, 0, &["nothing to change"]);
    assert_eq!(names(&stage).await, ["new", "old"]);

    let diff = cli(&stage, &["diff", "-f", &file, "--prune"]).await;
    assert_says(
        &diff,
        1,
        &["= workflow new  unchanged", "- workflow old  deleted", "1 to delete, 1 unchanged"],
    );
    assert_says(&apply(&file, &["--prune"]).await, 0, &["deleted workflow old"]);
    assert_eq!(names(&stage).await, ["new"]);
    stage.api.get("/api/v1/schedules/workflow.old").await.expect(404);

    let none = write("none.yaml", "workflows: []");
    assert_says(&apply(&none, &["--prune"]).await, 0, &["deleted workflow new"]);
    assert_says(&apply(&file, &[]).await, 0, &["+ workflow new", "created workflow new"]);
    assert_eq!(stage.api.get("/api/v1/workflows/new").await.expect(200).json()["version"], 2);
}
