//! Outcomes that are still to be told to somebody, and what is told of runs.

use tickwheel_core::ports::{Callback, CallbackResult, StoreResult};
use tickwheel_core::{JobId, JsonText, Timestamp};
use tokio_postgres::Row;

use super::PostgresStore;
use super::pipeline::Param;
use super::row::{column, limit};
use crate::columns::{decode_count, decode_failure, decode_state};

const TAKE: &str = "\
WITH due AS (
    SELECT id, due_at FROM callbacks WHERE due_at <= $1::bigint
    ORDER BY due_at, id LIMIT $3::bigint FOR UPDATE SKIP LOCKED
)
UPDATE callbacks AS c SET due_at = $2::bigint FROM due WHERE c.id = due.id
RETURNING due.due_at, c.id, c.job_id, c.url, c.state, c.attempt, c.completed_at, c.result, c.error_code,
          c.error_message, c.tries, c.document";

const OVER: &str = "\
DELETE FROM callbacks WHERE id = $1::bigint";

// A try is counted when it ends: one that its sender did not live to report is repeated as the same.
const AGAIN: &str = "\
UPDATE callbacks SET tries = tries + 1, due_at = $2::bigint WHERE id = $1::bigint";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[TAKE, OVER, AGAIN];

/// Callbacks that are due, the longest due first, taken until `taken_until`.
pub(super) async fn take_callbacks(
    store: &PostgresStore,
    now: Timestamp,
    taken_until: Timestamp,
    at_most: usize,
) -> StoreResult<Vec<Callback>> {
    let params: [Param<'_>; 3] = [&now.as_millis(), &taken_until.as_millis(), &limit(at_most)];
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
        job_id: JobId::from_uuid(column(row, 2)?),
        url: column(row, 3)?,
        state: decode_state(column::<i16>(row, 4)?.into())?,
        attempt: decode_count("attempt", column::<i32>(row, 5)?.into())?,
        completed_at: Timestamp::from_millis(column(row, 6)?),
        result: column::<Option<&str>>(row, 7)?.map(JsonText::from_checked),
        error: decode_failure(column(row, 8)?, column(row, 9)?),
        tries: decode_count("tries", column::<i32>(row, 10)?.into())?,
        document: column::<Option<&str>>(row, 11)?.map(JsonText::from_checked),
    })
}

/// Records the end of one try.
pub(super) async fn settle_callback(
    store: &PostgresStore,
    id: i64,
    result: CallbackResult,
) -> StoreResult<()> {
    match result {
        CallbackResult::Over => store.write(OVER, &[&id]).await?,
        CallbackResult::Again { due_at } => store.write(AGAIN, &[&id, &due_at.as_millis()]).await?,
    };
    Ok(())
}
