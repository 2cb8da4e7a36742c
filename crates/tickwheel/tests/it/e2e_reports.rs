//! Late reports: a target that answers 202 reports later, with the token it was given and nothing else.

use serde_json::{Value, json};

use crate::api::{Answer, text, time};
use crate::e2e::{Stage, millis_between, on_both_stores, quick_retries};
use crate::server::StoreKind;
use crate::target::Reply;
use crate::workflows::{status_of, task_of};

on_both_stores! {
    a_job_that_was_accepted_runs_until_it_is_reported_complete,
    a_report_counts_although_the_server_was_killed_meanwhile,
    a_reported_failure_is_retried_as_the_reporter_says,
    a_report_on_an_attempt_that_is_over_changes_nothing,
    a_token_that_was_never_given_out_opens_nothing,
    a_job_that_was_accepted_is_cancelled_at_once_and_a_heartbeat_tells_its_target,
    a_run_whose_tasks_were_accepted_is_cancelled_at_once_and_goes_on_when_retried,
    a_report_that_is_repeated_is_accepted_again,
    a_job_nobody_reports_on_is_timed_out_by_the_server,
}

const BEYOND_A_TEST: &str = "1h";

/// A stage whose target accepts everything at `/later`.
async fn accepting(kind: StoreKind) -> Stage {
    let stage = Stage::set(kind).await;
    stage.target.reply("/later", Reply::status(202));
    stage
}

async fn report(stage: &Stage, token: &str, verb: &str, body: Value) -> Answer {
    stage.api.post(&format!("/api/v1/attempts/{token}/{verb}"), &body).await
}

/// The token of the job's latest attempt, once its 202 is on record.
async fn accepted(stage: &Stage, id: &str, attempt: usize) -> String {
    let calls = stage.target.called("/later", attempt).await;
    stage.awaits_report(id).await;
    calls.last().unwrap().header("tickwheel-token").to_owned()
}

async fn a_job_that_was_accepted_runs_until_it_is_reported_complete(kind: StoreKind) {
    let stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": BEYOND_A_TEST})).await;
    let token = accepted(&stage, &id, 1).await;
    let beat = report(&stage, &token, "heartbeat", json!({})).await.expect(200).json();
    assert_eq!(beat["cancel"], false);
    let job = stage.api.job(&id).await;
    assert_eq!(text(&job, "status"), "running");
    assert_eq!(beat["deadline"], job["deadline"]);
    // It is somebody else's work now: it takes no place here.
    assert_eq!(stage.api.get("/api/v1/admin/status").await.json()["slots_free"], 512);

    report(&stage, &token, "complete", json!({"result": {"rows": 3}})).await.expect(204);
    let job = stage.api.job(&id).await;
    assert_eq!((text(&job, "status"), &job["result"]), ("completed", &json!({"rows": 3})));
    let attempts = stage.api.attempts(&id).await;
    assert_eq!(attempts.len(), 1);
    assert_eq!(text(&attempts[0], "outcome"), "completed");
}

async fn a_report_counts_although_the_server_was_killed_meanwhile(kind: StoreKind) {
    let mut stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": BEYOND_A_TEST})).await;
    let token = accepted(&stage, &id, 1).await;
    stage.restart().await;
    report(&stage, &token, "heartbeat", json!({})).await.expect(200);
    // Without a body: there is no result.
    stage.api.act(&format!("/api/v1/attempts/{token}/complete")).await.expect(204);
    let job = stage.api.job(&id).await;
    assert_eq!((text(&job, "status"), &job["attempt"]), ("completed", &json!(1)), "{job}");
    assert_eq!(stage.target.calls_to("/later").len(), 1);
}

async fn a_reported_failure_is_retried_as_the_reporter_says(kind: StoreKind) {
    let stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": BEYOND_A_TEST, "retry": quick_retries(5)})).await;
    let first = accepted(&stage, &id, 1).await;
    report(&stage, &first, "fail", json!({"error": "no disk left"})).await.expect(204);

    let second = accepted(&stage, &id, 2).await;
    assert_ne!(first, second);
    report(&stage, &second, "fail", json!({"error": {"code": "busy", "message": "later"}, "delay": "10m"}))
        .await
        .expect(204);
    let job = stage.until_backoff(&id, 2).await;
    let attempts = stage.api.attempts(&id).await;
    assert_eq!(millis_between(time(&attempts[1], "ended_at"), time(&job, "next_run_at")), 600_000);
    assert_eq!(attempts[0]["error"]["message"], "no disk left");
    assert_eq!(attempts[1]["error"], json!({"code": "busy", "message": "later"}));

    stage.act(&id, "run").await.expect(200);
    let third = accepted(&stage, &id, 3).await;
    report(&stage, &third, "fail", json!({"error": "never", "retryable": false})).await.expect(204);
    assert_eq!(text(&stage.api.job(&id).await, "status"), "failed");
    assert_eq!(text(&stage.dead_letter(&id).await.expect(200).json(), "reason"), "not_retryable");
}

async fn a_report_on_an_attempt_that_is_over_changes_nothing(kind: StoreKind) {
    let stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": BEYOND_A_TEST, "retry": quick_retries(5)})).await;
    let first = accepted(&stage, &id, 1).await;
    report(&stage, &first, "fail", json!({})).await.expect(204);
    let second = accepted(&stage, &id, 2).await;
    for (verb, body) in [("complete", json!({})), ("fail", json!({"error": "no"})), ("heartbeat", json!({}))]
    {
        let refused = report(&stage, &first, verb, body).await.expect(409);
        assert_eq!(refused.code(), "stale_token", "{verb}");
    }
    let job = stage.api.job(&id).await;
    assert_eq!((text(&job, "status"), &job["attempt"]), ("running", &json!(2)));
    report(&stage, &second, "complete", json!({"result": 2})).await.expect(204);
    let refused = report(&stage, &second, "complete", json!({"result": 3})).await.expect(409);
    assert_eq!(refused.code(), "stale_token");
    assert_eq!(stage.api.job(&id).await["result"], 2);
}

