//! Recurring work: one job for each time of a schedule, whatever happens, and a record of what became of each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{id_of, text, time};
use crate::e2e::{LATENESS_MAX, Stage, for_a_while, millis_between, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::ledger::{assert_no_gap_and_no_double, count, outcomes};
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply};

on_both_stores! {
    every_second_has_one_job_and_one_record,
    a_crash_neither_loses_nor_doubles_a_firing,
    what_was_missed_is_made_up_for_as_the_schedule_wants_it,
    a_firing_meets_a_job_that_is_not_over_as_the_schedule_wants_it,
    a_queued_firing_starts_when_the_job_before_it_is_over,
    what_was_queued_before_a_pause_starts_after_it,
    nothing_fires_while_a_schedule_is_paused_and_each_skipped_time_is_recorded,
    an_edit_takes_effect_for_the_next_firing,
    nothing_fires_after_an_acknowledged_delete,
    a_schedule_can_be_triggered_once_per_key,
    an_excluded_day_is_skipped_with_its_reason,
    a_schedule_ends_at_its_end,
    what_makes_no_sense_is_refused_and_what_never_comes_is_accepted,
}

async fn every_second_has_one_job_and_one_record(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let schedule = stage.create("tick", json!({})).await;
    let first = time(&schedule, "next_fire_at");
    assert!(first > time(&schedule, "created_at"));
    let calls = stage.target.called("/tick", 3).await;
    let fires = stage.until_fires("tick", "three firings", |fires| fires.len() >= 3).await;
    assert_eq!(time(&fires[0], "nominal_time"), first);
    assert_no_gap_and_no_double(&fires);
    for fire in &fires[..3] {
        assert_eq!(outcomes(std::slice::from_ref(fire)), [("fired", "on_time")]);
        let job = stage.api.job(text(fire, "job_id")).await;
        assert_eq!(text(&job, "schedule_id"), text(&schedule, "id"));
        assert_eq!(time(&job, "execute_at"), time(fire, "nominal_time"));
        let late = millis_between(time(&job, "execute_at"), time(&job, "started_at"));
        assert!((0..LATENESS_MAX.as_millis() as i64).contains(&late), "{late} ms late");
    }
    let listed = stage.api.list(&format!("/api/v1/jobs?schedule_id={}", text(&schedule, "id"))).await;
    assert!(listed.len() >= calls.len());
    assert!(stage.api.metric("tickwheel_schedule_fires_total").await >= 3.0);
}

async fn a_crash_neither_loses_nor_doubles_a_firing(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    // Late ones are made up for, each by its own job.
    let missed = json!({"policy": "backfill", "max_backfill": 1000});
    stage.create("tick", json!({"missed": missed})).await;
    for round in 1..=4 {
        stage.target.called("/tick", round).await;
        stage.restart().await;
    }
    let before = stage.fires("tick").await.len();
    let fires = stage.until_fires("tick", "gone on", |fires| fires.len() >= before + 2).await;
    assert_no_gap_and_no_double(&fires);
    assert_eq!(count(&fires, "fired") + count(&fires, "backfilled"), fires.len(), "{fires:#?}");
    let id = text(&stage.read("tick").await, "id").to_owned();
    let mut jobs: BTreeMap<Timestamp, usize> = BTreeMap::new();
    for job in stage.api.list(&format!("/api/v1/jobs?schedule_id={id}&limit=1000")).await {
        *jobs.entry(time(&job, "execute_at")).or_default() += 1;
    }
    assert!(jobs.values().all(|count| *count == 1), "{jobs:#?}");
    assert!(fires.iter().all(|fire| jobs.contains_key(&time(fire, "nominal_time"))));
}

