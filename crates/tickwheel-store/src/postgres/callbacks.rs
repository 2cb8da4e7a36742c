//! Outcomes that are still to be told to somebody, and what is told of runs. They wait by receiver, so that the many of
//! one are not in the way of another's.

use const_format::formatcp;
use tickwheel_core::callback::Receiver;
use tickwheel_core::ports::{
    Callback, CallbackRecord, CallbackResult, CallbackTry, Page, StoreResult, TakeCallbacks, TriedCallback,
};
use tickwheel_core::{JobId, JsonText, SessionId, Timestamp};
use tokio_postgres::Row;

use super::PostgresStore;
use super::pipeline::Param;
use super::row::{column, limit};
use crate::callback_records::{CallbackRecords, decode_subject, decode_try, kept_beside_one};
use crate::codes::OF_JOB;
use crate::columns::{decode_count, decode_failure, decode_state, encode_failure};
use crate::error::corrupt;

// From receiver to receiver by the index: what waits for one is not walked.
const DUE_RECEIVERS: &str = "\
WITH RECURSIVE waiting (receiver, due_at, number) AS (
    (SELECT receiver, due_at, 1::bigint FROM callbacks WHERE session IS NULL AND receiver > $1::text
     ORDER BY receiver, due_at LIMIT 1)
    UNION ALL
    SELECT following.receiver, following.due_at, w.number + 1
    FROM waiting AS w CROSS JOIN LATERAL (
        SELECT c.receiver, c.due_at FROM callbacks AS c WHERE c.session IS NULL AND c.receiver > w.receiver
        ORDER BY c.receiver, c.due_at LIMIT 1
    ) AS following
    WHERE w.number < $2::bigint
)
SELECT receiver, due_at FROM waiting ORDER BY number";

const TAKE: &str = "\
WITH due AS (
    SELECT of_one.id, of_one.due_at
    FROM unnest($1::text[], $2::bigint[]) AS r (receiver, room) CROSS JOIN LATERAL (
        SELECT c.id, c.due_at FROM callbacks AS c
        WHERE c.session IS NULL AND c.receiver = r.receiver AND c.due_at <= $3::bigint
        ORDER BY c.due_at, c.id LIMIT r.room FOR UPDATE SKIP LOCKED
    ) AS of_one
)
UPDATE callbacks AS c SET session = $4::uuid
FROM due WHERE c.id = due.id AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = $4::uuid)
RETURNING due.due_at, c.id, c.subject_id, c.url, c.state, c.attempt, c.completed_at, c.result, c.error_code,
          c.error_message, c.tries, c.document, c.subject";

/// Records a try of the callback that `$tried` changes, and forgets the oldest ones about the same job or run. What it forgets
/// is chosen before the new try is there.
macro_rules! record_try {
    ($tried:literal, number $number:literal) => {
        concat!(
            "WITH tried AS (",
            $tried,
            " RETURNING subject_id, id, tries, state, url
), forgotten AS (
    DELETE FROM callback_tries AS t
    USING tried AS c, LATERAL (
        SELECT o.callback_id, o.number FROM callback_tries AS o WHERE o.subject_id = c.subject_id
        ORDER BY o.callback_id DESC, o.number DESC OFFSET $5::bigint
    ) AS old
    WHERE t.subject_id = c.subject_id AND t.callback_id = old.callback_id AND t.number = old.number
)
INSERT INTO callback_tries (subject_id, callback_id, number, tried_at, state, outcome, url, answer)
SELECT subject_id, id, ",
            $number,
            ", $2::bigint, state, $3::smallint, url, $4::text FROM tried"
        )
    };
}

const OVER: &str = record_try!("DELETE FROM callbacks WHERE id = $1::bigint", number "tries + 1");

const AGAIN: &str = record_try!(
    "UPDATE callbacks SET tries = tries + 1, due_at = $7::bigint, session = NULL
    WHERE id = $1::bigint AND session = $6::uuid",
    number "tries"
);

const WRITE: &str = "\
INSERT INTO callbacks (subject_id, completed_at, due_at, attempt, state, url, result, error_code, error_message, document,
                       receiver, subject)
VALUES ($1::uuid, $2::bigint, $2::bigint, $3::integer, $4::smallint, $5::text, $6::text, $7::text, $8::text, $9::text,
        $10::text, $11::smallint)
RETURNING id";

const WAITING: &str = formatcp!(
    "SELECT id, url, state, due_at FROM callbacks WHERE subject_id = $1::uuid AND subject = {OF_JOB}"
);

const TRIED: &str = "\
SELECT callback_id, url, state, number, tried_at, outcome, answer FROM callback_tries
WHERE subject_id = $1::uuid ORDER BY callback_id DESC, number DESC";

const RETURN_CALLBACKS: &str = "\
UPDATE callbacks SET session = NULL
WHERE session IS NOT NULL AND (session = $1::uuid OR session NOT IN (SELECT id FROM sessions))
  AND id <> ALL ($2::bigint[])";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[DUE_RECEIVERS, TAKE, OVER, AGAIN, RETURN_CALLBACKS, WRITE, WAITING, TRIED];

