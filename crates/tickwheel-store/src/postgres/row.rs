//! How a job is read from a row of `jobs` or of `finished_jobs`: both lists have the same columns in the same order, so
//! that they can be put together in one statement and read by position.

use std::borrow::Cow;

use tickwheel_core::Job;
use tickwheel_core::ports::{StoreError, StoreResult};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use tracing::error;
use uuid::Uuid;

use super::error::unreadable;
use crate::columns::JobColumns;
use crate::job_columns::{self, READ_LEN, Table, at};
use crate::sql_text::sql;

/// A job in `jobs AS j`.
pub(super) const LIVE_COLUMNS: &str = sql!(job_columns::read(Table::Live, "j.", true));

/// A job in `finished_jobs AS j`.
pub(super) const FINISHED_COLUMNS: &str = sql!(job_columns::read(Table::Finished, "j.", true));

/// What a list reads of the rows that `$found` selects, which start with the columns of a job: at the place of a
/// payload or a result that is not asked for is nothing, `bytes` is what the row weighs, and the rows end where those
/// before them weigh enough. Lengths are known without fetching what is long, and what is not answered is not fetched.
macro_rules! listed {
    ($found:expr, $more:literal, $order:literal, payload $payload:literal, result $result:literal, bytes $bytes:literal) => {
        const_format::concatcp!(
            "SELECT ",
            $crate::sql_text::sql!($crate::job_columns::read_again(&[
                (
                    "payload",
                    const_format::concatcp!("CASE WHEN ", $payload, "::boolean THEN payload ELSE 'null' END")
                ),
                ("result", const_format::concatcp!("CASE WHEN ", $result, "::boolean THEN result END")),
            ])),
            ", bytes",
            $more,
            "
FROM (SELECT *, sum(bytes) OVER (ORDER BY ",
            $order,
            " ROWS UNBOUNDED PRECEDING) AS bytes_to
      FROM (SELECT *, octet_length(spec) + coalesce(octet_length(error_message), 0)
                + CASE WHEN ",
            $payload,
            " THEN octet_length(payload) ELSE 0 END
                + CASE WHEN ",
            $result,
            " THEN coalesce(octet_length(result), 0) ELSE 0 END AS bytes
            FROM (",
            $found,
            ") AS found) AS weighed) AS summed
WHERE bytes_to - bytes < ",
            $bytes,
            "::bigint
ORDER BY ",
            $order
        )
    };
}

pub(super) use listed;

/// The job of a row that starts with [`LIVE_COLUMNS`] or [`FINISHED_COLUMNS`].
pub(super) fn read_job(row: &Row) -> StoreResult<Job> {
    JobColumns {
        id: column(row, at!("id"))?,
        partition: column::<i16>(row, at!("partition"))?.into(),
        tenant: column(row, at!("tenant"))?,
        job_type: column(row, at!("type"))?,
        queue: column(row, at!("queue"))?,
        priority: column::<i16>(row, at!("priority"))?.into(),
        state: column::<i16>(row, at!("state"))?.into(),
        execute_at: column(row, at!("execute_at"))?,
        due_at: column(row, at!("due_at"))?,
        created_at: column(row, at!("created_at"))?,
        spec: column(row, at!("spec"))?,
        payload: column(row, at!("payload"))?,
        fan_out: column(row, at!("fan_out"))?,
        tags: column(row, at!("tags"))?,
        attempt: column::<i32>(row, at!("attempt"))?.into(),
        retries: column::<i32>(row, at!("retries"))?.into(),
        lost: column::<i32>(row, at!("lost"))?.into(),
        burst_started_at: column(row, at!("burst_started_at"))?,
        burst_failures: column::<i32>(row, at!("burst_failures"))?.into(),
        session: column(row, at!("session"))?,
        started_at: column(row, at!("started_at"))?,
        deadline: column(row, at!("deadline"))?,
        cancel_requested: column(row, at!("cancel_requested"))?,
        completed_at: column(row, at!("completed_at"))?,
        last_outcome: column::<Option<i16>>(row, at!("last_outcome"))?.map(i64::from),
        result: column(row, at!("result"))?,
        error_code: column(row, at!("error_code"))?,
        error_message: column(row, at!("error_message"))?,
        schedule_id: column(row, at!("schedule_id"))?,
        open_parents: column::<i32>(row, at!("open_parents"))?.into(),
        failed_parents: column::<i32>(row, at!("failed_parents"))?.into(),
    }
    .decode()
}

/// A row of a list: its job, and what it weighs.
pub(super) fn read_listed(row: &Row) -> StoreResult<(Job, usize)> {
    let bytes: i32 = column(row, READ_LEN)?;
    Ok((read_job(row)?, usize::try_from(bytes).unwrap_or_default()))
}

/// The jobs of many rows; one that makes no sense fails them all.
pub(super) fn read_jobs(rows: &[Row]) -> StoreResult<Vec<Job>> {
    rows.iter().map(read_job).collect()
}

/// The jobs of many rows, without those that make no sense: one bad row must not keep all others from running.
pub(super) fn read_sound_jobs<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<Job> {
    read_sound(rows, read_job, |job_id, cause| {
        error!(?job_id, %cause, "a job cannot be read and is left alone");
    })
}

/// What many rows stand for; of those that make no sense `complain` is told, with the id in their first column.
pub(super) fn read_sound<'a, T>(
    rows: impl IntoIterator<Item = &'a Row>,
    read: impl Fn(&Row) -> StoreResult<T>,
    complain: impl Fn(Option<Uuid>, StoreError),
) -> Vec<T> {
    let mut sound = Vec::new();
    for row in rows {
        match read(row) {
            Ok(item) => sound.push(item),
            Err(cause) => complain(row.try_get(0).ok(), cause),
        }
    }
    sound
}

/// A column by its place.
pub(super) fn column<'row, T: FromSql<'row>>(row: &'row Row, index: usize) -> StoreResult<T> {
    row.try_get(index).map_err(unreadable)
}

/// A count as PostgreSQL has it: there is no unsigned type, and nothing is attempted two thousand million times.
pub(super) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A limit as PostgreSQL has it.
pub(super) fn limit(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// PostgreSQL's text cannot hold the character NUL. What a target said in an error may; it must not keep the job from
/// ending.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
