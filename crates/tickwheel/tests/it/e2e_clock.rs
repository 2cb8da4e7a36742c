//! A server whose clock is set while it runs, forwards and back. What is due follows the clock as it is; nothing waits
//! until it shows again what it showed before, and nothing starts before its time.

use std::time::Duration;

use serde_json::json;

use crate::api::{text, time};
use crate::e2e::{Stage, on_both_stores};
use crate::eventually::eventually;
use crate::server::{Server, StoreKind};
use crate::target::Reply;
use crate::wall_clock::WallClock;

on_both_stores! {
    delayed_work_goes_on_after_the_clock_was_set_by_an_hour,
    delayed_work_goes_on_after_the_clock_was_set_by_seconds,
    delayed_work_goes_on_after_the_clock_was_set_many_times,
}

/// What is due in a second, on a busy machine; far less than the clock is set back by.
const PUNCTUAL: Duration = Duration::from_secs(12);

async fn with_clock(kind: StoreKind) -> (Stage, WallClock) {
    let clock = WallClock::right();
    let stage = Stage::on(Server::builder(kind).wall_clock(&clock).start().await).await;
    assert_delayed_work_goes_on(&stage, "at-first").await;
    (stage, clock)
}

/// A delay, a retry and a new schedule.
async fn assert_delayed_work_goes_on(stage: &Stage, name: &str) {
    let [delayed, retried, fired] = ["delayed", "retried", "fired"].map(|what| format!("{what}-{name}"));
    let flaky = format!("/{retried}");
    stage.target.on(&flaky, |call| if call.fencing_token() == 1 { Reply::status(500) } else { Reply::ok() });
    let retry = json!({"max_retries": 3, "backoff": "fixed", "initial_delay": "700ms", "jitter": 0});
    let job = stage.submit(&format!("/{delayed}"), json!({"delay": "1s"})).await;
    stage.submit(&flaky, json!({"retry": retry})).await;
    stage.create(&fired, json!({})).await;
    for (path, count) in [(format!("/{delayed}"), 1), (flaky, 2), (format!("/{fired}"), 2)] {
        let what = format!("{count} calls of {path}");
        let called = async || (stage.target.calls_to(&path).len() >= count).then_some(());
        eventually(&what, PUNCTUAL, called).await;
    }
    let job = stage.until(&job, "completed").await;
    assert!(time(&job, "started_at") >= time(&job, "execute_at"), "I4: {job:#}");
    stage.tell(&fired, "pause").await.expect(200);
}

async fn delayed_work_goes_on_after_the_clock_was_set_by_an_hour(kind: StoreKind) {
    let (stage, clock) = with_clock(kind).await;
    let later = stage.submit("/later", json!({"delay": "10s"})).await;
    clock.set(-3_600);
    assert_delayed_work_goes_on(&stage, "an-hour-earlier").await;
    clock.set(-3_590);
    assert_delayed_work_goes_on(&stage, "still-earlier").await;
    assert!(stage.target.calls_to("/later").is_empty(), "I4: by the clock its time is an hour away");
    assert_eq!(text(&stage.why(&later).await, "code"), "not_yet_due");
    clock.set(3_600);
    assert_delayed_work_goes_on(&stage, "an-hour-later").await;
    assert_eq!(stage.target.called("/later", 1).await.len(), 1);
}

async fn delayed_work_goes_on_after_the_clock_was_set_by_seconds(kind: StoreKind) {
    let (stage, clock) = with_clock(kind).await;
    clock.set(-20);
    assert_delayed_work_goes_on(&stage, "earlier").await;
    clock.set(-40);
    assert_delayed_work_goes_on(&stage, "earlier-again").await;
}

async fn delayed_work_goes_on_after_the_clock_was_set_many_times(kind: StoreKind) {
    let (stage, clock) = with_clock(kind).await;
    for step in 0..30 {
        clock.set([60, -60, 3_600, -3_600, 5, -5][step % 6]);
        stage.submit("/meanwhile", json!({})).await;
        // sleep: so that the server sees some of the settings
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    clock.set(-7_200);
    assert_delayed_work_goes_on(&stage, "at-last").await;
    clock.set(7_200);
    assert_eq!(stage.target.called("/meanwhile", 30).await.len(), 30, "each ran once");
}
