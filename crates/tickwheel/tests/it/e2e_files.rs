//! The files of the embedded store: who may read them, who may use them, and what is refused at the start.

use std::fs::{self, File, Permissions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::e2e::Stage;
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};

const PAGE: u64 = 8_192;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn stage_with_jobs() -> Stage {
    let stage = Stage::set(StoreKind::Sqlite).await;
    let jobs: Vec<_> = (0..500).map(|_| stage.job("/run", json!({"delay": "1h", "tags": ["a"]}))).collect();
    stage.api.submit_batch(&jobs).await;
    stage
}

#[tokio::test]
async fn only_the_owner_can_read_what_is_stored() {
    let mut stage = Stage::set(StoreKind::Sqlite).await;
    let directory = stage.server.data_dir();
    for _ in 0..2 {
        stage.submit("/run", json!({})).await;
        assert_eq!(mode(&directory), 0o700);
        let names = ["tickwheel.db", "tickwheel.db-wal", "tickwheel.db-shm", "tickwheel.lock"];
        let modes = names.map(|name| mode(&directory.join(name)));
        assert_eq!(modes, [0o600; 4]);
        // As an earlier version made them.
        for name in names {
            fs::set_permissions(directory.join(name), Permissions::from_mode(0o644)).unwrap();
        }
        stage.restart().await;
    }
}

#[tokio::test]
async fn deleting_the_lock_file_lets_no_second_server_in() {
    let stage = Stage::set(StoreKind::Sqlite).await;
    fs::remove_file(stage.server.data_dir().join("tickwheel.lock")).unwrap();
    let second = Server::builder(StoreKind::Sqlite).beside(&stage.server).start_refused().await;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains("another server is using the data directory"), "{second:?}");
    stage.api.get("/readyz").await.expect(200);
}

#[tokio::test]
async fn a_database_that_was_emptied_is_refused_at_the_start() {
    let mut stage = stage_with_jobs().await;
    stage.server.kill9().await;
    fs::write(stage.server.data_dir().join("tickwheel.db"), "").unwrap();
    let refused = Server::builder(StoreKind::Sqlite).beside(&stage.server).start_refused().await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("tickwheel.db") && refused.stderr.contains("empty"), "{refused:?}");

    fs::remove_file(stage.server.data_dir().join("tickwheel.db")).unwrap();
    let refused = Server::builder(StoreKind::Sqlite).beside(&stage.server).start_refused().await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("write-ahead log"), "{refused:?}");

    fs::remove_dir_all(stage.server.data_dir()).unwrap();
    stage.restart().await;
    assert_eq!(stage.api.list("/api/v1/jobs").await.len(), 0);
}

#[tokio::test]
async fn a_database_with_a_page_of_zeros_is_refused_at_the_start() {
    let mut stage = stage_with_jobs().await;
    assert_eq!(stage.server.terminate().await.code(), Some(0));
    let mut file = File::options().write(true).open(stage.server.data_dir().join("tickwheel.db")).unwrap();
    let pages = file.metadata().unwrap().len() / PAGE;
    file.seek(SeekFrom::Start(pages / 2 * PAGE)).unwrap();
    file.write_all(&[0; PAGE as usize]).unwrap();
    let refused = Server::builder(StoreKind::Sqlite).beside(&stage.server).start_refused().await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    // A page of the schema is missed even before the file is checked.
    let says = |words: &str| refused.stderr.contains(words);
    assert!(says("the file is damaged") || says("malformed"), "{refused:?}");
}

/// On a small file system of its own, which needs no privileges where a user may have a namespace.
#[tokio::test]
async fn a_server_on_a_full_disk_is_not_ready_until_there_is_room_again() {
    let small_disk = Server::builder(StoreKind::Sqlite).on_a_small_disk("8m");
    let (builder, is_small) = match small_disk {
        Some(builder) => (builder, true),
        None => (Server::builder(StoreKind::Sqlite), false),
    };
    let stage = Stage::on(builder.start().await).await;
    let fill = stage.server.own_data_dir().join("fill");
    if is_small {
        let mut file = File::create(&fill).unwrap();
        while file.write_all(&[1; 4_096]).is_ok() {}
        // Room for half of what comes now: it stays inside of the write-ahead log, for small writes.
        file.set_len(file.metadata().unwrap().len() - 100_000).unwrap();
    } else {
        stage.submit("/run", json!({})).await;
        stage.server.fill_disk();
    }
    let large = json!({"payload": "x".repeat(200_000)});
    eventually("large jobs to be refused", PATIENCE, async || {
        let answer = stage.api.post("/api/v1/jobs", &stage.job("/run", large.clone())).await;
        (answer.status == 503).then_some(())
    })
    .await;
    for _ in 0..5 {
        stage.api.get("/readyz").await.expect(503);
    }
    if is_small {
        fs::remove_file(&fill).unwrap();
    } else {
        stage.server.free_disk();
    }
    stage.api.get("/readyz").await.expect(200);
    let job = stage.submit("/run", large).await;
    stage.until(&job, "completed").await;
}
