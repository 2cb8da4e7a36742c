//! Putting a schedule in place, by whoever and however often.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::api::{text, time};
use crate::e2e::{Stage, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::ledger::assert_no_gap_and_no_double;
use crate::server::StoreKind;

on_both_stores! {
    a_schedule_put_again_and_again_fires_as_if_nothing_happened,
    a_schedule_that_is_put_differently_changes_and_keeps_its_history,
    those_who_put_create_and_delete_a_schedule_at_once_go_one_after_the_other,
}

const TICK: &str = "/api/v1/schedules/tick";

async fn a_schedule_put_again_and_again_fires_as_if_nothing_happened(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let body = stage.schedule("tick", json!({"overlap": "skip"}));
    let created = stage.api.put(TICK, &body).await.expect(201).json();
    let first = time(&created, "next_fire_at");
    let fires = eventually("three firings", PATIENCE, async || {
        let same = stage.api.put(TICK, &body).await.expect(200).json();
        assert_eq!((&same["id"], &same["updated_at"]), (&created["id"], &created["updated_at"]));
        Some(stage.fires("tick").await).filter(|fires| fires.len() >= 3)
    })
    .await;
    assert_eq!(time(&fires[0], "nominal_time"), first);
    assert_no_gap_and_no_double(&fires);
    stage.restart().await;
    let same = stage.api.put(TICK, &body).await.expect(200).json();
    assert_eq!(same["updated_at"], created["updated_at"], "what was stored compares equal");
}

async fn a_schedule_that_is_put_differently_changes_and_keeps_its_history(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let created = stage.create("tick", json!({"jitter": "10ms"})).await;
    stage.target.called("/tick", 1).await;
    let job = json!({"type": "other", "target": {"http": {"url": stage.target.url("/other")}}});
    let body = stage.schedule("tick", json!({"job": job}));
    let changed = stage.api.put(TICK, &body).await.expect(200).json();
    assert_eq!((&changed["id"], text(&changed, "jitter")), (&created["id"], "0s"));
    stage.target.called("/other", 1).await;
    let fires = stage.until_fires("tick", "gone on", |fires| fires.len() >= 3).await;
    assert_no_gap_and_no_double(&fires);
}

/// Every creation but the last was followed by a deletion, and never were there two of the name.
async fn those_who_put_create_and_delete_a_schedule_at_once_go_one_after_the_other(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let mut calls = JoinSet::new();
    for number in 0..60 {
        let api = stage.api.clone();
        let body = stage.schedule("tick", json!({"every": "1h", "jitter": format!("{}s", number / 3)}));
        calls.spawn(async move {
            let answer = match number % 6 {
                0 => api.delete(TICK).await,
                1 => api.post("/api/v1/schedules", &body).await,
                _ => api.put(TICK, &body).await,
            };
            match (number % 6, answer.status) {
                (0, 204) => -1,
                (0, 404) | (1, 409) | (2.., 200) => 0,
                (1.., 201) => 1,
                (_, status) => panic!("{number}: {status} {}", answer.json()),
            }
        });
    }
    let balance: i32 = calls.join_all().await.into_iter().sum();
    let left: Vec<Value> = stage.api.list("/api/v1/schedules").await;
    assert_eq!(usize::try_from(balance), Ok(left.len()), "{left:#?}");
    assert!(left.len() <= 1);
    let last = stage.schedule("tick", json!({"every": "2h"}));
    stage.api.put(TICK, &last).await.success();
    assert_eq!(text(&stage.read("tick").await, "every"), "2h");
}
