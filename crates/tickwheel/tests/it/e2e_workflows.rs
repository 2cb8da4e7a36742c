//! Workflows: order, data, conditions, rules, versions, and what is refused.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{has_ended, text};
use crate::e2e::{Stage, on_both_stores, with};
use crate::server::StoreKind;
use crate::target::{Gate, Reply};
use crate::workflows::{assert_in_order, status_of, statuses, task_of};

on_both_stores! {
    a_diamond_runs_in_its_order,
    a_task_uses_what_its_parents_answered_and_what_the_run_was_given,
    what_leads_nowhere_fails_the_task_without_an_attempt,
    a_run_that_lacks_what_it_needs_is_refused_and_leaves_no_trace,
    a_task_whose_condition_does_not_hold_is_skipped_and_what_needs_only_it_too,
    a_task_after_a_skipped_and_a_completed_one_runs,
    rules_decide_who_runs_after_a_failure_and_who_after_a_success,
    the_same_key_is_the_same_run,
    a_run_keeps_the_version_it_began_with,
    what_is_stored_can_be_stored_again_and_changes_nothing,
    a_definition_that_makes_no_sense_is_refused_with_its_place,
    the_tasks_of_a_run_are_jobs,
    the_end_of_a_run_can_be_waited_for,
    runs_are_listed_by_workflow_and_status,
}

async fn a_diamond_runs_in_its_order(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::ok().behind(&gate));
    stage.target.reply("/b", Reply::ok().after(Duration::from_millis(100)));
    let none = || json!({});
    let tasks = vec![
        stage.task("a", &[], none()),
        stage.task("b", &["a"], none()),
        stage.task("c", &["a"], none()),
        stage.task("d", &["b", "c"], none()),
    ];
    stage.store("diamond", tasks, none()).await;
    let id = stage.start("diamond", Value::Null).await;
    stage.target.called("/a", 1).await;
    let run = stage.until_task(&id, "a", "running").await;
    assert_eq!(text(&run, "status"), "running");
    for name in ["b", "c", "d"] {
        assert_eq!(status_of(&run, name), "pending");
    }
    gate.open();
    let run = stage.api.run_ended(&id).await;
    assert_eq!((text(&run, "status"), &run["tasks_open"]), ("completed", &json!(0)), "{run:#}");
    assert_in_order(&run);
    assert_eq!(task_of(&run, "d")["depends_on"], json!(["b", "c"]));
    assert_eq!(stage.target.calls().len(), 4, "each once");
}

async fn a_task_uses_what_its_parents_answered_and_what_the_run_was_given(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/extract", Reply::json(json!({"rows": 7, "files": ["a", "b"], "odd name": null})));
    let payload = json!({
        "rows": {"$from": "extract.result.rows"},
        "last": {"$from": "extract.result.files[-1]"},
        "odd": {"$from": "extract.result[\"odd name\"]"},
        "how": {"$from": "extract.status"},
        "day": {"$from": "input.day"},
        "limit": {"$from": "input.limit", "default": 10},
        "workflow": {"$from": "run.workflow"},
        "raw": {"$literal": {"$from": "nowhere"}},
        "plain": [1, {"x": "y"}],
    });
    let tasks = vec![
        stage.task_with("extract", &[], json!({"day": {"$from": "input.day"}})),
        stage.task_with("load", &["extract"], payload),
    ];
    stage.store("etl", tasks, json!({})).await;
    let id = stage.start("etl", json!({"day": "2026-11-15"})).await;
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/extract")[0].json(), json!({"day": "2026-11-15"}));
    assert_eq!(
        stage.target.calls_to("/load")[0].json(),
        json!({"rows": 7, "last": "b", "odd": null, "how": "completed", "day": "2026-11-15", "limit": 10,
            "workflow": "etl", "raw": {"$from": "nowhere"}, "plain": [1, {"x": "y"}]})
    );
}

