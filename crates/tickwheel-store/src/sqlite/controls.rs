//! Queues, the stop switch, the installation's secret, and a sign of life.

use std::collections::{HashMap, HashSet};

use const_format::formatcp;
use rusqlite::Connection;
use tickwheel_core::ports::{Controls, DueCount, Queue};
use tickwheel_core::{RouteId, RunId, Timestamp};
use uuid::Uuid;

use super::fault::Verb;
use super::workers::count_due_routes;
use crate::codes::{PRIORITIES, RUN_PAUSED, SCHEDULED};
use crate::columns::decode_secret;

/// See [`tickwheel_core::ports::ControlStore::list_queues`].
pub(super) fn list_queues(connection: &Connection) -> Verb<Vec<Queue>> {
    let mut statement = connection.prepare_cached("SELECT name, paused FROM queues ORDER BY name")?;
    let queues = statement.query_map([], |row| Ok(Queue { name: row.get(0)?, paused: row.get(1)? }))?;
    Ok(queues.collect::<rusqlite::Result<_>>()?)
}

/// See [`tickwheel_core::ports::ControlStore::count_due`].
pub(super) fn count_due(
    connection: &Connection,
    queues: &[String],
    now: Timestamp,
    limit: usize,
) -> Verb<Vec<DueCount>> {
    let wanted: HashSet<&str> = queues.iter().map(String::as_str).collect();
    let mut counts: HashMap<String, DueCount> = HashMap::new();
    let all_seen = count_built_in(connection, now, limit, |queue, jobs| {
        counts.entry(queue).or_default().jobs += jobs;
    })?;
    let routes = routes_of(connection, &wanted, limit)?;
    // Each route is seen, and all together are not too many.
    let share = (limit / routes.len().max(1)).max(1);
    let all_seen = all_seen && routes.len() < limit;
    for (route, queue) in routes {
        let jobs = count_due_routes(connection, &[route], now, share)?;
        let count = counts.entry(queue).or_default();
        (count.jobs, count.more) = (count.jobs + jobs, count.more || jobs >= share as u64);
    }
    let count_of = |queue: &String| {
        let count = counts.get(queue).copied().unwrap_or_default();
        DueCount { more: count.more || !all_seen, ..count }
    };
    Ok(queues.iter().map(count_of).collect())
}

/// The due jobs of the built-in executors, by queue. `false`: there are more.
fn count_built_in(
    connection: &Connection,
    now: Timestamp,
    limit: usize,
    mut count: impl FnMut(String, u64),
) -> Verb<bool> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT queue, count(*) FROM (
             SELECT queue FROM jobs INDEXED BY jobs_due
             WHERE route IS NULL AND priority IN ({PRIORITIES}) AND due_at <= ?1 AND due_at < 9223372036854775807
               AND state = {SCHEDULED} LIMIT ?2)
         GROUP BY queue"
    ))?;
    let mut rows = statement.query((now.as_millis(), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        let jobs = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        seen += jobs;
        count(row.get(0)?, jobs);
    }
    Ok(seen < limit as u64)
}

/// The routes in these queues.
fn routes_of(connection: &Connection, queues: &HashSet<&str>, limit: usize) -> Verb<Vec<(RouteId, String)>> {
    let mut statement = connection.prepare_cached("SELECT id, queue FROM routes")?;
    let mut rows = statement.query([])?;
    let mut routes = Vec::new();
    while let Some(row) = rows.next()?
        && routes.len() < limit
    {
        let queue = row.get_ref(1)?.as_str()?;
        if queues.contains(queue) {
            routes.push((RouteId::from_uuid(row.get(0)?), queue.to_owned()));
        }
    }
    Ok(routes)
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
