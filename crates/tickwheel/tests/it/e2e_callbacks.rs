//! Callbacks: the outcome is told to whoever asked for it, signed, a few times if need be, and changes no job.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::api::text;
use crate::e2e::{Stage, for_a_while, millis_between, on_both_stores};
use crate::e2e_cli::ok_json;
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::target::{Call, Reply};

on_both_stores! {
    every_outcome_is_told_to_the_callback_url,
    calls_and_callbacks_are_signed_when_there_is_a_secret,
    a_callback_is_tried_three_times_and_then_given_up,
    a_callback_that_was_not_delivered_is_delivered_after_a_restart,
    what_came_of_a_callback_is_seen_and_it_can_be_sent_again,
}

const SECRET_KEY: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

async fn every_outcome_is_told_to_the_callback_url(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/done", Reply::ok().body(r#"{"rows": 3}"#));
    stage.target.reply("/broken", Reply::status(400));
    let callback = |path: &str| json!({"callback_url": stage.target.url(path), "metadata": {"order": 7}, "delay": "1ms"});
    let completed = stage.submit("/done", callback("/told-completed")).await;
    let failed = stage.submit("/broken", callback("/told-failed")).await;
    let put_off = json!({"callback_url": stage.target.url("/told-cancelled"), "delay": "1h"});
    let cancelled = stage.submit("/done", put_off).await;
    stage.act(&cancelled, "cancel").await.expect(200);

    for (id, status) in [(completed, "completed"), (failed, "failed"), (cancelled, "cancelled")] {
        let told = &stage.target.called(&format!("/told-{status}"), 1).await[0];
        assert_eq!(told.method, "POST");
        assert_eq!(told.header("content-type"), "application/json");
        let event = told.json();
        assert_eq!(text(&event, "type"), format!("job.{status}"));
        let (data, job) = (&event["data"], stage.api.job(&id).await);
        for field in
            ["id", "type", "status", "queue", "attempt", "result", "error", "metadata", "completed_at"]
        {
            assert_eq!(data[field], job[field], "{field} of {event}");
        }
    }
    assert_eq!(
        stage.target.called("/told-completed", 1).await[0].json()["data"]["result"],
        json!({"rows": 3})
    );
    // Whoever got it once does not get it again.
    for_a_while(async || assert_eq!(stage.target.calls_to("/told-completed").len(), 1)).await;
}

