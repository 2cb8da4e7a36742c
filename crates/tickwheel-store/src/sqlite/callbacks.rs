//! Outcomes that are to be told to a callback URL, and what is told of runs.

use rusqlite::{Connection, Row};
use tickwheel_core::ports::{Callback, CallbackResult};
use tickwheel_core::{Failure, JobId, JsonText, State, Timestamp};
use uuid::Uuid;

use super::fault::Verb;
use crate::columns::{decode_count, decode_failure, decode_state, encode_failure};

/// A callback that has no number yet. It is due when the job ended.
pub(super) struct NewCallback<'a> {
    pub job_id: JobId,
    pub url: &'a str,
    pub state: State,
    pub attempt: u32,
    pub completed_at: Timestamp,
    pub result: Option<&'a str>,
    pub error: Option<&'a Failure>,
    pub document: Option<&'a str>,
}

/// Writes it down to be sent.
pub(super) fn insert_callback(connection: &Connection, callback: &NewCallback<'_>) -> Verb<()> {
    let (error_code, error_message) = encode_failure(callback.error);
    connection
        .prepare_cached(
            "INSERT INTO callbacks (job_id, url, state, attempt, completed_at, result, error_code, error_message, tries, due_at,
                 document)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?5, ?9)",
        )?
        .execute((
            callback.job_id.as_uuid(),
            callback.url,
            callback.state.code(),
            callback.attempt,
            callback.completed_at.as_millis(),
            callback.result,
            error_code,
            error_message,
            callback.document,
        ))?;
    Ok(())
}

/// See [`tickwheel_core::ports::Store::take_callbacks`].
pub(super) fn take_callbacks(
    connection: &Connection,
    now: Timestamp,
    taken_until: Timestamp,
    limit: usize,
) -> Verb<Vec<Callback>> {
    let taken = find_due(connection, now, limit)?;
    let mut postpone = connection.prepare_cached("UPDATE callbacks SET due_at = ?2 WHERE id = ?1")?;
    for callback in &taken {
        postpone.execute((callback.id, taken_until.as_millis()))?;
    }
    Ok(taken)
}

fn find_due(connection: &Connection, now: Timestamp, limit: usize) -> Verb<Vec<Callback>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, job_id, url, state, attempt, completed_at, result, error_code, error_message, tries, document
         FROM callbacks WHERE due_at <= ?1 ORDER BY due_at, id LIMIT ?2",
    )?;
    let mut rows = statement.query((now.as_millis(), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        due.push(callback_from_row(row)?);
    }
    Ok(due)
}

fn callback_from_row(row: &Row<'_>) -> Verb<Callback> {
    Ok(Callback {
        id: row.get(0)?,
        job_id: JobId::from_uuid(row.get::<_, Uuid>(1)?),
        url: row.get(2)?,
        state: decode_state(row.get(3)?)?,
        attempt: decode_count("attempt of a callback", row.get(4)?)?,
        completed_at: Timestamp::from_millis(row.get(5)?),
        result: row.get_ref(6)?.as_str_or_null()?.map(JsonText::from_checked),
        error: decode_failure(row.get_ref(7)?.as_str_or_null()?, row.get_ref(8)?.as_str_or_null()?),
        tries: decode_count("tries of a callback", row.get(9)?)?,
        document: row.get_ref(10)?.as_str_or_null()?.map(JsonText::from_checked),
    })
}

/// See [`tickwheel_core::ports::Store::settle_callback`].
pub(super) fn settle_callback(connection: &Connection, id: i64, result: CallbackResult) -> Verb<()> {
    match result {
        CallbackResult::Over => {
            connection.prepare_cached("DELETE FROM callbacks WHERE id = ?1")?.execute([id])?;
        }
        CallbackResult::Again { due_at } => {
            connection
                .prepare_cached("UPDATE callbacks SET tries = tries + 1, due_at = ?2 WHERE id = ?1")?
                .execute((id, due_at.as_millis()))?;
        }
    }
    Ok(())
}
