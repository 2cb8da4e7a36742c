//! Looking after jobs from the command line, with a real server: finding, changing, running again, many at once.

use serde_json::{Value, json};

use crate::api::text;
use crate::e2e::{Stage, on_both_stores, quick_retries};
use crate::e2e_cli::{cli, ok, ok_json, submit};
use crate::server::StoreKind;
use crate::target::Reply;
use crate::terminal::on_terminal;

on_both_stores! {
    a_job_is_changed_before_it_starts,
    a_job_that_has_ended_is_run_again_as_a_new_one,
    a_job_says_where_it_comes_from,
    a_job_without_an_address_says_that_nobody_takes_it,
    short_ids_are_taken_wherever_an_id_is,
    jobs_are_found_by_several_states_and_tags,
    many_jobs_are_cancelled_and_run_again_by_filter,
    a_person_is_asked_before_many_jobs_are_cancelled,
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
    for part in [format!("etl ({run})"), "each[1] (item 1)".into()] {
        assert!(shown.contains(&part), "{part} in {shown}");
    }
    let unknown = cli(&stage, &["jobs", "list", "--schedule", "nihgtly"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains("schedule nihgtly: there is no such schedule"), "{unknown:?}");
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

async fn ids(stage: &Stage, filter: &[&str]) -> Vec<String> {
    let list = ok_json(stage, &[&["jobs", "list"], filter].concat()).await;
    list["items"].as_array().unwrap().iter().map(|job| text(job, "id").to_owned()).collect()
}

async fn jobs_are_found_by_several_states_and_tags(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/broken", Reply::status(422));
    let completed = submit(&stage, "/run", &["--tag", "a"]).await;
    let failed = submit(&stage, "/broken", &["--tag", "a", "--tag", "b,c"]).await;
    let waiting = submit(&stage, "/run", &["--delay", "1h", "--tag", "b,c"]).await;
    stage.until(&completed, "completed").await;
    stage.until(&failed, "failed").await;
    assert_eq!(ids(&stage, &["--status", "failed,scheduled"]).await, [waiting.clone(), failed.clone()]);
    assert_eq!(
        ids(&stage, &["--status", "completed", "--status", "failed"]).await,
        [failed.clone(), completed.clone()]
    );
    assert_eq!(ids(&stage, &["--tag", "a", "--tag", "b,c"]).await, std::slice::from_ref(&failed));
    assert_eq!(ids(&stage, &["--tag", "b,c"]).await, [waiting.clone(), failed.clone()]);
    assert_eq!(ids(&stage, &["--tag", "b,c", "--status", "scheduled,running"]).await, [waiting]);
    let bad = stage.api.get("/api/v1/jobs?status=failed,odd").await;
    assert_eq!((bad.status, bad.code().as_str()), (400, "invalid_parameter"));
}

async fn many_jobs_are_cancelled_and_run_again_by_filter(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    for queue in ["mail", "mail", "mail", "other"] {
        submit(&stage, "/run", &["--delay", "1h", "--queue", queue]).await;
    }
    let held = submit(&stage, "/run", &["--delay", "1h", "--queue", "mail"]).await;
    ok(&stage, &["jobs", "pause", &held]).await;
    let counted = ok(&stage, &["jobs", "cancel", "--queue", "mail", "--dry-run"]).await;
    assert_eq!(counted, "would cancel 4 jobs (1 paused, 3 scheduled)\n");
    let unasked = cli(&stage, &["jobs", "cancel", "--queue", "mail"]).await;
    assert_eq!((unasked.code, unasked.stdout.as_str()), (Some(2), ""), "{unasked:?}");
    assert!(unasked.stderr.contains("cancel 4 jobs") && unasked.stderr.contains("--yes"), "{unasked:?}");
    assert_eq!(ids(&stage, &["--status", "cancelled"]).await, Vec::<String>::new(), "nothing was done");

    let one = ok_json(
        &stage,
        &["jobs", "cancel", "--queue", "mail", "--status", "scheduled", "--limit", "1", "--yes"],
    )
    .await;
    assert_eq!(one, json!({"matched": 1, "done": 1, "refused": 0}));
    assert!(ok(&stage, &["jobs", "cancel", "--queue", "mail", "-y"]).await.starts_with("3 cancelled"));
    assert_eq!(ids(&stage, &["--status", "cancelled"]).await.len(), 4);
    assert_eq!(ids(&stage, &["--status", "scheduled"]).await.len(), 1, "the other queue is left alone");
    let none = cli(&stage, &["jobs", "cancel", "--queue", "mail", "-y"]).await;
    assert!(none.code == Some(0) && none.stderr.contains("no jobs match"), "{none:?}");

    assert_eq!(ok(&stage, &["jobs", "retry", "--queue", "mail", "--yes"]).await, "4 will run again\n");
    for id in ids(&stage, &["--queue", "mail"]).await {
        stage.until(&id, "completed").await;
    }
    let wrong = cli(&stage, &["jobs", "cancel", &held, "--queue", "mail"]).await;
    assert_eq!(wrong.code, Some(2), "ids or filters: {wrong:?}");
    let ended = cli(&stage, &["jobs", "cancel", "--queue", "mail", "--status", "completed", "--yes"]).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "0 cancelled, or asked to stop\n"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("4 of 4 jobs were not changed"), "{ended:?}");
}

async fn a_person_is_asked_before_many_jobs_are_cancelled(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let id = submit(&stage, "/run", &["--delay", "1h"]).await;
    for (answer, code, status) in [("n\n", 1, "scheduled"), ("y\n", 0, "cancelled")] {
        let server = stage.server.url().to_owned();
        let args = ["jobs", "cancel", "--status", "scheduled"];
        let typed = move || on_terminal(80, &server, &args, answer);
        let run = tokio::task::spawn_blocking(typed).await.unwrap();
        assert_eq!(run.code, Some(code), "{run:?}");
        assert!(run.stdout.contains("cancel 1 job (1 scheduled)? [y/N]"), "{run:?}");
        assert_eq!(text(&stage.api.job(&id).await, "status"), status);
    }
}
