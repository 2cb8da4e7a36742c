//! What people do to a schedule, and what it leaves in the ledger.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use tickwheel_core::schedule::{Overlap, ScheduleSpec};

use crate::schedules::{SCHEDULES, create};
use crate::server::{Answer, NOW, Server};

const REPORT: &str = "/api/v1/schedules/report";

async fn patch(server: &Server, patch: Value) -> Answer {
    server.send_text("PATCH", REPORT, patch.to_string()).await
}

#[tokio::test]
async fn a_change_is_answered_with_the_next_firing_it_leads_to() {
    let server = Server::start();
    create(&server, json!({"jitter": "1m", "end_at": "2030-01-01T00:00:00Z"})).await;
    server.clock.advance(Duration::from_secs(60));
    let changed = patch(&server, json!({"cron": "0 9 * * *", "timezone": "Asia/Tokyo"})).await.ok(200);
    assert_eq!((&changed["cron"], &changed["timezone"]), (&json!("0 9 * * *"), &json!("Asia/Tokyo")));
    assert_eq!(changed["next_fire_at"], "2027-01-16T00:00:00.000Z");
    assert_eq!((&changed["jitter"], &changed["end_at"]), (&json!("60s"), &json!("2030-01-01T00:00:00.000Z")));
    assert_eq!(changed["updated_at"], "2027-01-15T08:01:00.000Z");
    let endless = patch(&server, json!({"end_at": null, "every": "1h"})).await.ok(200);
    assert_eq!((&endless["end_at"], &endless["cron"]), (&Value::Null, &Value::Null));
    assert_eq!(server.get(REPORT).await.ok(200), endless);
}

#[tokio::test]
async fn a_bad_change_changes_nothing() {
    let server = Server::start();
    let before = create(&server, json!({"start_at": "2028-01-01T00:00:00Z"})).await;
    for (change, status, pointer) in [
        (json!({"name": "other"}), 400, "/name"),
        (json!({"cron": "* * * *"}), 422, "/cron"),
        (json!({"cron": "@daily", "every": "5m"}), 422, "/every"),
        (json!({"anchor": "2027-01-01T00:00:00Z"}), 422, "/anchor"),
        (json!({"end_at": "2027-01-01T00:00:00Z"}), 422, "/end_at"),
        (json!({"exclude": ["calendar:none"]}), 422, "/exclude/0"),
        (json!({"paused": true, "timezone": "Mars"}), 422, "/timezone"),
        (json!({"job": {"type": "t", "idempotency_key": "k"}}), 422, "/job/idempotency_key"),
    ] {
        let answer = patch(&server, change.clone()).await;
        assert_eq!((answer.status.as_u16(), answer.pointers()), (status, vec![pointer]), "{change}");
    }
    assert_eq!(server.get(REPORT).await.ok(200), before);
}

#[tokio::test]
async fn a_paused_schedule_says_why_and_has_no_next_firing_until_it_is_resumed() {
    let server = Server::start();
    create(&server, json!({})).await;
    let paused = server.post(&format!("{REPORT}/pause"), json!({"note": "until Monday"})).await.ok(200);
    assert_eq!((&paused["paused"], &paused["pause_note"]), (&json!(true), &json!("until Monday")));
    assert_eq!((&paused["next_fire_at"], &paused["never"]), (&Value::Null, &json!(false)));
    let resumed = server.call("POST", &format!("{REPORT}/resume")).await.ok(200);
    assert_eq!((&resumed["paused"], &resumed["pause_note"]), (&json!(false), &Value::Null));
    assert_eq!(resumed["next_fire_at"], "2027-01-16T02:00:00.000Z");
    let without_note = server.call("POST", &format!("{REPORT}/pause")).await.ok(200);
    assert_eq!((&without_note["paused"], &without_note["pause_note"]), (&json!(true), &Value::Null));
    let bad = server.post(&format!("{REPORT}/pause"), json!({"note": "n".repeat(256)})).await;
    assert_eq!(bad.problem(422), "validation_failed");
}

