//! PostgreSQL is killed with all its processes and started again, under two servers and their load.

use std::time::Duration;

use jiff::Timestamp;

use super::load::Load;
use crate::checker::{Checker, Conditions};
use crate::own_postgres::OwnPostgres;
use crate::server::{Server, StoreKind};
use crate::target::Target;

const ROUNDS: usize = 2;
/// From the moment the database takes connections again.
const RECOVERED_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_go_on_by_themselves_after_their_database_was_killed() {
    let target = Target::start().await;
    let mut postgres = OwnPostgres::start().await;
    let builder = || Server::builder(StoreKind::Postgres).on_postgres(&postgres.url());
    let servers = [builder().start().await, builder().start().await];
    let load = Load::start(&target, 17);
    load.point_at(servers.iter().map(Server::api));
    let mut conditions = Conditions { late_calls: true, ..Conditions::default() };
    for _ in 0..ROUNDS {
        load.acknowledges(80).await;
        let killed_at = Timestamp::now();
        postgres.kill9().await;
        for server in &servers {
            server.api().get("/readyz").await.expect(503);
        }
        postgres.start_again().await;
        conditions.fault_since(killed_at, RECOVERED_WITHIN);
    }
    load.acknowledges(80).await;
    let acknowledged = load.stop().await;
    let checker = Checker::gather(&servers[0].api(), &target, &acknowledged).await;
    println!("{}", checker.summary(&acknowledged));
    checker.check(&acknowledged, &conditions);
    for server in &servers {
        server.api().get("/readyz").await.expect(200);
    }
}
