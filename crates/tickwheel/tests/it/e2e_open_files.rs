//! A machine that runs out of file descriptors: clients are turned away before jobs are, and no job pays for it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::api::{id_of, text};
use crate::e2e::Stage;
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};

#[tokio::test]
async fn clients_that_only_connect_keep_out_neither_clients_nor_jobs() {
    let server = Server::builder(StoreKind::Sqlite).open_files_max(256).env("TICKWHEEL_ENGINE_SLOTS", "32");
    let stage = Stage::on(server.start().await).await;
    let address = stage.server.url().strip_prefix("http://").unwrap().to_owned();
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(&address).await.unwrap());
    }
    let began = Instant::now();
    let another = stage.server.api();
    another.get("/readyz").await.expect(200);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let retry = json!({"max_retries": 0});
    let jobs: Vec<Value> = (0..20)
        .map(|n| stage.job(&format!("/run/{n}"), json!({"retry": retry, "delivery": "at_most_once"})))
        .collect();
    for job in another.submit_batch(&jobs).await {
        let job = another.wait(&id_of(&job)).await;
        assert_eq!((text(&job, "status"), &job["attempt"]), ("completed", &json!(1)), "{job}");
    }
    let open = another.metric("tickwheel_http_connections").await;
    assert!(open < 256.0, "{open} connections with 256 files");
    drop(idle);
}

#[tokio::test]
async fn a_callback_for_which_there_is_no_descriptor_costs_it_no_try() {
    let stage = Stage::set(StoreKind::Sqlite).await;
    let warm = stage.submit("/warm", json!({})).await;
    stage.until(&warm, "completed").await;
    stage.server.limit_open_files(1);
    // The job goes over the connection that is open already, its callback would need another one.
    let elsewhere = crate::target::Target::start().await;
    let id = stage.submit("/warm", json!({"callback_url": elsewhere.url("/told")})).await;
    stage.until(&id, "completed").await;
    // sleep: three tries would be over by then.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(elsewhere.calls().len(), 0);
    stage.server.limit_open_files(4_096);
    elsewhere.called("/told", 1).await;
}

#[tokio::test]
async fn an_attempt_for_which_there_is_no_descriptor_costs_the_job_nothing() {
    let stage = Stage::set(StoreKind::Sqlite).await;
    let warm = stage.submit("/warm", json!({})).await;
    stage.until(&warm, "completed").await;
    // Nothing more can be opened: what is asked from here on goes over the connection that is open already.
    stage.server.limit_open_files(1);
    let elsewhere = crate::target::Target::start().await;
    let mut ids = Vec::new();
    for delivery in ["at_least_once", "at_most_once"] {
        let job = json!({"type": "t", "target": {"http": {"url": elsewhere.url("/cold")}}, "delivery": delivery,
            "retry": {"max_retries": 0}});
        ids.push(id_of(&stage.api.submit(&job).await));
    }
    let tried = async |id: &str| stage.api.job(id).await["attempt"].as_u64().unwrap_or(0);
    for id in &ids {
        eventually("an attempt that could not be sent", PATIENCE, async || {
            (tried(id).await >= 2).then_some(())
        })
        .await;
    }
    assert_eq!(elsewhere.calls().len(), 0);
    stage.server.limit_open_files(4_096);
    for id in &ids {
        let job = stage.until(id, "completed").await;
        assert_eq!((&job["retries"], &job["error"]), (&json!(0), &Value::Null), "{job}");
        assert_eq!(stage.api.attempts(id).await.len(), 1, "only the one that was sent is on record");
    }
    assert_eq!(elsewhere.calls().len(), 2);
}