async fn what_leads_nowhere_fails_the_task_without_an_attempt(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/extract", Reply::json(json!({"rows": []})));
    let tasks = vec![
        stage.task("extract", &[], json!({})),
        stage.task_with("load", &["extract"], json!({"first": {"$from": "extract.result.rows[0].id"}})),
        stage.task_with("report", &["load"], json!({"loaded": {"$from": "load.result.n"}})),
    ];
    let run = stage.run_to_end("etl", tasks, json!({})).await;
    assert_eq!(text(&run, "status"), "failed");
    let load = task_of(&run, "load");
    assert_eq!((text(load, "status"), &load["attempt"]), ("failed", &json!(0)), "{load}");
    assert_eq!(text(&load["error"], "code"), "unresolved_reference");
    let message = text(&load["error"], "message");
    assert!(message.contains("extract.result.rows is an array of 0 and has no element 0"), "{message}");
    assert_eq!(status_of(&run, "report"), "blocked");
    assert!(stage.target.calls_to("/load").is_empty());

    // Somebody knows what it would have answered.
    let id = text(&run, "id");
    let path = format!("/api/v1/workflow-runs/{id}/tasks/load/complete");
    stage.api.post(&path, &json!({"result": {"n": 3}})).await.expect(200);
    let run = stage.api.run_ended(id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/report")[0].json(), json!({"loaded": 3}));
}

async fn a_run_that_lacks_what_it_needs_is_refused_and_leaves_no_trace(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let tasks = vec![stage.task_with("extract", &[], json!({"day": {"$from": "input.day"}}))];
    stage.store("etl", tasks, json!({})).await;
    let start = json!({"input": {"month": 11}, "idempotency_key": "once"});
    let refused = stage.api.post("/api/v1/workflows/etl/runs", &start).await.expect(422).json();
    let told = refused.to_string();
    assert!(told.contains("extract") && told.contains("input.day"), "{refused}");
    assert!(stage.api.list("/api/v1/workflow-runs").await.is_empty());
    assert!(stage.api.list("/api/v1/jobs").await.is_empty());

    let mended = json!({"input": {"day": 1}, "idempotency_key": "once"});
    stage.api.post("/api/v1/workflows/etl/runs", &mended).await.expect(201);
    stage.api.act("/api/v1/workflows/nobody/runs").await.expect(404);
}

async fn a_task_whose_condition_does_not_hold_is_skipped_and_what_needs_only_it_too(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/count", Reply::json(json!({"rows": 0})));
    let when = |condition: &str| json!({"when": condition});
    let tasks = vec![
        stage.task("count", &[], json!({})),
        stage.task("load", &["count"], when("count.result.rows > 0")),
        stage.task("reindex", &["load"], json!({})),
        stage.task("warn", &["count"], when("not count.result.rows and not input.quiet")),
        stage.task("never", &["count"], when("count.result.missing.further")),
    ];
    let run = stage.run_to_end("etl", tasks, json!({})).await;
    assert_eq!(text(&run, "status"), "completed", "skipped is no failure: {run:#}");
    assert_eq!(
        statuses(&run),
        [
            ("count", "completed"),
            ("load", "skipped"),
            ("reindex", "skipped"),
            ("warn", "completed"),
            ("never", "skipped")
        ]
    );
    assert!(!task_of(&run, "load")["error"].is_null(), "why is told");
    for path in ["/load", "/reindex", "/never"] {
        assert!(stage.target.calls_to(path).is_empty(), "{path}");
    }
}

async fn a_task_after_a_skipped_and_a_completed_one_runs(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let join = json!({"a": {"$from": "a.status"}, "b": {"$from": "b.result.x", "default": "none"}});
    let tasks = vec![
        stage.task("a", &[], json!({})),
        stage.task("b", &[], json!({"when": "false"})),
        stage.task_with("join", &["a", "b"], join),
    ];
    let run = stage.run_to_end("etl", tasks, json!({})).await;
    assert_eq!(statuses(&run), [("a", "completed"), ("b", "skipped"), ("join", "completed")]);
    assert_eq!(stage.target.calls_to("/join")[0].json(), json!({"a": "completed", "b": "none"}));
    assert_in_order(&run);
}

async fn rules_decide_who_runs_after_a_failure_and_who_after_a_success(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let rule = |rule: &str| json!({"trigger_rule": rule});
    let tasks = || {
        vec![
            stage.task("work", &[], json!({})),
            stage.task("next", &["work"], json!({})),
            stage.task("alert", &["work"], rule("any_failed")),
            stage.task("cleanup", &["next"], rule("all_done")),
        ]
    };
    let run = stage.run_to_end("fine", tasks(), json!({})).await;
    let fine = ["completed", "completed", "skipped", "completed"];
    assert_eq!(statuses(&run).iter().map(|(_, status)| *status).collect::<Vec<_>>(), fine);
    assert_eq!(text(&run, "status"), "completed");

    stage.target.reply("/work", Reply::status(400));
    let run = stage.run_to_end("broken", tasks(), json!({})).await;
    let broken = ["failed", "blocked", "completed", "completed"];
    assert_eq!(statuses(&run).iter().map(|(_, status)| *status).collect::<Vec<_>>(), broken);
    assert_eq!(text(&run, "status"), "failed");
    assert_eq!(stage.target.calls_to("/cleanup").len(), 2);
}

async fn the_same_key_is_the_same_run(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    stage.store("etl", vec![stage.task("work", &[], json!({}))], json!({})).await;
    let start = json!({"input": {"a": 1}, "idempotency_key": "once"});
    let first = stage.api.post("/api/v1/workflows/etl/runs", &start).await.expect(201).json();
    stage.api.post("/api/v1/workflows/etl/runs", &start).await.expect(200);
    stage.api.run_ended(text(&first, "id")).await;
    stage.restart().await;
    let again = stage.api.post("/api/v1/workflows/etl/runs", &start).await.expect(200).json();
    assert_eq!(first["id"], again["id"]);
    let other = json!({"input": {"a": 2}, "idempotency_key": "once"});
    stage.api.post("/api/v1/workflows/etl/runs", &other).await.expect(409);
    assert_eq!(stage.api.list("/api/v1/workflow-runs").await.len(), 1);
    assert_eq!(stage.target.calls_to("/work").len(), 1);
}

async fn a_run_keeps_the_version_it_began_with(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/first", Reply::ok().behind(&gate));
    let tasks = vec![stage.task("first", &[], json!({})), stage.task("old", &["first"], json!({}))];
    let stored = stage.store("etl", tasks, json!({})).await;
    assert_eq!(stored["version"], 1);
    let id = stage.start("etl", Value::Null).await;
    stage.target.called("/first", 1).await;
    let tasks = vec![stage.task("first", &[], json!({})), stage.task("new", &["first"], json!({}))];
    assert_eq!(stage.store("etl", tasks, json!({})).await["version"], 2);
    stage.restart().await;
    gate.open();
    let run = stage.api.run_ended(&id).await;
    assert_eq!((&run["version"], text(&run, "status")), (&json!(1), "completed"), "{run:#}");
    assert_eq!(status_of(&run, "old"), "completed");
    assert!(stage.target.calls_to("/new").is_empty());
    let second = stage.start("etl", Value::Null).await;
    assert_eq!(stage.api.run_ended(&second).await["version"], 2);
    assert_eq!(stage.target.calls_to("/new").len(), 1);
    let versions = stage.api.list("/api/v1/workflows/etl/versions").await;
    assert_eq!(versions.iter().map(|version| &version["version"]).collect::<Vec<_>>(), [2, 1]);
    let first = stage.api.get("/api/v1/workflows/etl?version=1").await.expect(200).json();
    assert_eq!(first["definition"]["tasks"][1]["name"], "old");
}

async fn what_is_stored_can_be_stored_again_and_changes_nothing(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let inner = vec![stage.task_with("page", &[], json!({"n": {"$from": "item"}}))];
    let tasks = vec![
        stage.task("a", &[], json!({"job": {"timeout": "90s", "tags": ["x"], "retry": {"max_retries": 1}}})),
        stage.task("b", &["a"], json!({"for_each": "a.result.list", "concurrency": 2, "tasks": inner})),
        stage.task("c", &["b"], json!({"trigger_rule": "all_done", "when": "input.x == 1"})),
    ];
    let fields = json!({"description": "all kinds", "on_failure": "continue", "stall_after": "5m",
        "before": [stage.task("first", &[], json!({}))], "after": [stage.task("last", &[], json!({}))],
        "notify": [{"url": stage.target.url("/told"), "on": ["failed"]}],
        "schedule": {"cron": "0 2 * * *", "timezone": "Europe/Berlin", "overlap": "skip", "input": {"x": 1}}});
    let stored = stage.store("etl", tasks, fields).await;
    assert_eq!(stored["version"], 1);
    let read = stage.api.get("/api/v1/workflows/etl").await.expect(200).json();
    let again = stage.api.post("/api/v1/workflows", &read["definition"]).await.expect(200).json();
    assert_eq!(again["version"], 1);
    assert_eq!(again["definition"], read["definition"]);
    let listed = stage.api.list("/api/v1/workflows").await;
    assert_eq!((listed.len(), text(&listed[0], "name"), &listed[0]["tasks_total"]), (1, "etl", &json!(6)));
}

async fn a_definition_that_makes_no_sense_is_refused_with_its_place(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let none = || json!({});
    let refused = async |tasks: Vec<Value>, status: u16| {
        let workflow = json!({"name": "bad", "tasks": tasks});
        stage.api.post("/api/v1/workflows", &workflow).await.expect(status).json()
    };
    let circle = vec![
        stage.task("a", &["c"], none()),
        stage.task("b", &["a"], none()),
        stage.task("c", &["b"], none()),
    ];
    let from_stranger = stage.task_with("a", &[], json!({"x": {"$from": "b.result.x"}}));
    for (tasks, code, pointer, said) in [
        (circle, "cycle", "/tasks/0/depends_on", "a -> "),
        (vec![stage.task("a", &["a"], none())], "cycle", "/tasks/0/depends_on", "a -> a"),
        (
            vec![stage.task("extract", &[], none()), stage.task("load", &["extrct"], none())],
            "unknown_task",
            "/tasks/1/depends_on/0",
            "\"extract\"",
        ),
        (
            vec![stage.task("a", &[], none()), stage.task("a", &[], none())],
            "duplicate_task",
            "/tasks/1/name",
            "\"a\"",
        ),
        (
            vec![from_stranger, stage.task("b", &[], none())],
            "validation_failed",
            "/tasks/0/job/payload",
            "depends_on",
        ),
        (
            vec![stage.task("a", &[], json!({"when": "input.x = 3"}))],
            "validation_failed",
            "/tasks/0/when",
            "= 3",
        ),
        (vec![], "validation_failed", "/tasks", "at least one"),
        (vec![stage.task("input", &[], none())], "validation_failed", "/tasks/0/name", "input"),
    ] {
        let problem = refused(tasks, 422).await;
        assert_eq!(text(&problem, "code"), code, "{problem}");
        assert_eq!(text(&problem["errors"][0], "pointer"), pointer, "{problem}");
        assert!(text(&problem["errors"][0], "detail").contains(said), "{said}: {problem}");
    }
    let problem = refused(vec![with(stage.task("a", &[], none()), json!({"depend_on": []}))], 400).await;
    assert!(problem.to_string().contains("depend_on"), "{problem}");
    let far_around: Vec<Value> = (0..1_000)
        .map(|n| stage.task(&format!("t{n}"), &[&format!("t{}", (n + 1) % 1_000)], none()))
        .collect();
    assert_eq!(text(&refused(far_around, 422).await, "code"), "cycle");
    assert!(stage.api.list("/api/v1/workflows").await.is_empty());
}

async fn the_tasks_of_a_run_are_jobs(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/a", Reply::json(json!({"n": 1})));
    let tasks = vec![
        stage.task("a", &[], json!({"job": {"queue": "lane", "priority": "high", "tags": ["etl"]}})),
        stage.task("b", &["a"], json!({"job": {"type": "special"}})),
    ];
    let run = stage.run_to_end("etl", tasks, json!({})).await;
    let id = text(&run, "id");
    let jobs = stage.api.list(&format!("/api/v1/jobs?workflow_run_id={id}")).await;
    assert_eq!(jobs.len(), 2);
    assert!(jobs.iter().all(has_ended));
    let a = stage.api.job(text(task_of(&run, "a"), "job_id")).await;
    assert_eq!((text(&a, "type"), text(&a, "queue"), text(&a, "task")), ("a", "lane", "a"));
    assert_eq!((text(&a, "workflow_run_id"), &a["result"]), (id, &json!({"n": 1})));
    let b = stage.api.job(text(task_of(&run, "b"), "job_id")).await;
    assert_eq!((text(&b, "type"), text(&b, "task")), ("special", "b"));
    assert_eq!(b["depends_on"], json!([a["id"]]));
    assert_eq!(stage.api.attempts(text(&b, "id")).await.len(), 1);
}

async fn the_end_of_a_run_can_be_waited_for(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/work", Reply::ok().behind(&gate));
    stage.store("etl", vec![stage.task("work", &[], json!({}))], json!({})).await;
    let id = stage.start("etl", Value::Null).await;
    let early = stage.api.get(&format!("/api/v1/workflow-runs/{id}?wait=50ms")).await.expect(408);
    assert_eq!(early.code(), "wait_timeout");
    let waiting = tokio::spawn({
        let (api, id) = (stage.api.clone(), id.clone());
        async move { api.run_ended(&id).await }
    });
    stage.target.called("/work", 1).await;
    gate.open();
    assert_eq!(text(&waiting.await.unwrap(), "status"), "completed");
}

async fn runs_are_listed_by_workflow_and_status(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/bad", Reply::status(400));
    for name in ["good", "bad"] {
        stage.store(name, vec![stage.task(name, &[], json!({}))], json!({})).await;
    }
    let mut ids = Vec::new();
    for name in ["good", "bad", "good"] {
        let id = stage.start(name, Value::Null).await;
        stage.api.run_ended(&id).await;
        ids.push(id);
    }
    let listed = async |filter: &str| -> Vec<String> {
        let runs = stage.api.list(&format!("/api/v1/workflow-runs?limit=1{filter}")).await;
        runs.iter().map(|run| text(run, "id").to_owned()).collect()
    };
    ids.reverse();
    assert_eq!(listed("").await, ids, "the latest first");
    assert_eq!(listed("&workflow=good").await, [ids[0].clone(), ids[2].clone()]);
    assert_eq!(listed("&status=failed").await, [ids[1].clone()]);
    assert!(listed("&workflow=bad&status=completed").await.is_empty());
    stage.api.get("/api/v1/workflow-runs?status=asleep").await.expect(400);
}
