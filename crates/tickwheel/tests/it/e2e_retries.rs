//! Failures: what is tried again and when, what is given up and why.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{text, time};
use crate::e2e::{Stage, millis_between, on_both_stores, quick_retries};
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply};

on_both_stores! {
    the_delays_between_attempts_are_those_of_the_policy,
    a_retry_comes_in_its_time_and_never_early,
    the_target_may_ask_for_a_later_retry_but_not_for_an_earlier_one,
    an_absurd_retry_after_does_not_park_a_job_for_years,
    some_statuses_are_tried_again_and_others_are_given_up_at_once,
    failures_that_the_job_calls_final_are_not_retried,
    a_job_out_of_retries_becomes_a_dead_letter_with_every_attempt_on_record,
    a_poison_job_is_given_up_although_it_has_retries_left,
    a_job_to_run_at_most_once_is_never_repeated,
    an_attempt_that_takes_too_long_is_ended,
    a_target_that_is_not_there_is_a_failure_to_be_retried,
}

/// Fails the job's next attempts one by one, each brought forward by hand; the planned delays in milliseconds.
async fn planned_delays(stage: &Stage, retry: Value, count: u32) -> Vec<i64> {
    let id = stage.submit("/fails", json!({"retry": retry})).await;
    let mut delays = Vec::new();
    for attempt in 1..=count {
        let job = stage.until_backoff(&id, attempt).await;
        let ended = time(stage.api.attempts(&id).await.last().unwrap(), "ended_at");
        delays.push(millis_between(ended, time(&job, "next_run_at")));
        stage.act(&id, "run").await.expect(200);
    }
    delays
}

async fn the_delays_between_attempts_are_those_of_the_policy(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/fails", Reply::status(500));
    const MINUTE: i64 = 60_000;
    for (retry, minutes) in [
        (json!({"max_retries": 3, "backoff": "fixed", "initial_delay": "10m", "jitter": 0}), [10, 10, 10]),
        (json!({"max_retries": 3, "backoff": "linear", "initial_delay": "10m", "jitter": 0}), [10, 20, 30]),
        (
            json!({"max_retries": 3, "backoff": "exponential", "initial_delay": "10m", "jitter": 0}),
            [10, 20, 40],
        ),
        (json!({"max_retries": 3, "initial_delay": "10m", "max_delay": "25m", "jitter": 0}), [10, 20, 25]),
        (json!({"max_retries": 3, "delays": ["5m", "1h"], "jitter": 0}), [5, 60, 60]),
    ] {
        let planned = planned_delays(&stage, retry.clone(), 3).await;
        assert_eq!(planned, minutes.map(|minutes| minutes * MINUTE), "{retry}");
    }
    let jittered = json!({"max_retries": 3, "backoff": "fixed", "initial_delay": "10m", "jitter": 0.5});
    for planned in planned_delays(&stage, jittered, 3).await {
        assert!((5 * MINUTE..=15 * MINUTE).contains(&planned), "{planned}");
    }
}

async fn a_retry_comes_in_its_time_and_never_early(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage
        .target
        .on("/flaky", |call| Reply::status(if call.header("tickwheel-attempt") == "4" { 200 } else { 503 }));
    let retry = json!({"max_retries": 5, "delays": ["150ms", "50ms", "100ms"], "jitter": 0});
    let id = stage.submit("/flaky", json!({"retry": retry})).await;
    let job = stage.api.wait(&id).await;
    assert_eq!((text(&job, "status"), &job["attempt"], &job["retries"]), ("completed", &json!(4), &json!(3)));
    assert_eq!(job["error"], Value::Null, "a job that completed has no error: {job}");
    let arrivals: Vec<Timestamp> =
        stage.target.calls_to("/flaky").iter().map(|call| call.arrived_at).collect();
    for (pair, delay) in arrivals.windows(2).zip([150, 50, 100]) {
        // The attempt before ended after it arrived, so this bound is the weaker one.
        assert!(millis_between(pair[0], pair[1]) >= delay, "{arrivals:?}");
    }
}

