//! What only a store in a file can do: be opened again, be left behind, be full, be read beside the writer.

use std::path::PathBuf;
use std::sync::mpsc;

use tempfile::TempDir;
use tickwheel_core::ports::{
    Claim, ControlStore, JobQuery, JobStore, NewJob, QueryStore, RunStore, ScheduleStore, SessionStore,
    StoreError,
};
use tickwheel_core::retry::Jitter;
use tickwheel_core::settle::{Outcome, PoisonRule, decide};
use tickwheel_core::{Job, JobId};
use tickwheel_testkit::fixtures::{at, job, run, schedule, session, session_id, waiting_by_edges};
use tokio::sync::oneshot;

use super::SqliteStore;

struct File {
    directory: TempDir,
}

impl File {
    fn new() -> Self {
        Self { directory: TempDir::new().expect("a directory") }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("tickwheel.db")
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path()).expect("the file can be opened")
    }

    fn names(&self) -> Vec<String> {
        let entries = self.directory.path().read_dir().expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect()
    }
}

async fn submit(store: &SqliteStore, new: NewJob) -> Job {
    let job = new.job.clone();
    assert!(store.submit_jobs(vec![new]).await.expect("stored")[0].as_new().is_some());
    job
}

#[tokio::test]
async fn what_was_acknowledged_is_there_when_the_file_is_opened_again() {
    let file = File::new();
    let store = file.open();
    let job = submit(&store, job().tags(["a"]).idempotency("key", 1).build_new()).await;
    store.set_halted(true).await.expect("halted");
    store.set_queue_paused("held", true).await.expect("paused");
    let secret = store.installation_secret([7; 32]).await.expect("a secret");
    drop(store);

    let store = file.open();
    assert_eq!(store.get_job(job.id).await.expect("readable"), Some(job));
    assert!(store.halted().await.expect("readable"));
    assert_eq!(store.list_queues().await.expect("readable").len(), 2);
    assert_eq!(store.installation_secret([8; 32]).await.expect("a secret"), secret);
}

#[tokio::test]
async fn a_closed_store_leaves_one_file_behind() {
    let file = File::new();
    let store = file.open();
    submit(&store, job().build_new()).await;
    drop(store);
    assert_eq!(file.names(), ["tickwheel.db"]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let file = File::new();
    std::fs::write(
        file.path(),
        "a letter to a friend, long enough to be taken for a header of a database file",
    )
    .expect("written");
    let refused = SqliteStore::open(&file.path()).map(|_| ()).expect_err("not a database");
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused}");
}

fn refused(file: &File) -> String {
    let refused = SqliteStore::open(&file.path()).map(|_| ()).expect_err("it must be refused");
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused}");
    refused.to_string()
}

#[tokio::test]
async fn an_empty_file_or_a_log_without_its_file_is_a_loss_and_not_a_beginning() {
    let file = File::new();
    submit(&file.open(), job().build_new()).await;
    std::fs::write(file.path(), "").expect("truncated");
    assert!(refused(&file).contains("it is empty"));
    std::fs::remove_file(file.path()).expect("removed");
    std::fs::write(file.directory.path().join("tickwheel.db-wal"), "something").expect("written");
    assert!(refused(&file).contains("write-ahead log"));
}

#[tokio::test]
async fn what_an_interrupted_creation_left_behind_is_no_hindrance() {
    let file = File::new();
    std::fs::write(file.directory.path().join("tickwheel.db.new"), "half of it").expect("written");
    submit(&file.open(), job().build_new()).await;
    assert_eq!(file.names(), ["tickwheel.db"]);
}

#[tokio::test]
async fn a_page_of_zeros_is_refused_wherever_it_is() {
    const PAGE: usize = 8_192;
    let file = File::new();
    let store = file.open();
    let jobs: Vec<_> = (0..500).map(|_| job().tags(["a", "b"]).build_new()).collect();
    store.submit_jobs(jobs).await.expect("stored");
    drop(store);
    let sound = std::fs::read(file.path()).expect("readable");
    assert!(sound.len() > 30 * PAGE);
    for page in (0..sound.len() / PAGE).step_by(7) {
        let mut damaged = sound.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0);
        std::fs::write(file.path(), damaged).expect("written");
        refused(&file);
    }
    std::fs::write(file.path(), sound).expect("written");
    drop(file.open());
}

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let file = File::new();
    let modes = || -> Vec<(String, u32)> {
        let entries = file.names().into_iter().map(|name| {
            let mode = file.directory.path().join(&name).metadata().expect("there").permissions().mode();
            (name, mode & 0o777)
        });
        entries.collect()
    };
    for _ in 0..2 {
        let store = file.open();
        submit(&store, job().build_new()).await;
        assert_eq!(modes().len(), 3);
        assert!(modes().iter().all(|(_, mode)| *mode == 0o600), "{:?}", modes());
        drop(store);
        // As an earlier version left it behind.
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).expect("changed");
    }
}

#[tokio::test]
async fn a_full_disk_acknowledges_nothing_and_a_freed_one_goes_on() {
    let file = File::new();
    let store = file.open();
    limit_pages(&store, 60).await;
    let large = format!("\"{}\"", "x".repeat(1_000_000));
    let lost = job().payload(&large).build_new();
    let id = lost.job.id;
    let error = store.submit_jobs(vec![lost]).await.expect_err("there is no room");
    assert!(error.is_certainly_aborted(), "{error}");
    assert_eq!(store.get_job(id).await.expect("readable"), None);

    limit_pages(&store, 1_000_000).await;
    submit(&store, job().payload(&large).build_new()).await;
}

async fn limit_pages(store: &SqliteStore, pages: u32) {
    let limit = move |c: &rusqlite::Connection| Ok(c.pragma_update(None, "max_page_count", pages)?);
    store.writer.write(limit).await.expect("a setting");
}

