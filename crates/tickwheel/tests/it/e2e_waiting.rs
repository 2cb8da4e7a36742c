//! Clients that wait for an end cost the store nothing, and hear of it wherever it is written.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use crate::api::{id_of, text};
use crate::e2e::{Stage, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};

on_both_stores! {
    a_server_that_stops_lets_those_go_who_wait,
}

const WAITING: usize = 200;

/// Starts clients that wait for jobs that are far from due, and returns once all of them do.
async fn wait_for_all(stage: &Stage, ids: &[String]) -> JoinSet<u16> {
    let mut clients = JoinSet::new();
    for id in ids {
        let (api, path) = (stage.api.clone(), format!("/api/v1/jobs/{id}?wait=50s"));
        clients.spawn(async move { api.get(&path).await.status });
    }
    let all = async || (stage.api.metric("tickwheel_http_waiting").await >= ids.len() as f64).then_some(());
    eventually("all clients to wait", PATIENCE, all).await;
    clients
}

/// How many transactions the server of the test's database has committed so far.
async fn commits(stage: &Stage) -> i64 {
    let database = stage.server.database().expect("a database");
    let (client, connection) = tokio_postgres::connect(database.server_url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = $1";
    client.query_one(sql, &[&database.name()]).await.unwrap().get(0)
}

#[tokio::test]
async fn many_who_wait_leave_the_database_alone_and_are_all_told() {
    let stage = Stage::set(StoreKind::Postgres).await;
    let jobs = vec![stage.job("/later", json!({"delay": "1h"})); WAITING];
    let ids: Vec<String> = stage.api.submit_batch(&jobs).await.iter().map(id_of).collect();
    let mut clients = wait_for_all(&stage, &ids).await;
    // sleep: the database tells its statistics once a second
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let before = commits(&stage).await;
    // sleep: so long they wait and nothing happens
    tokio::time::sleep(Duration::from_secs(3)).await;
    let meanwhile = commits(&stage).await - before;
    // Polling, each asked four times a second. What they asked once, at the beginning, may show late, and the server
    // has things of its own to do.
    assert!(
        meanwhile < 4 * WAITING as i64,
        "{meanwhile} transactions in three seconds in which nothing happened"
    );
    for id in &ids {
        stage.act(id, "cancel").await.expect(200);
    }
    while let Some(status) = clients.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
}

#[tokio::test]
async fn who_waits_at_one_server_hears_of_an_end_at_another() {
    let stage = Stage::set(StoreKind::Postgres).await;
    let other = Server::builder(StoreKind::Postgres).beside(&stage.server).start().await;
    let id = stage.submit("/later", json!({"delay": "1h"})).await;
    let mut clients = wait_for_all(&stage, std::slice::from_ref(&id)).await;
    other.api().act(&format!("/api/v1/jobs/{id}/cancel")).await.expect(200);
    assert_eq!(clients.join_next().await.unwrap().unwrap(), 200);
    assert_eq!(text(&stage.api.job(&id).await, "status"), "cancelled");
}

async fn a_server_that_stops_lets_those_go_who_wait(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let id = stage.submit("/later", json!({"delay": "1h"})).await;
    let mut clients = wait_for_all(&stage, std::slice::from_ref(&id)).await;
    stage.server.ask_to_stop();
    assert_eq!(clients.join_next().await.unwrap().unwrap(), 503);
    assert!(stage.server.exited(Duration::from_secs(20)).await.success());
}
