//! The database is away for a while: the server says so in a few lines, waits, and goes on when it is back.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::json;

use crate::e2e::{Stage, until_past};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};

const OUTAGE: Duration = Duration::from_secs(5);
/// Each operation of each loop says once that it fails, and once that it works again.
const LINES_MAX: usize = 60;
const REQUESTS: usize = 200;

#[tokio::test]
async fn a_database_that_is_away_makes_a_few_lines_of_log() {
    let (builder, wire) = Server::builder(StoreKind::Postgres).behind_a_wire().await;
    let stage = Stage::on(builder.start().await).await;
    let schedule = json!({"name": "tick", "every": "1s", "job": stage.job("/tick", json!({}))});
    stage.api.post("/api/v1/schedules", &schedule).await.expect(201);
    stage.target.called("/tick", 1).await;
    let waiting = stage.submit("/late", json!({"delay": "2s"})).await;
    let lines_before = stage.server.log().lines().count();

    wire.cut();
    let over = Timestamp::now() + OUTAGE;
    stage.api.get("/readyz").await.expect(503);
    for _ in 0..REQUESTS {
        let refused = stage.api.send(Method::POST, "/api/v1/jobs", Some(&stage.job("/run", json!({})))).await;
        assert_eq!(refused.unwrap().status, 503);
    }
    until_past(over).await;
    let lines = stage.server.log().lines().count() - lines_before;
    assert!((1..LINES_MAX).contains(&lines), "{lines} lines in {OUTAGE:?}");

    wire.mend();
    eventually("the server to be ready", PATIENCE, async || {
        (stage.api.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    stage.until(&waiting, "completed").await;
    let ticks = stage.target.calls_to("/tick").len();
    stage.target.called("/tick", ticks + 2).await;
    let log = stage.server.log();
    assert!(log.lines().count() - lines_before < 2 * LINES_MAX);
    assert!(log.contains("the store works again"), "{log}");
    for line in log.lines() {
        assert!(line.starts_with("20"), "not a line of its own: {line:?}");
    }
}