/// The signature by the letter of the specification, independently of the code that makes it.
fn signature_of(call: &Call) -> String {
    let key = STANDARD.decode(SECRET_KEY).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{}.{}.", call.header("webhook-id"), call.header("webhook-timestamp")).as_bytes());
    mac.update(&call.body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

async fn calls_and_callbacks_are_signed_when_there_is_a_secret(kind: StoreKind) {
    let config = format!("[http]\nsigning_secret = \"whsec_{SECRET_KEY}\"\n");
    let stage = Stage::on(Server::builder(kind).config(&config).start().await).await;
    let fields = json!({"payload": {"n": 1}, "callback_url": stage.target.url("/told")});
    let id = stage.submit("/run", fields).await;
    let told = stage.target.called("/told", 1).await[0].clone();
    let called = stage.target.called("/run", 1).await[0].clone();
    for call in [&called, &told] {
        assert_eq!(call.header("webhook-signature"), signature_of(call));
        let age = call.arrived_at.as_second() - call.header("webhook-timestamp").parse::<i64>().unwrap();
        assert!((0..60).contains(&age), "{age}");
    }
    assert_eq!(called.header("webhook-id"), id);
    assert_ne!(told.header("webhook-id"), id, "a callback is another message than the call");
    assert!(!stage.server.log().contains(SECRET_KEY));

    let unsigned = Stage::set(kind).await;
    unsigned.submit("/run", json!({})).await;
    assert_eq!(unsigned.target.called("/run", 1).await[0].header("webhook-signature"), "");
}

async fn a_callback_is_tried_three_times_and_then_given_up(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/told", Reply::status(500));
    let id = stage.submit("/run", json!({"callback_url": stage.target.url("/told")})).await;
    let calls = stage.target.called("/told", 3).await;
    let waits: Vec<i64> =
        calls.windows(2).map(|pair| millis_between(pair[0].arrived_at, pair[1].arrived_at)).collect();
    assert!(waits[0] >= 1_000 && waits[1] >= 2_000, "each wait is twice the one before: {waits:?}");
    let bodies: Vec<Value> = calls.iter().map(Call::json).collect();
    assert!(bodies.iter().all(|body| body == &bodies[0]), "a repetition says the same");
    eventually("the callback to be given up", PATIENCE, async || {
        let metrics = stage.api.get("/metrics").await.text();
        metrics.contains("tickwheel_callbacks_total{result=\"given_up\"} 1").then_some(())
    })
    .await;
    assert_eq!(stage.target.calls_to("/told").len(), 3);
    let job = stage.api.job(&id).await;
    assert_eq!(text(&job, "status"), "completed", "what becomes of a callback changes no job");
    assert_eq!(stage.target.calls_to("/run").len(), 1);
}

async fn a_callback_that_was_not_delivered_is_delivered_after_a_restart(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    stage.target.reply("/told", Reply::status(503));
    let id = stage.submit("/run", json!({"callback_url": stage.target.url("/told")})).await;
    stage.target.called("/told", 1).await;
    eventually("the failed try to be on record", PATIENCE, async || {
        let metrics = stage.api.get("/metrics").await.text();
        metrics.contains("tickwheel_callbacks_total{result=\"retried\"} 1").then_some(())
    })
    .await;
    stage.target.reply("/told", Reply::ok());
    // A job that goes its whole way now is written after the failed try.
    let marker = stage.submit("/marker", json!({})).await;
    stage.until(&marker, "completed").await;
    stage.restart().await;
    let told = stage.target.called("/told", 2).await;
    assert_eq!(text(&told[1].json()["data"], "id"), id);
    assert_eq!(stage.target.calls_to("/run").len(), 1);
}

async fn what_came_of_a_callback_is_seen_and_it_can_be_sent_again(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/told", Reply::status(503));
    let id = stage.submit("/run", json!({"callback_url": stage.target.url("/told")})).await;
    let path = format!("/api/v1/jobs/{id}/callbacks");
    let until = async |status: &str, index: usize| {
        eventually(status, PATIENCE, async || {
            let callbacks = stage.api.list(&path).await;
            callbacks.get(index).filter(|callback| text(callback, "status") == status).cloned()
        })
        .await
    };
    let given_up = until("given_up", 0).await;
    assert_eq!((text(&given_up, "event"), &given_up["next_try_at"]), ("job.completed", &Value::Null));
    let tries = given_up["tries"].as_array().expect("a list");
    let said: Vec<_> = tries.iter().map(|tried| (text(tried, "outcome"), text(tried, "answer"))).collect();
    let answer = "the callback URL answered 503 Service Unavailable";
    assert_eq!(said, [("failed", answer), ("failed", answer), ("given_up", answer)]);

    stage.target.reply("/told", Reply::ok());
    let sent = stage.api.post(&path, &json!({})).await.expect(202).json();
    assert_eq!((text(&sent, "status"), text(&sent, "url")), ("pending", text(&given_up, "url")));
    let delivered = until("delivered", 1).await;
    assert_eq!(delivered["id"], sent["id"], "what was answered is what is sent");
    let printed = ok_json(&stage, &["jobs", "callbacks", &id, "--resend"]).await;
    assert_eq!(until("delivered", 2).await["id"], printed["id"]);
    assert_eq!(text(&delivered["tries"][0], "answer"), "the callback URL answered 200 OK");
    let calls = stage.target.called("/told", 5).await;
    assert_eq!(calls[3].json(), calls[0].json(), "it tells the same");
    assert_eq!(calls[4].json(), calls[0].json(), "and again");

    let waiting =
        stage.submit("/run", json!({"callback_url": stage.target.url("/told"), "delay": "1h"})).await;
    let silent = stage.submit("/run", json!({})).await;
    stage.until(&silent, "completed").await;
    for id in [waiting, silent] {
        let path = format!("/api/v1/jobs/{id}/callbacks");
        assert_eq!(stage.api.list(&path).await.len(), 0);
        assert_eq!(stage.api.post(&path, &json!({})).await.expect(409).code(), "illegal_state");
    }
}
