//! Who is trusted to be alive, and the jobs of those who are not any more.

use const_format::formatcp;
use rusqlite::Connection;
use tickwheel_core::ports::{FindAbandoned, Session};
use tickwheel_core::{Job, SessionId, Timestamp};
use uuid::Uuid;

use super::fault::Verb;
use super::row::{LIVE_COLUMNS, job_from_row};
use crate::codes::RUNNING;

/// See [`tickwheel_core::ports::SessionStore::open_session`].
pub(super) fn open_session(connection: &Connection, session: &Session) -> Verb<()> {
    connection
        .prepare_cached("INSERT INTO sessions (id, node, expires_at) VALUES (?1, ?2, ?3)")?
        .execute((session.id.as_uuid(), &session.node, session.expires_at.as_millis()))?;
    Ok(())
}

/// See [`tickwheel_core::ports::SessionStore::renew_session`].
pub(super) fn renew_session(connection: &Connection, id: SessionId, expires_at: Timestamp) -> Verb<bool> {
    let renewed = connection
        .prepare_cached("UPDATE sessions SET expires_at = ?2 WHERE id = ?1")?
        .execute((id.as_uuid(), expires_at.as_millis()))?;
    Ok(renewed == 1)
}

/// See [`tickwheel_core::ports::SessionStore::end_session`].
pub(super) fn end_session(connection: &Connection, id: SessionId) -> Verb<()> {
    connection.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id.as_uuid()])?;
    Ok(())
}

/// See [`tickwheel_core::ports::SessionStore::expire_sessions`]. One process at a time has the file: whoever asks is
/// that process, so every other session of a node belongs to one that is dead, whatever its lease says.
pub(super) fn expire_sessions(
    connection: &Connection,
    own: SessionId,
    now: Timestamp,
) -> Verb<Vec<SessionId>> {
    let mut statement = connection.prepare_cached(
        "DELETE FROM sessions WHERE id <> ?1 AND (profile IS NULL OR expires_at <= ?2) RETURNING id",
    )?;
    let ended = statement.query_map((own.as_uuid(), now.as_millis()), |row| row.get::<_, Uuid>(0))?;
    Ok(ended.map(|id| id.map(SessionId::from_uuid)).collect::<rusqlite::Result<_>>()?)
}

/// Whether the session is known and has not ended.
pub(super) fn is_open(connection: &Connection, id: SessionId) -> Verb<bool> {
    Ok(connection.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?.exists([id.as_uuid()])?)
}

/// See [`tickwheel_core::ports::SessionStore::find_abandoned`].
pub(super) fn find_abandoned(connection: &Connection, find: &FindAbandoned) -> Verb<Vec<Job>> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT {} FROM jobs INDEXED BY jobs_running
         WHERE state = {RUNNING}
           AND (deadline < ?1
                OR session IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = jobs.session))
         LIMIT ?2",
        LIVE_COLUMNS
    ))?;
    let limit = i64::try_from(find.limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(((find.now - find.grace).as_millis(), limit))?;
    let mut abandoned = Vec::new();
    while let Some(row) = rows.next()? {
        abandoned.push(job_from_row(row)?);
    }
    Ok(abandoned)
}
