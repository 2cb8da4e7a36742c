//! Who is alive, and which attempts nobody takes care of any more.

use const_format::formatcp;
use tickwheel_core::ports::{FindAbandoned, Session, StoreResult};
use tickwheel_core::{Job, SessionId, Timestamp};
use tokio_postgres::types::Type;

use super::PostgresStore;
use super::error::{not_done, write_failed};
use super::locks::session_key;
use super::pipeline::Param;
use super::row::{LIVE_COLUMNS, column, limit, read_sound_jobs};
use crate::codes::{PRIORITIES, RUNNING};
use crate::error::corrupt;

const NOW: &str = "\
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const OPEN: &str = "\
INSERT INTO sessions (id, node, expires_at) VALUES ($1::uuid, $2::text, $3::bigint)";

const RENEW: &str = "\
UPDATE sessions SET expires_at = $2::bigint WHERE id = $1::uuid";

const END: &str = "\
DELETE FROM sessions WHERE id = $1::uuid";

// A lock that can be taken has no living holder. Taken for the length of this statement only. Our own sessions are left
// out: the connection that asks is the one that holds their locks, and would be given them again.
const EXPIRE: &str = concat!(
    "\
DELETE FROM sessions
WHERE id <> $1::uuid
  AND (expires_at <= $2::bigint
       OR (profile IS NULL AND id <> ALL ($3::uuid[]) AND pg_try_advisory_xact_lock(",
    session_key!("id"),
    ")))
RETURNING id, profile IS NULL"
);

// What the built-in executors run. It was due: the walk ends at the present and never sees the far future. There are no more than these four
// priorities.
const FIND_ABANDONED: &str = formatcp!(
    "\
SELECT {}
FROM jobs AS j
WHERE j.priority = ANY (ARRAY[{PRIORITIES}]::smallint[])
  AND j.due_at <= $1::bigint AND j.due_at < 9223372036854775807 AND j.route IS NULL
  AND j.state = {RUNNING}
  AND ((j.session IS NOT NULL AND j.session NOT IN (SELECT id FROM sessions)) OR j.deadline < $2::bigint)
LIMIT $3::bigint",
    LIVE_COLUMNS
);

/// Notes of what workers run that are old: the worker is gone, or the deadline is.
const OLD_NOTE: &str = "(w.session NOT IN (SELECT id FROM sessions) OR w.deadline < $1::bigint)";

const FIND_ABANDONED_BY_WORKERS: &str = formatcp!(
    "\
SELECT {}
FROM worker_attempts AS w JOIN jobs AS j ON j.id = w.job_id AND j.state = {RUNNING}
WHERE {OLD_NOTE} AND j.route IS NOT NULL
  AND (j.session = w.session OR (j.session IS NULL AND j.deadline < $1::bigint))
LIMIT $2::bigint",
    LIVE_COLUMNS
);

// Of those whose job does not run under that session any more. An attempt whose target is to report by itself runs under
// none, and its note is what it is found by when its time is over.
const DELETE_OLD_NOTES: &str = formatcp!(
    "\
DELETE FROM worker_attempts AS w
WHERE {OLD_NOTE} AND NOT EXISTS (
    SELECT 1 FROM jobs AS j
    WHERE j.id = w.job_id AND j.state = {RUNNING} AND (j.session = w.session OR j.session IS NULL))"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[NOW, OPEN, RENEW, END, EXPIRE, FIND_ABANDONED, FIND_ABANDONED_BY_WORKERS, DELETE_OLD_NOTES];

/// The server's clock.
pub(super) async fn now(store: &PostgresStore) -> StoreResult<Timestamp> {
    let connection = store.session_connection.connection().await?;
    let rows = connection.client.query_typed(NOW, &[]).await.map_err(not_done)?;
    let row = rows.first().ok_or_else(|| corrupt("sessions", "the server's clock has no row"))?;
    Ok(Timestamp::from_millis(column(row, 0)?))
}

/// Makes a session known. Its lock is taken before its row can be seen: nobody finds the row of a living process
/// unlocked.
pub(super) async fn open_session(store: &PostgresStore, session: Session) -> StoreResult<()> {
    let connection = store.session_connection.connection().await?;
    store.session_connection.hold(&connection, session.id).await?;
    let params: &[(Param<'_>, Type)] = &[
        (&session.id.as_uuid(), Type::UUID),
        (&session.node, Type::TEXT),
        (&session.expires_at.as_millis(), Type::INT8),
    ];
    let result = connection.client.execute_typed(OPEN, params).await.map_err(write_failed);
    if result.as_ref().is_err_and(|error| error.is_certainly_aborted()) {
        store.session_connection.release(&connection, session.id).await;
    }
    result.map(drop)
}

/// Prolongs a session's lease.
pub(super) async fn renew_session(
    store: &PostgresStore,
    id: SessionId,
    expires_at: Timestamp,
) -> StoreResult<bool> {
    let connection = store.session_connection.connection().await?;
    store.session_connection.hold_again(&connection, id).await?;
    let params: &[(Param<'_>, Type)] = &[(&id.as_uuid(), Type::UUID), (&expires_at.as_millis(), Type::INT8)];
    let renewed = connection.client.execute_typed(RENEW, params).await.map_err(write_failed)? == 1;
    if !renewed {
        store.session_connection.release(&connection, id).await;
    }
    Ok(renewed)
}

/// Ends a session.
pub(super) async fn end_session(store: &PostgresStore, id: SessionId) -> StoreResult<()> {
    let connection = store.session_connection.connection().await?;
    connection.client.execute_typed(END, &[(&id.as_uuid(), Type::UUID)]).await.map_err(write_failed)?;
    store.session_connection.release(&connection, id).await;
    Ok(())
}

/// Ends every session whose lease is over or whose lock nobody holds, except `own`.
pub(super) async fn expire_sessions(
    store: &PostgresStore,
    own: SessionId,
    now: Timestamp,
) -> StoreResult<Vec<SessionId>> {
    let connection = store.session_connection.connection().await?;
    let held = store.session_connection.held();
    let params: &[(Param<'_>, Type)] =
        &[(&own.as_uuid(), Type::UUID), (&now.as_millis(), Type::INT8), (&held, Type::UUID_ARRAY)];
    let ended = connection.client.query_typed(EXPIRE, params).await.map_err(write_failed)?;
    let mut ids = Vec::with_capacity(ended.len());
    for row in &ended {
        let id = SessionId::from_uuid(column(row, 0)?);
        if column(row, 1)? {
            store.session_connection.release(&connection, id).await;
        }
        ids.push(id);
    }
    Ok(ids)
}

/// Running jobs whose session has ended, or whose deadline passed more than the grace ago; by id.
pub(super) async fn find_abandoned(store: &PostgresStore, find: FindAbandoned) -> StoreResult<Vec<Job>> {
    let overdue_before = (find.now - find.grace).as_millis();
    let params: [Param<'_>; 3] = [&find.now.as_millis(), &overdue_before, &limit(find.limit)];
    let mut jobs = read_sound_jobs(&store.read(FIND_ABANDONED, &params).await?);
    let of_workers = store.read(FIND_ABANDONED_BY_WORKERS, &[&overdue_before, &limit(find.limit)]).await?;
    if of_workers.is_empty() {
        store.write(DELETE_OLD_NOTES, &[&overdue_before]).await?;
    }
    jobs.extend(read_sound_jobs(&of_workers));
    jobs.truncate(find.limit);
    jobs.sort_unstable_by_key(|job| job.id);
    Ok(jobs)
}
