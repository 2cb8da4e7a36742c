//! Outcomes that are to be told to a callback URL, and what is told of runs. They wait by receiver, so that the many of
//! one are not in the way of another's.

use const_format::formatcp;
use rusqlite::{Connection, OptionalExtension, Row};
use tickwheel_core::callback::Receiver;
use tickwheel_core::ports::{
    Callback, CallbackRecord, CallbackResult, CallbackSubject, CallbackTry, Page, TakeCallbacks,
    TriedCallback, TryOutcome,
};
use tickwheel_core::{Failure, JobId, JsonText, SessionId, State, Timestamp};

use super::fault::Verb;
use super::sessions::is_open;
use crate::callback_records::{CallbackRecords, decode_subject, decode_try, kept_beside_one};
use crate::codes::OF_JOB;
use crate::columns::{decode_count, decode_failure, decode_state, encode_failure};

/// A callback that has no number yet. It is due when the job ended.
pub(super) struct NewCallback<'a> {
    pub subject: CallbackSubject,
    pub url: &'a str,
    pub state: State,
    pub attempt: u32,
    pub completed_at: Timestamp,
    pub result: Option<&'a str>,
    pub error: Option<&'a Failure>,
}

/// Writes it down to be sent.
pub(super) fn insert_callback(connection: &Connection, callback: &NewCallback<'_>) -> Verb<()> {
    let (error_code, error_message) = encode_failure(callback.error);
    connection
        .prepare_cached(
            "INSERT INTO callbacks (subject_id, url, state, attempt, completed_at, result, error_code, error_message, tries,
                 due_at, document, receiver, subject)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?5, ?9, ?10, ?11)",
        )?
        .execute((
            callback.subject.id(),
            callback.url,
            callback.state.code(),
            callback.attempt,
            callback.completed_at.as_millis(),
            callback.result,
            error_code,
            error_message,
            callback.subject.document().map(JsonText::as_str),
            Receiver::of(callback.url).as_str(),
            callback.subject.kind().code(),
        ))?;
    Ok(())
}

/// See [`tickwheel_core::ports::CallbackStore::due_receivers`]. From receiver to receiver by the index: what waits for
/// one is not walked.
pub(super) fn due_receivers(
    connection: &Connection,
    after: Option<&Receiver>,
    now: Timestamp,
    limit: usize,
) -> Verb<Page<Receiver, Receiver>> {
    let mut find_next = connection.prepare_cached(
        "SELECT receiver, due_at FROM callbacks WHERE session IS NULL AND receiver > ?1
         ORDER BY receiver, due_at LIMIT 1",
    )?;
    let (mut due, mut last) = (Vec::new(), after.cloned());
    for _ in 0..limit {
        let behind = last.as_ref().map_or("", Receiver::as_str);
        let found = find_next
            .query_row([behind], |row| {
                Ok((Receiver::from_key(row.get_ref(0)?.as_str()?), row.get::<_, i64>(1)?))
            })
            .optional()?;
        let Some((receiver, due_at)) = found else { return Ok(Page { items: due, next: None }) };
        if due_at <= now.as_millis() {
            due.push(receiver.clone());
        }
        last = Some(receiver);
    }
    Ok(Page { items: due, next: last })
}

/// See [`tickwheel_core::ports::CallbackStore::take_callbacks`].
pub(super) fn take_callbacks(connection: &Connection, take: &TakeCallbacks) -> Verb<Vec<Callback>> {
    if !is_open(connection, take.session)? {
        return Ok(Vec::new());
    }
    let mut taken = Vec::new();
    for (receiver, room) in &take.rooms {
        taken.extend(find_due(connection, receiver, take.now, *room)?);
    }
    let mut mark = connection.prepare_cached("UPDATE callbacks SET session = ?2 WHERE id = ?1")?;
    for callback in &taken {
        mark.execute((callback.id, take.session.as_uuid()))?;
    }
    Ok(taken)
}

fn find_due(
    connection: &Connection,
    receiver: &Receiver,
    now: Timestamp,
    limit: usize,
) -> Verb<Vec<Callback>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, subject_id, url, state, attempt, completed_at, result, error_code, error_message, tries, document,
             subject
         FROM callbacks WHERE session IS NULL AND receiver = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query((receiver.as_str(), now.as_millis(), limit))?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        due.push(callback_from_row(row)?);
    }
    Ok(due)
}

fn callback_from_row(row: &Row<'_>) -> Verb<Callback> {
    Ok(Callback {
        id: row.get(0)?,
        subject: decode_subject(row.get(11)?, row.get(1)?, row.get_ref(10)?.as_str_or_null()?)?,
        url: row.get(2)?,
        state: decode_state(row.get(3)?)?,
        attempt: decode_count("attempt of a callback", row.get(4)?)?,
        completed_at: Timestamp::from_millis(row.get(5)?),
        result: row.get_ref(6)?.as_str_or_null()?.map(JsonText::from_checked),
        error: decode_failure(row.get_ref(7)?.as_str_or_null()?, row.get_ref(8)?.as_str_or_null()?),
        tries: decode_count("tries of a callback", row.get(9)?)?,
    })
}

