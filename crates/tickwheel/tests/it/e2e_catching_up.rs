//! Outages that are over in seconds: what came due meanwhile is made up for at a measured pace, and nothing stays
//! behind.

use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::json;

use crate::e2e::{Stage, on_both_stores, until_past};
use crate::eventually::{PATIENCE, eventually};
use crate::ledger::assert_no_gap_and_no_double;
use crate::server::{Server, StoreKind};

on_both_stores! {
    what_came_due_while_the_server_was_away_does_not_come_at_once,
}

const SCHEDULES: usize = 60;
const A_SECOND: usize = 20;

/// Many schedules that are due at one moment which is near.
async fn all_due_at_once(kind: StoreKind) -> (Stage, Timestamp) {
    let builder = Server::builder(kind).env("TICKWHEEL_ENGINE_CATCH_UP_PER_SECOND", &A_SECOND.to_string());
    let stage = Stage::on(builder.start().await).await;
    let due = Timestamp::from_second(Timestamp::now().as_second() + 8).unwrap();
    let job = json!({"type": "t", "target": {"http": {"url": stage.target.url("/all")}}});
    let fields = json!({"every": "1h", "anchor": due.to_string(), "job": job});
    let names: Vec<String> = (0..SCHEDULES).map(|number| format!("s{number}")).collect();
    join_all(names.iter().map(|name| stage.create(name, fields.clone()))).await;
    assert!(Timestamp::now() < due, "the machine is too slow for this test");
    (stage, due)
}

async fn come_at_a_measured_pace(stage: &Stage) {
    let arrivals = stage.target.called("/all", SCHEDULES).await.into_iter().map(|call| call.arrived_at);
    let (first, last) = (arrivals.clone().min().unwrap(), arrivals.max().unwrap());
    let (took, expected) = (last.duration_since(first).as_secs_f64(), SCHEDULES as f64 / A_SECOND as f64);
    assert!(took > 0.7 * expected, "{SCHEDULES} jobs came within {took} s");
}

async fn what_came_due_while_the_server_was_away_does_not_come_at_once(kind: StoreKind) {
    let (mut stage, due) = all_due_at_once(kind).await;
    stage.server.kill9().await;
    until_past(due + Duration::from_secs(3)).await;
    stage.restart().await;
    come_at_a_measured_pace(&stage).await;
}

#[tokio::test]
async fn what_came_due_while_the_server_stood_still_does_not_come_at_once() {
    let (stage, due) = all_due_at_once(StoreKind::Sqlite).await;
    stage.server.freeze();
    until_past(due + Duration::from_secs(3)).await;
    stage.server.thaw();
    come_at_a_measured_pace(&stage).await;
}

#[tokio::test]
async fn what_is_due_at_one_moment_comes_at_once_if_somebody_is_there() {
    let (stage, _) = all_due_at_once(StoreKind::Sqlite).await;
    let arrivals = stage.target.called("/all", SCHEDULES).await.into_iter().map(|call| call.arrived_at);
    let (first, last) = (arrivals.clone().min().unwrap(), arrivals.max().unwrap());
    let took = last.duration_since(first).as_secs_f64();
    assert!(took < 0.5 * SCHEDULES as f64 / A_SECOND as f64, "they took {took} s");
}

/// The table of the ledger is away for a moment: the firing itself cannot be written, everything else can.
#[tokio::test]
async fn a_firing_that_the_store_refuses_is_made_up_for_when_it_does_not() {
    let stage = Stage::set(StoreKind::Postgres).await;
    stage.create("tick", json!({"missed": {"policy": "backfill"}})).await;
    stage.target.called("/tick", 1).await;
    let database = stage.server.database().expect("a server on PostgreSQL has one");
    database.execute("ALTER TABLE fires RENAME TO fires_elsewhere").await;
    eventually("a firing to be refused", PATIENCE, async || {
        let metrics = stage.api.get("/metrics").await.expect(200).text();
        let refused = metrics.lines().find(|line| line.contains("store_errors_total{operation=\"fire\"}"));
        refused.is_some_and(|line| !line.ends_with(" 0")).then_some(())
    })
    .await;
    database.execute("ALTER TABLE fires_elsewhere RENAME TO fires").await;
    let before = stage.fires("tick").await.len();
    let fires = stage.until_fires("tick", "gone on", |fires| fires.len() >= before + 3).await;
    assert_no_gap_and_no_double(&fires);
}
