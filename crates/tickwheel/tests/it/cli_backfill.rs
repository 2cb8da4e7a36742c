//! `schedules backfill` against a server that says what the test wants: what it asks, what it tells on the way, and how
//! it ends.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cli_schedules::{against, schedule};
use crate::eventually::{PATIENCE, eventually};
use crate::fake_server::FakeServer;
use crate::program::tickwheel;

const RANGE: [&str; 4] = ["--from", "2026-10-01T00:00:00Z", "--to", "2026-10-31T12:00:00+01:00"];

fn preview() -> String {
    json!({"from": "2026-10-01T00:00:00.000Z", "to": "2026-10-31T11:00:00.000Z", "count": 31,
        "first": "2026-10-01T06:00:00.000Z", "last": "2026-10-31T06:00:00.000Z", "already_fired": 27})
    .to_string()
}

fn backfill(status: &str, made: u64) -> Value {
    let ended_at = (status != "running").then_some("2026-11-15T12:00:10.000Z");
    json!({"status": status, "from": "2026-10-01T00:00:00.000Z", "to": "2026-10-31T11:00:00.000Z", "rate": 2,
        "priority": "low", "count": 31, "made": made, "already_fired": 27, "left": 4 - made, "waiting": null,
        "next_time": null, "requested_at": "2026-11-15T12:00:00.000Z", "ended_at": ended_at})
}

fn command<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["schedules", "backfill", "daily report"][..], options].concat()
}

#[test]
fn a_backfill_is_announced_started_and_followed_to_its_end() {
    let running = backfill("running", 0).to_string();
    let completed = backfill("completed", 4).to_string();
    let answers = [(200, preview()), (202, running.clone()), (200, running), (200, completed)];
    let server = FakeServer::answering(&answers.each_ref().map(|(status, body)| (*status, body.as_str())));
    let run = against(&server, &command(&[&RANGE[..], &["--rate", "2", "--priority", "low"]].concat()));
    assert_eq!(run.code, Some(0), "{run:?}");
    let told =
        "31 firings from 2026-10-01T06:00:00Z to 2026-10-31T06:00:00Z, 27 have run already, 4 to make\n";
    assert_eq!(run.stderr, told);
    assert!(run.stdout.contains("completed: 31 firings, 4 made, 27 had run already, 0 left"), "{run:?}");
    let asked = server.asked();
    let path = "/api/v1/schedules/daily%20report/backfill";
    let lines: Vec<_> = asked.iter().map(|asked| asked.line.as_str()).collect();
    let (post, get) = (format!("POST {path}"), format!("GET {path}"));
    assert_eq!(lines, [&post, &post, &get, &get]);
    let request = json!({"from": "2026-10-01T00:00:00.000Z", "to": "2026-10-31T11:00:00.000Z", "rate": 2, "priority": "low"});
    let bodies: Vec<Value> =
        asked[..2].iter().map(|asked| serde_json::from_str(&asked.body).unwrap()).collect();
    assert_eq!(bodies[1], request);
    assert_eq!(bodies[0]["preview"], true);
}

#[test]
fn a_backfill_that_somebody_cancels_has_failed() {
    let (running, cancelled) = (backfill("running", 0).to_string(), backfill("cancelled", 1).to_string());
    let server = FakeServer::answering(&[(200, &preview()), (202, &running), (200, &cancelled)]);
    let run = against(&server, &command(&RANGE));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("cancelled: 31 firings, 1 made"), "{}", run.stdout);
    assert!(run.stderr.contains("error: the backfill was cancelled"), "{}", run.stderr);
}

