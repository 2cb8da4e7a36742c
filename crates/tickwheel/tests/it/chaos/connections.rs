//! The database ends every connection, again and again, under load.

use std::time::Duration;

use tokio_postgres::NoTls;

use super::load::Load;
use crate::checker::{Checker, Conditions};
use crate::server::{Server, StoreKind};
use crate::target::Target;

const ROUNDS: usize = 5;
const RECOVERED_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_connections_are_ended_loses_and_doubles_nothing_and_recovers_by_itself() {
    let target = Target::start().await;
    let server = Server::builder(StoreKind::Postgres).env("TICKWHEEL_POISON_LOST", "1000").start().await;
    let load = Load::start(&target, 5);
    let mut conditions = Conditions::default();
    load.point_at([server.api()]);
    for _ in 0..ROUNDS {
        load.acknowledges(40).await;
        conditions.fault_for(RECOVERED_WITHIN);
        assert!(end_all_connections(&server).await > 0, "there was nothing to end");
    }
    load.acknowledges(40).await;
    let acknowledged = load.stop().await;

    let checker = Checker::gather(&server.api(), &target, &acknowledged).await;
    checker.check(&acknowledged, &conditions);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_whose_connections_are_ended_may_lose_sight_of_each_other_and_yet_double_nothing() {
    let target = Target::start().await;
    let one = Server::start(StoreKind::Postgres).await;
    let other = Server::builder(StoreKind::Postgres).beside(&one).start().await;
    let load = Load::start(&target, 7);
    let mut conditions = Conditions { late_calls: true, ..Conditions::default() };
    load.point_at([one.api(), other.api()]);
    for _ in 0..ROUNDS {
        load.acknowledges(40).await;
        conditions.fault_for(RECOVERED_WITHIN);
        assert!(end_all_connections(&one).await > 0, "there was nothing to end");
    }
    load.acknowledges(40).await;
    let acknowledged = load.stop().await;
    let checker = Checker::gather(&one.api(), &target, &acknowledged).await;
    checker.check(&acknowledged, &conditions);
}

/// Ends every session of the server's database; says how many there were.
pub async fn end_all_connections(server: &Server) -> i64 {
    let database = server.database().expect("a server on PostgreSQL");
    let (client, connection) = tokio_postgres::connect(database.server_url(), NoTls).await.unwrap();
    let serving = tokio::spawn(connection);
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1";
    let ended = client.query_one(end, &[&database.name()]).await.unwrap().get(0);
    drop(client);
    serving.await.unwrap().unwrap();
    ended
}