async fn what_was_missed_is_made_up_for_as_the_schedule_wants_it(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    for policy in ["skip", "fire_once", "backfill"] {
        stage.create(policy, json!({"missed": {"policy": policy, "max_backfill": 2}})).await;
    }
    stage.target.called("/skip", 1).await;
    stage.server.kill9().await;
    let died = Timestamp::now();
    // sleep: an outage is time that passes
    tokio::time::sleep(Duration::from_millis(5_500)).await;
    stage.restart().await;
    for (policy, expected) in [("skip", "missed"), ("fire_once", "coalesced"), ("backfill", "backfilled")] {
        let is_back = |fires: &[Value]| {
            fires.last().is_some_and(|fire| time(fire, "nominal_time") > died + Duration::from_secs(7))
        };
        let fires = stage.until_fires(policy, "the outage behind it", is_back).await;
        assert_no_gap_and_no_double(&fires);
        assert!(count(&fires, expected) >= 2, "{policy}: {fires:#?}");
        let job_of = |fire: &Value| fire["job_id"].is_string();
        match policy {
            "skip" => assert!(fires.iter().all(|fire| job_of(fire) == (fire["outcome"] == "fired"))),
            "fire_once" => assert!(fires.iter().all(job_of), "another's job stands for a coalesced one"),
            _ => assert!(count(&fires, "backfilled") <= 2 && count(&fires, "missed") >= 1, "{fires:#?}"),
        }
    }
}

async fn a_firing_meets_a_job_that_is_not_over_as_the_schedule_wants_it(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    for overlap in ["allow", "skip", "replace"] {
        stage.target.reply(&format!("/{overlap}"), Reply::ok().behind(&gate));
        stage.create(overlap, json!({"overlap": overlap})).await;
    }
    let allowed = stage.until_fires("allow", "several firings", |fires| count(fires, "fired") >= 3).await;
    assert_eq!(count(&allowed, "fired"), allowed.len());

    let skipped = stage.until_fires("skip", "skipped firings", |fires| count(fires, "skipped") >= 2).await;
    assert_eq!(
        outcomes(&skipped)[..3],
        [("fired", "on_time"), ("skipped", "overlap"), ("skipped", "overlap")]
    );

    let replaced = stage.until_fires("replace", "several firings", |fires| count(fires, "fired") >= 3).await;
    for fire in &replaced[..replaced.len() - 1] {
        let id = text(fire, "job_id").to_owned();
        stage.until(&id, "cancelled").await;
    }
    gate.open();
}

async fn a_queued_firing_starts_when_the_job_before_it_is_over(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/line", Reply::ok().behind(&gate));
    stage.create("line", json!({"overlap": "queue"})).await;
    stage.target.called("/line", 1).await;
    let is_queued =
        |fire: &&Value| (&fire["outcome"], &fire["reason"]) == (&json!("skipped"), &json!("queued"));
    let waiting =
        stage.until_fires("line", "two that wait", |fires| fires.iter().filter(is_queued).count() >= 2).await;
    assert_eq!(count(&waiting, "fired"), 1, "the others wait");
    assert_eq!(stage.read("line").await["queued_since"], waiting[1]["nominal_time"]);
    gate.open();
    let fires = stage.until_fires("line", "caught up", |fires| count(fires, "fired") >= 4).await;
    assert_no_gap_and_no_double(&fires);
    assert_eq!(outcomes(&fires[..3]), [("fired", "on_time"), ("fired", "overlap"), ("fired", "overlap")]);
    let mut runs = Vec::new();
    for fire in &fires[..3] {
        let job = stage.until(text(fire, "job_id"), "completed").await;
        runs.push((time(&job, "started_at"), time(&job, "completed_at")));
    }
    assert!(runs.windows(2).all(|two| two[0].1 <= two[1].0), "one after the other: {runs:?}");
}

async fn what_was_queued_before_a_pause_starts_after_it(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/line", Reply::ok().behind(&gate));
    stage.create("line", json!({"overlap": "queue"})).await;
    stage.target.called("/line", 1).await;
    let queued = |fires: &[Value]| -> Vec<String> {
        let queued = fires.iter().filter(|fire| fire["reason"] == "queued");
        queued.map(|fire| text(fire, "nominal_time").to_owned()).collect()
    };
    stage.until_fires("line", "two that wait", |fires| queued(fires).len() >= 2).await;
    stage.tell("line", "pause").await.expect(200);
    let waiting = queued(&stage.fires("line").await);
    gate.open();
    for_a_while(async || assert_eq!(stage.target.calls_to("/line").len(), 1, "I10")).await;
    stage.restart().await;
    assert_eq!(queued(&stage.fires("line").await), waiting, "they are still there");
    stage.tell("line", "resume").await.expect(200);
    let fires = stage.until_fires("line", "gone on", |fires| queued(fires).is_empty()).await;
    assert_no_gap_and_no_double(&fires);
    for fire in fires.iter().filter(|fire| waiting.iter().any(|at| fire["nominal_time"] == *at)) {
        assert_eq!(outcomes(std::slice::from_ref(fire)), [("fired", "overlap")]);
        stage.until(text(fire, "job_id"), "completed").await;
    }
}

