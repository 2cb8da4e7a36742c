//! Lists: jobs newest first, dead letters latest first. Bounded work a page, whatever is asked for.
//!
//! The statements of a page share one snapshot, so a job that moves from one table to the other meanwhile is in the
//! list once.

use std::cmp::Reverse;

use const_format::concatcp;
use deadpool_postgres::{Client, Transaction};
use tickwheel_core::ports::{DeadLetter, DeadLetterCursor, DeadLetterQuery, JobQuery, Page, StoreResult};
use tickwheel_core::{Job, JobId, Timestamp};
use tokio_postgres::{IsolationLevel, Row};

use super::PostgresStore;
use super::error::not_done;
use super::pipeline::{Param, run};
use super::row::{FINISHED_COLUMNS, column, limit, listed, read_job, read_listed};
use super::walk::{Planned, Question};
use crate::columns::decode_dead_reason;
use crate::job_columns::READ_LEN;

/// So many rows of a table are looked at for a page.
pub(super) const EXAMINED_MAX: usize = 20_000;

const LIST_DEAD_LETTERS: &str = listed!(
    concatcp!(
        "SELECT ",
        FINISHED_COLUMNS,
        ", d.failed_at, d.reason
FROM (SELECT * FROM dead_letters WHERE (failed_at, job_id) < ($1::bigint, $2::uuid)
      ORDER BY failed_at DESC, job_id DESC LIMIT $6::bigint) AS d
JOIN finished_jobs AS j ON j.id = d.job_id
WHERE ($3::text IS NULL OR d.type = $3) AND ($4::text IS NULL OR d.queue = $4)
ORDER BY d.failed_at DESC, d.job_id DESC LIMIT $5::bigint"
    ),
    ", failed_at, reason",
    "failed_at DESC, id DESC",
    payload "$8",
    result "$9",
    bytes "$7"
);

const BOUND_OF_DEAD_LETTERS: &str = "\
SELECT failed_at, job_id FROM dead_letters WHERE (failed_at, job_id) < ($1::bigint, $2::uuid)
ORDER BY failed_at DESC, job_id DESC OFFSET $3::bigint - 1 LIMIT 1";

const GET_DEAD_LETTER: &str = concatcp!(
    "SELECT ",
    FINISHED_COLUMNS,
    ", d.failed_at, d.reason FROM dead_letters AS d JOIN finished_jobs AS j ON j.id = d.job_id WHERE d.job_id = $1::uuid"
);

const DISCARD_DEAD_LETTER: &str = "\
DELETE FROM dead_letters WHERE job_id = $1::uuid";

const COUNT_DEAD_LETTERS: &str = "\
SELECT count(*) FROM dead_letters";

const COUNT_DEAD_LETTERS_LIKE: &str = "\
SELECT count(*) FROM dead_letters
WHERE (failed_at, job_id) < ($1::bigint, $2::uuid)
  AND ($3::text IS NULL OR type = $3) AND ($4::text IS NULL OR queue = $4)";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    COUNT_DEAD_LETTERS_LIKE,
    LIST_DEAD_LETTERS,
    BOUND_OF_DEAD_LETTERS,
    GET_DEAD_LETTER,
    DISCARD_DEAD_LETTER,
    COUNT_DEAD_LETTERS,
];

/// Jobs, live and finished, newest first.
pub(super) async fn list_jobs(
    store: &PostgresStore,
    query: &JobQuery,
    examined_max: usize,
) -> StoreResult<Page<Job, JobId>> {
    let question = Question::new(query, examined_max);
    let mut client = store.client().await?;
    let snapshot = snapshot(&mut client).await?;
    let mut parts = Vec::new();
    for planned in question.plan(&query.states) {
        parts.push(walk(&snapshot, &question, &planned, query).await?);
    }
    Ok(merge(parts, query))
}

/// What one walk found, with what it weighs, and the place down to which it has seen everything; `None`: it has seen
/// all there is.
type Part = (Vec<(Job, usize)>, Option<JobId>);

async fn walk(
    snapshot: &Transaction<'_>,
    question: &Question<'_>,
    planned: &Planned<'_>,
    query: &JobQuery,
) -> StoreResult<Part> {
    let rows = run(snapshot, planned.walk.page, &question.page_params(planned)).await?;
    let found = rows.iter().map(read_listed).collect::<StoreResult<Vec<_>>>()?;
    let bytes: usize = found.iter().map(|(_, bytes)| bytes).sum();
    let seen_to = if found.len() > query.limit || bytes >= query.projection.bytes_max {
        found.last().map(|(job, _)| job.id)
    } else {
        let bound = run(snapshot, planned.walk.bound, &question.bound_params(planned)).await?;
        bound.first().map(|row| column(row, 0).map(JobId::from_uuid)).transpose()?
    };
    Ok((found, seen_to))
}

