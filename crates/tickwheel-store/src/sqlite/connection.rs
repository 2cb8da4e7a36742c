//! How a connection to the file is set up: one that writes, several that read.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::fault::Verb;

/// Only a foreign process (a backup, a curious person) ever holds the lock; it gets this long to let go.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// More than the number of distinct statements: none is ever prepared twice.
const STATEMENT_CACHE_LEN: usize = 128;

/// Settings for the file, before anything is in it. `page_size` must precede the switch to WAL.
const FILE_SETTINGS: &str = "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL;";

/// `synchronous = FULL`: a commit is on disk when it returns. `temp_store = MEMORY` keeps the savepoints' journal out
/// of temporary files. Checkpoints come every 32 MiB, so that a hot page is copied back once for many changes.
const WRITER_SETTINGS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = OFF;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -65536;
    PRAGMA wal_autocheckpoint = 4096;
    PRAGMA journal_size_limit = 67108864;
";

const READER_SETTINGS: &str = "
    PRAGMA query_only = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -8192;
    PRAGMA mmap_size = 268435456;
";

/// Opens the file for writing.
pub(super) fn open_writer(path: &Path) -> Verb<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    prepare(&connection)?;
    connection.execute_batch(FILE_SETTINGS)?;
    connection.execute_batch(WRITER_SETTINGS)?;
    Ok(connection)
}

/// Opens the file for reading. A writer must have been there before.
pub(super) fn open_reader(path: &Path) -> Verb<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    prepare(&connection)?;
    connection.execute_batch(READER_SETTINGS)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Verb<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_LEN);
    Ok(())
}