#[tokio::test]
async fn readers_see_what_is_committed_and_do_not_wait_for_the_writer() {
    let file = File::new();
    let store = std::sync::Arc::new(file.open());
    let (written, is_written) = oneshot::channel();
    let (release, may_go) = mpsc::channel::<()>();
    let halting = tokio::spawn({
        let store = store.clone();
        let halt = move |c: &rusqlite::Connection| {
            super::controls::set_halted(c, true)?;
            let _ = written.send(());
            let _ = may_go.recv();
            Ok(())
        };
        async move { store.writer.write(halt).await }
    });
    is_written.await.expect("the writer is in its transaction");
    assert!(!store.halted().await.expect("readable"));
    release.send(()).expect("held");
    halting.await.expect("joined").expect("committed");
    assert!(store.halted().await.expect("readable"));
}

/// Whoever opens the file is the only one: other sessions are dead however long their lease.
#[tokio::test]
async fn the_sessions_of_former_processes_end_at_once() {
    let file = File::new();
    let store = file.open();
    store.open_session(session(1, at(1_000_000))).await.expect("opened");
    drop(store);

    let store = file.open();
    store.open_session(session(2, at(1_000_000))).await.expect("opened");
    assert_eq!(store.expire_sessions(session_id(2), at(0)).await.expect("ended").len(), 1);
    assert!(!store.renew_session(session_id(1), at(2_000_000)).await.expect("answered"));
    assert!(store.renew_session(session_id(2), at(2_000_000)).await.expect("answered"));
}

/// What was written by another version, or by hand, keeps one schedule from firing and no other.
#[tokio::test]
async fn a_schedule_that_cannot_be_read_does_not_keep_the_others_back() {
    let file = File::new();
    let store = file.open();
    let schedules = [(); 3].map(|()| schedule("* * * * *").build());
    for schedule in &schedules {
        store.create_schedule(schedule.clone()).await.expect("created");
    }
    let [one, other, sound] = schedules;
    let (spec_of, backfill_of) = (one.id.as_uuid(), other.id.as_uuid());
    let spoil = move |c: &rusqlite::Connection| {
        c.execute("UPDATE schedules SET spec = '{}' WHERE id = ?1", [spec_of])?;
        c.execute("UPDATE schedules SET backfill = 'soon' WHERE id = ?1", [backfill_of])?;
        Ok(())
    };
    store.writer.write(spoil).await.expect("spoilt");
    let ids = vec![one.id, other.id, sound.id];
    assert_eq!(store.get_schedules(ids).await.expect("answered"), [sound]);
    for spoilt in [one, other] {
        let found = store.find_schedule(&spoilt.tenant, &spoilt.name).await;
        let Err(StoreError::Corrupt(words)) = found else { panic!("{found:?}") };
        assert!(words.contains(&spoilt.id.to_string()), "{words}");
    }
}

/// Runs that were begun before positions knew the adjacent tasks go on by their edges.
#[tokio::test]
async fn tasks_that_wait_by_edges_are_released_and_requested() {
    let file = File::new();
    let store = file.open();
    let (with_edges, edges) = waiting_by_edges(run().task([]).task([1]).reconciled([1]).build());
    let ids: Vec<JobId> = with_edges.jobs.iter().map(|job| job.id).collect();
    store.start_run(with_edges).await.expect("started");
    let insert_edges = move |c: &rusqlite::Connection| {
        for (parent, child) in edges {
            let edge = (parent.as_uuid(), child.as_uuid());
            c.execute("INSERT INTO dependencies (parent, child, state) VALUES (?1, ?2, 0)", edge)?;
        }
        Ok(())
    };
    store.writer.write(insert_edges).await.expect("inserted");
    store.open_session(session(1, at(1_000_000))).await.expect("opened");
    let claim = Claim { claimed_by: None, session: session_id(1), jobs: vec![ids[0]], now: at(0) };
    let running = store.claim(claim).await.expect("it is due").remove(0);
    let outcome = Outcome::Completed { result: None };
    let end = decide(&running, outcome, at(5), &PoisonRule::default(), Jitter::from_bits(0));
    let batch = store.settle(end.into_iter().collect()).await.expect("settled");
    let released: Vec<JobId> = batch.released.iter().map(|job| job.due.id).collect();
    assert_eq!((released, batch.reconcile_requested), (vec![ids[1]], true));
    let reconcile_requests = store.reconcile_requests(None, 10).await.expect("read");
    assert_eq!(reconcile_requests.iter().map(|request| request.id).collect::<Vec<_>>(), [ids[2]]);
}

#[tokio::test]
async fn a_list_that_finds_little_stops_early_and_says_where_to_go_on() {
    let file = File::new();
    let store = file.open();
    let needle = submit(&store, job().queue("needle").tags(["a", "b"]).build_new()).await;
    let hay: Vec<_> = (0..20_100).map(|_| job().queue("hay").tags(["a"]).build_new()).collect();
    store.submit_jobs(hay).await.expect("stored");

    let by_queue = JobQuery { queue: Some("needle".into()), limit: 10, ..JobQuery::default() };
    let by_tags = JobQuery { tags: ["a".into(), "b".into()].into(), limit: 10, ..JobQuery::default() };
    for query in [by_queue, by_tags] {
        let first = store.list_jobs(query.clone()).await.expect("a page");
        assert!(first.items.is_empty() && first.next.is_some(), "the bound comes first: {query:?}");
        let second = store.list_jobs(JobQuery { after: first.next, ..query }).await.expect("a page");
        let found: Vec<JobId> = second.items.iter().map(|job| job.id).collect();
        assert_eq!((found, second.next), (vec![needle.id], None));
    }
}
