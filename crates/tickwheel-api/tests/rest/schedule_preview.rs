//! What a schedule would be, without storing it.

use serde_json::{Value, json};

use crate::schedules::{SCHEDULES, create, schedule};
use crate::server::Server;

const PREVIEW: &str = "/api/v1/schedules/preview";

#[tokio::test]
async fn a_preview_is_what_creating_answers_and_stores_nothing() {
    let server = Server::start();
    let fields = json!({"timezone": "america/new_york", "jitter": "5m", "exclude": ["2027-12-24/2027-12-31"],
        "job": {"type": "t", "target": {"http": {"url": "https://svc/run"}}, "payload": {"a": 1}}});
    let mut previewed = server.post(PREVIEW, schedule(fields.clone())).await.ok(200);
    assert_eq!(server.get(SCHEDULES).await.ok(200)["items"], json!([]));
    let mut created = create(&server, fields).await;
    for only_stored in
        ["id", "tenant", "created_at", "updated_at", "last_fires", "pause_note", "backfill", "queued_since"]
    {
        created.as_object_mut().expect("an object").remove(only_stored).expect(only_stored);
    }
    assert_eq!(previewed["schedule"].take(), created);
}

#[tokio::test]
async fn the_firings_are_those_that_the_schedule_has_once_it_is_stored() {
    let server = Server::start();
    server
        .send_text("PUT", "/api/v1/calendars/off", json!({"days": ["2027-03-15"]}).to_string())
        .await
        .ok(200);
    let fields = json!({"cron": "30 2 * * *", "timezone": "America/New_York", "exclude": ["calendar:off"]});
    let window = "count=3&after=2027-03-13T12:00:00Z";
    let previewed = server.post(&format!("{PREVIEW}?{window}"), schedule(fields.clone())).await.ok(200);
    assert_eq!(
        previewed["next"],
        json!(["2027-03-14T03:00:00-04:00", "2027-03-16T02:30:00-04:00", "2027-03-17T02:30:00-04:00"])
    );
    create(&server, fields.clone()).await;
    let stored = server.get(&format!("{SCHEDULES}/report/next?{window}")).await.ok(200);
    let items = stored["items"].as_array().expect("items");
    let local: Vec<&Value> = items.iter().map(|item| &item["local_time"]).collect();
    assert_eq!(json!(local), previewed["next"]);
    // A name that is taken is no hindrance: it is how a change is looked at.
    let again = server.post(PREVIEW, schedule(fields)).await.ok(200);
    assert_eq!(again["next"].as_array().map(Vec::len), Some(10));
}

#[tokio::test]
async fn what_never_fires_has_no_firings_and_a_paused_one_those_it_would_have() {
    let server = Server::start();
    let never = server.post(PREVIEW, schedule(json!({"cron": "0 0 30 2 *"}))).await.ok(200);
    assert_eq!((&never["next"], &never["schedule"]["never"]), (&json!([]), &json!(true)));
    let paused = server.post(&format!("{PREVIEW}?count=1"), schedule(json!({"paused": true}))).await.ok(200);
    assert_eq!(paused["next"], json!(["2027-01-16T02:00:00+00:00"]));
    assert_eq!(
        (&paused["schedule"]["next_fire_at"], &paused["schedule"]["paused"]),
        (&Value::Null, &json!(true))
    );
}

#[tokio::test]
async fn bad_parameters_are_refused_before_the_request_is_read() {
    let server = Server::start();
    for (query, code) in [
        ("count=0", "invalid_parameter"),
        ("count=1001", "invalid_parameter"),
        ("after=tomorrow", "invalid_parameter"),
        ("limit=1", "unknown_parameter"),
    ] {
        let answer = server.post(&format!("{PREVIEW}?{query}"), schedule(json!({}))).await;
        assert_eq!(answer.problem(400), code, "{query}");
    }
    assert_eq!(server.send_text("POST", PREVIEW, "{").await.problem(400), "invalid_json");
}