/// One list out of the parts. It ends where the first of them had seen enough: what lies below is not known of that
/// one.
fn merge(parts: Vec<Part>, query: &JobQuery) -> Page<Job, JobId> {
    let seen_to = parts.iter().filter_map(|(_, seen_to)| *seen_to).max();
    let mut found: Vec<(Job, usize)> = parts.into_iter().flat_map(|(found, _)| found).collect();
    found.retain(|(job, _)| seen_to.is_none_or(|seen_to| job.id >= seen_to));
    found.sort_unstable_by_key(|(job, _)| Reverse(job.id));
    let (mut items, mut bytes_left) = (Vec::with_capacity(found.len()), query.projection.bytes_max);
    for (job, bytes) in found {
        if items.len() >= query.limit || bytes_left == 0 {
            let next = items.last().map(|last: &Job| last.id);
            return Page { items, next };
        }
        items.push(job);
        bytes_left = bytes_left.saturating_sub(bytes);
    }
    Page { items, next: seen_to }
}

/// Dead letters, the latest first.
pub(super) async fn list_dead_letters(
    store: &PostgresStore,
    query: &DeadLetterQuery,
    examined_max: usize,
) -> StoreResult<Page<DeadLetter, DeadLetterCursor>> {
    let start = query.after.unwrap_or(DeadLetterCursor { failed_at: Timestamp::MAX, id: JobId::LAST });
    let (failed_at, id) = (start.failed_at.as_millis(), start.id.as_uuid());
    let (found_max, examined_max) = (limit(query.limit.saturating_add(1)), limit(examined_max));
    let mut client = store.client().await?;
    let snapshot = snapshot(&mut client).await?;
    let (projection, bytes_max) = (query.projection, limit(query.projection.bytes_max));
    let params: [Param<'_>; 9] = [
        &failed_at,
        &id,
        &query.job_type,
        &query.queue,
        &found_max,
        &examined_max,
        &bytes_max,
        &projection.payload,
        &projection.result,
    ];
    let rows = run(&snapshot, LIST_DEAD_LETTERS, &params).await?;
    let found = rows.iter().map(read_listed_letter).collect::<StoreResult<Vec<_>>>()?;
    let bytes: usize = found.iter().map(|(_, bytes)| bytes).sum();
    let mut items: Vec<DeadLetter> = found.into_iter().map(|(letter, _)| letter).collect();
    if items.len() > query.limit || bytes >= projection.bytes_max {
        items.truncate(query.limit);
        let next = items.last().map(|last| DeadLetterCursor { failed_at: last.failed_at, id: last.job.id });
        return Ok(Page { items, next });
    }
    let bound = run(&snapshot, BOUND_OF_DEAD_LETTERS, &[&failed_at, &id, &examined_max]).await?;
    Ok(Page { items, next: bound.first().map(read_cursor).transpose()? })
}

fn read_dead_letter(row: &Row) -> StoreResult<DeadLetter> {
    letter_of(read_job(row)?, row, READ_LEN)
}

/// A row of a list: the letter, and what its job weighs.
fn read_listed_letter(row: &Row) -> StoreResult<(DeadLetter, usize)> {
    let (job, bytes) = read_listed(row)?;
    Ok((letter_of(job, row, READ_LEN + 1)?, bytes))
}

fn letter_of(job: Job, row: &Row, at: usize) -> StoreResult<DeadLetter> {
    let failed_at = Timestamp::from_millis(column(row, at)?);
    Ok(DeadLetter { job, failed_at, reason: decode_dead_reason(column::<i16>(row, at + 1)?.into())? })
}

fn read_cursor(row: &Row) -> StoreResult<DeadLetterCursor> {
    Ok(DeadLetterCursor {
        failed_at: Timestamp::from_millis(column(row, 0)?),
        id: JobId::from_uuid(column(row, 1)?),
    })
}

/// One dead letter.
pub(super) async fn get_dead_letter(store: &PostgresStore, id: JobId) -> StoreResult<Option<DeadLetter>> {
    let rows = store.read(GET_DEAD_LETTER, &[&id.as_uuid()]).await?;
    rows.first().map(read_dead_letter).transpose()
}

/// Takes a job off the list of dead letters.
pub(super) async fn discard_dead_letter(store: &PostgresStore, id: JobId) -> StoreResult<bool> {
    Ok(store.write(DISCARD_DEAD_LETTER, &[&id.as_uuid()]).await? == 1)
}

/// How many dead letters there are.
pub(super) async fn count_dead_letters(store: &PostgresStore) -> StoreResult<u64> {
    let rows = store.read(COUNT_DEAD_LETTERS, &[]).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| column(row, 0))?;
    Ok(count.unsigned_abs())
}

/// How many dead letters a query finds.
pub(super) async fn count_dead_letters_like(
    store: &PostgresStore,
    query: &DeadLetterQuery,
) -> StoreResult<u64> {
    let start = query.after.unwrap_or(DeadLetterCursor { failed_at: Timestamp::MAX, id: JobId::LAST });
    let (failed_at, id) = (start.failed_at.as_millis(), start.id.as_uuid());
    let params: [Param<'_>; 4] = [&failed_at, &id, &query.job_type, &query.queue];
    let rows = store.read(COUNT_DEAD_LETTERS_LIKE, &params).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| column(row, 0))?;
    Ok(count.unsigned_abs())
}

/// A transaction whose statements all see the same moment. Nothing is written: it is left, not committed.
pub(super) async fn snapshot(client: &mut Client) -> StoreResult<Transaction<'_>> {
    client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await
        .map_err(not_done)
}
