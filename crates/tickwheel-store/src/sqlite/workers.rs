//! The sessions of workers, what they run, and the routes of the jobs that wait for one.

use const_format::formatcp;
use rusqlite::{Connection, OptionalExtension, Row};
use tickwheel_core::matching::Route;
use tickwheel_core::ports::{HeldAttempt, RoutesLookedAt, WorkerRenewal};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::{Job, JobId, RouteId, SessionId, Timestamp};
use uuid::Uuid;

use super::fault::Verb;
use super::row::{LIVE_COLUMNS, job_from_row};
use crate::codes::{FOR_WORKERS, PRIORITIES, RUNNING, SCHEDULED};
use crate::worker_columns::{RouteRow, WorkerRow, encode_profile, encode_requires, encode_skill};

const SESSION_COLUMNS: &str = "id, profile, opened_at, expires_at, draining";

fn read_session(row: &Row<'_>) -> Verb<WorkerSession> {
    let session = WorkerRow {
        id: row.get(0)?,
        profile: row.get_ref(1)?.as_str()?,
        opened_at: row.get(2)?,
        expires_at: row.get(3)?,
        draining: row.get(4)?,
    };
    Ok(session.decode()?)
}

/// See [`tickwheel_core::ports::WorkerStore::open_worker`].
pub(super) fn open_worker(
    connection: &Connection,
    worker: &NewWorker,
    now: Timestamp,
) -> Verb<WorkerSession> {
    let profile = &worker.profile;
    let lease_ms = i64::try_from(profile.lease_ms).unwrap_or(i64::MAX);
    connection
        .prepare_cached(formatcp!(
            "INSERT INTO sessions (id, node, instance, profile, lease_ms, opened_at, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (instance) WHERE instance IS NOT NULL
             DO UPDATE SET node = excluded.node, profile = excluded.profile, lease_ms = excluded.lease_ms,
                 expires_at = excluded.expires_at
             RETURNING {SESSION_COLUMNS}"
        ))?
        .query_row(
            (
                worker.id.as_uuid(),
                &profile.name,
                worker.instance,
                encode_profile(profile),
                lease_ms,
                now.as_millis(),
                (now + profile.lease()).as_millis(),
            ),
            |row| Ok(read_session(row)),
        )?
}

/// See [`tickwheel_core::ports::WorkerStore::renew_worker`].
pub(super) fn renew_worker(
    connection: &Connection,
    id: SessionId,
    now: Timestamp,
) -> Verb<Option<WorkerRenewal>> {
    let renewed = connection
        .prepare_cached(formatcp!(
            "UPDATE sessions SET expires_at = ?2 + lease_ms WHERE id = ?1 AND profile IS NOT NULL
             RETURNING {SESSION_COLUMNS}"
        ))?
        .query_row((id.as_uuid(), now.as_millis()), |row| Ok(read_session(row)))
        .optional()?
        .transpose()?;
    let Some(session) = renewed else { return Ok(None) };
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT id, attempt FROM jobs INDEXED BY jobs_running
         WHERE state = {RUNNING} AND session = ?1 AND cancel_requested"
    ))?;
    let cancelled = statement.query_map([id.as_uuid()], read_attempt)?;
    let cancel = cancelled.collect::<rusqlite::Result<_>>()?;
    Ok(Some(WorkerRenewal { session, cancel }))
}

/// See [`tickwheel_core::ports::WorkerStore::get_worker`].
pub(super) fn get_worker(connection: &Connection, id: SessionId) -> Verb<Option<WorkerSession>> {
    connection
        .prepare_cached(formatcp!(
            "SELECT {SESSION_COLUMNS} FROM sessions WHERE id = ?1 AND profile IS NOT NULL"
        ))?
        .query_row([id.as_uuid()], |row| Ok(read_session(row)))
        .optional()?
        .transpose()
}

