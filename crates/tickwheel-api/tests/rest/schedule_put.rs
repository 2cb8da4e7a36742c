//! Putting a schedule in place: created or changed to exactly what is said, and left alone when nothing changes.

use std::time::Duration;

use serde_json::{Value, json};
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::ScheduleStore;

use crate::schedules::{SCHEDULES, create, schedule};
use crate::server::{Answer, Server};

const REPORT: &str = "/api/v1/schedules/report";

async fn put(server: &Server, fields: Value) -> Answer {
    server.send_text("PUT", REPORT, schedule(fields).to_string()).await
}

async fn revision(server: &Server) -> u64 {
    let found = server.store.find_schedule(DEFAULT_TENANT, "report").await.expect("the store answers");
    found.expect("the schedule").revision
}

#[tokio::test]
async fn a_schedule_that_is_put_is_created_and_then_left_alone_while_the_request_is_the_same() {
    let server = Server::start();
    let answer = put(&server, json!({"name": null, "jitter": "1m"})).await;
    let location = answer.headers["location"].to_str().expect("a path").to_owned();
    let created = answer.ok(201);
    assert_eq!(server.get(&location).await.ok(200), created);
    server.clock.advance(Duration::from_secs(60));
    let before = revision(&server).await;
    for fields in [json!({"jitter": "60s"}), json!({"name": null, "jitter": "1m", "overlap": "allow"})] {
        assert_eq!(put(&server, fields).await.ok(200), created, "updated_at included");
    }
    assert_eq!(revision(&server).await, before);
}

#[tokio::test]
async fn what_is_left_out_has_its_default_again_but_a_pause_stays() {
    let server = Server::start();
    let fields = json!({"jitter": "1m", "timezone": "Asia/Tokyo", "overlap": "skip", "exclude": ["2027-12-25"],
        "missed": {"policy": "skip", "window": "1h"}, "end_at": "2030-01-01T00:00:00Z"});
    let before = create(&server, fields).await;
    server.post(&format!("{REPORT}/pause"), json!({"note": "until Monday"})).await.ok(200);
    server.clock.advance(Duration::from_secs(60));
    let revision_before = revision(&server).await;
    let plain = put(&server, json!({"cron": null, "every": "1h"})).await.ok(200);
    assert_eq!(revision(&server).await, revision_before + 1);
    let fresh = create(&server, json!({"name": "fresh", "cron": null, "every": "1h"})).await;
    for field in
        ["cron", "every", "anchor", "timezone", "jitter", "overlap", "exclude", "missed", "end_at", "job"]
    {
        assert_eq!(plain[field], fresh[field], "{field}");
    }
    assert_eq!((&plain["id"], &plain["created_at"]), (&before["id"], &before["created_at"]));
    assert_eq!((&plain["paused"], &plain["pause_note"]), (&json!(true), &json!("until Monday")));
    let resumed = put(&server, json!({"cron": null, "every": "1h", "paused": false})).await.ok(200);
    assert_eq!((&resumed["paused"], &resumed["next_fire_at"]), (&json!(false), &fresh["next_fire_at"]));
    let paused = put(&server, json!({"paused": true})).await.ok(200);
    assert_eq!((&paused["paused"], &paused["cron"]), (&json!(true), &json!("0 2 * * *")));
    assert_eq!(revision(&server).await, revision_before + 3, "one write a request");
}

#[tokio::test]
async fn a_bad_schedule_is_neither_created_nor_changed() {
    let server = Server::start();
    for fresh in [true, false] {
        let before = if fresh { Value::Null } else { create(&server, json!({})).await };
        for (fields, status, pointer) in [
            (json!({"name": "other"}), 422, "/name"),
            (json!({"cron": "* * * *"}), 422, "/cron"),
            (json!({"cron": null}), 400, "/cron"),
            (json!({"job": null}), 400, "/job"),
            (json!({"unknown": 1}), 400, "/unknown"),
            (json!({"exclude": ["calendar:none"]}), 422, "/exclude/0"),
            (json!({"job": {"type": "t", "delay": 1}}), 422, "/job/delay"),
            (
                json!({"job": {"type": "t", "target": {"http": {"url": "http://127.0.0.1:1/"}}}}),
                422,
                "/job/target/http/url",
            ),
        ] {
            let answer = put(&server, fields.clone()).await;
            assert_eq!((answer.status.as_u16(), answer.pointers()), (status, vec![pointer]), "{fields}");
        }
        let now = server.get(REPORT).await;
        assert_eq!(
            if fresh {
                now.problem(404);
                Value::Null
            } else {
                now.ok(200)
            },
            before
        );
    }
    let body = schedule(json!({"name": null})).to_string();
    let reserved = server.send_text("PUT", &format!("{SCHEDULES}/workflow.etl"), body).await;
    assert_eq!((reserved.problem(422), reserved.pointers()), ("validation_failed", vec!["/name"]));
}

#[tokio::test]
async fn the_path_of_a_put_is_a_name_and_never_an_id() {
    let server = Server::start();
    let first = create(&server, json!({})).await;
    let id = first["id"].as_str().expect("an id");
    let body = schedule(json!({"name": null, "cron": "@hourly"})).to_string();
    let other = server.send_text("PUT", &format!("{SCHEDULES}/{id}"), body).await.ok(201);
    assert_eq!(other["name"], id);
    assert_eq!(server.get(REPORT).await.ok(200), first);
}
