//! Creating and reading schedules: what is answered, and how bad ones are refused.

use serde_json::{Value, json};

use crate::server::Server;

pub const SCHEDULES: &str = "/api/v1/schedules";

/// A good schedule with these fields on top; `null` takes one away.
pub fn schedule(fields: Value) -> Value {
    let mut schedule = json!({"name": "report", "cron": "0 2 * * *", "job": {"type": "t"}});
    let all = schedule.as_object_mut().expect("an object");
    for (name, value) in fields.as_object().expect("fields") {
        match value {
            Value::Null => drop(all.remove(name)),
            value => drop(all.insert(name.clone(), value.clone())),
        }
    }
    schedule
}

pub async fn create(server: &Server, fields: Value) -> Value {
    server.post(SCHEDULES, schedule(fields)).await.ok(201)
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items");
    items.iter().map(|item| item["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn a_new_schedule_is_answered_in_full_and_found_by_its_id_and_by_its_name() {
    let server = Server::start();
    let request = schedule(json!({"timezone": "america/new_york", "jitter": "5m",
        "job": {"type": "t", "target": {"http": {"url": "https://svc/run"}}, "payload": {"a": 1}, "tags": ["x"]},
        "missed": {"policy": "backfill"}, "exclude": ["2027-12-25", "2027-12-24/2027-12-31"], "end_at": "2030-01-01T01:00:00+01:00"}));
    let answer = server.post(SCHEDULES, request).await;
    let location = answer.headers["location"].to_str().expect("a path").to_owned();
    let created = answer.ok(201);
    let id = created["id"].as_str().expect("an id");
    assert_eq!(location, format!("{SCHEDULES}/{id}"));
    let expected = json!({
        "id": id, "name": "report", "cron": "0 2 * * *", "every": null, "anchor": null, "timezone": "America/New_York",
        "description": "at 02:00 every day", "next_fire_at": "2027-01-16T07:00:00.000Z", "never": false,
        "paused": false, "pause_note": null,
        "job": {"type": "t", "target": {"http": {"url": "https://svc/run", "method": "POST", "headers": {}}},
            "payload": {"a": 1}, "queue": "default", "priority": "normal",
            "retry": {"max_retries": 3, "backoff": "exponential", "initial_delay": "1s", "max_delay": "1h", "jitter": 0.1,
                "delays": null},
            "timeout": "300s", "delivery": "at_least_once", "tags": ["x"], "metadata": {}},
        "missed": {"policy": "backfill", "window": "1d", "max_backfill": 100}, "overlap": "allow",
        "dst_gap": "run_after", "dst_fold": "once", "day_logic": "or", "start_at": null, "end_at": "2030-01-01T00:00:00.000Z",
        "jitter": "300s", "exclude": ["2027-12-25", "2027-12-24/2027-12-31"], "on_excluded": "skip", "tenant": "default",
        "created_at": "2027-01-15T08:00:00.000Z", "updated_at": "2027-01-15T08:00:00.000Z", "last_fires": [],
        "backfill": null, "queued_since": null,
    });
    assert_eq!(created, expected);
    for key in [id, "report"] {
        assert_eq!(server.get(&format!("{SCHEDULES}/{key}")).await.ok(200), expected, "{key}");
    }
}

#[tokio::test]
async fn the_job_of_an_answer_can_be_sent_back_and_changes_nothing() {
    let server = Server::start();
    let job = json!({"type": "t", "retry": {"delays": ["1s", "1m"]}, "delivery": "at_most_once", "timeout": "10s",
        "target": {"http": {"url": "https://svc/", "headers": {"x": "y"}}}, "concurrency_key": "k", "metadata": {"a": 1}});
    let created = create(&server, json!({"job": job})).await;
    let again = server
        .send_text("PATCH", &format!("{SCHEDULES}/report"), json!({"job": created["job"]}).to_string())
        .await;
    assert_eq!(again.ok(200), created);
}

#[tokio::test]
async fn an_interval_is_counted_from_its_anchor() {
    let server = Server::start();
    let every =
        create(&server, json!({"cron": null, "every": "90m", "anchor": "2027-01-15T00:10:00Z"})).await;
    assert_eq!((&every["cron"], &every["every"]), (&Value::Null, &json!("5400s")));
    assert_eq!(every["anchor"], "2027-01-15T00:10:00.000Z");
    assert_eq!(every["next_fire_at"], "2027-01-15T09:10:00.000Z");
    assert_eq!(every["description"], "every 1 hour 30 minutes, counted from 2027-01-15T00:10:00Z");
}

#[tokio::test]
async fn a_date_that_never_comes_is_accepted_and_said_to_be_never() {
    let server = Server::start();
    for (name, fields) in
        [("impossible", json!({"cron": "0 0 30 2 *"})), ("over", json!({"end_at": "2020-01-01T00:00:00Z"}))]
    {
        let mut fields = fields;
        fields["name"] = json!(name);
        let created = create(&server, fields).await;
        assert_eq!((&created["next_fire_at"], &created["never"]), (&Value::Null, &json!(true)), "{name}");
        let next = server.get(&format!("{SCHEDULES}/{name}/next")).await.ok(200);
        assert_eq!(next, json!({"items": [], "next_cursor": null}));
    }
}

#[tokio::test]
async fn a_taken_name_is_refused_with_the_id_of_who_has_it() {
    let server = Server::start();
    let first = create(&server, json!({})).await;
    let second = server.post(SCHEDULES, schedule(json!({"cron": "@hourly"}))).await;
    assert_eq!(second.problem(409), "name_taken");
    let detail = second.body["detail"].as_str().expect("a detail");
    assert!(detail.contains(first["id"].as_str().expect("an id")), "{detail}");
    assert_eq!(names(&server.get(SCHEDULES).await.ok(200)), ["report"]);
}

#[tokio::test]
async fn every_bad_request_is_refused_where_it_is_bad_and_nothing_is_stored() {
    let server = Server::start();
    let invalid = "validation_failed";
    let cases = [
        (json!({"name": null}), 400, "missing_field", "/name", "malformed"),
        (json!({"cron": null}), 400, "missing_field", "/cron", "malformed"),
        (json!({"job": null}), 400, "missing_field", "/job", "malformed"),
        (json!({"job": {}}), 400, "missing_field", "/job/type", "malformed"),
        (json!({"crno": "@daily"}), 400, "unknown_field", "/crno", "malformed"),
        (json!({"job": {"type": "t", "when": 1}}), 400, "unknown_field", "/job/when", "malformed"),
        (json!({"exclude": "2026-12-25"}), 400, "wrong_type", "/exclude", "malformed"),
        (json!({"paused": "yes"}), 400, "wrong_type", "/paused", "malformed"),
        (json!({"name": ""}), 422, invalid, "/name", "invalid_value"),
        (json!({"name": "preview"}), 422, invalid, "/name", "reserved"),
        (json!({"every": "5m"}), 422, invalid, "/every", "conflict"),
        (json!({"cron": "60 * * * *"}), 422, invalid, "/cron", "invalid_cron"),
        (json!({"cron": ""}), 422, invalid, "/cron", "invalid_cron"),
        (json!({"cron": null, "every": 0}), 422, invalid, "/every", "out_of_range"),
        (json!({"cron": null, "every": "1500ms"}), 422, invalid, "/every", "invalid_value"),
        (json!({"timezone": "Berlin"}), 422, invalid, "/timezone", "unknown_timezone"),
        (json!({"overlap": "forbid"}), 422, invalid, "/overlap", "invalid_value"),
        (json!({"missed": {"policy": "all"}}), 422, invalid, "/missed/policy", "invalid_value"),
        (json!({"missed": {"window": "0s"}}), 422, invalid, "/missed/window", "out_of_range"),
        (json!({"jitter": "25h"}), 422, invalid, "/jitter", "out_of_range"),
        (json!({"exclude": ["2026-12-25", "xmas"]}), 422, invalid, "/exclude/1", "invalid_value"),
        (json!({"exclude": ["2026-12-31/2026-12-24"]}), 422, invalid, "/exclude/0", "invalid_value"),
        (json!({"exclude": ["calendar:nowhere"]}), 422, invalid, "/exclude/0", "invalid_value"),
        (
            json!({"start_at": "2027-02-01T00:00:00Z", "end_at": "2027-01-01T00:00:00Z"}),
            422,
            invalid,
            "/end_at",
            "conflict",
        ),
        (json!({"job": {"type": "t", "delay": "1s"}}), 422, invalid, "/job/delay", "conflict"),
        (
            json!({"job": {"type": "t", "target": {"http": {"url": "http://127.0.0.1:80/"}}}}),
            422,
            invalid,
            "/job/target/http/url",
            "forbidden_address",
        ),
    ];
    for (fields, status, code, pointer, field_code) in cases {
        let answer = server.post(SCHEDULES, schedule(fields.clone())).await;
        assert_eq!(answer.problem(status), code, "{fields}");
        assert_eq!(answer.pointers(), [pointer], "{fields}");
        assert_eq!(answer.body["errors"][0]["code"], field_code, "{fields}");
        let previewed = server.post(&format!("{SCHEDULES}/preview"), schedule(fields.clone())).await;
        assert_eq!((previewed.status, &previewed.body), (answer.status, &answer.body), "{fields}");
    }
    assert_eq!(server.get(SCHEDULES).await.ok(200)["items"], json!([]));
}

#[tokio::test]
async fn all_that_is_wrong_is_said_at_once_in_words_that_help() {
    let server = Server::start();
    let bad = schedule(json!({"cron": "60 * * * *", "timezone": "Berlin", "exclude": ["xmas"]}));
    let answer = server.post(SCHEDULES, bad).await;
    assert_eq!(answer.problem(422), "validation_failed");
    assert_eq!(answer.pointers(), ["/cron", "/timezone", "/exclude/0"]);
    let detail = |index: usize| answer.body["errors"][index]["detail"].as_str().expect("a detail");
    assert_eq!(detail(0), "minute: 60 is out of range, allowed are 0-59");
    assert_eq!(detail(1), r#"unknown time zone "Berlin"; did you mean Europe/Berlin?"#);
    assert!(detail(2).contains("calendar:holidays"), "{}", detail(2));
}

#[tokio::test]
async fn schedules_are_listed_by_name_page_by_page_and_by_state() {
    let server = Server::start();
    for name in ["c", "a", "b", "d"] {
        create(&server, json!({"name": name, "paused": name == "b"})).await;
    }
    let first = server.get(&format!("{SCHEDULES}?limit=3")).await.ok(200);
    assert_eq!(names(&first), ["a", "b", "c"]);
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    let rest = server.get(&format!("{SCHEDULES}?limit=3&cursor={cursor}")).await.ok(200);
    assert_eq!((names(&rest), &rest["next_cursor"]), (vec!["d"], &Value::Null));
    assert_eq!(names(&server.get(&format!("{SCHEDULES}?paused=true")).await.ok(200)), ["b"]);
    assert_eq!(names(&server.get(&format!("{SCHEDULES}?paused=false")).await.ok(200)), ["a", "c", "d"]);
    for (query, code) in [
        ("limit=0", "invalid_parameter"),
        ("paused=maybe", "invalid_parameter"),
        ("cursor=x", "invalid_cursor"),
        ("name=a", "unknown_parameter"),
    ] {
        assert_eq!(server.get(&format!("{SCHEDULES}?{query}")).await.problem(400), code, "{query}");
    }
}

#[tokio::test]
async fn the_next_firings_are_told_in_utc_and_as_the_clock_there_shows_them() {
    let server = Server::start();
    create(&server, json!({"cron": "30 2 * * *", "timezone": "America/New_York"})).await;
    let path = format!("{SCHEDULES}/report/next");
    let next = server.get(&format!("{path}?count=2&after=2027-03-13T12:00:00Z")).await.ok(200);
    let expected = json!([
        {"nominal_time": "2027-03-14T07:00:00.000Z", "local_time": "2027-03-14T03:00:00-04:00"},
        {"nominal_time": "2027-03-15T06:30:00.000Z", "local_time": "2027-03-15T02:30:00-04:00"},
    ]);
    assert_eq!(next["items"], expected);
    assert_eq!(server.get(&path).await.ok(200)["items"].as_array().map(Vec::len), Some(10));
    for query in ["count=0", "count=1001", "after=tomorrow"] {
        assert_eq!(server.get(&format!("{path}?{query}")).await.problem(400), "invalid_parameter", "{query}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found_whatever_is_asked_of_it() {
    let server = Server::start();
    for key in ["nobody", "01890a5d-ac96-774b-bcce-b302099a8057"] {
        for (method, verb) in [
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/pause"),
            ("POST", "/resume"),
            ("POST", "/trigger"),
            ("GET", "/next"),
            ("GET", "/fires"),
        ] {
            let answer = server.call(method, &format!("{SCHEDULES}/{key}{verb}")).await;
            assert_eq!(answer.problem(404), "not_found", "{method} {verb}");
        }
        let patch = server.send_text("PATCH", &format!("{SCHEDULES}/{key}"), "{}").await;
        assert_eq!(patch.problem(404), "not_found");
    }
}
