//! Making up for a past range: what is answered from the first look to the end, and which requests are refused.

use std::time::Duration;

use serde_json::{Value, json};
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::{Advanced, Clock, LedgerStore, ScheduleStep, ScheduleStore};
use tickwheel_core::schedule::plan::{Calendars, PlanContext, plan};
use tickwheel_core::schedule::{Fire, FireOutcome, FireReason, Schedule, backfill};
use tickwheel_core::{JobId, Timestamp};
use uuid::Uuid;

use crate::schedules::{SCHEDULES, create};
use crate::server::{Answer, Server};

const REPORT: &str = "/api/v1/schedules/report";
const BACKFILL: &str = "/api/v1/schedules/report/backfill";

/// 2027-01-01T02:00:00Z, the first firing of the range that the tests ask for.
const FIRST: Timestamp = Timestamp::from_millis(1_798_768_800_000);
const DAY: Duration = Duration::from_secs(86_400);

/// The first two weeks of the year, up to now: fifteen firings. With these fields on top.
fn range(fields: Value) -> Value {
    let mut request = json!({"from": "2027-01-01T00:00:00Z", "to": "2027-01-15T08:00:00Z"});
    for (name, value) in fields.as_object().expect("fields") {
        request[name] = value.clone();
    }
    request
}

async fn ask(server: &Server, fields: Value) -> Answer {
    server.post(BACKFILL, range(fields)).await
}

async fn stored(server: &Server) -> Schedule {
    let found = server.store.find_schedule(DEFAULT_TENANT, "report").await.expect("the model does not fail");
    found.expect("it was created")
}

fn new_id() -> JobId {
    JobId::from_uuid(Uuid::now_v7())
}

/// Writes down what became of a firing, with a job of its own or without.
async fn record(server: &Server, nominal_at: Timestamp, outcome: FireOutcome, with_job: bool) {
    let schedule = stored(server).await;
    let now = server.clock.now();
    let job = with_job.then(|| schedule.job(new_id(), nominal_at, now, now));
    let fire = Fire {
        schedule_id: schedule.id,
        nominal_at,
        last_at: nominal_at,
        count: 1,
        outcome,
        reason: FireReason::OnTime,
        job_id: job.as_ref().map(|job| job.id),
        recorded_at: now,
    };
    let step = ScheduleStep {
        id: schedule.id,
        revision: schedule.revision,
        progress: schedule.progress,
        fires: vec![fire],
        jobs: job.into_iter().collect(),
    };
    advance(server, step).await;
}

async fn advance(server: &Server, step: ScheduleStep) {
    let advanced = server.store.advance_schedules(vec![step]).await.expect("the model does not fail");
    assert_eq!(advanced, [Advanced::Done]);
}

/// Lets the schedule go on by a step, as the engine does at its time.
async fn go_on(server: &Server) {
    let now = server.clock.advance(Duration::from_secs(5));
    let schedule = stored(server).await;
    let timetable = schedule.spec.timetable().expect("a timetable");
    let calendars = Calendars::new();
    let span = backfill::span(&schedule, &timetable, &calendars, now);
    let ledger = match span.as_ref().and_then(|span| Some((span.after, *span.firings.last()?))) {
        Some((after, until)) => server.store.fires_within(schedule.id, after, until).await,
        None => Ok(Vec::new()),
    };
    let active = server.store.active_jobs(vec![schedule.id]).await.expect("the model does not fail");
    let active: Vec<JobId> = active.into_iter().map(|(_, job)| job).collect();
    let ledger = ledger.expect("the model does not fail");
    let context = PlanContext { now, active: &active, calendars: &calendars, ledger: &ledger, queued: &[] };
    advance(server, plan(&schedule, &timetable, context).into_step(&schedule, now, new_id)).await;
}

