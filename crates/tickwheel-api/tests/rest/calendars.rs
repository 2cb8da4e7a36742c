//! Calendars, and the schedules that heed them.

use axum::body::Body;
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::schedules::create;
use crate::server::{Answer, Server};

const CALENDARS: &str = "/api/v1/calendars";

async fn put(server: &Server, name: &str, calendar: Value) -> Answer {
    server.send_text("PUT", &format!("{CALENDARS}/{name}"), calendar.to_string()).await
}

async fn import(server: &Server, path: &str, content_type: &str, text: &str) -> Answer {
    let request = Request::post(format!("{CALENDARS}/{path}")).header(CONTENT_TYPE, content_type);
    server.send(request.body(Body::from(text.to_owned())).expect("a valid request")).await
}

fn file(days: &[&str]) -> String {
    let events: String = days
        .iter()
        .map(|day| format!("BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:{day}\r\nEND:VEVENT\r\n"))
        .collect();
    format!("BEGIN:VCALENDAR\r\n{events}END:VCALENDAR\r\n")
}

#[tokio::test]
async fn a_calendar_is_stored_read_listed_replaced_and_removed() {
    let server = Server::start();
    let days = json!({"days": ["2027-12-31", "2027-12-24/2027-12-25"], "weekdays": ["sunday"]});
    let stored = put(&server, "holidays", days).await.ok(200);
    let expected = json!({"name": "holidays", "days": ["2027-12-24", "2027-12-25", "2027-12-31"],
        "weekdays": ["sunday"], "updated_at": "2027-01-15T08:00:00.000Z"});
    assert_eq!(stored, expected);
    let path = format!("{CALENDARS}/holidays");
    assert_eq!(server.get(&path).await.ok(200), expected);
    let summary = json!({"name": "holidays", "day_count": 3, "first_day": "2027-12-24", "last_day": "2027-12-31",
        "weekdays": ["sunday"], "updated_at": "2027-01-15T08:00:00.000Z"});
    assert_eq!(server.get(CALENDARS).await.ok(200), json!({"items": [summary], "next_cursor": null}));
    assert_eq!(put(&server, "holidays", json!({})).await.ok(200)["days"], json!([]));
    assert_eq!(server.call("DELETE", &path).await.ok(204), Value::Null);
    assert_eq!(server.call("DELETE", &path).await.problem(404), "not_found");
    assert_eq!(server.get(&path).await.problem(404), "not_found");
}

#[tokio::test]
async fn a_bad_calendar_is_refused_where_it_is_bad() {
    let server = Server::start();
    for (calendar, status, code, pointer) in [
        (json!({"days": ["2027-02-30"]}), 422, "validation_failed", "/days/0"),
        (json!({"days": ["0001-01-01/9999-12-31"]}), 422, "validation_failed", "/days/0"),
        (json!({"days": vec!["2027-01-01"; 10_001]}), 422, "validation_failed", "/days"),
        (json!({"weekdays": ["caturday"]}), 422, "validation_failed", "/weekdays/0"),
        (json!({"dates": []}), 400, "unknown_field", "/dates"),
    ] {
        let answer = put(&server, "c", calendar).await;
        assert_eq!(answer.problem(status), code);
        assert_eq!(answer.pointers(), [pointer]);
    }
    assert_eq!(server.get(CALENDARS).await.ok(200)["items"], json!([]));
}

#[tokio::test]
async fn there_can_be_a_hundred_calendars_and_not_one_more() {
    let server = Server::start();
    for number in 0..100 {
        put(&server, &format!("c{number}"), json!({})).await.ok(200);
    }
    assert_eq!(put(&server, "one-more", json!({})).await.problem(422), "validation_failed");
    assert_eq!(put(&server, "c7", json!({"days": ["2027-01-01"]})).await.ok(200)["name"], "c7");
    assert_eq!(
        import(&server, "one-more/import", "text/calendar", &file(&[])).await.problem(422),
        "validation_failed"
    );
}

#[tokio::test]
async fn an_import_adds_days_and_tells_how_many() {
    let server = Server::start();
    put(&server, "c", json!({"days": ["2027-01-01"], "weekdays": ["saturday"]})).await.ok(200);
    let text = file(&["20270101", "20271225", "20271226"]);
    let imported = import(&server, "c/import", "text/calendar; charset=utf-8", &text).await.ok(200);
    let expected = json!({"name": "c", "events": 3, "cancelled": 0, "repeats_ignored": 0, "days": 3, "added": 2, "total": 3});
    assert_eq!(imported, expected);
    let replaced =
        import(&server, "c/import?replace=true", "text/calendar", &file(&["20280101"])).await.ok(200);
    assert_eq!((&replaced["added"], &replaced["total"]), (&json!(1), &json!(1)));
    let calendar = server.get(&format!("{CALENDARS}/c")).await.ok(200);
    assert_eq!((&calendar["days"], &calendar["weekdays"]), (&json!(["2028-01-01"]), &json!(["saturday"])));
    assert_eq!(import(&server, "new/import", "text/calendar", &text).await.ok(200)["total"], 3);
}

#[tokio::test]
async fn what_is_no_calendar_file_is_refused_and_changes_nothing() {
    let server = Server::start();
    let good = file(&["20270101"]);
    let bad = [
        ("application/json", good.as_str(), 415, "unsupported_media_type"),
        ("text/calendar", "", 422, "validation_failed"),
        ("text/calendar", "hello", 422, "validation_failed"),
        ("text/calendar", &file(&["2027-01-01"]), 422, "validation_failed"),
        ("text/calendar", &" ".repeat((1 << 20) + 1), 413, "body_too_large"),
    ];
    for (content_type, text, status, code) in bad {
        let answer = import(&server, "c/import", content_type, text).await;
        assert_eq!(answer.problem(status), code);
    }
    assert_eq!(server.get(CALENDARS).await.ok(200)["items"], json!([]));
}

#[tokio::test]
async fn a_schedule_passes_over_the_days_of_its_calendar_or_moves_past_them() {
    let server = Server::start();
    // The 16th of January 2027 is a Saturday.
    put(&server, "off", json!({"days": ["2027-01-18"], "weekdays": ["saturday", "sunday"]})).await.ok(200);
    let skipping = create(&server, json!({"exclude": ["calendar:off"]})).await;
    assert_eq!(skipping["next_fire_at"], "2027-01-19T02:00:00.000Z");
    let weekly = json!({"name": "weekly", "cron": "0 2 * * SAT", "exclude": ["calendar:off"], "on_excluded": "next_day"});
    assert_eq!(create(&server, weekly).await["next_fire_at"], "2027-01-19T02:00:00.000Z");
    let next = server.get("/api/v1/schedules/weekly/next?count=2").await.ok(200);
    let times: Vec<_> =
        next["items"].as_array().expect("items").iter().map(|item| &item["nominal_time"]).collect();
    assert_eq!(times, ["2027-01-19T02:00:00.000Z", "2027-01-25T02:00:00.000Z"]);
}