async fn a_token_that_was_never_given_out_opens_nothing(kind: StoreKind) {
    let stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": BEYOND_A_TEST})).await;
    let token = accepted(&stage, &id, 1).await;
    let last = if token.ends_with('A') { "B" } else { "A" };
    let forged = format!("{}{last}", &token[..token.len() - 1]);
    let flipped = format!("{}{}", if token.starts_with('A') { "B" } else { "A" }, &token[1..]);
    for garbage in ["garbage", "%00", &id, &forged, &flipped, &"x".repeat(5_000)] {
        for verb in ["complete", "fail", "heartbeat"] {
            let refused = report(&stage, garbage, verb, json!({})).await;
            assert!((400..500).contains(&refused.status), "{garbage} {verb}: {}", refused.text());
            assert_eq!(refused.code(), "not_found", "{garbage} {verb}");
        }
    }
    assert_eq!(text(&stage.api.job(&id).await, "status"), "running");
}

async fn a_job_that_was_accepted_is_cancelled_at_once_and_a_heartbeat_tells_its_target(kind: StoreKind) {
    let stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": BEYOND_A_TEST, "retry": quick_retries(5)})).await;
    let token = accepted(&stage, &id, 1).await;
    let cancelled = stage.act(&id, "cancel").await.expect(200).json();
    assert_eq!(text(&cancelled, "status"), "cancelled");
    let attempts = stage.api.attempts(&id).await;
    assert_eq!((attempts.len(), text(&attempts[0], "outcome")), (1, "cancelled"));
    assert_eq!(report(&stage, &token, "heartbeat", json!({})).await.expect(200).json()["cancel"], true);
    for verb in ["complete", "fail"] {
        assert_eq!(report(&stage, &token, verb, json!({})).await.expect(409).code(), "stale_token");
    }
    assert_eq!(text(&stage.api.job(&id).await, "status"), "cancelled");
    // It can be run again, and then it is another attempt that is reported on.
    stage.act(&id, "retry").await.expect(200);
    let second = accepted(&stage, &id, 2).await;
    assert_eq!(report(&stage, &token, "heartbeat", json!({})).await.expect(409).code(), "stale_token");
    report(&stage, &second, "complete", json!({"result": 2})).await.expect(204);
    assert_eq!(stage.api.job(&id).await["result"], 2);
}

async fn a_run_whose_tasks_were_accepted_is_cancelled_at_once_and_goes_on_when_retried(kind: StoreKind) {
    let stage = accepting(kind).await;
    let after = stage.task("after", &["later"], json!({}));
    let later = stage.task("later", &[], json!({"job": {"timeout": BEYOND_A_TEST}}));
    stage.store("slow", vec![later, after], json!({})).await;
    let id = stage.start("slow", Value::Null).await;
    let run = stage.until_task(&id, "later", "running").await;
    let job = text(task_of(&run, "later"), "job_id").to_owned();
    accepted(&stage, &job, 1).await;
    stage.act_on_run(&id, "cancel").await.expect(200);
    let run = stage.api.run_ended(&id).await;
    assert_eq!((text(&run, "status"), status_of(&run, "later")), ("cancelled", "cancelled"), "{run:#}");

    stage.act_on_run(&id, "retry").await.expect(200);
    let token = accepted(&stage, &job, 2).await;
    report(&stage, &token, "complete", json!({})).await.expect(204);
    assert_eq!(text(&stage.api.run_ended(&id).await, "status"), "completed");
}

async fn a_report_that_is_repeated_is_accepted_again(kind: StoreKind) {
    let stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": BEYOND_A_TEST, "retry": quick_retries(5)})).await;
    let first = accepted(&stage, &id, 1).await;
    let failed = json!({"error": {"code": "busy", "message": "later"}});
    report(&stage, &first, "fail", failed.clone()).await.expect(204);
    let second = accepted(&stage, &id, 2).await;
    report(&stage, &first, "fail", failed.clone()).await.expect(204);
    assert_eq!(report(&stage, &first, "fail", json!({})).await.expect(409).code(), "stale_token");

    let done = json!({"result": {"rows": [1, 2]}});
    for _ in 0..3 {
        report(&stage, &second, "complete", done.clone()).await.expect(204);
    }
    for (verb, body) in [("complete", json!({})), ("complete", json!({"result": 1})), ("fail", failed)] {
        assert_eq!(report(&stage, &second, verb, body).await.expect(409).code(), "stale_token");
    }
    let job = stage.api.job(&id).await;
    assert_eq!((text(&job, "status"), &job["result"]), ("completed", &done["result"]));
    assert_eq!(stage.api.attempts(&id).await.len(), 2);
    assert_eq!(stage.target.calls_to("/later").len(), 2);
}

async fn a_job_nobody_reports_on_is_timed_out_by_the_server(kind: StoreKind) {
    let stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": "200ms", "retry": quick_retries(0)})).await;
    let job = stage.api.wait(&id).await;
    assert_eq!((text(&job, "status"), text(&job["error"], "code")), ("failed", "timed_out"), "{job}");
    let attempts = stage.api.attempts(&id).await;
    assert_eq!(attempts.len(), 1);
    assert_eq!(text(&attempts[0], "outcome"), "timed_out");
    let token = stage.target.calls_to("/later")[0].header("tickwheel-token").to_owned();
    assert_eq!(report(&stage, &token, "complete", json!({})).await.expect(409).code(), "stale_token");
}