#[tokio::test]
async fn a_preview_counts_what_there_is_and_what_has_its_job_and_changes_nothing() {
    let server = Server::start();
    create(&server, json!({})).await;
    record(&server, FIRST, FireOutcome::Fired, true).await;
    record(&server, FIRST + DAY, FireOutcome::Missed, false).await;
    record(&server, FIRST + 2 * DAY, FireOutcome::Backfilled, true).await;
    // Somebody's job, but of no firing.
    record(&server, FIRST + Duration::from_millis(1), FireOutcome::Triggered, true).await;
    let before = server.get(REPORT).await.ok(200);
    let preview = json!({"from": "2027-01-01T00:00:00.000Z", "to": "2027-01-15T08:00:00.000Z", "count": 15,
        "first": "2027-01-01T02:00:00.000Z", "last": "2027-01-15T02:00:00.000Z", "already_fired": 2});
    assert_eq!(ask(&server, json!({"preview": true})).await.ok(200), preview);

    // What is due since then has not been dealt with yet.
    server.clock.advance(2 * DAY);
    let later = json!({"preview": true, "to": "2027-01-17T00:00:00Z"});
    assert_eq!(ask(&server, later).await.ok(200), preview);
    assert_eq!(server.get(REPORT).await.ok(200), before);
    assert_eq!(before["backfill"], Value::Null);
}

#[tokio::test]
async fn a_preview_of_a_range_without_firings_says_so() {
    let server = Server::start();
    create(&server, json!({})).await;
    let (from, to) = ("2027-01-01T03:00:00.000Z", "2027-01-01T04:00:00.000Z");
    let nothing = ask(&server, json!({"from": from, "to": to, "preview": true})).await.ok(200);
    let expected =
        json!({"from": from, "to": to, "count": 0, "first": null, "last": null, "already_fired": 0});
    assert_eq!(nothing, expected);
}

#[tokio::test]
async fn a_backfill_is_followed_from_its_beginning_to_its_end() {
    let server = Server::start();
    create(&server, json!({})).await;
    record(&server, FIRST + DAY, FireOutcome::Fired, true).await;
    let begun = ask(&server, json!({"rate": 4, "priority": "low"})).await.ok(202);
    let mut expected = json!({"status": "running", "from": "2027-01-01T00:00:00.000Z", "to": "2027-01-15T08:00:00.000Z",
        "rate": 4, "priority": "low", "count": 15, "made": 0, "already_fired": 0, "left": 15, "waiting": null,
        "next_time": "2027-01-01T02:00:00.000Z", "requested_at": "2027-01-15T08:00:00.000Z", "ended_at": null});
    assert_eq!(begun, expected);
    assert_eq!(server.get(BACKFILL).await.ok(200), expected);
    assert_eq!(server.get(REPORT).await.ok(200)["backfill"], expected);

    go_on(&server).await;
    go_on(&server).await;
    expected["made"] = json!(2);
    expected["already_fired"] = json!(1);
    expected["left"] = json!(12);
    expected["next_time"] = json!("2027-01-04T02:00:00.000Z");
    assert_eq!(server.get(BACKFILL).await.ok(200), expected);

    while server.get(BACKFILL).await.ok(200)["status"] == "running" {
        go_on(&server).await;
    }
    let over = server.get(BACKFILL).await.ok(200);
    assert_eq!((&over["status"], &over["made"], &over["left"]), (&json!("completed"), &json!(14), &json!(0)));
    assert_eq!((&over["next_time"], over["ended_at"].is_string()), (&Value::Null, true));
    let made = server.get(&format!("{REPORT}/fires?outcome=backfilled")).await.ok(200);
    assert_eq!(made["items"].as_array().map(Vec::len), Some(14));
    let jobs = server.get("/api/v1/jobs?priority=low").await.ok(200);
    assert_eq!(jobs["items"].as_array().map(Vec::len), Some(14));
}

#[tokio::test]
async fn what_is_not_said_is_ten_jobs_a_second_with_the_priority_of_the_schedule() {
    let server = Server::start();
    create(&server, json!({})).await;
    let begun = ask(&server, json!({"preview": false})).await.ok(202);
    assert_eq!((&begun["rate"], &begun["priority"]), (&json!(10), &Value::Null));
}

#[tokio::test]
async fn a_backfill_that_waits_says_for_what() {
    let server = Server::start();
    create(&server, json!({"overlap": "skip"})).await;
    ask(&server, json!({})).await.ok(202);
    go_on(&server).await;
    let waiting = async || server.get(BACKFILL).await.ok(200)["waiting"].clone();
    assert_eq!(waiting().await, "overlap");
    server.call("POST", &format!("{REPORT}/pause")).await.ok(200);
    assert_eq!(waiting().await, "paused");
    server.call("POST", &format!("{BACKFILL}/cancel")).await.ok(200);
    assert_eq!(waiting().await, Value::Null);
}