async fn the_target_may_ask_for_a_later_retry_but_not_for_an_earlier_one(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/busy", Reply::status(429).header("retry-after", "120"));
    let delay =
        |delay: &str| json!({"max_retries": 3, "backoff": "fixed", "initial_delay": delay, "jitter": 0});
    for (own, planned) in [("1s", 120_000), ("5m", 300_000)] {
        let id = stage.submit("/busy", json!({"retry": delay(own)})).await;
        let job = stage.until_backoff(&id, 1).await;
        let ended = time(&stage.api.attempts(&id).await[0], "ended_at");
        assert_eq!(millis_between(ended, time(&job, "next_run_at")), planned, "own delay {own}");
    }
}

async fn an_absurd_retry_after_does_not_park_a_job_for_years(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    for absurd in ["1000000000", "99999999999999999999999", "Tue, 31 Dec 2199 00:00:00 GMT"] {
        stage.target.reply("/busy", Reply::status(503).header("retry-after", absurd));
        let id = stage.submit("/busy", json!({"retry": quick_retries(1)})).await;
        let job = stage.until_backoff(&id, 1).await;
        let wait_ms = millis_between(time(&job, "created_at"), time(&job, "next_run_at"));
        assert!(wait_ms <= 25 * 3600 * 1000, "{absurd}: {wait_ms} ms");
    }
}

async fn some_statuses_are_tried_again_and_others_are_given_up_at_once(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    for (status, attempts, reason) in [
        (400, 1, "not_retryable"),
        (401, 1, "not_retryable"),
        (404, 1, "not_retryable"),
        (409, 1, "not_retryable"),
        (422, 1, "not_retryable"),
        (408, 2, "retries_exhausted"),
        (425, 2, "retries_exhausted"),
        (429, 2, "retries_exhausted"),
        (500, 2, "retries_exhausted"),
        (503, 2, "retries_exhausted"),
        (599, 2, "retries_exhausted"),
    ] {
        let path = format!("/{status}");
        stage.target.reply(&path, Reply::status(status).body("so it is"));
        let id = stage.submit(&path, json!({"retry": quick_retries(1)})).await;
        let job = stage.api.wait(&id).await;
        assert_eq!(
            (&job["status"], &job["attempt"]),
            (&json!("failed"), &json!(attempts)),
            "{status}: {job}"
        );
        assert_eq!(job["error"]["code"], "http_status");
        let message = text(&job["error"], "message");
        assert!(message.contains(&status.to_string()) && message.contains("so it is"), "{message}");
        let letter = stage.dead_letter(&id).await.expect(200).json();
        assert_eq!(text(&letter, "reason"), reason, "{status}");
        assert_eq!(stage.target.calls_to(&path).len(), attempts, "{status}");
    }
}

async fn failures_that_the_job_calls_final_are_not_retried(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/busy", Reply::status(503).body("down for maintenance"));
    let retry = |patterns: Value| json!({"retry": {"initial_delay": "1ms", "max_retries": 2, "non_retryable": patterns}});
    let id = stage.submit("/busy", retry(json!(["card_*", "*answered 503*maintenance*"]))).await;
    let job = stage.until(&id, "failed").await;
    assert_eq!((&job["attempt"], &job["retries"]), (&json!(1), &json!(0)), "{job}");
    assert_eq!(job["retry"]["non_retryable"], json!(["card_*", "*answered 503*maintenance*"]));
    assert_eq!(text(&stage.dead_letter(&id).await.json(), "reason"), "not_retryable");
    let id = stage.submit("/busy", retry(json!(["*answered 500*"]))).await;
    assert_eq!(stage.until(&id, "failed").await["attempt"], json!(3));
}