/// See [`tickwheel_core::ports::WorkerStore::list_workers`].
pub(super) fn list_workers(
    connection: &Connection,
    after: Option<SessionId>,
    limit: usize,
) -> Verb<Vec<WorkerSession>> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT {SESSION_COLUMNS} FROM sessions WHERE profile IS NOT NULL AND (?1 IS NULL OR id > ?1)
         ORDER BY id LIMIT ?2"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map((after.map(SessionId::as_uuid), limit), |row| Ok(read_session(row)))?;
    rows.map(|session| session?).collect()
}

/// See [`tickwheel_core::ports::WorkerStore::set_worker_draining`].
pub(super) fn set_worker_draining(connection: &Connection, id: SessionId, draining: bool) -> Verb<bool> {
    let changed = connection
        .prepare_cached("UPDATE sessions SET draining = ?2 WHERE id = ?1 AND profile IS NOT NULL")?
        .execute((id.as_uuid(), draining))?;
    Ok(changed == 1)
}

/// See [`tickwheel_core::ports::WorkerStore::end_worker`].
pub(super) fn end_worker(connection: &Connection, id: SessionId) -> Verb<bool> {
    let ended = connection
        .prepare_cached("DELETE FROM sessions WHERE id = ?1 AND profile IS NOT NULL")?
        .execute([id.as_uuid()])?;
    Ok(ended == 1)
}

/// See [`tickwheel_core::ports::WorkerStore::extend_workers`].
pub(super) fn extend_workers(connection: &Connection, now: Timestamp) -> Verb<()> {
    connection
        .prepare_cached(
            "UPDATE sessions SET expires_at = ?1 + lease_ms
             WHERE profile IS NOT NULL AND expires_at < ?1 + lease_ms",
        )?
        .execute([now.as_millis()])?;
    Ok(())
}

fn read_attempt(row: &Row<'_>) -> rusqlite::Result<AttemptRef> {
    Ok(AttemptRef { job_id: JobId::from_uuid(row.get::<_, Uuid>(0)?), attempt: row.get(1)? })
}

/// See [`tickwheel_core::ports::WorkerStore::held_by`].
pub(super) fn held_by(connection: &Connection, id: SessionId, limit: usize) -> Verb<Vec<HeldAttempt>> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT id, attempt, type, started_at, deadline, cancel_requested FROM jobs INDEXED BY jobs_running
         WHERE state = {RUNNING} AND session = ?1 ORDER BY id LIMIT ?2"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map((id.as_uuid(), limit), |row| {
        Ok(HeldAttempt {
            attempt: read_attempt(row)?,
            job_type: row.get(2)?,
            started_at: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
            deadline: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_millis),
            cancel_requested: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// See [`tickwheel_core::ports::WorkerStore::claimed_by`].
pub(super) fn claimed_by(connection: &Connection, node: SessionId, jobs: &[JobId]) -> Verb<Vec<Job>> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT {LIVE_COLUMNS} FROM jobs WHERE id = ?1 AND state = {RUNNING} AND session IS NOT NULL AND claimed_by = ?2"
    ))?;
    let mut found = Vec::new();
    for id in jobs {
        let mut rows = statement.query((id.as_uuid(), node.as_uuid()))?;
        if let Some(row) = rows.next()? {
            found.push(job_from_row(row)?);
        }
    }
    Ok(found)
}

/// See [`tickwheel_core::ports::WorkerStore::count_held`].
pub(super) fn count_held(connection: &Connection, ids: &[SessionId]) -> Verb<Vec<u64>> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT count(*) FROM jobs INDEXED BY jobs_running WHERE state = {RUNNING} AND session = ?1"
    ))?;
    let count = |id: &SessionId| statement.query_row([id.as_uuid()], |row| row.get::<_, i64>(0));
    let counts = ids.iter().map(count).collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(counts.into_iter().map(|count| u64::try_from(count).unwrap_or(0)).collect())
}