#[tokio::test]
async fn there_is_one_backfill_at_a_time_and_it_can_be_cancelled() {
    let server = Server::start();
    create(&server, json!({})).await;
    ask(&server, json!({"rate": 4})).await.ok(202);
    go_on(&server).await;
    let second = ask(&server, json!({})).await;
    assert_eq!(second.problem(409), "backfill_running");

    let cancelled = server.call("POST", &format!("{BACKFILL}/cancel")).await.ok(200);
    assert_eq!((&cancelled["status"], &cancelled["made"]), (&json!("cancelled"), &json!(1)));
    assert_eq!(
        (&cancelled["left"], &cancelled["ended_at"]),
        (&json!(14), &json!("2027-01-15T08:00:05.000Z"))
    );
    go_on(&server).await;
    // It is over, and nobody can end it again.
    assert_eq!(server.call("POST", &format!("{BACKFILL}/cancel")).await.ok(200), cancelled);
    assert_eq!(server.get(BACKFILL).await.ok(200), cancelled);
    assert_eq!(server.stored().await, 1);
    assert_eq!(ask(&server, json!({})).await.ok(202)["status"], "running");
}

#[tokio::test]
async fn a_schedule_that_never_had_one_says_so() {
    let server = Server::start();
    create(&server, json!({})).await;
    let cancel = format!("{BACKFILL}/cancel");
    for answer in [server.get(BACKFILL).await, server.call("POST", &cancel).await] {
        assert_eq!(answer.problem(404), "not_found");
        assert_eq!(answer.body["detail"], "the schedule has no backfill");
    }
    let nobody = format!("{SCHEDULES}/nobody/backfill");
    for answer in [server.get(&nobody).await, server.post(&nobody, range(json!({}))).await] {
        assert_eq!(answer.problem(404), "not_found");
        assert_eq!(answer.body["detail"], "there is no such schedule");
    }
}

#[tokio::test]
async fn every_bad_request_is_refused_where_it_is_bad_and_nothing_begins() {
    let server = Server::start();
    create(&server, json!({})).await;
    let cases = [
        (json!({"from": null}), 400, "/from"),
        (json!({"to": "yesterday"}), 422, "/to"),
        (json!({"rate": "10"}), 400, "/rate"),
        (json!({"priority": "urgent"}), 422, "/priority"),
        (json!({"pace": 10}), 400, "/pace"),
        (json!({"rate": 0}), 422, "/rate"),
        (json!({"rate": 1001}), 422, "/rate"),
        (json!({"to": "2026-12-31T23:59:59Z"}), 422, "/to"),
        (json!({"to": "2027-01-15T08:00:00.001Z"}), 422, "/to"),
        (json!({"to": "2027-01-01T01:59:59Z"}), 422, "/to"),
    ];
    for (fields, status, pointer) in cases {
        let answer = ask(&server, fields.clone()).await;
        assert_eq!((answer.status.as_u16(), answer.pointers()), (status, vec![pointer]), "{fields}");
    }
    assert_eq!(server.get(BACKFILL).await.problem(404), "not_found");
}

#[tokio::test]
async fn a_range_with_too_many_firings_is_refused_with_the_bound() {
    let server = Server::start();
    create(&server, json!({"cron": "* * * * * *"})).await;
    for preview in [true, false] {
        let answer = ask(&server, json!({"from": "2027-01-13T00:00:00Z", "preview": preview})).await;
        assert_eq!((answer.problem(422), answer.pointers()), ("validation_failed", vec!["/to"]));
        assert_eq!(answer.body["errors"][0]["code"], "too_many");
        let detail = answer.body["detail"].as_str().expect("a detail");
        assert!(detail.contains(&backfill::FIRINGS_MAX.to_string()), "{detail}");
    }
    let day = json!({"from": "2027-01-15T00:00:00Z", "preview": true});
    assert_eq!(ask(&server, day).await.ok(200)["count"], 8 * 3_600 + 1);
}
