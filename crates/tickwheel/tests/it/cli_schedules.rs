//! The commands about schedules and calendars against a server that says what the test wants: what they ask and what
//! they print.

use serde_json::{Value, json};

use crate::fake_server::FakeServer;
use crate::program::{Run, run, tickwheel};

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn fire(outcome: &str, count: u64) -> Value {
    json!({"nominal_time": "2026-01-01T07:00:00.000Z", "last_nominal_time": "2026-01-02T07:00:00.000Z", "count": count,
        "outcome": outcome, "reason": "on_time", "job_id": ID, "recorded_at": "2026-01-01T07:00:00.000Z"})
}

pub fn schedule(name: &str, changes: &[(&str, Value)]) -> Value {
    let mut schedule = json!({
        "id": ID, "name": name, "cron": "0 2 * * *", "every": null, "anchor": null, "timezone": "America/New_York",
        "description": "at 02:00 every day", "next_fire_at": "2099-01-01T07:00:00.000Z", "never": false, "paused": false,
        "pause_note": null, "job": {"type": "t", "target": {"worker": {}}, "payload": {"a": 1}, "queue": "q"},
        "missed": {"policy": "backfill", "window": "1d", "max_backfill": 5}, "overlap": "allow", "dst_gap": "run_after",
        "dst_fold": "once", "day_logic": "or", "start_at": null, "end_at": null, "jitter": "0s", "exclude": [],
        "on_excluded": "skip", "tenant": "default", "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:00:00.000Z", "last_fires": [], "backfill": null,
    });
    for (field, value) in changes {
        schedule[field] = value.clone();
    }
    schedule
}

fn list(items: &[Value]) -> String {
    json!({"items": items, "next_cursor": null}).to_string()
}

/// Runs a command where clocks show the time of Tokyo.
pub fn against(server: &FakeServer, args: &[&str]) -> Run {
    run(tickwheel(args).env("TICKWHEEL_SERVER", &server.url).env("TZ", "Asia/Tokyo"))
}

#[test]
fn creating_prints_the_id_alone_and_tells_when_it_fires() {
    let server = FakeServer::answering(&[(201, &schedule("daily", &[]).to_string())]);
    let run = against(&server, &["schedules", "create", "daily", "--cron", "0 2 * * *", "--queue", "q"]);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), ID), "{run:?}");
    assert!(run.stderr.contains("it fires at 02:00 every day (America/New_York), next in"), "{}", run.stderr);
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /api/v1/schedules");
    assert_eq!(asked.body, r#"{"name":"daily","cron":"0 2 * * *","job":{"type":"daily","queue":"q"}}"#);
}

