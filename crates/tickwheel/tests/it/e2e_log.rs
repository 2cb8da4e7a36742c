//! Logging never harms: whatever becomes of the log, the server does its work and stops in order.

use serde_json::json;

use crate::api::text;
use crate::e2e::{Stage, on_both_stores, quick_retries};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{LogTo, Server, StoreKind};
use crate::target::{Gate, Reply};

const DROPPED: &str = "tickwheel_log_lines_dropped_total";

on_both_stores! {
    a_server_whose_log_nobody_reads_any_more_works_on_and_stops_in_order,
    a_log_on_a_full_disk_is_counted_and_harms_nobody,
    a_reader_of_the_log_that_stands_still_holds_nobody_up,
}

/// Things that are logged by the loops that do them: a callback that fails, the end of a run. The loops go on
/// afterwards.
async fn loops_work(stage: &Stage) {
    stage.target.reply("/deaf", Reply::status(500));
    stage.store("logged", vec![stage.task("only", &[], json!({}))], json!({})).await;
    for (round, told) in ["/deaf", "/told"].into_iter().enumerate() {
        let job = stage.submit("/run", json!({"callback_url": stage.target.url(told)})).await;
        stage.until(&job, "completed").await;
        stage.target.called(told, 1).await;
        let run = stage.start("logged", json!({"round": round})).await;
        assert_eq!(text(&stage.api.run_ended(&run).await, "status"), "completed");
    }
}

/// SIGTERM while a job runs: the job ends, the server says goodbye, and nothing is repeated.
async fn stops_in_order(mut stage: Stage) {
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let job = stage.submit("/long", json!({})).await;
    stage.target.called("/long", 1).await;
    stage.server.ask_to_stop();
    eventually("it to stop taking requests", PATIENCE, async || {
        stage.api.send(http::Method::GET, "/healthz", None).await.is_err().then_some(())
    })
    .await;
    gate.open();
    assert_eq!(stage.server.exited(PATIENCE).await.code(), Some(0));
    stage.restart().await;
    assert_eq!(stage.until(&job, "completed").await["attempt"], 1);
    assert_eq!(stage.target.calls_to("/long").len(), 1);
}

async fn a_server_whose_log_nobody_reads_any_more_works_on_and_stops_in_order(kind: StoreKind) {
    let mut server = Server::builder(kind).log_to(LogTo::Pipe).start().await;
    drop(server.take_log());
    let stage = Stage::on(server).await;
    loops_work(&stage).await;
    stops_in_order(stage).await;
}

async fn a_log_on_a_full_disk_is_counted_and_harms_nobody(kind: StoreKind) {
    let server = Server::builder(kind).log_to(LogTo::FullDisk).start().await;
    let stage = Stage::on(server).await;
    loops_work(&stage).await;
    eventually("the lost lines to be counted", PATIENCE, async || {
        (stage.api.metric(DROPPED).await > 0.0).then_some(())
    })
    .await;
    stops_in_order(stage).await;
}

async fn a_reader_of_the_log_that_stands_still_holds_nobody_up(kind: StoreKind) {
    let builder = Server::builder(kind).log_to(LogTo::Pipe).env("TICKWHEEL_LOG_LEVEL", "trace");
    let mut server = builder.start().await;
    let _nobody_reads = server.take_log();
    let stage = Stage::on(server).await;
    // More than a pipe and a buffer hold.
    stage.target.reply("/flaky", Reply::status(500));
    let jobs = vec![stage.job("/flaky", json!({"retry": quick_retries(5)})); 20];
    eventually("lines to be dropped", PATIENCE, async || {
        stage.api.submit_batch(&jobs).await;
        (stage.api.metric(DROPPED).await > 0.0).then_some(())
    })
    .await;
    loops_work(&stage).await;
    stops_in_order(stage).await;
}

/// The log and the data on one disk that is full for a while.
#[tokio::test]
async fn a_disk_that_was_full_takes_writes_again_when_there_is_room() {
    let server = Server::builder(StoreKind::Sqlite).log_to(LogTo::FullDisk).start().await;
    let mut stage = Stage::on(server).await;
    let first = stage.submit("/run", json!({})).await;
    stage.until(&first, "completed").await;
    stage.server.fill_disk();
    let large = json!({"payload": "x".repeat(200_000)});
    for _ in 0..5 {
        let refused = stage.api.post("/api/v1/jobs", &stage.job("/run", large.clone())).await;
        assert_eq!(refused.expect(503).json()["code"], "store_unavailable");
    }
    stage.server.free_disk();
    let job = stage.submit("/run", large).await;
    stage.until(&job, "completed").await;
    stage.api.get("/readyz").await.expect(200);
    assert_eq!(stage.server.terminate().await.code(), Some(0));
}
