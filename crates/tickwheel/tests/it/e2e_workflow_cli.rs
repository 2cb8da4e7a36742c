//! Workflows on the command line and in declared files: what a person and a script see.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::text;
use crate::e2e::{Stage, on_both_stores};
use crate::e2e_cli::{cli, cli_with_input};
use crate::program::{Run, run, tickwheel};
use crate::server::StoreKind;
use crate::target::{Gate, Reply};

on_both_stores! {
    a_workflow_is_applied_run_and_watched,
    a_run_that_fails_has_exit_code_1_and_is_mended_by_hand,
    a_run_is_cancelled_and_taken_up_again,
    a_run_is_paused_and_resumed,
    what_is_bad_is_told_with_its_place_and_has_exit_code_2,
    files_of_workflows_are_compared_and_applied_beside_schedules,
}

/// extract → transform for each → load.
fn etl(stage: &Stage) -> String {
    let url = |path: &str| stage.target.url(path);
    format!(
        r#"
name: etl
description: a small one
tasks:
  - name: extract
    job: {{ target: {{ http: {{ url: "{}" }} }}, payload: {{ day: {{ $from: input.day, default: today }} }} }}
  - name: transform
    depends_on: [extract]
    for_each: extract.result.files
    job: {{ target: {{ http: {{ url: "{}" }} }}, payload: {{ file: {{ $from: item }} }} }}
  - name: load
    depends_on: [transform]
    job: {{ target: {{ http: {{ url: "{}" }} }}, payload: {{ parts: {{ $from: transform.result }} }} }}
"#,
        url("/extract"),
        url("/transform"),
        url("/load")
    )
}

fn answer(stage: &Stage) {
    stage.target.reply("/extract", Reply::json(json!({"files": ["a", "b", "c"]})));
    stage.target.on("/transform", |call| Reply::json(call.json()["file"].clone()));
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[track_caller]
fn assert_says(run: &Run, code: i32, parts: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:?}");
    for part in parts {
        let said = run.stdout.contains(part) || run.stderr.contains(part);
        assert!(said, "{part:?} in {}\n{}", run.stdout, run.stderr);
    }
}

#[track_caller]
fn read(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error} in {run:?}"))
}

async fn apply(stage: &Stage) -> Run {
    cli_with_input(stage, &["workflows", "apply", "-f", "-"], &etl(stage)).await
}

