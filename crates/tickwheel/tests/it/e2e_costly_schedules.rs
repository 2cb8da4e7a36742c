//! Schedules that are hard to think about: whoever writes them holds nobody else up.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::api::time;
use crate::e2e::{Stage, millis_between};
use crate::ledger::outcomes;
use crate::server::StoreKind;

/// How long anything quick may take beside something costly on a busy machine.
const QUICK: Duration = Duration::from_millis(500);
/// How late a job may be beside something costly on a busy machine.
const LATE_MS_MAX: i64 = 3_000;

#[tokio::test]
async fn schedules_that_fire_on_no_day_hold_nobody_up() {
    let stage = Stage::set(StoreKind::Sqlite).await;
    let weekdays = json!(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]);
    stage.api.put("/api/v1/calendars/closed", &json!({"weekdays": weekdays})).await.success();
    stage.create("tick", json!({})).await;
    for number in 0..3 {
        let fields = json!({"exclude": ["calendar:closed"], "on_excluded": "next_day"});
        stage.create(&format!("never{number}"), fields).await;
    }
    // Those of the excluded year all move to the day after it.
    let year = json!({"every": "7s", "exclude": ["2026-01-01/2099-12-31"], "on_excluded": "next_day"});
    stage.create("far", year).await;

    let readers = (0..6).map(|number| {
        let api = stage.server.api();
        let path = ["/api/v1/schedules", "/api/v1/schedules/far/next?count=1000"][usize::from(number == 5)];
        tokio::spawn(async move {
            let asked = Instant::now();
            api.get(path).await.expect(200);
            asked.elapsed()
        })
    });
    let readers: Vec<_> = readers.collect();
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let asked = Instant::now();
        stage.api.get("/healthz").await.expect(200);
        slowest = slowest.max(asked.elapsed());
    }
    assert!(slowest < QUICK, "/healthz answered after {slowest:?}");
    for reader in readers {
        let took = reader.await.unwrap();
        assert!(took < 20 * QUICK, "a list of schedules took {took:?}");
    }

    stage.target.called("/tick", 2).await;
    let fires = stage.until_fires("tick", "four firings", |fires| fires.len() >= 4).await;
    for fire in fires {
        let late = millis_between(time(&fire, "nominal_time"), time(&fire, "recorded_at"));
        assert!(late < LATE_MS_MAX, "{late} ms late");
    }
    let never = stage.read("never0").await;
    assert_eq!((&never["next_fire_at"], &never["never"]), (&json!(null), &json!(true)));
    let skipped = stage.until_fires("never0", "a record", |fires| !fires.is_empty()).await;
    assert_eq!(outcomes(&skipped[..1]), [("skipped", "excluded_day")], "each has its record all the same");
}
