//! `tickwheel workflows` against a server that says what the test wants: what is asked, what is printed, how it exits.

use serde_json::{Value, json};

use crate::fake_server::FakeServer;
use crate::program::{Run, run, tickwheel};

const ID: &str = "01890a5d-ac96-774b-bcce-b30209900000";

fn task(name: &str, status: &str) -> Value {
    let at = |reached: bool, time: &str| if reached { json!(time) } else { Value::Null };
    json!({"name": name, "status": status, "job_id": null, "type": name, "attempt": 1, "due_at": null,
        "started_at": at(status != "pending", "2026-11-15T10:00:01.000Z"),
        "completed_at": at(status == "completed", "2026-11-15T10:00:01.250Z"),
        "depends_on": [], "trigger_rule": "all_succeeded", "error": null})
}

fn a_run(status: &str, tasks: &[Value]) -> String {
    json!({"id": ID, "workflow": "etl", "version": 2, "status": status, "cancel_requested": false, "tenant": "default",
        "input": null, "created_at": "2026-11-15T10:00:00.000Z",
        "ended_at": if status == "running" { Value::Null } else { json!("2026-11-15T10:00:02.000Z") },
        "tasks_total": tasks.len(), "tasks_open": 0, "stalled": 0, "job_id": null, "tasks": tasks})
    .to_string()
}

fn against(server: &FakeServer, args: &[&str]) -> Run {
    run(tickwheel(args).env("TICKWHEEL_SERVER", &server.url))
}

#[test]
fn watching_tells_each_change_once_and_goes_on_when_the_server_was_away() {
    let server = FakeServer::answering(&[
        (200, &a_run("running", &[task("a", "running"), task("b", "pending")])),
        (0, ""),
        (200, &a_run("running", &[task("a", "completed"), task("b", "pending")])),
        (200, &a_run("running", &[task("a", "completed"), task("b", "pending")])),
        (200, &a_run("completed", &[task("a", "completed"), task("b", "completed")])),
    ]);
    let run = against(&server, &["workflows", "watch", ID]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let expected = format!(
        "2026-11-15T10:00:00.000Z  run {ID} of etl, version 2\n\
         2026-11-15T10:00:01.000Z  a  running\n\
         2026-11-15T10:00:01.250Z  a  completed  250ms\n\
         2026-11-15T10:00:01.250Z  b  completed  250ms\n\
         completed: 2 completed  2s\n"
    );
    assert_eq!(run.stdout, expected);
}

#[test]
fn the_end_of_a_run_is_the_exit_code() {
    for (status, code, said) in
        [("completed", 0, "completed"), ("failed", 1, "failed"), ("cancelled", 1, "was cancelled")]
    {
        let server = FakeServer::answering(&[(200, &a_run(status, &[task("a", "completed")]))]);
        let run = against(&server, &["workflows", "watch", ID, "--json"]);
        assert_eq!(run.code, Some(code), "{run:?}");
        assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap()["status"], status);
        assert_eq!(run.stderr.contains(&format!("run {ID} {said}")), code == 1, "{run:?}");
    }
}

#[test]
fn the_name_of_a_workflow_stands_for_its_latest_run() {
    let latest = a_run("completed", &[task("a", "completed")]);
    let server = FakeServer::answering(&[
        (200, &format!(r#"{{"items": [{latest}], "next_cursor": "x"}}"#)),
        (200, &latest),
    ]);
    let run = against(&server, &["workflows", "show", "etl"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        asked,
        ["GET /api/v1/workflow-runs?workflow=etl&limit=1", &format!("GET /api/v1/workflow-runs/{ID}")]
    );
}

#[test]
fn a_task_is_named_by_its_path_whatever_is_in_it() {
    let server = FakeServer::answering(&[(200, &a_run("running", &[]))]);
    let args = ["workflows", "complete", ID, "load[3].check/x", "--result", "[1]"];
    assert_eq!(against(&server, &args).code, Some(0));
    let asked = &server.asked()[0];
    let path = format!("POST /api/v1/workflow-runs/{ID}/tasks/load[3].check%2Fx/complete");
    assert_eq!(asked.line.replace("%5B", "[").replace("%5D", "]"), path);
    assert_eq!(asked.body, r#"{"result":[1]}"#);
}

#[test]
fn a_run_is_given_its_input_and_key() {
    let server = FakeServer::answering(&[(201, &a_run("running", &[]))]);
    let run =
        against(&server, &["workflows", "run", "etl", "--input", "{\"a\": 1}", "--idempotency-key", "k"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), format!("{ID}\n").as_str()), "{run:?}");
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /api/v1/workflows/etl/runs");
    assert_eq!(asked.body, r#"{"input":{"a": 1},"idempotency_key":"k"}"#);
    assert_eq!(against(&server, &["workflows", "run", "etl", "--wait", "--watch"]).code, Some(2));
}

#[test]
fn what_failed_has_ended_but_is_not_done() {
    let tasks = [task("a", "completed"), task("b", "failed"), task("c", "blocked"), task("d", "skipped")];
    let failed = a_run("failed", &tasks);
    let server = FakeServer::answering(&[
        (200, &failed),
        (200, &format!(r#"{{"items": [{failed}], "next_cursor": null}}"#)),
    ]);
    let shown = against(&server, &["workflows", "show", ID]).stdout;
    assert!(shown.contains("1 of 4 completed, 1 failed, 1 blocked, 1 skipped\n"), "{shown}");
    let listed = against(&server, &["workflows", "runs"]).stdout;
    assert!(listed.contains("ENDED") && listed.contains("4 of 4") && !listed.contains("DONE"), "{listed}");
}