#[test]
fn a_preview_is_a_result_and_starts_nothing() {
    let server = FakeServer::answering(&[(200, &preview()), (200, &preview())]);
    let run = against(&server, &command(&[&RANGE[..], &["--preview"]].concat()));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stdout.starts_with("31 firings from 2026-10-01T06:00:00Z"), "{}", run.stdout);
    let run = against(&server, &command(&[&RANGE[..], &["--preview", "--json"]].concat()));
    let printed: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(printed["already_fired"], 27, "{run:?}");
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn whoever_detaches_is_told_how_to_look_and_to_stop() {
    let server = FakeServer::answering(&[(200, &preview()), (202, &backfill("running", 0).to_string())]);
    let run = against(&server, &command(&[&RANGE[..], &["--detach"]].concat()));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("running: 31 firings"), "{}", run.stdout);
    for option in ["--status", "--cancel"] {
        assert!(run.stderr.contains(&format!("schedules backfill daily report {option}")), "{}", run.stderr);
    }
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn times_without_offset_are_those_of_the_schedule_and_a_day_ends_with_its_last_moment() {
    let schedule = schedule("daily report", &[]).to_string();
    let server = FakeServer::answering(&[(200, &schedule), (200, &preview())]);
    let local = ["--from", "2025-11-01T09:00", "--to", "2025-11-02", "--preview"];
    let run = against(&server, &command(&local));
    assert_eq!(run.code, Some(0), "{run:?}");
    let asked = server.asked();
    assert_eq!(asked[0].line, "GET /api/v1/schedules/daily%20report");
    let body: Value = serde_json::from_str(&asked[1].body).unwrap();
    // The zone of the fake schedule is New York, where the clocks were put back that day.
    let range = (&json!("2025-11-01T13:00:00.000Z"), &json!("2025-11-03T04:59:59.999Z"));
    assert_eq!((&body["from"], &body["to"]), range);
}

#[test]
fn the_latest_backfill_is_shown_and_stopped() {
    let mut waiting = backfill("running", 1);
    waiting["waiting"] = json!("overlap");
    let answers = [(200, waiting.to_string()), (200, backfill("cancelled", 1).to_string())];
    let server = FakeServer::answering(&answers.each_ref().map(|(status, body)| (*status, body.as_str())));
    let shown = against(&server, &command(&["--status"]));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("3 left; waits for a job to end"), "{}", shown.stdout);
    // Cancelled by whoever asks: that is what was wanted.
    let stopped = against(&server, &command(&["--cancel"]));
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.stdout.contains("cancelled: 31 firings"), "{}", stopped.stdout);
    let path = "/api/v1/schedules/daily%20report/backfill";
    let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(lines, [format!("GET {path}"), format!("POST {path}/cancel")]);
}

#[test]
fn a_schedule_shows_its_backfill_while_it_runs() {
    let shown = |status: &str| {
        let schedule = schedule("daily", &[("backfill", backfill(status, 1))]);
        let server = FakeServer::answering(&[(200, &schedule.to_string())]);
        against(&server, &["schedules", "get", "daily"]).stdout
    };
    assert!(shown("running").contains("running: 31 firings, 1 made"));
    assert!(!shown("completed").contains("31 firings"));
}

#[tokio::test]
async fn an_interrupt_leaves_the_backfill_to_the_server() {
    let running = backfill("running", 0).to_string();
    let mut answers = vec![(200, running.as_str()); 1_000];
    let preview = preview();
    answers[0] = (200, preview.as_str());
    let server = FakeServer::answering(&answers);
    let mut program = tickwheel(&command(&RANGE));
    let program = program.env("TICKWHEEL_SERVER", &server.url).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = program.spawn().unwrap();
    // It follows the backfill once it has asked how far it is.
    eventually("a look at the backfill", PATIENCE, async || {
        server.asked().iter().any(|asked| asked.line.starts_with("GET")).then_some(())
    })
    .await;
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &[][..]), "{told}");
    assert!(told.contains("the backfill goes on"), "{told}");
    assert!(told.contains("--status") && told.contains("--cancel"), "{told}");
    assert!(!server.asked().iter().any(|asked| asked.line.ends_with("/cancel")));
}
