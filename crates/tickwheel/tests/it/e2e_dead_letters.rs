//! Dead letters: what was given up can be looked at, mended, run again or let go.

use serde_json::{Value, json};

use crate::api::text;
use crate::e2e::{Stage, on_both_stores};
use crate::server::StoreKind;
use crate::target::Reply;

on_both_stores! {
    a_dead_letter_runs_again_with_a_mended_payload,
    dead_letters_run_again_by_filter,
    a_discarded_dead_letter_is_off_the_list_and_its_job_stays_failed,
    dead_letters_survive_a_restart,
}

/// A stage where `/picky` takes only what is mended, and everything else is refused for good.
async fn with_a_picky_target(kind: StoreKind) -> Stage {
    let stage = Stage::set(kind).await;
    stage.target.on("/picky", |call| Reply::status(if call.json()["mended"] == true { 200 } else { 422 }));
    stage
}

async fn give_up(stage: &Stage, fields: Value) -> String {
    let id = stage.submit("/picky", fields).await;
    stage.until(&id, "failed").await;
    id
}

async fn a_dead_letter_runs_again_with_a_mended_payload(kind: StoreKind) {
    let stage = with_a_picky_target(kind).await;
    let id = give_up(&stage, json!({"payload": {"mended": false}, "tags": ["a"], "queue": "mail"})).await;
    let letters = stage.api.list("/api/v1/dead-letters").await;
    assert_eq!(letters.len(), 1);
    let letter = &letters[0];
    assert_eq!((text(letter, "job_id"), text(letter, "reason")), (id.as_str(), "not_retryable"));
    assert_eq!((text(letter, "queue"), &letter["tags"]), ("mail", &json!(["a"])));
    assert_eq!(letter, &stage.dead_letter(&id).await.expect(200).json());

    let path = format!("/api/v1/dead-letters/{id}/redrive");
    stage.api.act(&path).await.expect(200);
    stage.until(&id, "failed").await;
    assert_eq!(stage.api.attempts(&id).await.len(), 2, "unmended, it fails again");

    let redriven = stage.api.post(&path, &json!({"payload": {"mended": true}})).await.expect(200).json();
    assert_eq!((text(&redriven, "status"), text(&redriven, "id")), ("scheduled", id.as_str()));
    let job = stage.until(&id, "completed").await;
    assert_eq!((&job["payload"], &job["attempt"]), (&json!({"mended": true}), &json!(3)));
    stage.dead_letter(&id).await.expect(404);
    assert_eq!(
        stage.api.act(&path).await.expect(404).code(),
        "not_found",
        "there is nothing left to redrive"
    );
    let calls = stage.target.calls_for(&id);
    let keys: Vec<_> = calls.iter().map(|call| call.header("idempotency-key")).collect();
    assert!(keys.iter().all(|key| *key == id), "{keys:?}");
    assert!(calls.is_sorted_by(|a, b| a.fencing_token() < b.fencing_token()));
}

async fn dead_letters_run_again_by_filter(kind: StoreKind) {
    let stage = with_a_picky_target(kind).await;
    for _ in 0..3 {
        give_up(&stage, json!({"type": "mail", "payload": {}})).await;
    }
    let report = give_up(&stage, json!({"type": "report", "queue": "reports", "payload": {}})).await;
    assert_eq!(stage.api.list("/api/v1/dead-letters?type=mail").await.len(), 3);
    assert_eq!(stage.api.list("/api/v1/dead-letters?queue=reports").await.len(), 1);
    stage.target.reply("/picky", Reply::ok());

    let redrive = async |filter: Value| {
        stage.api.post("/api/v1/dead-letters/redrive", &filter).await.expect(200).json()
    };
    let counts =
        |progress: &Value| (progress["redriven"].as_u64().unwrap(), progress["remaining"].as_u64().unwrap());
    assert_eq!(counts(&redrive(json!({"type": "nobody"})).await), (0, 0));
    assert_eq!(counts(&redrive(json!({"type": "mail", "limit": 2})).await), (2, 1));
    assert_eq!(counts(&redrive(json!({"type": "mail"})).await), (1, 0));
    for job in stage.api.list("/api/v1/jobs?type=mail").await {
        stage.until(text(&job, "id"), "completed").await;
    }
    let left = stage.api.list("/api/v1/dead-letters").await;
    assert_eq!(left.len(), 1);
    assert_eq!(text(&left[0], "job_id"), report);
    for empty in [json!({}), json!({"limit": 10})] {
        let refused = stage.api.post("/api/v1/dead-letters/redrive", &empty).await.expect(422);
        assert!(refused.text().contains(r#"\"all\": true"#), "{}", refused.text());
    }
    stage.api.act("/api/v1/dead-letters/redrive").await.expect(422);
    assert_eq!(stage.api.list("/api/v1/dead-letters").await.len(), 1, "nobody said which");
    assert_eq!(counts(&redrive(json!({"all": true})).await), (1, 0));
    stage.until(&report, "completed").await;
    stage.api.post("/api/v1/dead-letters/redrive", &json!({"colour": "red"})).await.expect(400);
    stage.api.post("/api/v1/dead-letters/redrive", &json!({"all": true, "limit": 0})).await.expect(422);
}

async fn a_discarded_dead_letter_is_off_the_list_and_its_job_stays_failed(kind: StoreKind) {
    let stage = with_a_picky_target(kind).await;
    let id = give_up(&stage, json!({"payload": {}})).await;
    let path = format!("/api/v1/dead-letters/{id}");
    stage.api.delete(&path).await.expect(204);
    assert!(stage.api.list("/api/v1/dead-letters").await.is_empty());
    stage.api.delete(&path).await.expect(404);
    assert_eq!(text(&stage.api.job(&id).await, "status"), "failed");
    assert_eq!(stage.api.attempts(&id).await.len(), 1);
    stage.act(&id, "retry").await.expect(200);
    stage.until(&id, "failed").await;
    stage.dead_letter(&id).await.expect(200);
}

async fn dead_letters_survive_a_restart(kind: StoreKind) {
    let mut stage = with_a_picky_target(kind).await;
    let id = give_up(&stage, json!({"payload": {}})).await;
    let before = stage.dead_letter(&id).await.expect(200).json();
    stage.restart().await;
    assert_eq!(stage.dead_letter(&id).await.expect(200).json(), before);
    let mended = json!({"payload": {"mended": true}});
    stage.api.post(&format!("/api/v1/dead-letters/{id}/redrive"), &mended).await.expect(200);
    stage.until(&id, "completed").await;
}
