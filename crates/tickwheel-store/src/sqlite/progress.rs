//! How far running attempts have come.

use const_format::formatcp;
use rusqlite::{Connection, OptionalExtension};
use tickwheel_core::progress::Progress;
use tickwheel_core::{JobId, Timestamp};

use super::fault::Verb;
use crate::codes::RUNNING;
use crate::note_columns::{ProgressRow, encode_percent};

/// See [`tickwheel_core::ports::ProgressStore::put_progress`].
pub(super) fn put_progress(connection: &Connection, notes: &[Progress]) -> Verb<()> {
    let mut statement = connection.prepare_cached(formatcp!(
        "INSERT OR REPLACE INTO job_progress (job_id, attempt, percent, message, noted_at)
         SELECT id, attempt, ?3, ?4, ?5 FROM jobs WHERE id = ?1 AND attempt = ?2 AND state = {RUNNING}"
    ))?;
    for note in notes {
        statement.execute((
            note.attempt.job_id.as_uuid(),
            note.attempt.attempt,
            encode_percent(note.percent),
            note.message.as_deref(),
            note.at.as_millis(),
        ))?;
    }
    Ok(())
}

/// See [`tickwheel_core::ports::ProgressStore::get_progress`].
pub(super) fn get_progress(connection: &Connection, id: JobId) -> Verb<Option<Progress>> {
    let row = connection
        .prepare_cached(formatcp!(
            "SELECT p.attempt, p.percent, p.message, p.noted_at FROM job_progress AS p
             JOIN jobs AS j ON j.id = p.job_id AND j.attempt = p.attempt AND j.state = {RUNNING}
             WHERE p.job_id = ?1"
        ))?
        .query_row([id.as_uuid()], |row| {
            Ok(ProgressRow {
                job_id: id.as_uuid(),
                attempt: row.get(0)?,
                percent: row.get(1)?,
                message: row.get(2)?,
                noted_at: row.get(3)?,
            })
        })
        .optional()?;
    Ok(row.map(ProgressRow::decode).transpose()?)
}

/// See [`tickwheel_core::ports::ProgressStore::forget_progress`].
pub(super) fn forget_progress(connection: &Connection, before: Timestamp, limit: usize) -> Verb<usize> {
    let forgotten = connection
        .prepare_cached(formatcp!(
            "DELETE FROM job_progress WHERE job_id IN (
                 SELECT p.job_id FROM job_progress AS p
                 WHERE p.noted_at < ?1 AND NOT EXISTS (
                     SELECT 1 FROM jobs AS j WHERE j.id = p.job_id AND j.attempt = p.attempt AND j.state = {RUNNING})
                 LIMIT ?2)"
        ))?
        .execute((before.as_millis(), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    Ok(forgotten)
}
