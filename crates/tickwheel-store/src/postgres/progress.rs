//! How far running attempts have come.

use const_format::formatcp;
use tickwheel_core::ports::StoreResult;
use tickwheel_core::progress::Progress;
use tickwheel_core::{JobId, Timestamp};
use uuid::Uuid;

use super::PostgresStore;
use super::pipeline::Param;
use super::row::{column, count, limit};
use crate::codes::RUNNING;
use crate::note_columns::{ProgressRow, encode_percent};

// Two servers may write about the same jobs: both go through them in the same order.
const PUT: &str = formatcp!(
    "\
INSERT INTO job_progress AS p (job_id, attempt, percent, message, noted_at)
SELECT n.job_id, n.attempt, n.percent, n.message, n.noted_at
FROM unnest($1::uuid[], $2::integer[], $3::smallint[], $4::text[], $5::bigint[])
    AS n (job_id, attempt, percent, message, noted_at)
JOIN jobs AS j ON j.id = n.job_id AND j.attempt = n.attempt AND j.state = {RUNNING}
ORDER BY n.job_id
ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, percent = excluded.percent,
    message = excluded.message, noted_at = excluded.noted_at
WHERE p.attempt <= excluded.attempt"
);

const GET: &str = formatcp!(
    "\
SELECT p.attempt, p.percent, p.message, p.noted_at FROM job_progress AS p
JOIN jobs AS j ON j.id = p.job_id AND j.attempt = p.attempt AND j.state = {RUNNING}
WHERE p.job_id = $1::uuid"
);

const FORGET: &str = formatcp!(
    "\
DELETE FROM job_progress WHERE job_id IN (
    SELECT p.job_id FROM job_progress AS p
    WHERE p.noted_at < $1::bigint AND NOT EXISTS (
        SELECT 1 FROM jobs AS j WHERE j.id = p.job_id AND j.attempt = p.attempt AND j.state = {RUNNING})
    LIMIT $2::bigint FOR UPDATE OF p SKIP LOCKED)"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[PUT, GET, FORGET];

pub(super) async fn put_progress(store: &PostgresStore, notes: &[Progress]) -> StoreResult<()> {
    let (ids, numbers): (Vec<Uuid>, Vec<i32>) =
        notes.iter().map(|note| (note.attempt.job_id.as_uuid(), count(note.attempt.attempt))).unzip();
    let percents: Vec<Option<i16>> = notes.iter().map(|note| encode_percent(note.percent)).collect();
    let messages: Vec<Option<&str>> = notes.iter().map(|note| note.message.as_deref()).collect();
    let times: Vec<i64> = notes.iter().map(|note| note.at.as_millis()).collect();
    let params: [Param<'_>; 5] = [&ids, &numbers, &percents, &messages, &times];
    store.write(PUT, &params).await.map(drop)
}

pub(super) async fn get_progress(store: &PostgresStore, id: JobId) -> StoreResult<Option<Progress>> {
    let rows = store.read(GET, &[&id.as_uuid()]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let row = ProgressRow {
        job_id: id.as_uuid(),
        attempt: column::<i32>(row, 0)?.into(),
        percent: column(row, 1)?,
        message: column(row, 2)?,
        noted_at: column(row, 3)?,
    };
    row.decode().map(Some)
}

pub(super) async fn forget_progress(
    store: &PostgresStore,
    before: Timestamp,
    len_max: usize,
) -> StoreResult<usize> {
    let forgotten = store.write(FORGET, &[&before.as_millis(), &limit(len_max)]).await?;
    Ok(usize::try_from(forgotten).unwrap_or(usize::MAX))
}