/// See [`tickwheel_core::ports::WorkerStore::count_due_routes`].
pub(super) fn count_due_routes(
    connection: &Connection,
    routes: &[RouteId],
    now: Timestamp,
    limit: usize,
) -> Verb<u64> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT count(*) FROM (SELECT 1 FROM jobs INDEXED BY jobs_route
         WHERE route = ?1 AND priority IN ({PRIORITIES}) AND due_at <= ?2 AND due_at < 9223372036854775807
           AND state = {SCHEDULED} LIMIT ?3)"
    ))?;
    let mut counted = 0;
    for route in routes {
        let left = i64::try_from(limit).unwrap_or(i64::MAX) - counted;
        counted += statement
            .query_row((route.as_uuid(), now.as_millis(), left.max(0)), |row| row.get::<_, i64>(0))?;
    }
    Ok(u64::try_from(counted).unwrap_or(0))
}

/// See [`tickwheel_core::ports::WorkerStore::routes`].
pub(super) fn routes(connection: &Connection) -> Verb<Vec<Route>> {
    let mut statement =
        connection.prepare_cached("SELECT id, queue, type, executor, requires FROM routes")?;
    let mut rows = statement.query([])?;
    let mut routes = Vec::new();
    while let Some(row) = rows.next()? {
        let text = |column| -> Verb<&str> { Ok(row.get_ref(column)?.as_str()?) };
        let (id, queue, job_type) = (row.get(0)?, text(1)?, text(2)?);
        let route = RouteRow { id, queue, job_type, executor: row.get(3)?, requires: text(4)? };
        routes.push(route.decode()?);
    }
    Ok(routes)
}

/// Of a route: whether a live job has it. Those that wait for nothing but their time are in one index, those that cannot
/// be due yet in the other.
const IS_USED: &str = "(EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_route
          WHERE route = routes.id AND due_at < 9223372036854775807)
  OR EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_route_not_due
          WHERE route = routes.id AND due_at = 9223372036854775807))";

/// See [`tickwheel_core::ports::WorkerStore::remove_unused_routes`]. Nobody else writes while this is under way.
pub(super) fn remove_unused_routes(
    connection: &Connection,
    after: Option<RouteId>,
    limit: usize,
) -> Verb<RoutesLookedAt> {
    let mut page = connection
        .prepare_cached("SELECT id FROM routes WHERE ?1 IS NULL OR id > ?1 ORDER BY id LIMIT ?2")?;
    let len_max = i64::try_from(limit).unwrap_or(i64::MAX);
    let ids = page
        .query_map((after.map(RouteId::as_uuid), len_max), |row| row.get::<_, Uuid>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut remove =
        connection.prepare_cached(formatcp!("DELETE FROM routes WHERE id = ?1 AND NOT {IS_USED}"))?;
    let mut removed = 0;
    for id in &ids {
        removed += remove.execute([id])?;
    }
    let next = ids.last().copied().filter(|_| ids.len() == limit).map(RouteId::from_uuid);
    Ok(RoutesLookedAt { removed, next })
}

/// Makes a route known. One that is known already costs a lookup in a small table.
pub(super) fn write_route(connection: &Connection, route: &Route) -> Verb<()> {
    let (job_type, executor) = encode_skill(route);
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO routes (id, queue, type, executor, requires) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((route.id.as_uuid(), &*route.queue, job_type, executor, encode_requires(route)))?;
    Ok(())
}

/// Gives the jobs for workers their routes that were stored before there were any. Nothing was required of a worker then.
pub(super) fn fill_routes(connection: &Connection) -> Verb<()> {
    let mut statement = connection
        .prepare(formatcp!("SELECT DISTINCT queue, type FROM jobs WHERE target = {FOR_WORKERS}"))?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    for (queue, job_type) in rows.collect::<rusqlite::Result<Vec<_>>>()? {
        let route = Route::of_type(&*queue, &*job_type).id.as_uuid();
        // In the columns of that time.
        connection.execute(
            "INSERT OR IGNORE INTO routes (id, queue, type, requires) VALUES (?1, ?2, ?3, '{}')",
            (route, &queue, &job_type),
        )?;
        connection.execute(
            formatcp!("UPDATE jobs SET route = ?1 WHERE target = {FOR_WORKERS} AND queue = ?2 AND type = ?3"),
            (route, &queue, &job_type),
        )?;
    }
    Ok(())
}
