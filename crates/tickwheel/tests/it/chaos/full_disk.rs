//! The disk of the store is full for a while, under load: what cannot be written is refused, nothing that was
//! acknowledged is lost, and everything goes on when there is room again.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::load::Load;
use crate::api::{Api, http_job};
use crate::checker::{Checker, Conditions};
use crate::e2e::with;
use crate::eventually::{PATIENCE, eventually};
use crate::own_postgres::{OwnPostgres, small_disks_are_possible};
use crate::server::{Server, StoreKind};
use crate::target::Target;

/// After there is room again.
const RECOVERED_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_under_sqlite_loses_nothing() {
    let Some(builder) = Server::builder(StoreKind::Sqlite).on_a_small_disk("24m") else { return skipped() };
    let server = builder.start().await;
    let fill = server.own_data_dir().join("fill");
    fill_and_free(server, &fill, async || {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_under_postgres_loses_nothing() {
    if !small_disks_are_possible() {
        return skipped();
    }
    let mut postgres = OwnPostgres::on_a_small_disk("96m").await;
    let server = Server::builder(StoreKind::Postgres).on_postgres(&postgres.url()).start().await;
    let fill = postgres.file_on_disk("fill");
    // It may have given itself up, as it does when its log cannot be written.
    fill_and_free(server, &fill, async || postgres.start_again().await).await;
}

fn skipped() {
    println!("skipped: this user may not mount a file system, so there is no disk that can be full");
}

async fn fill_and_free(server: Server, fill: &Path, mut after_freeing: impl AsyncFnMut()) {
    let target = Target::start().await;
    let load = Load::start(&target, 23);
    load.point_at([server.api()]);
    load.acknowledges(80).await;

    let full_since = Timestamp::now();
    let mut file = File::create(fill).unwrap();
    while file.write_all(&[1; 4_096]).is_ok() {}
    refuses_large_jobs(&server.api(), &target).await;
    eventually("it not to be ready", PATIENCE, async || {
        (server.api().get("/readyz").await.status == 503).then_some(())
    })
    .await;
    drop(file);
    fs::remove_file(fill).unwrap();
    after_freeing().await;
    server.ready().await;
    let mut conditions = Conditions::default();
    conditions.fault_since(full_since, RECOVERED_WITHIN);

    load.acknowledges(80).await;
    let acknowledged = load.stop().await;
    let checker = Checker::gather(&server.api(), &target, &acknowledged).await;
    println!("{}", checker.summary(&acknowledged));
    checker.check(&acknowledged, &conditions);
}

/// Jobs that find no room in what the store has set aside are refused from some moment on.
async fn refuses_large_jobs(api: &Api, target: &Target) {
    let large = with(http_job(&target.url("/large")), json!({"payload": "x".repeat(200_000)}));
    eventually("large jobs to be refused", PATIENCE, async || {
        let answer = api.post("/api/v1/jobs", &large).await;
        assert!([201, 503].contains(&answer.status), "{}", answer.text());
        (answer.status == 503).then_some(())
    })
    .await;
}
