//! The three writes on SQLite: one connection, write-ahead log, `synchronous = FULL`, the page size and the checkpoints
//! of the embedded store.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, Transaction};
use serde_json::Value;
use uuid::Uuid;

use crate::jobs::{BATCH_LEN, PAYLOAD, ids, rates};

const SETTINGS: &str = "
    PRAGMA page_size = 8192;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -65536;
    PRAGMA wal_autocheckpoint = 4096;
";

const SCHEMA: &str = "
    CREATE TABLE jobs (id BLOB PRIMARY KEY NOT NULL, due_at INTEGER NOT NULL, state INTEGER NOT NULL,
                       attempt INTEGER NOT NULL DEFAULT 0, session BLOB, payload TEXT NOT NULL) STRICT;
    CREATE INDEX jobs_due ON jobs (due_at, id);
    CREATE TABLE finished_jobs (id BLOB PRIMARY KEY NOT NULL, due_at INTEGER NOT NULL, state INTEGER NOT NULL,
                                attempt INTEGER NOT NULL, payload TEXT NOT NULL) STRICT;
";

/// Rates of inserting and of draining.
pub fn measure(directory: &Path, jobs: usize) -> anyhow::Result<Value> {
    let mut connection = Connection::open(directory.join("floor.db"))?;
    connection.execute_batch(SETTINGS)?;
    connection.execute_batch(SCHEMA)?;
    let ids = ids(jobs);

    let begun = Instant::now();
    for batch in ids.chunks(BATCH_LEN) {
        in_one_transaction(&mut connection, |transaction| insert(transaction, batch))?;
    }
    let inserting = begun.elapsed();

    let begun = Instant::now();
    for batch in ids.chunks(BATCH_LEN) {
        in_one_transaction(&mut connection, |transaction| claim(transaction, batch))?;
        in_one_transaction(&mut connection, |transaction| settle(transaction, batch))?;
    }
    Ok(rates(jobs, inserting, begun.elapsed()))
}

fn in_one_transaction(
    connection: &mut Connection,
    write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    write(&transaction)?;
    transaction.commit()
}

fn insert(transaction: &Transaction<'_>, ids: &[Uuid]) -> rusqlite::Result<()> {
    let mut statement =
        transaction.prepare_cached("INSERT INTO jobs (id, due_at, state, payload) VALUES (?1, ?2, 1, ?3)")?;
    for id in ids {
        statement.execute((id.as_bytes(), 0, PAYLOAD))?;
    }
    Ok(())
}

fn claim(transaction: &Transaction<'_>, ids: &[Uuid]) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "UPDATE jobs SET state = 3, attempt = attempt + 1, session = ?2 WHERE id = ?1 AND state = 1 RETURNING payload",
    )?;
    let session = Uuid::nil();
    for id in ids {
        statement.query_row((id.as_bytes(), session.as_bytes()), |row| row.get::<_, String>(0))?;
    }
    Ok(())
}

fn settle(transaction: &Transaction<'_>, ids: &[Uuid]) -> rusqlite::Result<()> {
    let mut copy = transaction.prepare_cached(
        "INSERT INTO finished_jobs (id, due_at, state, attempt, payload)
         SELECT id, due_at, 4, attempt, payload FROM jobs WHERE id = ?1 AND state = 3",
    )?;
    let mut delete = transaction.prepare_cached("DELETE FROM jobs WHERE id = ?1")?;
    for id in ids {
        copy.execute([id.as_bytes()])?;
        delete.execute([id.as_bytes()])?;
    }
    Ok(())
}
