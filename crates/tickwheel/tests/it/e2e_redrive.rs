//! Running thousands of dead letters again: all of them, each once, whatever becomes of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::e2e::{Stage, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::program::{run, tickwheel};
use crate::server::StoreKind;
use crate::target::Reply;

on_both_stores! {
    all_is_all_and_each_is_run_once_though_it_fails_again,
    it_goes_on_without_the_client_and_can_be_asked_for_again,
}

const LETTERS: usize = 2_100;

async fn dead_letters(stage: &Stage) -> usize {
    let status = stage.api.get("/api/v1/admin/status").await.expect(200).json();
    status["dead_letters"].as_u64().unwrap() as usize
}

async fn until_dead_letters(stage: &Stage, count: usize) {
    eventually("the jobs to be given up", PATIENCE, async || {
        (dead_letters(stage).await == count).then_some(())
    })
    .await;
}

/// A stage with thousands of jobs that were given up.
async fn with_dead_letters(kind: StoreKind) -> Stage {
    let stage = Stage::set(kind).await;
    stage.target.reply("/bad", Reply::status(422));
    let job = stage.job("/bad", json!({"type": "bad"}));
    for batch in vec![job; LETTERS].chunks(700) {
        stage.api.submit_batch(batch).await;
    }
    until_dead_letters(&stage, LETTERS).await;
    stage
}

/// How many jobs were called how often.
fn calls_a_job(stage: &Stage) -> BTreeMap<usize, usize> {
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for call in stage.target.calls_to("/bad") {
        *calls.entry(call.job_id().to_owned()).or_default() += 1;
    }
    calls.into_values().fold(BTreeMap::new(), |mut times, count| {
        *times.entry(count).or_default() += 1;
        times
    })
}

async fn all_is_all_and_each_is_run_once_though_it_fails_again(kind: StoreKind) {
    let stage = with_dead_letters(kind).await;
    stage.submit("/bad", json!({"type": "other"})).await;
    until_dead_letters(&stage, LETTERS + 1).await;
    let url = stage.server.url().to_owned();
    let redriven = tokio::task::spawn_blocking(move || {
        let args = ["--server", &url, "dead-letters", "redrive", "--all", "--type", "bad"];
        run(&mut tickwheel(&args))
    });
    let redriven = redriven.await.unwrap();
    assert_eq!(redriven.code, Some(0), "{redriven:?}");
    assert!(redriven.stdout.starts_with("2100 will run again, 0 "), "{redriven:?}");
    eventually("each to be called again", PATIENCE, async || {
        (stage.target.calls_to("/bad").len() > 2 * LETTERS).then_some(())
    })
    .await;
    until_dead_letters(&stage, LETTERS + 1).await;
    assert_eq!(calls_a_job(&stage), BTreeMap::from([(1, 1), (2, LETTERS)]));
}

async fn it_goes_on_without_the_client_and_can_be_asked_for_again(kind: StoreKind) {
    let mut stage = with_dead_letters(kind).await;
    let redrive = async |api: &crate::api::Api, filter: Value| {
        api.post("/api/v1/dead-letters/redrive", &filter).await.success().json()
    };
    let begun = redrive(&stage.api, json!({"all": true})).await;
    // Nobody asks while it goes on.
    eventually("each to be called again", PATIENCE, async || {
        (stage.target.calls_to("/bad").len() >= 2 * LETTERS).then_some(())
    })
    .await;
    let path = format!("/api/v1/dead-letters/redrive/{}", begun["id"].as_str().unwrap());
    let over = eventually("the redrive to be over", PATIENCE, async || {
        Some(stage.api.get(&path).await.expect(200).json()).filter(|progress| progress["status"] != "running")
    })
    .await;
    let told = (&over["status"], &over["redriven"], &over["remaining"]);
    assert_eq!(told, (&json!("completed"), &json!(LETTERS), &json!(0)));
    until_dead_letters(&stage, LETTERS).await;

    // After a restart nobody knows of it. Whoever asks for the same again gets what is left: nothing.
    stage.restart().await;
    stage.api.get(&path).await.expect(404);
    let again = redrive(&stage.api, json!({"all": true, "failed_before": over["failed_before"]})).await;
    assert_eq!((&again["redriven"], &again["remaining"]), (&json!(0), &json!(0)));
    assert_eq!(calls_a_job(&stage), BTreeMap::from([(2, LETTERS)]));
}
