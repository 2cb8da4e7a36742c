//! Queues, the stop switch, the installation's secret, and a sign of life.

use const_format::formatcp;
use rusqlite::Connection;
use tickwheel_core::ports::{Controls, Queue};
use tickwheel_core::{RunId, State, Timestamp};
use uuid::Uuid;

use super::fault::Verb;
use crate::codes::{PRIORITIES, RUN_PAUSED};
use crate::columns::decode_secret;

/// See [`tickwheel_core::ports::ControlStore::list_queues`].
pub(super) fn list_queues(connection: &Connection) -> Verb<Vec<Queue>> {
    let mut statement = connection.prepare_cached("SELECT name, paused FROM queues ORDER BY name")?;
    let queues = statement.query_map([], |row| Ok(Queue { name: row.get(0)?, paused: row.get(1)? }))?;
    Ok(queues.collect::<rusqlite::Result<_>>()?)
}

/// See [`tickwheel_core::ports::ControlStore::count_due`]. Walks the due jobs of each priority, and of each route for workers.
pub(super) fn count_due(connection: &Connection, queue: &str, now: Timestamp) -> Verb<u64> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT (SELECT count(*) FROM jobs INDEXED BY jobs_due
                 WHERE route IS NULL AND priority IN ({PRIORITIES}) AND due_at <= ?2 AND due_at < 9223372036854775807
                   AND queue = ?1 AND state = ?3)
              + (SELECT count(*) FROM routes CROSS JOIN jobs INDEXED BY jobs_route
                 WHERE routes.queue = ?1 AND jobs.route = routes.id AND priority IN ({PRIORITIES}) AND due_at <= ?2
                   AND due_at < 9223372036854775807 AND state = ?3)"
    ))?;
    let counted: i64 =
        statement.query_row((queue, now.as_millis(), State::Scheduled.code()), |row| row.get(0))?;
    Ok(u64::try_from(counted).unwrap_or(0))
}

/// See [`tickwheel_core::ports::ControlStore::set_queue_paused`].
pub(super) fn set_queue_paused(connection: &Connection, queue: &str, paused: bool) -> Verb<()> {
    connection
        .prepare_cached(
            "INSERT INTO queues (name, paused) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET paused = excluded.paused",
        )?
        .execute((queue, paused))?;
    Ok(())
}

/// See [`tickwheel_core::ports::ControlStore::controls`].
pub(super) fn controls(connection: &Connection) -> Verb<Controls> {
    let mut queues = connection.prepare_cached("SELECT name FROM queues WHERE paused ORDER BY name")?;
    let paused_queues = queues.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut runs = connection.prepare_cached(formatcp!(
        "SELECT id FROM workflow_runs INDEXED BY workflow_runs_paused WHERE status = {RUN_PAUSED} ORDER BY id"
    ))?;
    let paused_runs = runs
        .query_map([], |row| row.get::<_, Uuid>(0).map(RunId::from_uuid))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Controls { halted: is_halted(connection)?, paused_queues, paused_runs })
}

/// Whether the stop switch is on.
pub(super) fn is_halted(connection: &Connection) -> Verb<bool> {
    Ok(connection.prepare_cached("SELECT halted FROM installation")?.query_row([], |row| row.get(0))?)
}

/// See [`tickwheel_core::ports::ControlStore::set_halted`].
pub(super) fn set_halted(connection: &Connection, halted: bool) -> Verb<()> {
    connection.prepare_cached("UPDATE installation SET halted = ?1")?.execute([halted])?;
    Ok(())
}

/// See [`tickwheel_core::ports::ControlStore::installation_secret`].
pub(super) fn installation_secret(connection: &Connection, candidate: [u8; 32]) -> Verb<[u8; 32]> {
    connection
        .prepare_cached("UPDATE installation SET secret = ?1 WHERE secret IS NULL")?
        .execute([candidate])?;
    let mut statement = connection.prepare_cached("SELECT secret FROM installation")?;
    statement.query_row([], |row| Ok(decode_secret(row.get_ref(0)?.as_blob()?)))?.map_err(Into::into)
}

/// See [`tickwheel_core::ports::ControlStore::ping`]. There and back: nothing has changed, but the page was touched, so
/// the commit has to reach the disk. An update to the same value would write nothing and prove nothing.
pub(super) fn ping(connection: &Connection) -> Verb<()> {
    let mut flip = connection.prepare_cached("UPDATE installation SET halted = NOT halted")?;
    flip.execute([])?;
    flip.execute([])?;
    Ok(())
}
