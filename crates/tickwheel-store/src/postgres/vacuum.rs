//! Clears the hot tables of dead rows in time.
//!
//! A job is a row that is rewritten when it is claimed and deleted when it ends, so the tables of live jobs leave as
//! many dead rows a second as there are jobs. The server itself looks once a minute, and by then the few live rows lie
//! scattered over thousands of pages, which every claim has to walk through.
//!
//! On a connection of its own, for a vacuum takes as long as it takes. It never waits for a lock, and leaves the
//! table's length alone, which would take one that stops everybody. Tables that belong to somebody else are left to the
//! server.

use std::time::{Duration, Instant};

use tickwheel_core::ports::{StoreResult, Vacuumed};
use tokio::time::timeout;
use tokio_postgres::{Config, NoTls};

use super::PostgresStore;
use super::connect::CONNECT_TIMEOUT;
use super::error::{no_connection, not_done};

/// One takes no longer: what is left is done by the next.
pub(super) const TIME_MAX: Duration = Duration::from_secs(300);

/// Tables whose rows live for seconds. Names, as they are part of a statement.
const HOT: [&str; 7] =
    ["jobs", "job_tags", "dependencies", "callbacks", "schedules", "workflow_runs", "reconcile_requests"];

/// A twentieth of a table at least: walking through the indexes costs as much for few dead rows as for many.
const DIRTY: &str = "SELECT c.relname::text, s.n_dead_tup \
     FROM unnest($1::text[]) AS t (name) \
     JOIN pg_class AS c ON c.oid = to_regclass(t.name) \
     JOIN pg_stat_all_tables AS s ON s.relid = c.oid \
     WHERE s.n_dead_tup >= greatest($2::bigint, s.n_live_tup / 20) AND pg_has_role(c.relowner, 'USAGE')";

/// Vacuums those of the hot tables that have so many dead rows.
pub(super) async fn vacuum(store: &PostgresStore, dead_rows_min: u64) -> StoreResult<Vacuumed> {
    let began = Instant::now();
    let dead_rows_min = i64::try_from(dead_rows_min).unwrap_or(i64::MAX);
    let dirty = store.read(DIRTY, &[&&HOT[..], &dead_rows_min]).await?;
    let mut done = Vacuumed::default();
    if dirty.is_empty() {
        return Ok(done);
    }
    let (client, connection) = connect(&store.vacuums).await?;
    let connection = tokio::spawn(connection);
    for table in &dirty {
        let (name, dead): (&str, i64) = (table.get(0), table.get(1));
        let statement = format!("VACUUM (SKIP_LOCKED, TRUNCATE off, INDEX_CLEANUP on) {name}");
        client.batch_execute(&statement).await.map_err(not_done)?;
        done.tables += 1;
        done.dead_rows += dead.unsigned_abs();
    }
    drop(client);
    // It ends because nobody uses it any more.
    let _ = connection.await;
    Ok(Vacuumed { took: began.elapsed(), ..done })
}

async fn connect(
    config: &Config,
) -> StoreResult<(tokio_postgres::Client, impl Future<Output = Result<(), tokio_postgres::Error>> + use<>)> {
    let connected = timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await;
    connected.map_err(|_| no_connection("no answer in time"))?.map_err(no_connection)
}

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[DIRTY];
