//! `/readyz` says whether anything can be written, not only whether the database answers.

use http::Method;
use serde_json::json;

use crate::e2e::Stage;
use crate::eventually::{PATIENCE, eventually};
use crate::own_postgres::OwnPostgres;
use crate::server::{Server, StoreKind};

#[tokio::test]
async fn a_server_whose_database_became_a_standby_is_not_ready_until_it_is_promoted() {
    let mut postgres = OwnPostgres::start().await;
    let server = Server::builder(StoreKind::Postgres).on_postgres(&postgres.url()).start().await;
    let stage = Stage::on(server).await;
    let waiting = stage.submit("/late", json!({"delay": "1s"})).await;

    postgres.become_standby().await;
    // It can be read, so everything but this looks well.
    eventually("jobs to be read", PATIENCE, async || {
        let read = stage.api.send(Method::GET, "/api/v1/jobs", None).await;
        read.is_ok_and(|answer| answer.status == 200).then_some(())
    })
    .await;
    for _ in 0..5 {
        stage.api.get("/readyz").await.expect(503);
    }
    let refused = stage.api.post("/api/v1/jobs", &stage.job("/run", json!({}))).await;
    assert_eq!(refused.expect(503).code(), "store_unavailable");
    assert!(stage.target.calls().is_empty(), "nothing can be claimed");

    postgres.promote().await;
    stage.server.ready().await;
    assert_eq!(stage.until(&waiting, "completed").await["attempt"], 1);
    let job = stage.submit("/run", json!({})).await;
    stage.until(&job, "completed").await;
}

/// Some providers set this when a disk is nearly full. It is a default and no lock, and our transactions name what they
/// need: ready means that jobs are really written.
#[tokio::test]
async fn a_default_of_read_only_transactions_does_not_stop_a_server_that_may_write() {
    let stage = Stage::set(StoreKind::Postgres).await;
    let database = stage.server.database().expect("a server on PostgreSQL");
    let name = database.name();
    database.execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await;
    crate::chaos::end_all_connections(&stage.server).await;
    stage.server.ready().await;
    let job = stage.submit("/run", json!({})).await;
    stage.until(&job, "completed").await;
    stage.api.get("/readyz").await.expect(200);
}
