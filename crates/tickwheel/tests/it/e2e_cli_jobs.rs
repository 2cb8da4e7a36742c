//! Looking after jobs from the command line, with a real server: finding, changing, running again, many at once.

use serde_json::{Value, json};

use crate::api::text;
use crate::e2e::{Stage, on_both_stores, quick_retries};
use crate::e2e_cli::{cli, ok, ok_json, submit};
use crate::server::StoreKind;
use crate::target::Reply;

on_both_stores! {
    a_job_is_changed_before_it_starts,
    a_job_that_has_ended_is_run_again_as_a_new_one,
    a_job_says_where_it_comes_from,
    a_job_without_an_address_says_that_nobody_takes_it,
    short_ids_are_taken_wherever_an_id_is,
}

async fn a_job_is_changed_before_it_starts(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let id = submit(&stage, "/run", &["--delay", "1h", "--tag", "old", "--payload", "1"]).await;
    let line = ok(&stage, &["jobs", "edit", &id, "--priority", "high", "--tag", "a", "--tag", "b"]).await;
    assert!(line.starts_with(&id), "{line}");
    let job = stage.api.job(&id).await;
    assert_eq!(
        (&job["priority"], &job["tags"], &job["payload"]),
        (&json!("high"), &json!(["a", "b"]), &json!(1))
    );
    ok(
        &stage,
        &["jobs", "edit", &id, "--no-tags", "--payload", "{\"x\": 2}", "--at", "2030-01-01T00:00:00Z"],
    )
    .await;
    let job = stage.api.job(&id).await;
    assert_eq!((&job["payload"], &job["tags"]), (&json!({"x": 2}), &json!([])));
    assert_eq!(job["execute_at"], "2030-01-01T00:00:00.000Z");
    ok(&stage, &["jobs", "edit", &id, "--delay", "1ms"]).await;
    stage.until(&id, "completed").await;
    let late = cli(&stage, &["jobs", "edit", &id, "--priority", "low"]).await;
    assert_eq!(late.code, Some(2), "{late:?}");
    assert!(late.stderr.contains(&id) && late.stderr.contains("cannot be changed"), "{late:?}");
}

async fn a_job_that_has_ended_is_run_again_as_a_new_one(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let options = [
        "--payload",
        "{\"n\": 1}",
        "--queue",
        "mail",
        "--priority",
        "high",
        "--tag",
        "t",
        "--max-retries",
        "7",
        "--timeout",
        "9s",
        "--header",
        "X-Team: mail",
        "--metadata",
        "{\"a\": 1}",
        "--idempotency-key",
        "once",
    ];
    let id = submit(&stage, "/run", &options).await;
    let refused = cli(&stage, &["jobs", "rerun", &submit(&stage, "/run", &["--delay", "1h"]).await]).await;
    assert!(refused.code == Some(2) && refused.stderr.contains("has ended"), "{refused:?}");
    stage.until(&id, "completed").await;

    let new = ok(&stage, &["jobs", "rerun", &id]).await.trim().to_owned();
    assert_ne!(new, id);
    let (first, again) = (stage.api.job(&id).await, stage.until(&new, "completed").await);
    for field in
        ["type", "target", "payload", "queue", "priority", "retry", "timeout", "delivery", "tags", "metadata"]
    {
        assert_eq!(first[field], again[field], "{field}");
    }
    let calls = stage.target.called("/run", 2).await;
    assert_eq!((calls[1].json(), calls[1].header("x-team")), (json!({"n": 1}), "mail"));
    let waited = ok_json(&stage, &["jobs", "rerun", &id, "--payload", "[2]", "--wait=30s"]).await;
    assert_eq!((&waited["payload"], text(&waited, "status")), (&json!([2]), "completed"));
}

async fn a_job_says_where_it_comes_from(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let schedule = json!({"name": "nightly", "cron": "0 0 1 1 *", "job": stage.job("/run", json!({}))});
    let schedule = stage.api.post("/api/v1/schedules", &schedule).await.success().json();
    let id = ok(&stage, &["schedules", "trigger", "nightly"]).await.trim().to_owned();
    let shown = ok(&stage, &["jobs", "get", &id]).await;
    assert!(shown.contains(&format!("nightly ({})", text(&schedule, "id"))), "{shown}");

    let job = json!({"target": {"http": {"url": stage.target.url("/run")}}});
    let tasks = json!([{"name": "each", "for_each": "input", "job": job}]);
    stage.api.post("/api/v1/workflows", &json!({"name": "etl", "tasks": tasks})).await.success();
    let run = ok(&stage, &["workflows", "run", "etl", "--input", "[1, 2]"]).await.trim().to_owned();
    stage.api.run_ended(&run).await;
    let list = ok(&stage, &["jobs", "list", "--workflow-run", &run]).await;
    assert!(list.contains("TASK") && list.contains("each[0]") && list.contains("each[1]"), "{list}");
    let jobs = ok_json(&stage, &["jobs", "list", "--workflow-run", &run]).await;
    let element: &Value =
        jobs["items"].as_array().unwrap().iter().find(|job| job["task"] == "each[1]").unwrap();
    let shown = ok(&stage, &["jobs", "get", text(element, "id")]).await;
    for part in [format!("etl ({run})"), "each[1] (element 1)".into()] {
        assert!(shown.contains(&part), "{part} in {shown}");
    }
    let of_schedule = ok_json(&stage, &["jobs", "list", "--schedule", "nightly"]).await;
    assert_eq!(of_schedule["items"].as_array().unwrap().len(), 1);
    assert_eq!(of_schedule["items"][0]["id"], id);
}

async fn a_job_without_an_address_says_that_nobody_takes_it(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let run = cli(&stage, &["jobs", "submit", "resize"]).await;
    assert_eq!((run.code, run.stdout.lines().count()), (Some(0), 1), "{run:?}");
    assert!(run.stderr.contains("waits for a worker") && run.stderr.contains("is connected"), "{run:?}");
    assert!(run.stderr.contains("--url"), "{run:?}");
    let called = cli(&stage, &["jobs", "submit", "test", "--url", &stage.target.url("/run")]).await;
    assert_eq!(called.stderr, "", "{called:?}");
}

async fn short_ids_are_taken_wherever_an_id_is(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/broken", Reply::status(422));
    let short = |id: &str| id.rsplit('-').next().unwrap().to_owned();
    let id = submit(&stage, "/run", &["--delay", "1h"]).await;
    let other = submit(&stage, "/run", &["--delay", "1h"]).await;
    for verb in ["get", "why", "attempts", "pause", "resume", "run", "wait"] {
        ok(&stage, &["jobs", verb, &short(&id)]).await;
    }
    assert!(
        ok(&stage, &["jobs", "get", &id[..id.len() - 2]]).await.contains(&id),
        "a beginning does as well"
    );
    let after = format!("{},{}", short(&id), short(&other));
    let child = submit(&stage, "/run", &["--depends-on", &after]).await;
    assert_eq!(stage.api.job(&child).await["depends_on"], json!([id, other]));
    ok(&stage, &["jobs", "cancel", &short(&other)]).await;

    let failed = stage.submit("/broken", json!({"retry": quick_retries(0)})).await;
    stage.until(&failed, "failed").await;
    assert!(ok(&stage, &["dead-letters", "get", &short(&failed)]).await.contains(&failed));
    ok(&stage, &["dead-letters", "discard", &short(&failed)]).await;
}