#[test]
fn a_schedule_that_never_fires_is_announced_as_such() {
    let never = schedule("leap", &[("next_fire_at", Value::Null), ("never", json!(true))]);
    let server = FakeServer::answering(&[(201, &never.to_string())]);
    let run = against(&server, &["schedules", "create", "leap", "--cron", "0 0 30 2 *"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("never, there is no such date"), "{}", run.stderr);
}

#[test]
fn the_table_has_both_clocks_and_the_latest_outcomes_with_their_meaning() {
    let fires = json!([fire("missed", 1), fire("skipped", 1), fire("fired", 1)]);
    let paused = [("paused", json!(true)), ("next_fire_at", Value::Null)];
    let items = [schedule("daily", &[("last_fires", fires)]), schedule("weekly", &paused)];
    let server = FakeServer::answering(&[(200, &list(&items))]);
    let run = against(&server, &["schedules", "list", "--active"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let lines: Vec<_> = run.stdout.lines().collect();
    assert!(lines[0].starts_with("NAME") && lines[0].contains("YOUR TIME"), "{}", run.stdout);
    for part in
        ["at 02:00 every day", "Thu 2099-01-01 02:00", "Thu 2099-01-01 16:00", "America/New_York", "+ox"]
    {
        assert!(lines[1].contains(part), "{part}: {}", run.stdout);
    }
    assert!(lines[2].contains("paused"), "{}", run.stdout);
    assert_eq!(run.stderr.trim(), "+ fired   o skipped   x missed");
    assert_eq!(server.asked()[0].line, "GET /api/v1/schedules?paused=false&limit=50");
}

#[test]
fn one_schedule_is_shown_in_full() {
    let changes =
        [("exclude", json!(["2026-12-25", "calendar:off"])), ("pause_note", json!("moving\u{1b}[31m"))];
    let server = FakeServer::answering(&[(200, &schedule("a b", &changes).to_string())]);
    let run = against(&server, &["schedules", "get", "a b"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for part in [
        "2026-12-25, calendar:off",
        "backfill, not older than 1d, at most 5",
        "(Asia/Tokyo)",
        "a worker",
        "moving",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(!run.stdout.contains('\u{1b}'));
    assert_eq!(server.asked()[0].line, "GET /api/v1/schedules/a%20b");
}

#[test]
fn an_edit_of_the_job_starts_from_the_job_there_is() {
    let text = schedule("daily", &[]).to_string();
    let server = FakeServer::answering(&[(200, &text), (200, &text)]);
    let run = against(&server, &["schedules", "edit", "daily", "--queue", "other", "--no-end-at"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let asked = server.asked();
    assert_eq!(
        [asked[0].line.as_str(), &asked[1].line],
        ["GET /api/v1/schedules/daily", "PATCH /api/v1/schedules/daily"]
    );
    let body: Value = serde_json::from_str(&asked[1].body).unwrap();
    let expected = json!({"type": "t", "target": {"worker": {}}, "payload": {"a": 1}, "queue": "other"});
    assert_eq!(body, json!({"end_at": null, "job": expected}));
    let nothing = against(&server, &["schedules", "edit", "daily"]);
    assert_eq!((nothing.code, server.asked().len()), (Some(2), 2), "{nothing:?}");
}

#[test]
fn pausing_carries_the_note_and_deleting_says_what_is_gone() {
    let text = schedule("daily", &[("paused", json!(true))]).to_string();
    let server = FakeServer::answering(&[(200, &text), (200, &text), (204, "")]);
    let paused = against(&server, &["schedules", "pause", "daily", ID, "--note", "moving"]);
    assert_eq!((paused.code, paused.stdout.lines().count()), (Some(0), 2), "{paused:?}");
    let deleted = against(&server, &["schedules", "delete", "daily"]);
    assert_eq!((deleted.code, deleted.stdout.trim()), (Some(0), "daily  deleted"), "{deleted:?}");
    let asked = server.asked();
    assert_eq!(
        (asked[1].line.as_str(), asked[1].body.as_str()),
        (&*format!("POST /api/v1/schedules/{ID}/pause"), r#"{"note":"moving"}"#)
    );
    assert_eq!(asked[2].line, "DELETE /api/v1/schedules/daily");
}

#[test]
fn firings_ahead_are_shown_on_both_clocks() {
    let next = json!({"nominal_time": "2027-03-14T07:00:00.000Z", "local_time": "2027-03-14T03:00:00-04:00"});
    let server = FakeServer::answering(&[(200, &list(&[next])), (200, &list(&[]))]);
    let run =
        against(&server, &["schedules", "next", "daily", "--count", "1", "--after", "2027-03-14T00:00:00Z"]);
    let expected = "ITS TIME              YOUR TIME             UTC                   WHEN\n\
                    Sun 2027-03-14 03:00  Sun 2027-03-14 16:00  2027-03-14T07:00:00Z  in 7h\n";
    assert_eq!(run.stdout, expected, "{run:?}");
    let line = "GET /api/v1/schedules/daily/next?count=1&after=2027-03-14T00%3A00%3A00.000Z";
    assert_eq!(server.asked()[0].line, line);
    let never = against(&server, &["schedules", "next", "daily"]);
    assert_eq!((never.code, never.stdout.as_str()), (Some(0), ""), "{never:?}");
    assert!(never.stderr.contains("never"), "{}", never.stderr);
}

#[test]
fn the_ledger_is_a_table_with_a_line_for_a_run() {
    let server = FakeServer::answering(&[(200, &list(&[fire("fired", 1), fire("missed", 1000)]))]);
    let run = against(&server, &["schedules", "fires", "daily", "--outcome", "missed", "--limit", "9"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("2026-01-01T07:00:00Z") && run.stdout.contains(ID), "{}", run.stdout);
    assert!(run.stdout.contains("1000, up to 2026-01-02T07:00:00Z"), "{}", run.stdout);
    assert_eq!(server.asked()[0].line, "GET /api/v1/schedules/daily/fires?outcome=missed&limit=9");
}

#[test]
fn a_calendar_file_is_sent_as_it_is_and_what_was_not_followed_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("holidays.ics");
    std::fs::write(&file, "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n").unwrap();
    let import = json!({"name": "holidays", "events": 3, "cancelled": 0, "repeats_ignored": 1, "days": 3, "added": 2, "total": 12});
    let server = FakeServer::answering(&[(200, &import.to_string())]);
    let run = against(&server, &["calendars", "import", file.to_str().unwrap(), "--replace"]);
    let expected = "holidays: 3 days in 3 events, 2 of them new; 12 days in the calendar\n";
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), expected), "{run:?}");
    assert!(run.stderr.contains("1 of 3 events"), "{}", run.stderr);
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /api/v1/calendars/holidays/import?replace=true");
    assert!(asked.headers.contains(&("content-type".into(), "text/calendar".into())), "{asked:?}");
    assert_eq!(asked.body, "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n");
}

#[test]
fn calendars_are_listed_without_and_shown_with_their_days() {
    let summary = json!({"name": "off", "day_count": 2, "first_day": "2026-12-25", "last_day": "2026-12-26",
        "weekdays": ["sunday"], "updated_at": "2026-01-01T00:00:00.000Z"});
    let calendar = json!({"name": "off", "days": ["2026-12-25", "2026-12-26"], "weekdays": ["sunday"],
        "updated_at": "2026-01-01T00:00:00.000Z"});
    let server = FakeServer::answering(&[(200, &list(&[summary])), (200, &calendar.to_string())]);
    let listed = against(&server, &["calendars", "list"]);
    assert!(listed.stdout.contains("2026-12-26") && listed.stdout.contains("sunday"), "{listed:?}");
    let shown = against(&server, &["calendars", "get", "off"]);
    assert_eq!(
        (shown.stdout.as_str(), shown.stderr.trim()),
        ("2026-12-25\n2026-12-26\n", "every sunday"),
        "{shown:?}"
    );
}

#[test]
fn whoever_cannot_apply_everything_says_what_is_done_and_what_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("three.yaml");
    std::fs::write(&file, "schedules: [{name: a}, {name: b}, {name: c}]").unwrap();
    let problem = |status: u16, code: &str| {
        json!({"type": "urn:x", "title": "no", "status": status, "code": code, "detail": "no"}).to_string()
    };
    let preview = |name: &str| json!({"schedule": schedule(name, &[]), "next": []}).to_string();
    let (a, b, c) = (preview("a"), preview("b"), preview("c"));
    let (absent, away) = (problem(404, "not_found"), problem(503, "outcome_unknown"));
    let created = schedule("a", &[]).to_string();
    let judged = [(200, a.as_str()), (404, &absent), (200, &b), (404, &absent), (200, &c), (404, &absent)];
    let server = FakeServer::answering(&[&judged[..], &[(201, &created), (503, &away)]].concat());
    let run = against(&server, &["apply", "--yes", "-f", file.to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let told = "done: created a\nnot done: created c\nmay be done or not: created b\n";
    assert!(run.stderr.starts_with(told), "{}", run.stderr);
    let asked = server.asked();
    assert_eq!(
        (asked[6].line.as_str(), asked[6].body.as_str()),
        ("POST /api/v1/schedules", r#"{"name":"a"}"#)
    );
    assert_eq!(asked.len(), 8, "it goes no further");
}
