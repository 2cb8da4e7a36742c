//! Queues, the stop switch, the installation's secret, and whether the server does its work.

use const_format::formatcp;
use tickwheel_core::ports::{Controls, Queue, StoreResult};
use tickwheel_core::{RunId, State, Timestamp};
use uuid::Uuid;

use super::PostgresStore;
use super::error::{not_done, write_failed};
use super::locks::BEGIN_CONTROL;
use super::pipeline::{Param, Step, transact};
use super::row::column;
use crate::codes::RUN_PAUSED;
use crate::columns::decode_secret;
use crate::error::corrupt;

const LIST_QUEUES: &str = "\
SELECT name, paused FROM queues ORDER BY name";

// Written out by priority, and by route for those that wait for workers: each is a walk along an index.
const COUNT_DUE: &str = "\
SELECT (SELECT count(*) FROM generate_series(0, 3) AS p (priority)
        JOIN jobs j ON j.priority = p.priority::smallint AND j.due_at <= $2::bigint
          AND j.due_at < 9223372036854775807 AND j.route IS NULL
        WHERE j.queue = $1::text AND j.state = $3::smallint)
     + (SELECT count(*) FROM routes AS r CROSS JOIN generate_series(0, 3) AS p (priority)
        JOIN jobs j ON j.route = r.id AND j.priority = p.priority::smallint AND j.due_at <= $2::bigint
          AND j.due_at < 9223372036854775807
        WHERE r.queue = $1::text AND j.state = $3::smallint)";

const SET_PAUSED: &str = "\
INSERT INTO queues (name, paused) VALUES ($1::text, $2::boolean)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused";

const CONTROLS: &str = formatcp!(
    "\
SELECT halted, ARRAY(SELECT name FROM queues WHERE paused ORDER BY name),
       ARRAY(SELECT id FROM workflow_runs WHERE status = {RUN_PAUSED} ORDER BY uuid_send(id))
FROM installation WHERE single"
);

const HALTED: &str = "\
SELECT halted FROM installation WHERE single";

const SET_HALTED: &str = "\
UPDATE installation SET halted = $1::boolean WHERE single";

const SECRET: &str = "\
UPDATE installation SET secret = coalesce(secret, $1::bytea) WHERE single RETURNING secret";

// A message in the write-ahead log goes the way of every commit and leaves nothing behind in any table. A standby
// refuses it.
const PING: &str = "\
SELECT pg_logical_emit_message(true, 'tickwheel', 'ping')";

// The log is written into files that are there already, and a full disk is seen only by what grows. A set that does not
// fit into memory is such a thing: it takes half a MiB of a temporary file, and leaves nothing behind either.
const BEGIN_PING: &str = "BEGIN; SET LOCAL work_mem = '64kB'";
const PING_ROOM: &str = "\
SELECT count(*) FROM generate_series(1, 40000)";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[LIST_QUEUES, COUNT_DUE, SET_PAUSED, CONTROLS, HALTED, SET_HALTED, SECRET, PING, PING_ROOM];

/// Every queue, by name.
pub(super) async fn list_queues(store: &PostgresStore) -> StoreResult<Vec<Queue>> {
    let rows = store.read(LIST_QUEUES, &[]).await?;
    rows.iter().map(|row| Ok(Queue { name: column(row, 0)?, paused: column(row, 1)? })).collect()
}

/// How many jobs of a queue wait and are due.
pub(super) async fn count_due(store: &PostgresStore, queue: &str, now: Timestamp) -> StoreResult<u64> {
    let rows = store.read(COUNT_DUE, &[&queue, &now.as_millis(), &State::Scheduled.code()]).await?;
    let counted: i64 = column(rows.first().ok_or_else(|| corrupt("jobs", "a count has no row"))?, 0)?;
    Ok(u64::try_from(counted).unwrap_or(0))
}

/// Pauses or resumes a queue.
pub(super) async fn set_queue_paused(store: &PostgresStore, queue: &str, paused: bool) -> StoreResult<()> {
    control(store, SET_PAUSED, vec![&queue, &paused]).await
}

/// All that forbids starts.
pub(super) async fn controls(store: &PostgresStore) -> StoreResult<Controls> {
    let rows = store.read(CONTROLS, &[]).await?;
    let row = rows.first().ok_or_else(|| corrupt("installation", "its row is missing"))?;
    let paused_runs = column::<Vec<Uuid>>(row, 2)?.into_iter().map(RunId::from_uuid).collect();
    Ok(Controls { halted: column(row, 0)?, paused_queues: column(row, 1)?, paused_runs })
}

/// Whether the stop switch is on.
pub(super) async fn halted(store: &PostgresStore) -> StoreResult<bool> {
    let rows = store.read(HALTED, &[]).await?;
    column(rows.first().ok_or_else(|| corrupt("installation", "its row is missing"))?, 0)
}

/// Turns the stop switch.
pub(super) async fn set_halted(store: &PostgresStore, halted: bool) -> StoreResult<()> {
    control(store, SET_HALTED, vec![&halted]).await
}

/// A change that no claim may overtake.
async fn control(store: &PostgresStore, sql: &str, params: Vec<Param<'_>>) -> StoreResult<()> {
    let client = store.client().await?;
    let step = Step::prepare(&client, sql, params).await?;
    transact(&client, BEGIN_CONTROL, &[step]).await.map_err(write_failed)?;
    Ok(())
}

/// The installation's secret: `candidate` if there was none yet.
pub(super) async fn installation_secret(store: &PostgresStore, candidate: [u8; 32]) -> StoreResult<[u8; 32]> {
    let rows = store.write_returning(SECRET, &[&candidate.as_slice()]).await?;
    let row = rows.first().ok_or_else(|| corrupt("installation", "its row is missing"))?;
    decode_secret(column(row, 0)?)
}

/// Whether the server commits, and has room for more.
pub(super) async fn ping(store: &PostgresStore) -> StoreResult<()> {
    let client = store.client().await?;
    let steps = [
        Step::prepare(&client, PING, Vec::new()).await?,
        Step::prepare(&client, PING_ROOM, Vec::new()).await?,
    ];
    // Nothing was to be changed: if it fails, nothing was.
    transact(&client, BEGIN_PING, &steps).await.map(drop).map_err(not_done)
}
