//! Receivers of callbacks that do not answer, and senders that die: neither holds up what others are to be told.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{id_of, text, time};
use crate::e2e::{Stage, for_a_while, millis_between, on_both_stores};
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply, Target};

on_both_stores! {
    a_receiver_that_never_answers_holds_up_no_other,
    a_callback_in_flight_is_sent_again_at_once_by_the_next_process,
    an_orderly_stop_gives_back_the_callbacks_in_flight,
}

/// How late a callback may be on a busy machine and still count as sent at once. The receiver's time to answer is ten
/// seconds.
const AT_ONCE: Duration = Duration::from_secs(4);

/// A target whose path `/told` takes requests and answers none.
async fn silent_receiver() -> (Target, Gate) {
    let (receiver, gate) = (Target::start().await, Gate::closed());
    receiver.reply("/told", Reply::ok().behind(&gate));
    (receiver, gate)
}

async fn a_receiver_that_never_answers_holds_up_no_other(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let (silent, _gate) = silent_receiver().await;
    let job = |url: String| stage.job("/run", json!({"callback_url": url}));
    let unheard: Vec<Value> = (0..640).map(|_| job(silent.url("/told"))).collect();
    stage.api.submit_batch(&unheard).await;
    // Far more are due for it than it has slots, and none of them comes to an end.
    silent.called("/told", 10).await;

    let heard: Vec<Value> = (0..50).map(|_| job(stage.target.url("/told"))).collect();
    let ids: Vec<String> = stage.api.submit_batch(&heard).await.iter().map(id_of).collect();
    for told in stage.target.called("/told", ids.len()).await {
        let event = told.json();
        let data = &event["data"];
        assert!(ids.contains(&text(data, "id").to_owned()));
        let late = millis_between(time(data, "completed_at"), told.arrived_at);
        assert!(late < AT_ONCE.as_millis().try_into().unwrap(), "told {late} ms after its end");
    }
    let busiest = silent.busiest("/told");
    assert!(busiest <= 16, "{busiest} callbacks at once for a receiver that does not answer");
}

async fn a_callback_in_flight_is_sent_again_at_once_by_the_next_process(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let (silent, _gate) = silent_receiver().await;
    let id = stage.submit("/run", json!({"callback_url": silent.url("/told")})).await;
    silent.called("/told", 1).await;
    stage.server.kill9().await;
    silent.reply("/told", Reply::ok());
    let restarted_at = Timestamp::now();
    stage.restart().await;
    is_told_again(&silent, &id, restarted_at).await;
}

async fn an_orderly_stop_gives_back_the_callbacks_in_flight(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let (silent, _gate) = silent_receiver().await;
    let id = stage.submit("/run", json!({"callback_url": silent.url("/told")})).await;
    silent.called("/told", 1).await;
    let began = Instant::now();
    assert!(stage.server.terminate().await.success());
    assert!(began.elapsed() < Duration::from_secs(8), "a receiver that does not answer delays no stop");
    silent.reply("/told", Reply::ok());
    let restarted_at = Timestamp::now();
    stage.restart().await;
    is_told_again(&silent, &id, restarted_at).await;
}

/// Nobody has to start it again.
#[tokio::test]
async fn another_server_takes_over_the_callbacks_of_one_that_died() {
    let mut stage = Stage::set(StoreKind::Postgres).await;
    let (silent, _gate) = silent_receiver().await;
    let id = stage.submit("/run", json!({"callback_url": silent.url("/told")})).await;
    silent.called("/told", 1).await;
    let _survivor = Server::builder(StoreKind::Postgres).beside(&stage.server).start().await;
    silent.reply("/told", Reply::ok());
    for_a_while(async || assert_eq!(silent.calls_to("/told").len(), 1, "its sender is alive")).await;
    let killed_at = Timestamp::now();
    stage.server.kill9().await;
    is_told_again(&silent, &id, killed_at).await;
}

async fn is_told_again(receiver: &Target, id: &str, since: Timestamp) {
    let again = &receiver.called("/told", 2).await[1];
    assert_eq!(text(&again.json()["data"], "id"), id);
    let late = millis_between(since, again.arrived_at);
    assert!(late < AT_ONCE.as_millis().try_into().unwrap(), "sent again after {late} ms");
}
