//! Queues, the stop switch, the installation's secret, and whether the server does its work.

use std::collections::HashMap;

use const_format::formatcp;
use tickwheel_core::ports::{Controls, DueCount, Queue, StoreResult};
use tickwheel_core::{RunId, Timestamp};
use uuid::Uuid;

use super::PostgresStore;
use super::error::{not_done, write_failed};
use super::locks::BEGIN_CONTROL;
use super::pipeline::{Param, Step, transact};
use super::row::{column, limit};
use crate::codes::{PRIORITIES, RUN_PAUSED, SCHEDULED};
use crate::columns::decode_secret;
use crate::error::corrupt;

const LIST_QUEUES: &str = "\
SELECT name, paused FROM queues ORDER BY name";

// Written out by priority, and by route for those that wait for workers: each is a walk along an index, and each has an
// end. Of every route some are seen, and all together are not too many.
const COUNT_DUE: &str = formatcp!(
    "\
WITH built_in AS MATERIALIZED (
    SELECT j.queue FROM jobs AS j
    WHERE j.priority = ANY (ARRAY[{PRIORITIES}]::smallint[]) AND j.due_at <= $2::bigint
      AND j.due_at < 9223372036854775807 AND j.route IS NULL AND j.state = {SCHEDULED} LIMIT $3::bigint),
wanted AS MATERIALIZED (
    SELECT id, queue FROM routes WHERE queue = ANY ($1::text[]) LIMIT $3::bigint),
share AS MATERIALIZED (
    SELECT greatest($3::bigint / greatest(count(*), 1), 1) AS len FROM wanted)
SELECT queue, sum(jobs)::bigint, bool_or(more)
    OR greatest((SELECT count(*) FROM built_in), (SELECT count(*) FROM wanted)) >= $3::bigint
FROM (
    SELECT name AS queue, 0::bigint AS jobs, false AS more FROM unnest($1::text[]) AS q (name)
    UNION ALL
    SELECT queue, count(*), false FROM built_in WHERE queue = ANY ($1::text[]) GROUP BY queue
    UNION ALL
    SELECT w.queue, due.jobs, due.jobs >= share.len
    FROM wanted AS w CROSS JOIN share CROSS JOIN LATERAL (
        SELECT count(*) AS jobs FROM (
            SELECT 1 FROM jobs AS j
            WHERE j.route = w.id AND j.priority = ANY (ARRAY[{PRIORITIES}]::smallint[]) AND j.due_at <= $2::bigint
              AND j.due_at < 9223372036854775807 AND j.state = {SCHEDULED} LIMIT (SELECT len FROM share)) AS seen) AS due) AS counted
GROUP BY queue"
);

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

/// How many jobs of each queue wait and are due.
pub(super) async fn count_due(
    store: &PostgresStore,
    queues: Vec<String>,
    now: Timestamp,
    len_max: usize,
) -> StoreResult<Vec<DueCount>> {
    let rows = store.read(COUNT_DUE, &[&queues, &now.as_millis(), &limit(len_max)]).await?;
    let mut counts: HashMap<&str, DueCount> = HashMap::new();
    for row in &rows {
        let jobs = u64::try_from(column::<i64>(row, 1)?).unwrap_or(0);
        counts.insert(column(row, 0)?, DueCount { jobs, more: column(row, 2)? });
    }
    Ok(queues.iter().map(|queue| counts.get(queue.as_str()).copied().unwrap_or_default()).collect())
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