#[tokio::test]
async fn a_change_can_pause_and_resume() {
    let server = Server::start();
    create(&server, json!({})).await;
    let paused = patch(&server, json!({"paused": true, "cron": "@hourly"})).await.ok(200);
    assert_eq!((&paused["paused"], &paused["cron"]), (&json!(true), &json!("@hourly")));
    let resumed = patch(&server, json!({"paused": false})).await.ok(200);
    assert_eq!(
        (&resumed["paused"], &resumed["next_fire_at"]),
        (&json!(false), &json!("2027-01-15T09:00:00.000Z"))
    );
}

#[tokio::test]
async fn two_changes_at_the_same_time_both_take_effect() {
    let server = Server::start();
    create(&server, json!({})).await;
    let rivals: [fn(&mut ScheduleSpec); 2] =
        [|spec| spec.jitter_ms = 7_000, |spec| spec.overlap = Overlap::Skip];
    server.rivals.lock().unwrap().extend(rivals);
    let changed = patch(&server, json!({"cron": "@hourly", "paused": true})).await.ok(200);
    assert_eq!((&changed["cron"], &changed["paused"]), (&json!("@hourly"), &json!(true)));
    assert_eq!((&changed["jitter"], &changed["overlap"]), (&json!("7s"), &json!("skip")));
    assert_eq!(server.get(REPORT).await.ok(200), changed);
}

#[tokio::test]
async fn a_change_that_contradicts_what_somebody_else_changed_meanwhile_is_refused() {
    let server = Server::start();
    create(&server, json!({})).await;
    let rival: fn(&mut ScheduleSpec) = |spec| spec.start_at = Some(NOW + Duration::from_secs(86_400));
    server.rivals.lock().unwrap().push_back(rival);
    let answer = patch(&server, json!({"end_at": "2027-01-15T09:00:00Z"})).await;
    assert_eq!((answer.problem(422), answer.pointers()), ("validation_failed", vec!["/end_at"]));
    assert_eq!(server.get(REPORT).await.ok(200)["end_at"], Value::Null);
}

#[tokio::test]
async fn a_change_that_never_gets_through_is_told_to_come_back() {
    let server = Server::start();
    create(&server, json!({})).await;
    let rival: fn(&mut ScheduleSpec) = |spec| spec.jitter_ms += 1_000;
    server.rivals.lock().unwrap().extend([rival; 10]);
    assert_eq!(patch(&server, json!({"cron": "@hourly"})).await.problem(503), "overloaded");
    let schedule = server.get(REPORT).await.ok(200);
    assert_eq!((&schedule["cron"], &schedule["jitter"]), (&json!("0 2 * * *"), &json!("10s")));
}

#[tokio::test]
async fn a_trigger_makes_a_job_that_knows_its_schedule_and_has_a_record() {
    let server = Server::start();
    let created =
        create(&server, json!({"paused": true, "job": {"type": "t", "queue": "q", "payload": 1}})).await;
    let answer = server.call("POST", &format!("{REPORT}/trigger")).await;
    let location = answer.headers["location"].to_str().expect("a path").to_owned();
    let job = answer.ok(201);
    assert_eq!(
        (&job["queue"], &job["payload"], &job["schedule_id"]),
        (&json!("q"), &json!(1), &created["id"])
    );
    assert_eq!(server.get(&location).await.ok(200), job);
    server.clock.advance(Duration::from_secs(1));
    let other = server.post(&format!("{REPORT}/trigger"), json!({"payload": null})).await.ok(201);
    assert_eq!(other["payload"], Value::Null);

    let fires = server.get(&format!("{REPORT}/fires")).await.ok(200);
    let fire = |time: &str, job: &Value| {
        json!({"nominal_time": time, "last_nominal_time": time, "count": 1, "outcome": "triggered",
            "reason": "by_request", "job_id": job["id"], "recorded_at": time})
    };
    let expected = json!([fire("2027-01-15T08:00:01.000Z", &other), fire("2027-01-15T08:00:00.000Z", &job)]);
    assert_eq!(fires, json!({"items": expected, "next_cursor": null}));
    assert_eq!(server.get(REPORT).await.ok(200)["last_fires"], expected);
}