/// Receivers for whom a callback is due that nobody has taken.
pub(super) async fn due_receivers(
    store: &PostgresStore,
    after: Option<&Receiver>,
    now: Timestamp,
    at_most: usize,
) -> StoreResult<Page<Receiver, Receiver>> {
    let behind = after.map_or("", Receiver::as_str);
    let rows = store.read(DUE_RECEIVERS, &[&behind, &limit(at_most)]).await?;
    let waiting = rows
        .iter()
        .map(|row| Ok((Receiver::from_key(column(row, 0)?), column::<i64>(row, 1)?)))
        .collect::<StoreResult<Vec<_>>>()?;
    let next = waiting.last().filter(|_| waiting.len() >= at_most).map(|(receiver, _)| receiver.clone());
    let due = waiting.into_iter().filter(|(_, due_at)| *due_at <= now.as_millis());
    Ok(Page { items: due.map(|(receiver, _)| receiver).collect(), next })
}

/// Callbacks that are due, for each receiver the longest due first.
pub(super) async fn take_callbacks(store: &PostgresStore, take: TakeCallbacks) -> StoreResult<Vec<Callback>> {
    let (receivers, rooms): (Vec<&str>, Vec<i64>) =
        take.rooms.iter().map(|(receiver, room)| (receiver.as_str(), limit(*room))).unzip();
    let params: [Param<'_>; 4] = [&receivers, &rooms, &take.now.as_millis(), &take.session.as_uuid()];
    let rows = store.write_returning(TAKE, &params).await?;
    let mut taken = rows
        .iter()
        .map(|row| Ok((column::<i64>(row, 0)?, read_callback(row)?)))
        .collect::<StoreResult<Vec<_>>>()?;
    taken.sort_unstable_by_key(|(due_at, callback)| (*due_at, callback.id));
    Ok(taken.into_iter().map(|(_, callback)| callback).collect())
}

fn read_callback(row: &Row) -> StoreResult<Callback> {
    Ok(Callback {
        id: column(row, 1)?,
        subject: decode_subject(column::<i16>(row, 12)?.into(), column(row, 2)?, column(row, 11)?)?,
        url: column(row, 3)?,
        state: decode_state(column::<i16>(row, 4)?.into())?,
        attempt: decode_count("attempt", column::<i32>(row, 5)?.into())?,
        completed_at: Timestamp::from_millis(column(row, 6)?),
        result: column::<Option<&str>>(row, 7)?.map(JsonText::from_checked),
        error: decode_failure(column(row, 8)?, column(row, 9)?),
        tries: decode_count("tries", column::<i32>(row, 10)?.into())?,
    })
}

/// Records the end of one try.
pub(super) async fn settle_callback(
    store: &PostgresStore,
    session: SessionId,
    id: i64,
    tried: &CallbackTry,
) -> StoreResult<()> {
    let (at, outcome) = (tried.at.as_millis(), tried.result.outcome().code());
    let params: [Param<'_>; 5] = [&id, &at, &outcome, &tried.answer, &kept_beside_one()];
    match tried.result {
        CallbackResult::Delivered | CallbackResult::GivenUp => store.write(OVER, &params).await?,
        CallbackResult::Again { due_at } => {
            let (session, due_at) = (session.as_uuid(), due_at.as_millis());
            let more: [Param<'_>; 2] = [&session, &due_at];
            store.write(AGAIN, &[&params[..], &more].concat()).await?
        }
    };
    Ok(())
}

/// Writes a callback down to be sent.
pub(super) async fn write_callback(store: &PostgresStore, callback: &Callback) -> StoreResult<i64> {
    let (error_code, error_message) = encode_failure(callback.error.as_ref());
    let params: [Param<'_>; 11] = [
        &callback.subject.id(),
        &callback.completed_at.as_millis(),
        &i32::try_from(callback.attempt).unwrap_or(i32::MAX),
        &callback.state.code(),
        &callback.url,
        &callback.result.as_ref().map(JsonText::as_str),
        &error_code,
        &error_message,
        &callback.subject.document().map(JsonText::as_str),
        &Receiver::of(&callback.url).as_str().to_owned(),
        &callback.subject.kind().code(),
    ];
    let rows = store.write_returning(WRITE, &params).await?;
    let written = rows.first().ok_or_else(|| corrupt("a callback that was written", "it has no number"))?;
    column(written, 0)
}

/// The callbacks about a job that there are and were.
pub(super) async fn callbacks_of(store: &PostgresStore, job: JobId) -> StoreResult<Vec<CallbackRecord>> {
    let mut records = CallbackRecords::default();
    for row in &store.read(WAITING, &[&job.as_uuid()]).await? {
        let state = decode_state(column::<i16>(row, 2)?.into())?;
        records.waits(column(row, 0)?, column(row, 1)?, state, Timestamp::from_millis(column(row, 3)?));
    }
    for row in &store.read(TRIED, &[&job.as_uuid()]).await? {
        let tried = TriedCallback {
            number: decode_count("number of a try", column::<i32>(row, 3)?.into())?,
            at: Timestamp::from_millis(column(row, 4)?),
            outcome: decode_try(column::<i16>(row, 5)?.into())?,
            answer: column(row, 6)?,
        };
        let state = decode_state(column::<i16>(row, 2)?.into())?;
        records.was_tried(column(row, 0)?, column(row, 1)?, state, tried);
    }
    Ok(records.finish())
}

/// Returns callbacks that nobody is sending.
pub(super) async fn return_callbacks(
    store: &PostgresStore,
    own: SessionId,
    kept: Vec<i64>,
) -> StoreResult<usize> {
    let count = store.write(RETURN_CALLBACKS, &[&own.as_uuid(), &kept]).await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}
