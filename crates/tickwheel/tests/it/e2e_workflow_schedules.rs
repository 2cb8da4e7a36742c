//! Runs that something else starts: the workflow's own schedule, any schedule, any job.

use serde_json::{Value, json};

use crate::api::{id_of, text, time};
use crate::e2e::{Stage, for_a_while, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::ledger::count;
use crate::server::StoreKind;
use crate::target::{Gate, Reply};
use crate::workflows::{status_of, task_of};

on_both_stores! {
    a_schedule_of_a_workflow_starts_runs_with_its_input,
    a_firing_is_skipped_while_a_run_is_going,
    a_version_without_a_schedule_takes_it_away,
    a_bad_schedule_is_refused_and_nothing_is_stored,
    the_name_of_such_a_schedule_is_reserved,
    a_job_can_run_a_workflow_and_ends_as_the_run_does,
    a_job_for_a_workflow_that_does_not_exist_fails,
}

async fn runs(stage: &Stage) -> Vec<Value> {
    stage.api.list("/api/v1/workflow-runs?workflow=etl").await
}

async fn a_schedule_of_a_workflow_starts_runs_with_its_input(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let work = stage.task_with("work", &[], json!({"full": {"$from": "input.full"}}));
    let schedule = json!({"schedule": {"every": "1s", "input": {"full": true}}});
    stage.store("etl", vec![work], schedule).await;
    let calls = stage.target.called("/work", 2).await;
    assert_eq!(calls[0].json(), json!({"full": true}));
    let fires = stage.until_fires("workflow.etl", "two firings", |fires| fires.len() >= 2).await;
    let job = stage.until(text(&fires[0], "job_id"), "completed").await;
    assert_eq!((text(&job, "type"), &job["attempt"]), ("etl", &json!(1)), "{job}");
    let run = eventually("a run for that job", PATIENCE, async || {
        runs(&stage).await.into_iter().find(|run| run["job_id"] == job["id"])
    })
    .await;
    let run = stage.api.run_ended(text(&run, "id")).await;
    assert_eq!((text(&run, "status"), &run["input"]), ("completed", &json!({"full": true})));
    let last = time(task_of(&run, "work"), "completed_at");
    assert!(time(&job, "completed_at") >= last, "the job ends when the tasks have: {job} {run:#}");
}

async fn a_firing_is_skipped_while_a_run_is_going(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/work", Reply::ok().behind(&gate));
    let schedule = json!({"schedule": {"every": "1s", "overlap": "skip"}});
    stage.store("etl", vec![stage.task("work", &[], json!({}))], schedule).await;
    let skipped = |fires: &[Value]| fires.iter().any(|fire| fire["outcome"] == "skipped");
    let fires = stage.until_fires("workflow.etl", "a skipped firing", skipped).await;
    assert_eq!(count(&fires, "fired"), 1, "{fires:#?}");
    assert_eq!(runs(&stage).await.len(), 1);
    gate.open();
    let again = |fires: &[Value]| count(fires, "fired") >= 2;
    stage.until_fires("workflow.etl", "a second one that fired", again).await;
}

async fn a_version_without_a_schedule_takes_it_away(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let tasks = || vec![stage.task("work", &[], json!({}))];
    stage.store("etl", tasks(), json!({"schedule": {"cron": "0 2 * * *"}})).await;
    let schedule = stage.read("workflow.etl").await;
    assert_eq!(text(&schedule, "cron"), "0 2 * * *");
    stage
        .store("etl", tasks(), json!({"schedule": {"cron": "0 3 * * *", "timezone": "Europe/Berlin"}}))
        .await;
    let changed = stage.read("workflow.etl").await;
    assert_eq!(
        (&changed["id"], text(&changed, "cron")),
        (&schedule["id"], "0 3 * * *"),
        "it is the same one"
    );
    assert_eq!(text(&changed, "timezone"), "Europe/Berlin");
    stage.store("etl", tasks(), json!({})).await;
    stage.api.get("/api/v1/schedules/workflow.etl").await.expect(404);
}

async fn a_bad_schedule_is_refused_and_nothing_is_stored(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    for (schedule, pointer) in [
        (json!({"cron": "60 * * * *"}), "/schedule/cron"),
        (json!({"cron": "@daily", "timezone": "Berlin"}), "/schedule/timezone"),
        (json!({"cron": "@daily", "exclude": ["calendar:nowhere"]}), "/schedule/exclude/0"),
    ] {
        let workflow =
            json!({"name": "etl", "tasks": [stage.task("work", &[], json!({}))], "schedule": schedule});
        let problem = stage.api.post("/api/v1/workflows", &workflow).await.expect(422).json();
        assert_eq!(text(&problem["errors"][0], "pointer"), pointer, "{problem}");
    }
    assert!(stage.api.list("/api/v1/workflows").await.is_empty());
    assert!(stage.api.list("/api/v1/schedules").await.is_empty());
}

async fn the_name_of_such_a_schedule_is_reserved(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let schedule = stage.schedule("workflow.etl", json!({}));
    let problem = stage.api.post("/api/v1/schedules", &schedule).await.expect(422).json();
    assert_eq!(text(&problem["errors"][0], "pointer"), "/name", "{problem}");
}

async fn a_job_can_run_a_workflow_and_ends_as_the_run_does(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/work", Reply::ok().behind(&gate));
    stage.target.on("/fails", |_| Reply::status(400));
    let work = stage.task_with("work", &[], json!({"day": {"$from": "input.day"}}));
    stage.store("etl", vec![work], json!({})).await;
    stage.store("bad", vec![stage.task("fails", &[], json!({}))], json!({})).await;
    let job = |name: &str| {
        json!({"type": "nightly", "target": {"workflow": {"name": name}}, "payload": {"day": 5},
            "retry": {"max_retries": 0}})
    };
    let id = id_of(&stage.api.submit(&job("etl")).await);
    stage.target.called("/work", 1).await;
    stage.until(&id, "running").await;
    // Whoever takes the job over goes on with the same run.
    stage.restart().await;
    gate.open();
    let done = stage.api.wait(&id).await;
    assert_eq!(text(&done, "status"), "completed", "{done}");
    let started = runs(&stage).await;
    assert_eq!((started.len(), &started[0]["job_id"]), (1, &json!(id)), "{started:#?}");
    assert_eq!(stage.target.calls_to("/work")[0].json(), json!({"day": 5}));

    let id = id_of(&stage.api.submit(&job("bad")).await);
    let failed = stage.api.wait(&id).await;
    assert_eq!(text(&failed, "status"), "failed", "{failed}");
    let run = &stage.api.list("/api/v1/workflow-runs?workflow=bad").await[0];
    let run = stage.api.run_ended(text(run, "id")).await;
    assert_eq!((text(&run, "status"), status_of(&run, "fails")), ("failed", "failed"));
}

async fn a_job_for_a_workflow_that_does_not_exist_fails(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let job =
        json!({"type": "nightly", "target": {"workflow": {"name": "nobody"}}, "retry": {"max_retries": 0}});
    // Somebody may still store it: only when it is its time does it have to be there.
    let failed = stage.api.wait(&id_of(&stage.api.submit(&job).await)).await;
    assert_eq!((text(&failed, "status"), &failed["attempt"]), ("failed", &json!(1)));
    assert_eq!(text(&failed["error"], "code"), "unknown_workflow");
    assert!(text(&failed["error"], "message").contains("nobody"), "{failed}");
    for_a_while(async || assert!(runs(&stage).await.is_empty())).await;
}
