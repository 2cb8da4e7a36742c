//! Jobs whose server dies under them, again and again: they run again, and only one that was alone each time is taken
//! for what kills it.

use serde_json::{Value, json};

use crate::api::text;
use crate::e2e::{Stage, on_both_stores};
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply};

on_both_stores! {
    jobs_that_share_every_crash_are_not_to_blame_for_it,
    a_job_that_is_alone_in_every_crash_is_given_up,
}

async fn jobs_that_share_every_crash_are_not_to_blame_for_it(kind: StoreKind) {
    const JOBS: usize = 20;
    let mut stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/held", Reply::ok().behind(&gate));
    let jobs: Vec<Value> = vec![stage.job("/held", json!({})); JOBS];
    stage.api.submit_batch(&jobs).await;
    for crash in 1..=6 {
        stage.target.called("/held", JOBS * crash).await;
        stage.restart().await;
    }
    stage.target.called("/held", JOBS * 7).await;
    gate.open();
    for job in stage.api.list("/api/v1/jobs?limit=1000").await {
        stage.until(text(&job, "id"), "completed").await;
    }
    assert!(stage.api.list("/api/v1/dead-letters").await.is_empty());
}

async fn a_job_that_is_alone_in_every_crash_is_given_up(kind: StoreKind) {
    const CRASHES: usize = 3;
    let server = Server::builder(kind).env("TICKWHEEL_POISON_LOST", &CRASHES.to_string()).start().await;
    let mut stage = Stage::on(server).await;
    let gate = Gate::closed();
    stage.target.reply("/deadly", Reply::ok().behind(&gate));
    let deadly = stage.submit("/deadly", json!({})).await;
    for crash in 1..=CRASHES {
        stage.target.called("/deadly", crash).await;
        stage.restart().await;
    }
    stage.until(&deadly, "failed").await;
    assert_eq!(stage.dead_letter(&deadly).await.expect(200).json()["reason"], "poison_pill");
    assert_eq!(stage.target.calls_to("/deadly").len(), CRASHES);
    gate.open();
}