async fn a_workflow_is_applied_run_and_watched(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    answer(&stage);
    let tried = cli_with_input(&stage, &["workflows", "apply", "--dry-run", "-f", "-"], &etl(&stage)).await;
    assert_says(&tried, 0, &["etl  version 1  created", "nothing was stored"]);
    assert!(stage.api.list("/api/v1/workflows").await.is_empty());
    assert_says(&apply(&stage).await, 0, &["etl  version 1  created"]);
    assert_says(&apply(&stage).await, 0, &["etl  version 1  unchanged"]);
    assert_says(&cli(&stage, &["workflows", "list"]).await, 0, &["NAME", "etl", "a small one"]);
    let got = cli(&stage, &["workflows", "get", "etl"]).await;
    assert_says(&got, 0, &["for each of extract.result.files", "POST http://", "transform"]);

    let watched = cli(&stage, &["workflows", "run", "etl", "--input", r#"{"day": 5}"#, "--watch"]).await;
    let parts =
        ["extract  completed", "transform  completed  3/3", "load  completed", "completed: 3 completed"];
    assert_says(&watched, 0, &parts);
    assert_eq!(stage.target.calls_to("/extract")[0].json(), json!({"day": 5}));
    assert_eq!(stage.target.calls_to("/load")[0].json(), json!({"parts": ["a", "b", "c"]}));
    assert!(!watched.stdout.contains('\u{1b}'), "no colours, no moving about: {watched:?}");

    let waited = cli(&stage, &["workflows", "run", "etl", "--wait=30s", "--json"]).await;
    assert_eq!(text(&read(&waited), "status"), "completed", "{waited:?}");
    let started = cli(&stage, &["workflows", "run", "etl", "--idempotency-key", "k"]).await;
    let id = started.stdout.trim();
    assert_says(
        &cli(&stage, &["workflows", "run", "etl", "--idempotency-key", "k"]).await,
        0,
        &[id, "first run"],
    );
    stage.api.run_ended(id).await;
    assert_says(
        &cli(&stage, &["workflows", "runs", "etl", "--status", "completed"]).await,
        0,
        &[id, "6 of 6"],
    );
    let items = ["STATUS", "transform", "3/3"];
    for args in [&["workflows", "show", id][..], &["workflows", "get", id], &["workflows", "show", "etl"]] {
        assert_says(&cli(&stage, args).await, 0, &[&items[..], &[id]].concat());
    }
    assert_eq!(read(&cli(&stage, &["workflows", "show", id, "--json"]).await), stage.api.run(id).await);
    assert_says(&cli(&stage, &["workflows", "watch", id]).await, 0, &["completed: 3 completed"]);
    assert_says(&cli(&stage, &["workflows", "get", "etl", "--versions"]).await, 0, &["VERSION", "etl"]);

    let mermaid = cli(&stage, &["workflows", "graph", "etl"]).await;
    assert_says(&mermaid, 0, &["flowchart", "extract", "-->"]);
    let file = Files::new();
    let path = file.write("etl.yaml", &etl(&stage));
    let drawn = run(&mut tickwheel(&["workflows", "graph", "-f", &path, "--server", "http://127.0.0.1:1"]));
    assert_eq!(drawn.stdout, mermaid.stdout, "without asking a server");
    assert_says(&cli(&stage, &["workflows", "graph", "etl", "--format", "dot"]).await, 0, &["digraph"]);
}

async fn a_run_that_fails_has_exit_code_1_and_is_mended_by_hand(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    answer(&stage);
    stage.target.reply("/load", Reply::status(400).body("no such table"));
    apply(&stage).await;
    let failed = cli(&stage, &["workflows", "run", "etl", "--watch"]).await;
    assert_says(&failed, 1, &["load  failed", "no such table", "failed: 2 completed, 1 failed"]);
    let waited = cli(&stage, &["workflows", "run", "etl", "--wait"]).await;
    assert_says(&waited, 1, &["failed", "no such table"]);
    let listed = read(&cli(&stage, &["workflows", "runs", "--status", "failed", "--json"]).await);
    let id = |n: usize| text(&listed["items"][n], "id").to_owned();

    let completed = cli(&stage, &["workflows", "complete", &id(0), "load", "--result", "7"]).await;
    assert_says(&completed, 0, &[&id(0)]);
    assert_eq!(text(&stage.api.run_ended(&id(0)).await, "status"), "completed");
    assert_says(&cli(&stage, &["workflows", "skip", &id(0), "load"]).await, 2, &["load"]);

    stage.target.reply("/load", Reply::ok());
    assert_says(&cli(&stage, &["workflows", "retry-task", &id(1), "load"]).await, 0, &[&id(1)]);
    assert_says(&cli(&stage, &["workflows", "watch", &id(1)]).await, 0, &["completed: 3 completed"]);
    assert_says(&cli(&stage, &["workflows", "retry", &id(1)]).await, 2, &["no task of the run"]);
}

async fn a_run_is_cancelled_and_taken_up_again(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    answer(&stage);
    let never = Gate::closed();
    stage.target.reply("/load", Reply::ok().behind(&never));
    apply(&stage).await;
    let id = cli(&stage, &["workflows", "run", "etl"]).await.stdout.trim().to_owned();
    stage.target.called("/load", 1).await;
    assert_says(&cli(&stage, &["workflows", "cancel", &id]).await, 0, &[&id]);
    assert_says(&cli(&stage, &["workflows", "watch", &id]).await, 1, &["load  cancelled", "was cancelled"]);
    stage.target.reply("/load", Reply::ok());
    assert_says(&cli(&stage, &["workflows", "retry", &id]).await, 0, &[&id, "running"]);
    assert_says(&cli(&stage, &["workflows", "watch", &id]).await, 0, &["load  completed"]);
    assert_eq!(stage.target.calls_to("/extract").len(), 1);
}

async fn a_run_is_paused_and_resumed(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    answer(&stage);
    let gate = Gate::closed();
    stage.target.reply("/extract", Reply::json(json!({"files": []})).behind(&gate));
    apply(&stage).await;
    let id = cli(&stage, &["workflows", "run", "etl"]).await.stdout.trim().to_owned();
    stage.target.called("/extract", 1).await;
    assert_says(&cli(&stage, &["workflows", "pause", &id]).await, 0, &[&id, "paused"]);
    assert_says(&cli(&stage, &["workflows", "runs", "--status", "paused"]).await, 0, &[&id, "paused"]);
    gate.open();
    stage.until_task(&id, "load", "scheduled").await;
    let shown = cli(&stage, &["workflows", "show", &id]).await;
    assert_says(&shown, 0, &["paused    20", "its run is paused; resume the run to let it start"]);
    assert_says(&cli(&stage, &["workflows", "resume", &id]).await, 0, &[&id, "running"]);
    assert_says(&cli(&stage, &["workflows", "watch", &id]).await, 0, &["load  completed"]);
    let over = cli(&stage, &["workflows", "pause", &id]).await;
    assert_says(&over, 2, &["the run is completed already"]);
}

async fn what_is_bad_is_told_with_its_place_and_has_exit_code_2(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let files = Files::new();
    files.write("a.yaml", &etl(&stage));
    files.write(
        "b.yaml",
        "workflows:\n\
         - { name: round, tasks: [{ name: a, depends_on: [b], job: {} }, { name: b, depends_on: [a], job: {} }] }\n\
         - { name: typo, tasks: [{ name: extract, job: {} }, { name: load, depends_on: [extrct], job: {} }] }\n\
         - { name: twice, tasks: [{ name: a, job: {} }, { name: a, job: {} }] }\n\
         - { name: odd, tsks: [] }\n",
    );
    let directory = files.0.path().to_str().unwrap();
    for args in [&["workflows", "apply"][..], &["diff"], &["apply", "--yes"]] {
        let run = cli(&stage, &[args, &["-f", directory]].concat()).await;
        assert_says(
            &run,
            2,
            &[
                r#"b.yaml: workflows[0] ("round"): /tasks/0/depends_on: tasks wait for each other: a -> b -> a"#,
                r#"b.yaml: workflows[1] ("typo"): /tasks/1/depends_on/0: there is no task named "extrct"; did you mean "extract"?"#,
                r#"b.yaml: workflows[2] ("twice"): /tasks/1/name: there is another task named "a""#,
                r#"b.yaml: workflows[3] ("odd")"#,
            ],
        );
    }
    assert!(stage.api.list("/api/v1/workflows").await.is_empty(), "not even the good one");
    let schedules = files.write("s.yaml", "schedules: [{ name: s, cron: '@daily', job: { type: t } }]");
    let nobody = "01890a5d-ac96-774b-bcce-b30209900000";
    for (args, said) in [
        (&["workflows", "apply", "-f", &schedules][..], "is not a workflow"),
        (&["workflows", "apply", "-f", "absent.yaml"], "absent.yaml"),
        (&["workflows", "run", "nobody"], "not_found"),
        (&["workflows", "run", "nobody", "--input", "{oops"], "--input is not valid JSON"),
        (&["workflows", "watch", "nobody"], "no run of a workflow"),
        (&["workflows", "show", nobody], "not_found"),
        (&["workflows", "get", "nobody"], "not_found"),
        (&["workflows", "cancel", nobody], "not_found"),
        (&["workflows", "pause", nobody], "not_found"),
        (&["workflows", "runs", "--status", "asleep"], "running, completed, failed, cancelled, paused"),
        (&["workflows", "graph"], "NAME"),
    ] {
        assert_says(&cli(&stage, args).await, 2, &[said]);
    }
    let away = run(&mut tickwheel(&["workflows", "watch", nobody, "--server", "http://127.0.0.1:1"]));
    assert_eq!(away.code, Some(3), "{away:?}");
}

async fn files_of_workflows_are_compared_and_applied_beside_schedules(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let files = Files::new();
    let declared = |payload: &str, more: &str| {
        format!(
            "schedules:\n- {{ name: nightly, cron: '0 2 * * *', job: {{ type: t, target: {{ workflow: {{ name: etl }} }} }} }}\n\
             calendars:\n- {{ name: off, days: [2090-12-25] }}\n\
             workflows:\n- name: etl\n  schedule: {{ cron: '@daily', exclude: ['calendar:off'] }}\n  tasks:\n\
             \x20 - {{ name: a, job: {{ type: a, payload: {payload}, timeout: 300s }} }}\n{more}"
        )
    };
    let file = files.write("all.yaml", &declared("1", ""));
    let diff = cli(&stage, &["diff", "-f", &file]).await;
    assert_says(&diff, 1, &["+ workflow etl  new: 1 task", "+ nightly", "3 to create, 0 to change"]);
    let applied = cli(&stage, &["apply", "-f", &file, "--yes"]).await;
    assert_says(&applied, 0, &["created calendar off\ncreated workflow etl\ncreated nightly"]);
    assert_says(
        &cli(&stage, &["diff", "-f", &file]).await,
        0,
        &["= workflow etl  unchanged", "nothing to change"],
    );

    files.write("all.yaml", &declared("2", "  - { name: b, depends_on: [a], job: {} }\n"));
    let diff = cli(&stage, &["diff", "-f", &file]).await;
    let parts =
        ["~ workflow etl  version 1 → 2", "tasks.a.job.payload: 1 → 2", "tasks.b: none →", "1 to change"];
    assert_says(&diff, 1, &parts);
    let told = read(&cli(&stage, &["diff", "-f", &file, "--json"]).await);
    assert_eq!(
        (&told["workflows"][0]["action"], &told["workflows"][0]["version"]),
        (&json!("change"), &json!(2))
    );
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &["changed workflow etl"]);
    let stored = stage.api.get("/api/v1/workflows/etl").await.expect(200).json();
    assert_eq!((&stored["version"], &stored["tasks_total"]), (&json!(2), &json!(2)));

    // What somebody does to the schedule of a workflow is seen, and undone.
    let schedule = "/api/v1/schedules/workflow.etl";
    let steady = ["= workflow etl  unchanged", "nothing to change"];
    stage.api.act(&format!("{schedule}/pause")).await.expect(200);
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 0, &steady);
    stage.api.patch(schedule, &json!({"cron": "@hourly", "overlap": "skip"})).await.expect(200);
    let parts = [
        "~ workflow etl  version 2, its schedule differs from the definition",
        "schedule.cron: \"@hourly\" → \"@daily\"",
        "schedule.overlap: \"skip\" → \"allow\"",
        "1 to change",
    ];
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 1, &parts);
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &["changed workflow etl"]);
    let there = stage.api.get(schedule).await.expect(200).json();
    assert_eq!(
        (text(&there, "cron"), text(&there, "overlap"), &there["paused"]),
        ("@daily", "allow", &json!(true))
    );
    stage.api.delete(schedule).await.expect(204);
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 1, &["schedule: none →", "1 to change"]);
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &["changed workflow etl"]);
    stage.api.get(schedule).await.expect(200);
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 0, &steady);

    // What belongs to a workflow is not pruned with what is in no file.
    let only = files.write("only.yaml", "schedules: []");
    let pruned = cli(&stage, &["apply", "-f", &only, "--prune", "--yes"]).await;
    assert_says(&pruned, 0, &["deleted nightly"]);
    stage.api.get("/api/v1/schedules/workflow.etl").await.expect(200);
}