async fn nothing_fires_while_a_schedule_is_paused_and_each_skipped_time_is_recorded(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.create("tick", json!({})).await;
    stage.target.called("/tick", 1).await;
    let note = json!({"note": "moving house"});
    let paused = stage.api.post("/api/v1/schedules/tick/pause", &note).await.expect(200).json();
    assert_eq!((&paused["paused"], text(&paused, "pause_note")), (&json!(true), "moving house"));
    let fired = count(&stage.fires("tick").await, "fired");
    // sleep: times have to pass while it is paused
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(count(&stage.fires("tick").await, "fired"), fired);
    let resumed = stage.tell("tick", "resume").await.expect(200).json();
    assert_eq!(resumed["paused"], false);
    let fires = stage.until_fires("tick", "gone on", |fires| count(fires, "fired") > fired).await;
    assert_no_gap_and_no_double(&fires);
    assert!(
        outcomes(&fires).iter().filter(|outcome| **outcome == ("skipped", "paused")).count() >= 2,
        "{fires:#?}"
    );
}

async fn an_edit_takes_effect_for_the_next_firing(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.create("tick", json!({})).await;
    stage.target.called("/tick", 1).await;
    let rarely = json!({"cron": "0 0 1 1 *", "timezone": "Europe/London"});
    let edited = stage.api.patch("/api/v1/schedules/tick", &rarely).await.expect(200).json();
    assert_eq!((text(&edited, "cron"), &edited["every"]), ("0 0 1 1 *", &Value::Null));
    let new_year = time(&edited, "next_fire_at");
    assert!(new_year.to_string().ends_with("-01-01T00:00:00Z"), "{new_year}");
    let fired = stage.fires("tick").await.len();
    // sleep: it would have fired within this time
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(stage.fires("tick").await.len(), fired);
    let job = json!({"job": {"type": "other", "target": {"http": {"url": stage.target.url("/other")}}}, "every": "1s"});
    stage.api.patch("/api/v1/schedules/tick", &job).await.expect(200);
    stage.target.called("/other", 1).await;
}

async fn nothing_fires_after_an_acknowledged_delete(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let schedule = stage.create("tick", json!({})).await;
    stage.target.called("/tick", 1).await;
    stage.api.delete("/api/v1/schedules/tick").await.success();
    let jobs = format!("/api/v1/jobs?schedule_id={}", text(&schedule, "id"));
    let made = stage.api.list(&jobs).await.len();
    // sleep: it would have fired within this time
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(stage.api.list(&jobs).await.len(), made, "its jobs stay, and no other comes");
    stage.api.get("/api/v1/schedules/tick").await.expect(404);
    stage.api.delete("/api/v1/schedules/tick").await.expect(404);
    stage.create("tick", json!({"every": "1h"})).await;
}

