//! Schedules and the clock: hours and days in which nobody was there, and the days on which the clock of a zone is
//! moved. The server's own clock is put ahead; everything else is as always.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, Weekday, date};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::api::{text, time};
use crate::e2e::{Stage, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::ledger::{assert_no_gap_and_no_double, count, outcomes};
use crate::server::{Server, StoreKind};

on_both_stores! {
    five_hundred_schedules_after_an_outage_do_not_flood_the_target,
    a_day_without_a_server_leaves_a_record_of_every_second,
    a_server_killed_in_the_gap_of_daylight_saving_fires_once_after_it,
    a_server_killed_in_the_fold_of_daylight_saving_fires_once,
}

const HOUR: Duration = Duration::from_secs(3_600);

fn ahead_to(moment: &str) -> Duration {
    let moment: Timestamp = moment.parse().unwrap();
    moment.duration_since(Timestamp::now()).try_into().expect("a moment to come")
}

/// The next day on which New York puts its clocks forward, the second Sunday of March.
fn day_with_a_gap() -> Date {
    next_sunday(3, 2)
}

/// The next day on which New York puts its clocks back, the first Sunday of November.
fn day_with_a_fold() -> Date {
    next_sunday(11, 1)
}

/// The next Sunday, from tomorrow on, that is the `nth` of that month.
fn next_sunday(month: i8, nth: i8) -> Date {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let of_year = |year| date(year, month, 1).nth_weekday_of_month(nth, Weekday::Sunday).unwrap();
    (today.year()..).map(of_year).find(|day| *day > today).unwrap()
}

fn ahead_to_quarter_past() -> Duration {
    let into_the_hour = Timestamp::now().as_second().rem_euclid(3_600) as u64;
    Duration::from_secs((3_600 + 900 - into_the_hour) % 3_600)
}

/// Missed firings coalesce, what is urgent goes first, so many a second; and what is on time is not held up.
async fn five_hundred_schedules_after_an_outage_do_not_flood_the_target(kind: StoreKind) {
    const A_SECOND: usize = 100;
    // Neither before the outage nor after it is anything due on time: there it is a quarter past an hour, and here half
    // past.
    let quarter_past = ahead_to_quarter_past();
    let builder = Server::builder(kind)
        .clock_ahead(quarter_past)
        .env("TICKWHEEL_ENGINE_CATCH_UP_PER_SECOND", &A_SECOND.to_string());
    let mut stage = Stage::on(builder.start().await).await;
    for number in 0..500 {
        let urgent = number % 25 == 24;
        let priority = if urgent { "critical" } else { "normal" };
        let path = if urgent { "/urgent" } else { "/ordinary" };
        let job =
            json!({"type": "t", "priority": priority, "target": {"http": {"url": stage.target.url(path)}}});
        stage.create(&format!("s{number}"), json!({"every": "1h", "job": job})).await;
    }
    stage.create("tick", json!({"missed": {"policy": "skip"}})).await;
    stage.server.kill9().await;
    stage.server.put_clock_ahead(quarter_past + 4 * HOUR + HOUR / 4);
    stage.restart().await;

    stage.target.called("/ordinary", 480).await;
    let urgent = stage.target.called("/urgent", 20).await;
    let ordinary = stage.target.called("/ordinary", 480).await;
    assert_eq!((urgent.len(), ordinary.len()), (20, 480), "one job stands for all that a schedule missed");
    let last_urgent = urgent.iter().map(|call| call.arrived_at).max().unwrap();
    let before = ordinary.iter().filter(|call| call.arrived_at < last_urgent).count();
    assert!(before <= A_SECOND, "{before} ordinary ones went before the last urgent one");
    let arrivals: Vec<Timestamp> = ordinary.iter().chain(&urgent).map(|call| call.arrived_at).collect();
    let took = arrivals.iter().max().unwrap().duration_since(*arrivals.iter().min().unwrap());
    assert!(took.as_secs_f64() > 500.0 / A_SECOND as f64 * 0.8, "they came within {took:#}");
    let punctual = stage.target.called("/tick", 3).await;
    assert!(punctual[2].arrived_at < *arrivals.iter().max().unwrap(), "what is on time does not wait");

    let fires = stage.fires("s0").await;
    let told = outcomes(&fires);
    assert_eq!(told.last(), Some(&("fired", "caught_up")));
    assert!(told[..told.len() - 1].iter().all(|outcome| *outcome == ("coalesced", "caught_up")), "{told:?}");
    assert_eq!(told.len(), 4, "{told:?}");
}

async fn a_day_without_a_server_leaves_a_record_of_every_second(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    for policy in ["skip", "fire_once", "backfill"] {
        stage.create(policy, json!({"missed": {"policy": policy, "max_backfill": 10}})).await;
        stage.target.called(&format!("/{policy}"), 1).await;
    }
    stage.server.kill9().await;
    let died = Timestamp::now();
    stage.server.put_clock_ahead(24 * HOUR);
    stage.restart().await;
    let back = died + 24 * HOUR;
    for policy in ["skip", "fire_once", "backfill"] {
        let is_back = |fires: &[Value]| {
            let on_time = |fire: &&Value| fire["reason"] == "on_time" && time(fire, "nominal_time") > back;
            fires.iter().filter(on_time).count() >= 2
        };
        let fires = stage.until_fires(policy, "gone on", is_back).await;
        assert_no_gap_and_no_double(&fires);
        let firings: u64 = fires.iter().map(|fire| fire["count"].as_u64().unwrap()).sum();
        assert!(firings > 86_400, "I1: {firings}");
        let late_jobs = fires
            .iter()
            .filter(|fire| fire["reason"] == "caught_up" && fire["outcome"] != "coalesced")
            .count();
        assert_eq!(late_jobs, if policy == "backfill" { 10 } else { 0 }, "{policy}");
        let own = fires.iter().filter(|fire| fire["outcome"] == "fired" || fire["outcome"] == "backfilled");
        let jobs: BTreeSet<&str> = own.map(|fire| text(fire, "job_id")).collect();
        assert_eq!(jobs.len(), count(&fires, "fired") + count(&fires, "backfilled"), "I2");
    }
}

/// New York skips from 02:00 to 03:00, at 07:00 UTC.
async fn a_server_killed_in_the_gap_of_daylight_saving_fires_once_after_it(kind: StoreKind) {
    let day = day_with_a_gap();
    let next_day = day.tomorrow().unwrap();
    let builder = Server::builder(kind).clock_ahead(ahead_to(&format!("{day}T06:59:56Z")));
    let mut stage = Stage::on(builder.start().await).await;
    for (name, gap) in [("after", "run_after"), ("skips", "skip")] {
        let daily =
            json!({"every": null, "cron": "30 2 * * *", "timezone": "America/New_York", "dst_gap": gap});
        stage.create(name, daily).await;
    }
    // Killed again and again while the gap passes.
    for _ in 0..4 {
        // sleep: so that the kills are spread over the gap
        tokio::time::sleep(Duration::from_millis(700)).await;
        stage.restart().await;
    }
    let fires = stage.until_fires("after", "its firing", |fires| !fires.is_empty()).await;
    assert_eq!(count(&fires, "fired"), 1, "{fires:#?}");
    assert_eq!(text(&fires[0], "nominal_time"), format!("{day}T07:00:00.000Z"));
    let calls = stage.target.called("/after", 1).await;
    let keys: BTreeSet<&str> = calls.iter().map(|call| call.header("idempotency-key")).collect();
    assert_eq!(keys.len(), 1, "I2");
    let next = stage.read("after").await;
    let expected = format!("{next_day}T06:30:00.000Z");
    assert_eq!(text(&next, "next_fire_at"), expected, "the next day at 02:30 EDT");
    assert_eq!(text(&stage.read("skips").await, "next_fire_at"), expected);
    assert!(stage.fires("skips").await.is_empty(), "that day has no half past two");
}

/// New York has 01:30 twice: at 05:30 and at 06:30 UTC.
async fn a_server_killed_in_the_fold_of_daylight_saving_fires_once(kind: StoreKind) {
    let day = day_with_a_fold();
    let next_day = day.tomorrow().unwrap();
    let builder = Server::builder(kind).clock_ahead(ahead_to(&format!("{day}T05:29:57Z")));
    let mut stage = Stage::on(builder.start().await).await;
    for (name, fold) in [("once", "once"), ("twice", "both")] {
        let daily =
            json!({"every": null, "cron": "30 1 * * *", "timezone": "America/New_York", "dst_fold": fold});
        stage.create(name, daily).await;
    }
    for _ in 0..3 {
        // sleep: so that the kills are spread over the first half past one
        tokio::time::sleep(Duration::from_millis(700)).await;
        stage.restart().await;
    }
    stage.target.called("/once", 1).await;
    stage.target.called("/twice", 1).await;
    stage.server.kill9().await;
    stage.server.put_clock_ahead(ahead_to(&format!("{day}T06:29:59Z")));
    stage.restart().await;
    let twice = stage.until_fires("twice", "both firings", |fires| fires.len() == 2).await;
    let nominal: Vec<&str> = twice.iter().map(|fire| text(fire, "nominal_time")).collect();
    assert_eq!(nominal, [format!("{day}T05:30:00.000Z"), format!("{day}T06:30:00.000Z")]);
    let once = stage.fires("once").await;
    assert_eq!(once.len(), 1, "{once:#?}");
    assert_eq!(text(&stage.read("once").await, "next_fire_at"), format!("{next_day}T06:30:00.000Z"));
    eventually("each firing to have its job", PATIENCE, async || {
        // A kill may repeat an attempt; it does not make another job.
        let calls = stage.target.called("/twice", 2).await;
        let jobs: BTreeSet<&str> = calls.iter().map(|call| call.job_id()).collect();
        (jobs.len() == 2).then_some(())
    })
    .await;
}
