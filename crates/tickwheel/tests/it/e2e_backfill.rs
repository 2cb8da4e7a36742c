//! A past range made up for on request: each firing in it has its job in the end, and never two.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::api::{text, time};
use crate::e2e::{Stage, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::ledger::{count, outcomes};
use crate::server::StoreKind;
use crate::target::{Gate, Reply};

on_both_stores! {
    every_firing_of_the_range_gets_its_job,
    a_firing_that_has_its_job_is_left_alone,
    a_preview_changes_nothing,
    a_cancelled_backfill_makes_nothing_more,
    a_crash_neither_loses_nor_doubles_a_firing_of_a_backfill,
    where_jobs_may_not_overlap_they_run_one_after_the_other,
    what_cannot_be_made_up_for_is_refused,
}

/// Midnight of the day so many days ago.
fn days_ago(days: i64) -> Timestamp {
    let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    (today - days.days()).to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp()
}

impl Stage {
    async fn backfill(&self, name: &str, body: &Value, status: u16) -> Value {
        self.api.post(&format!("/api/v1/schedules/{name}/backfill"), body).await.expect(status).json()
    }

    async fn until_backfilled(&self, name: &str, status: &str) -> Value {
        let path = format!("/api/v1/schedules/{name}/backfill");
        eventually(&format!("the backfill to be {status}"), PATIENCE, async || {
            Some(self.api.get(&path).await.expect(200).json()).filter(|backfill| backfill["status"] == status)
        })
        .await
    }
}

async fn every_firing_of_the_range_gets_its_job(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.create("daily", json!({"every": null, "cron": "0 3 * * *"})).await;
    let (from, to) = (days_ago(30), days_ago(10));
    let asked = json!({"from": from.to_string(), "to": to.to_string(), "rate": 500, "priority": "low"});
    let begun = stage.backfill("daily", &asked, 202).await;
    assert_eq!((&begun["count"], &begun["rate"]), (&json!(20), &json!(500)), "{begun:#}");
    let ended = stage.until_backfilled("daily", "completed").await;
    assert_eq!((&ended["made"], &ended["already_fired"], &ended["left"]), (&json!(20), &json!(0), &json!(0)));
    let calls = stage.target.called("/daily", 20).await;
    let scheduled_for: BTreeSet<&str> =
        calls.iter().map(|call| call.header("tickwheel-scheduled-for")).collect();
    assert_eq!(scheduled_for.len(), 20, "each for a time of its own");
    let fires = stage.fires("daily").await;
    assert_eq!(outcomes(&fires), [("backfilled", "by_request"); 20]);
    assert_eq!(time(&fires[0], "nominal_time"), from + 3.hours());
    let job = stage.api.job(text(&fires[0], "job_id")).await;
    assert_eq!((time(&job, "execute_at"), text(&job, "priority")), (from + 3.hours(), "low"));
    let again = stage.backfill("daily", &asked, 202).await;
    assert_eq!(again["count"], 20);
    let ended = stage.until_backfilled("daily", "completed").await;
    assert_eq!((&ended["made"], &ended["already_fired"]), (&json!(0), &json!(20)), "nothing is left to do");
}

async fn a_firing_that_has_its_job_is_left_alone(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.create("tick", json!({})).await;
    let fires = stage.until_fires("tick", "three firings", |fires| fires.len() >= 3).await;
    stage.tell("tick", "pause").await.expect(200);
    let (first, third) = (time(&fires[0], "nominal_time"), time(&fires[2], "nominal_time"));
    let range = json!({"from": (first - 3.seconds()).to_string(), "to": third.to_string(), "rate": 500});
    let waiting = stage.backfill("tick", &range, 202).await;
    assert_eq!(waiting["waiting"], "paused", "{waiting:#}");
    stage.tell("tick", "resume").await.expect(200);
    let ended = stage.until_backfilled("tick", "completed").await;
    assert_eq!((&ended["made"], &ended["already_fired"]), (&json!(3), &json!(3)), "{ended:#}");
    let after = stage.fires("tick").await;
    assert_eq!(count(&after, "backfilled"), 3);
    for fire in &fires[..3] {
        assert!(after.contains(fire), "{fire} was changed");
    }
}

async fn a_preview_changes_nothing(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.create("daily", json!({"every": null, "cron": "0 3 * * *"})).await;
    let range = json!({"from": days_ago(7).to_string(), "to": days_ago(0).to_string(), "preview": true});
    let preview = stage.backfill("daily", &range, 200).await;
    assert_eq!((&preview["count"], &preview["already_fired"]), (&json!(7), &json!(0)));
    assert_eq!(time(&preview, "first"), days_ago(7) + 3.hours());
    assert_eq!(time(&preview, "last"), days_ago(1) + 3.hours());
    stage.api.get("/api/v1/schedules/daily/backfill").await.expect(404);
    assert!(stage.fires("daily").await.is_empty());
}

async fn a_cancelled_backfill_makes_nothing_more(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.create("hourly", json!({"every": null, "cron": "0 * * * *"})).await;
    let range = json!({"from": days_ago(100).to_string(), "to": days_ago(1).to_string(), "rate": 20});
    stage.backfill("hourly", &range, 202).await;
    let refused = stage.backfill("hourly", &range, 409).await;
    assert_eq!(text(&refused, "code"), "backfill_running");
    stage.target.called("/hourly", 3).await;
    let cancelled = stage.api.act("/api/v1/schedules/hourly/backfill/cancel").await.expect(200).json();
    assert_eq!(text(&cancelled, "status"), "cancelled");
    let made = count(&stage.fires("hourly").await, "backfilled");
    assert_eq!(cancelled["made"], json!(made));
    // sleep: twenty more would come within this time
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(count(&stage.fires("hourly").await, "backfilled"), made);
}

async fn a_crash_neither_loses_nor_doubles_a_firing_of_a_backfill(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let schedule = stage.create("hourly", json!({"every": null, "cron": "0 * * * *"})).await;
    let range = json!({"from": days_ago(10).to_string(), "to": days_ago(5).to_string(), "rate": 40});
    stage.backfill("hourly", &range, 202).await;
    for round in 1..=3 {
        stage.target.called("/hourly", 20 * round).await;
        stage.restart().await;
    }
    let ended = stage.until_backfilled("hourly", "completed").await;
    assert_eq!((&ended["count"], &ended["made"]), (&json!(121), &json!(121)), "{ended:#}");
    let jobs = format!("/api/v1/jobs?schedule_id={}&limit=1000", text(&schedule, "id"));
    let jobs = stage.api.list(&jobs).await;
    let times: BTreeSet<Timestamp> = jobs.iter().map(|job| time(job, "execute_at")).collect();
    assert_eq!((jobs.len(), times.len()), (121, 121), "I1, I2");
}

async fn where_jobs_may_not_overlap_they_run_one_after_the_other(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/daily", Reply::ok().behind(&gate));
    stage.create("daily", json!({"every": null, "cron": "0 3 * * *", "overlap": "skip"})).await;
    let range = json!({"from": days_ago(4).to_string(), "to": days_ago(1).to_string(), "rate": 500});
    stage.backfill("daily", &range, 202).await;
    stage.target.called("/daily", 1).await;
    eventually("the next one to wait", PATIENCE, async || {
        let backfill = stage.api.get("/api/v1/schedules/daily/backfill").await.expect(200).json();
        (backfill["waiting"] == "overlap").then_some(())
    })
    .await;
    assert_eq!(count(&stage.fires("daily").await, "backfilled"), 1);
    gate.open();
    stage.until_backfilled("daily", "completed").await;
    let mut runs = Vec::new();
    for fire in &stage.fires("daily").await {
        let job = stage.until(text(fire, "job_id"), "completed").await;
        runs.push((time(&job, "started_at"), time(&job, "completed_at")));
    }
    assert_eq!(runs.len(), 3);
    assert!(runs.windows(2).all(|two| two[0].1 <= two[1].0), "one after the other: {runs:?}");
}

async fn what_cannot_be_made_up_for_is_refused(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.create("often", json!({})).await;
    stage.create("never", json!({"every": null, "cron": "0 0 30 2 *"})).await;
    let (past, yesterday) = (days_ago(10).to_string(), days_ago(1).to_string());
    let tomorrow = days_ago(-1).to_string();
    for (name, body, status) in [
        ("often", json!({"from": past, "to": yesterday}), 422),
        ("never", json!({"from": past, "to": yesterday}), 422),
        ("never", json!({"from": yesterday, "to": past}), 422),
        ("never", json!({"from": past, "to": tomorrow}), 422),
        ("never", json!({"from": past, "to": yesterday, "rate": 0}), 422),
        ("never", json!({"from": past}), 400),
        ("never", json!({"from": past, "to": yesterday, "speed": 1}), 400),
        ("nobody", json!({"from": past, "to": yesterday}), 404),
    ] {
        stage.backfill(name, &body, status).await;
    }
    stage.api.get("/api/v1/schedules/never/backfill").await.expect(404);
    stage.api.act("/api/v1/schedules/never/backfill/cancel").await.expect(404);
}