async fn a_schedule_can_be_triggered_once_per_key(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.create("rare", json!({"every": "366d", "paused": true})).await;
    let trigger = async |key: &str, payload: Value| {
        let body = json!({"idempotency_key": key, "payload": payload});
        stage.api.post("/api/v1/schedules/rare/trigger", &body).await
    };
    let first = trigger("a", json!({"n": 1})).await.expect(201).json();
    let again = trigger("a", json!({"n": 1})).await.expect(200).json();
    assert_eq!(id_of(&first), id_of(&again));
    trigger("a", json!({"n": 2})).await.expect(409);
    let second = trigger("b", json!({"n": 2})).await.expect(201).json();
    assert_ne!(id_of(&first), id_of(&second));
    let calls = stage.target.called("/rare", 2).await;
    let seen: BTreeSet<String> = calls.iter().map(|call| call.json().to_string()).collect();
    assert_eq!(seen, BTreeSet::from([r#"{"n":1}"#.to_owned(), r#"{"n":2}"#.to_owned()]));
    let fires = stage.fires("rare").await;
    assert_eq!(outcomes(&fires), [("triggered", "by_request"); 2]);
}

async fn an_excluded_day_is_skipped_with_its_reason(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let day = |days: i64| {
        (Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date() + jiff::Span::new().days(days)).to_string()
    };
    let today = json!({"days": [day(0), day(1)]});
    stage.api.put("/api/v1/calendars/closed", &today).await.success();
    stage.create("by-date", json!({"exclude": [format!("{}/{}", day(0), day(1))]})).await;
    stage.create("by-calendar", json!({"exclude": ["calendar:closed"]})).await;
    stage.create("open", json!({"exclude": [day(100)]})).await;
    for name in ["by-date", "by-calendar"] {
        let fires = stage.until_fires(name, "two records", |fires| fires.len() >= 2).await;
        assert!(outcomes(&fires).iter().all(|outcome| *outcome == ("skipped", "excluded_day")), "{fires:#?}");
    }
    stage.target.called("/open", 1).await;
}

async fn a_schedule_ends_at_its_end(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let end = Timestamp::now() + Duration::from_secs(3);
    let created = time(&stage.create("short", json!({"end_at": end.to_string()})).await, "created_at");
    let over = |schedule: &Value| schedule["next_fire_at"].is_null();
    eventually("the schedule to end", PATIENCE, async || Some(stage.read("short").await).filter(over)).await;
    let fires = stage.fires("short").await;
    let seconds = end.as_second() - created.as_second();
    assert_eq!(fires.iter().map(|fire| fire["count"].as_i64().unwrap()).sum::<i64>(), seconds, "{fires:#?}");
    assert_no_gap_and_no_double(&fires);
    for_a_while(async || assert_eq!(stage.fires("short").await.len(), fires.len())).await;
}

async fn what_makes_no_sense_is_refused_and_what_never_comes_is_accepted(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let refused = async |fields: Value, status: u16, pointer: &str| {
        let answer = stage
            .api
            .post("/api/v1/schedules", &stage.schedule("bad", fields.clone()))
            .await
            .expect(status)
            .json();
        assert_eq!(answer["errors"][0]["pointer"], pointer, "{fields}: {answer:#}");
    };
    for cron in ["60 * * * *", "*/0 * * * *", "* * * *", "* * * * * * * *", "0 0 * * MON#6", ""] {
        refused(json!({"every": null, "cron": cron}), 422, "/cron").await;
    }
    refused(json!({"timezone": "Mars/Olympus"}), 422, "/timezone").await;
    refused(json!({"start_at": "2030-01-02T00:00:00Z", "end_at": "2030-01-01T00:00:00Z"}), 422, "/end_at")
        .await;
    refused(json!({"exclude": ["tomorrow"]}), 422, "/exclude/0").await;
    refused(json!({"jitter": "25h"}), 422, "/jitter").await;
    assert!(stage.api.list("/api/v1/schedules").await.is_empty(), "nothing of it is left");

    let never = stage.create("never", json!({"every": null, "cron": "0 0 30 2 *"})).await;
    assert_eq!((&never["never"], &never["next_fire_at"]), (&json!(true), &Value::Null));
    let taken = stage.api.post("/api/v1/schedules", &stage.schedule("never", json!({}))).await.expect(409);
    assert_eq!(taken.code(), "name_taken");
}

/// Two servers on one database both see every firing come and make one job of it.
#[tokio::test]
async fn two_servers_fire_once() {
    let stage = Stage::set(StoreKind::Postgres).await;
    let other = Server::builder(StoreKind::Postgres).beside(&stage.server).start().await;
    stage.create("tick", json!({})).await;
    let fires = stage.until_fires("tick", "five firings", |fires| fires.len() >= 5).await;
    assert_no_gap_and_no_double(&fires);
    assert_eq!(count(&fires, "fired"), fires.len());
    drop(other);
}