#[tokio::test]
async fn a_repeated_trigger_with_its_key_answers_the_first_job_and_another_one_is_a_conflict() {
    let server = Server::start();
    create(&server, json!({})).await;
    create(&server, json!({"name": "other"})).await;
    let trigger =
        async |name: &str, body: Value| server.post(&format!("{SCHEDULES}/{name}/trigger"), body).await;
    let first = trigger("report", json!({"idempotency_key": "k", "payload": {"a": 1}})).await.ok(201);
    let request = Request::post(format!("{REPORT}/trigger")).header("content-type", "application/json");
    let as_header = request.header("idempotency-key", "k").body(Body::from(r#"{"payload": {"a":1}}"#));
    assert_eq!(server.send(as_header.expect("a request")).await.ok(200), first);
    for (name, body) in [
        ("report", json!({"idempotency_key": "k"})),
        ("other", json!({"idempotency_key": "k", "payload": {"a": 1}})),
    ] {
        assert_eq!(trigger(name, body).await.problem(409), "idempotency_conflict", "{name}");
    }
    let large = json!({"payload": "x".repeat(256 << 10)});
    assert_eq!(trigger("report", large).await.problem(413), "payload_too_large");
    assert_eq!(server.stored().await, 1);
}

#[tokio::test]
async fn the_jobs_of_a_schedule_can_be_listed() {
    let server = Server::start();
    let created = create(&server, json!({})).await;
    let job = server.call("POST", &format!("{REPORT}/trigger")).await.ok(201);
    server.submit(json!({"type": "another"})).await;
    let id = created["id"].as_str().expect("an id");
    for (key, expected) in [(id, json!([job])), ("report", json!([job])), ("nobody", json!([]))] {
        let list =
            server.get(&format!("/api/v1/jobs?schedule_id={key}&include=payload,result")).await.ok(200);
        assert_eq!(list["items"], expected, "{key}");
    }
}

#[tokio::test]
async fn the_ledger_is_read_page_by_page_and_by_outcome() {
    let server = Server::start();
    create(&server, json!({})).await;
    for _ in 0..3 {
        server.call("POST", &format!("{REPORT}/trigger")).await.ok(201);
        server.clock.advance(Duration::from_secs(1));
    }
    let times = async |query: &str| {
        let list = server.get(&format!("{REPORT}/fires?{query}")).await.ok(200);
        let items = list["items"].as_array().expect("items").iter();
        let seconds: Vec<_> =
            items.map(|fire| fire["nominal_time"].as_str().expect("a time")[17..19].to_owned()).collect();
        (seconds, list["next_cursor"].as_str().map(str::to_owned))
    };
    let (first, cursor) = times("limit=2").await;
    assert_eq!(first, ["02", "01"]);
    let cursor = cursor.expect("there is more");
    assert_eq!(times(&format!("limit=2&cursor={cursor}")).await.0, ["00"]);
    assert_eq!(times("outcome=triggered").await.0.len(), 3);
    assert_eq!(times("outcome=missed").await.0.len(), 0);
    let strange = server.get(&format!("{REPORT}/fires?outcome=lost")).await;
    assert_eq!(strange.problem(400), "invalid_parameter");
}

#[tokio::test]
async fn a_deleted_schedule_is_gone_its_jobs_stay_and_its_name_is_free() {
    let server = Server::start();
    let first = create(&server, json!({})).await;
    let job = server.call("POST", &format!("{REPORT}/trigger")).await.ok(201);
    assert_eq!(server.call("DELETE", REPORT).await.ok(204), Value::Null);
    assert_eq!(server.get(REPORT).await.problem(404), "not_found");
    assert_eq!(server.call("DELETE", REPORT).await.problem(404), "not_found");
    let id = job["id"].as_str().expect("an id");
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}")).await.ok(200)["schedule_id"], first["id"]);
    assert_ne!(create(&server, json!({})).await["id"], first["id"]);
}
