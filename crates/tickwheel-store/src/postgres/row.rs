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

/// The columns of a job in `jobs AS j`.
macro_rules! live_columns {
    () => {
        "j.id, j.partition, j.tenant, j.type, j.queue, j.priority, j.state, j.execute_at, j.due_at, j.created_at, \
         j.spec, j.payload, j.tags, j.attempt, j.retries, j.lost, j.burst_started_at, j.burst_failures, j.session, \
         j.started_at, j.deadline, j.cancel_requested, NULL::bigint AS completed_at, NULL::smallint AS last_outcome, \
         NULL::text AS result, j.error_code, j.error_message, j.schedule_id, j.open_parents, j.failed_parents"
    };
}

/// The columns of a job in `finished_jobs AS j`.
macro_rules! finished_columns {
    () => {
        "j.id, j.partition, j.tenant, j.type, j.queue, j.priority, j.state, j.execute_at, j.due_at, j.created_at, \
         j.spec, j.payload, j.tags, j.attempt, j.retries, j.lost, NULL::bigint AS burst_started_at, 0 AS burst_failures, \
         NULL::uuid AS session, j.started_at, NULL::bigint AS deadline, false AS cancel_requested, j.completed_at, \
         j.last_outcome, j.result, j.error_code, j.error_message, j.schedule_id, j.open_parents, j.failed_parents"
    };
}

/// What a list reads of the rows that `$found` selects, which start with the columns of a job: at the place of a
/// payload or a result that is not asked for is nothing, `bytes` is what the row weighs, and the rows end where those
/// before them weigh enough. Lengths are known without fetching what is long, and what is not answered is not fetched.
macro_rules! listed {
    ($found:expr, $more:literal, $order:literal, payload $payload:literal, result $result:literal, bytes $bytes:literal) => {
        const_format::concatcp!(
            "SELECT id, partition, tenant, type, queue, priority, state, execute_at, due_at, created_at, spec, \
             CASE WHEN ",
            $payload,
            "::boolean THEN payload ELSE 'null' END, tags, attempt, retries, lost, burst_started_at, burst_failures, session, \
             started_at, deadline, cancel_requested, completed_at, last_outcome, CASE WHEN ",
            $result,
            "::boolean THEN result END, error_code, error_message, schedule_id, open_parents, failed_parents, bytes",
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

pub(super) use {finished_columns, listed, live_columns};

/// How many columns a job has: what a statement adds comes after them.
pub(super) const JOB_COLUMNS: usize = 30;

/// The job of a row that starts with [`live_columns`] or [`finished_columns`].
pub(super) fn read_job(row: &Row) -> StoreResult<Job> {
    JobColumns {
        id: column(row, 0)?,
        partition: column::<i16>(row, 1)?.into(),
        tenant: column(row, 2)?,
        job_type: column(row, 3)?,
        queue: column(row, 4)?,
        priority: column::<i16>(row, 5)?.into(),
        state: column::<i16>(row, 6)?.into(),
        execute_at: column(row, 7)?,
        due_at: column(row, 8)?,
        created_at: column(row, 9)?,
        spec: column(row, 10)?,
        payload: column(row, 11)?,
        tags: column(row, 12)?,
        attempt: column::<i32>(row, 13)?.into(),
        retries: column::<i32>(row, 14)?.into(),
        lost: column::<i32>(row, 15)?.into(),
        burst_started_at: column(row, 16)?,
        burst_failures: column::<i32>(row, 17)?.into(),
        session: column(row, 18)?,
        started_at: column(row, 19)?,
        deadline: column(row, 20)?,
        cancel_requested: column(row, 21)?,
        completed_at: column(row, 22)?,
        last_outcome: column::<Option<i16>>(row, 23)?.map(i64::from),
        result: column(row, 24)?,
        error_code: column(row, 25)?,
        error_message: column(row, 26)?,
        schedule_id: column(row, 27)?,
        open_parents: column::<i32>(row, 28)?.into(),
        failed_parents: column::<i32>(row, 29)?.into(),
    }
    .decode()
}

/// A row of a list: its job, and what it weighs.
pub(super) fn read_listed(row: &Row) -> StoreResult<(Job, usize)> {
    let bytes: i32 = column(row, JOB_COLUMNS)?;
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