async fn a_job_out_of_retries_becomes_a_dead_letter_with_every_attempt_on_record(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/fails", Reply::status(500));
    let id = stage.submit("/fails", json!({"retry": quick_retries(3), "payload": {"n": 1}})).await;
    stage.until(&id, "failed").await;
    let letter = stage.dead_letter(&id).await.expect(200).json();
    assert_eq!((text(&letter, "reason"), &letter["attempts"]), ("retries_exhausted", &json!(4)));
    assert_eq!((&letter["payload"], text(&letter, "type")), (&json!({"n": 1}), "test"));

    let attempts = stage.api.attempts(&id).await;
    let numbers: Vec<_> = attempts.iter().map(|attempt| attempt["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    for attempt in &attempts {
        assert_eq!((text(attempt, "outcome"), text(&attempt["error"], "code")), ("failed", "http_status"));
        assert!(time(attempt, "started_at") <= time(attempt, "ended_at"));
    }
    let calls = stage.target.calls_for(&id);
    let tokens: Vec<u64> = calls.iter().map(|call| call.fencing_token()).collect();
    assert!(tokens.is_sorted_by(|a, b| a < b), "fencing tokens only grow: {tokens:?}");
    assert!(calls.iter().all(|call| call.header("idempotency-key") == id));
}

async fn a_poison_job_is_given_up_although_it_has_retries_left(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/fails", Reply::status(500));
    let id = stage.submit("/fails", json!({"retry": quick_retries(50)})).await;
    let job = stage.api.wait(&id).await;
    assert_eq!((text(&job, "status"), &job["attempt"]), ("failed", &json!(10)), "{job}");
    assert_eq!(text(&stage.dead_letter(&id).await.expect(200).json(), "reason"), "poison_pill");
    assert_eq!(stage.target.calls_to("/fails").len(), 10);
    let why = stage.why(&id).await;
    assert!(text(&why, "sentence").starts_with("it was given up as poison"), "{why}");
    assert_eq!(why["since"], job["completed_at"]);

    let strict = Server::builder(kind).config("[poison]\nfailures = 3\n").start().await;
    let stage = Stage { api: strict.api(), server: strict, target: stage.target };
    let id = stage.submit("/fails", json!({"retry": quick_retries(50)})).await;
    assert_eq!(stage.api.wait(&id).await["attempt"], 3, "the number is a setting");
}

async fn a_job_to_run_at_most_once_is_never_repeated(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    stage.target.reply("/fails", Reply::status(503));
    let once = json!({"delivery": "at_most_once", "retry": quick_retries(5)});
    let failed = stage.submit("/fails", once.clone()).await;
    stage.until(&failed, "failed").await;
    assert_eq!(text(&stage.dead_letter(&failed).await.expect(200).json(), "reason"), "at_most_once");

    // Nobody knows how far it came when its server died: that is no reason to run it twice.
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let lost = stage.submit("/long", once).await;
    stage.target.called("/long", 1).await;
    stage.restart().await;
    let job = stage.api.wait(&lost).await;
    assert_eq!((text(&job, "status"), text(&job["error"], "code")), ("failed", "worker_lost"), "{job}");
    assert_eq!(stage.target.calls_to("/long").len(), 1);
    assert_eq!(stage.target.calls_to("/fails").len(), 1);
}

async fn an_attempt_that_takes_too_long_is_ended(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/hangs", Reply::ok().behind(&Gate::closed()));
    let id = stage.submit("/hangs", json!({"timeout": "150ms", "retry": quick_retries(1)})).await;
    let job = stage.api.wait(&id).await;
    assert_eq!((text(&job, "status"), text(&job["error"], "code")), ("failed", "timed_out"), "{job}");
    let attempts = stage.api.attempts(&id).await;
    assert_eq!(attempts.len(), 2, "a timeout is worth another try");
    for attempt in attempts {
        assert_eq!(text(&attempt, "outcome"), "timed_out");
        let took = millis_between(time(&attempt, "started_at"), time(&attempt, "ended_at"));
        assert!((150..2_000).contains(&took), "{took} ms");
    }
}

async fn a_target_that_is_not_there_is_a_failure_to_be_retried(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let job = json!({"type": "test", "target": {"http": {"url": format!("http://{closed}/")}}, "retry": quick_retries(2)});
    let id = text(&stage.api.submit(&job).await, "id").to_owned();
    let job = stage.api.wait(&id).await;
    assert_eq!((text(&job, "status"), &job["attempt"]), ("failed", &json!(3)), "{job}");
    assert_eq!(job["error"]["code"], "connect_failed");
}