/// See [`tickwheel_core::ports::CallbackStore::settle_callback`].
pub(super) fn settle_callback(
    connection: &Connection,
    session: SessionId,
    id: i64,
    tried: &CallbackTry,
) -> Verb<()> {
    // The record comes first: it is about the callback as it was.
    let recorded = connection
        .prepare_cached(
            "INSERT INTO callback_tries (subject_id, callback_id, number, tried_at, state, outcome, url, answer)
             SELECT subject_id, id, tries + 1, ?3, state, ?4, url, ?5 FROM callbacks
             WHERE id = ?1 AND (?6 OR session = ?2)",
        )?
        .execute((
            id,
            session.as_uuid(),
            tried.at.as_millis(),
            tried.result.outcome().code(),
            &tried.answer,
            tried.result.outcome() != TryOutcome::Failed,
        ))?;
    if recorded > 0 {
        forget_old_tries(connection, id)?;
    }
    match tried.result {
        CallbackResult::Delivered | CallbackResult::GivenUp => {
            connection.prepare_cached("DELETE FROM callbacks WHERE id = ?1")?.execute([id])?;
        }
        CallbackResult::Again { due_at } => {
            connection
                .prepare_cached(
                    "UPDATE callbacks SET tries = tries + 1, due_at = ?3, session = NULL WHERE id = ?1 AND session = ?2",
                )?
                .execute((id, session.as_uuid(), due_at.as_millis()))?;
        }
    }
    Ok(())
}

/// Beside the latest try of a callback, keeps only so many about the same job or run.
fn forget_old_tries(connection: &Connection, id: i64) -> Verb<()> {
    connection
        .prepare_cached(
            "DELETE FROM callback_tries WHERE (subject_id, callback_id, number) IN
                 (SELECT t.subject_id, t.callback_id, t.number
                  FROM callbacks AS c JOIN callback_tries AS t ON t.subject_id = c.subject_id
                  WHERE c.id = ?1 AND NOT (t.callback_id = c.id AND t.number = c.tries + 1) ORDER BY t.callback_id DESC, t.number DESC LIMIT -1 OFFSET ?2)",
        )?
        .execute((id, kept_beside_one()))?;
    Ok(())
}

/// See [`tickwheel_core::ports::CallbackStore::write_callback`].
pub(super) fn write_callback(connection: &Connection, callback: &Callback) -> Verb<i64> {
    let new = NewCallback {
        subject: callback.subject.clone(),
        url: &callback.url,
        state: callback.state,
        attempt: callback.attempt,
        completed_at: callback.completed_at,
        result: callback.result.as_ref().map(JsonText::as_str),
        error: callback.error.as_ref(),
    };
    insert_callback(connection, &new)?;
    Ok(connection.last_insert_rowid())
}

/// See [`tickwheel_core::ports::CallbackStore::callbacks_of`].
pub(super) fn callbacks_of(connection: &Connection, job: JobId) -> Verb<Vec<CallbackRecord>> {
    let mut records = CallbackRecords::default();
    let mut waiting = connection.prepare_cached(formatcp!(
        "SELECT id, url, state, due_at FROM callbacks WHERE subject_id = ?1 AND subject = {OF_JOB}"
    ))?;
    let mut rows = waiting.query([job.as_uuid()])?;
    while let Some(row) = rows.next()? {
        let state = decode_state(row.get(2)?)?;
        records.waits(row.get(0)?, row.get_ref(1)?.as_str()?, state, Timestamp::from_millis(row.get(3)?));
    }
    let mut tried = connection.prepare_cached(
        "SELECT callback_id, url, state, number, tried_at, outcome, answer FROM callback_tries
         WHERE subject_id = ?1 ORDER BY callback_id DESC, number DESC",
    )?;
    let mut rows = tried.query([job.as_uuid()])?;
    while let Some(row) = rows.next()? {
        let tried = TriedCallback {
            number: decode_count("number of a try", row.get(3)?)?,
            at: Timestamp::from_millis(row.get(4)?),
            outcome: decode_try(row.get(5)?)?,
            answer: row.get(6)?,
        };
        records.was_tried(row.get(0)?, row.get_ref(1)?.as_str()?, decode_state(row.get(2)?)?, tried);
    }
    Ok(records.finish())
}

/// See [`tickwheel_core::ports::CallbackStore::return_callbacks`].
pub(super) fn return_callbacks(connection: &Connection, own: SessionId, kept: &[i64]) -> Verb<usize> {
    let mut find = connection.prepare_cached(
        "SELECT id FROM callbacks INDEXED BY callbacks_taken
         WHERE session IS NOT NULL AND (session = ?1 OR session NOT IN (SELECT id FROM sessions))",
    )?;
    let held: Vec<i64> = find.query_map([own.as_uuid()], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut give_up = connection.prepare_cached("UPDATE callbacks SET session = NULL WHERE id = ?1")?;
    let mut count = 0;
    for id in held.iter().filter(|id| !kept.contains(id)) {
        count += give_up.execute([id])?;
    }
    Ok(count)
}
