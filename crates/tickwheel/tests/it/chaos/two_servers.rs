//! Two servers on the same data: on PostgreSQL they share the work, on SQLite there can be only one.

use std::time::Duration;

use super::held::Held;
use super::load::Load;
use crate::api::{http_job, id_of, text};
use crate::checker::{BUSY, Checker, Conditions};
use crate::server::{Server, StoreKind};
use crate::target::Target;

/// What is promised for a server that was killed, however long its lease is.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(2).saturating_add(BUSY);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_on_one_database_deliver_no_attempt_twice() {
    let target = Target::start().await;
    let one = Server::start(StoreKind::Postgres).await;
    let other = Server::builder(StoreKind::Postgres).beside(&one).start().await;
    let load = Load::start(&target, 3);
    load.point_at([one.api(), other.api()]);
    load.acknowledges(400).await;
    let acknowledged = load.stop().await;

    let checker = Checker::gather(&one.api(), &target, &acknowledged).await;
    checker.check(&acknowledged, &Conditions::default());
    assert_eq!(checker.attempts_that("lost"), 0, "nobody died");
    for server in [&one, &other] {
        assert!(
            server.api().metric("tickwheel_attempts_started_total").await > 0.0,
            "{} had nothing to do",
            server.url()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_server_ran_is_run_by_its_neighbour_without_waiting_for_the_lease() {
    let with_a_long_lease = || Server::builder(StoreKind::Postgres).env("TICKWHEEL_ENGINE_LEASE", "600s");
    let target = Target::start().await;
    let mut conditions = Conditions::default();
    let mut killed = with_a_long_lease().start().await;
    let survivor = with_a_long_lease().beside(&killed).start().await;
    let load = Load::start(&target, 4);
    load.point_at([killed.api(), survivor.api()]);
    load.acknowledges(100).await;
    let held = Held::by(&target, [&killed, &survivor]).await;
    let fault = conditions.fault_for(TAKEN_OVER_WITHIN);
    killed.kill9().await;
    load.point_at([survivor.api()]);
    load.acknowledges(20).await;
    held.release();
    let mut acknowledged = load.stop().await;
    held.end(&mut acknowledged);

    let checker = Checker::gather(&survivor.api(), &target, &acknowledged).await;
    checker.check(&acknowledged, &conditions);
    let slowest = checker.slowest_takeover(fault).expect("the kill hit no attempt under way");
    println!("taken over after {slowest:?}");
    assert!(slowest < TAKEN_OVER_WITHIN, "{slowest:?}");
}

#[tokio::test]
async fn a_second_server_on_the_same_data_directory_says_so_and_does_not_start() {
    let target = Target::start().await;
    let first = Server::start(StoreKind::Sqlite).await;
    let second = Server::builder(StoreKind::Sqlite).beside(&first).start_refused().await;
    assert!(second.code.is_some_and(|code| code != 0), "{second:?}");
    assert!(second.stderr.contains("another server is using the data directory"), "{second:?}");
    assert!(second.stderr.contains(&first.data_dir().display().to_string()), "{second:?}");

    let id = id_of(&first.api().submit(&http_job(&target.url("/"))).await);
    assert_eq!(text(&first.api().wait(&id).await, "status"), "completed", "the first is not disturbed");
}
