//! The file itself: made whole or not at all, readable by its owner alone, and looked over before it is used.
//!
//! A new database is made under another name and renamed when it is complete. So a file that is empty, or a write-ahead
//! log without its file, is never what a crash of ours leaves behind: something was lost, and nobody begins anew in its
//! place without being told.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use tickwheel_core::ports::{StoreError, StoreResult};
use tracing::{info, warn};

use super::connection::open_writer;
use super::fault::Verb;
use super::migrate::migrate;
use crate::error::aborted;

/// Payloads and the installation's secret are in it.
const OWNER_ONLY: u32 = 0o600;

/// What SQLite keeps beside the file.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// With less room than this the disk is full: what a small write finds inside of the write-ahead log is soon used up.
const ROOM_BYTES_MIN: u64 = 1024 * 1024;

/// How long a start may look for damage: enough for some hundred megabytes.
const CHECK_TIME_MAX: Duration = Duration::from_secs(1);

/// Makes sure that there is a database, and that nobody else can read it.
pub(super) fn prepare(path: &Path) -> StoreResult<()> {
    match fs::metadata(path) {
        Ok(found) if found.len() == 0 => Err(lost("it is empty")),
        Ok(_) => {
            keep_private(path);
            Ok(())
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            if fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0) {
                return Err(lost("it is gone, though its write-ahead log is there"));
            }
            create(path)
        }
        Err(cause) => Err(aborted(cause)),
    }
}

fn lost(how: &str) -> StoreError {
    StoreError::Corrupt(format!(
        "{how}, so what was stored is lost; restore a backup, or move what is left away to begin anew"
    ))
}

fn create(path: &Path) -> StoreResult<()> {
    let unfinished = beside(path, ".new");
    for leftover in COMPANIONS.map(|suffix| beside(&unfinished, suffix)).iter().chain([&unfinished]) {
        match fs::remove_file(leftover) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(aborted(cause)),
            _ => {}
        }
    }
    // SQLite gives what it keeps beside a file the permissions of the file.
    let file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(&unfinished);
    let file = file.map_err(aborted)?;
    let mut connection = open_writer(&unfinished)?;
    migrate(&mut connection)?;
    connection.close().map_err(|(_, cause)| aborted(cause))?;
    file.sync_all().and_then(|()| fs::rename(&unfinished, path)).map_err(aborted)?;
    File::open(directory_of(path)).and_then(|directory| directory.sync_all()).map_err(aborted)
}

/// Where the file is.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Files of earlier versions, or of a generous umask.
fn keep_private(path: &Path) {
    for file in COMPANIONS.iter().map(|suffix| beside(path, suffix)).chain([path.to_owned()]) {
        let is_open = |found: &fs::Metadata| found.permissions().mode() & 0o077 != 0;
        if fs::metadata(&file).is_ok_and(|found| is_open(&found))
            && let Err(cause) = fs::set_permissions(&file, Permissions::from_mode(OWNER_ONLY))
        {
            warn!(file = %file.display(), %cause, "others can read this file, and its permissions cannot be changed");
        }
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Refuses a file that is damaged, as far as that is seen in a bounded time.
pub(super) fn check(connection: &Connection) -> Verb<()> {
    check_within(connection, CHECK_TIME_MAX).map(drop)
}

/// Whether the whole file was looked at.
fn check_within(connection: &Connection, time_max: Duration) -> Verb<bool> {
    let (done, is_done) = mpsc::channel::<()>();
    let interrupt = connection.get_interrupt_handle();
    let timer = std::thread::spawn(move || {
        if is_done.recv_timeout(time_max) == Err(RecvTimeoutError::Timeout) {
            interrupt.interrupt();
        }
    });
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    drop(done);
    let _ = timer.join();
    match found {
        Ok(words) if words == "ok" => Ok(true),
        Ok(words) => {
            let words = format!("the file is damaged ({words}); restore a backup");
            Err(StoreError::Corrupt(words).into())
        }
        Err(cause) if cause.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            info!("the database is too large for a full check at every start");
            Ok(false)
        }
        Err(cause) => Err(cause.into()),
    }
}

/// Whether there is room for more.
pub(super) fn has_room(directory: &Path) -> Verb<()> {
    let room = rustix::fs::statvfs(directory).map_err(aborted)?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if free < ROOM_BYTES_MIN {
        return Err(aborted(format_args!("the disk is full: {free} bytes are left")).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_is_cut_short_has_found_no_damage() {
        let connection = Connection::open_in_memory().expect("memory");
        connection
            .execute_batch(
                "CREATE TABLE t (a INTEGER NOT NULL, b TEXT NOT NULL) STRICT;
                 CREATE INDEX tb ON t (b);
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
                 INSERT INTO t SELECT i, hex(i * 7919 % 200000) FROM n;",
            )
            .expect("a table that takes a while to look at");
        let cut_short = (0..40).filter(|_| {
            let whole = check_within(&connection, Duration::from_millis(1)).expect("no damage");
            !whole
        });
        assert!(cut_short.count() > 0, "it was never cut short");
        assert!(check_within(&connection, Duration::from_secs(3_600)).expect("no damage"));
    }
}
