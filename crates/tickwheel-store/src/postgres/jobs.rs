//! One job: reading it, and what people do to it.

use deadpool_postgres::Transaction;
use tickwheel_core::change::{self, Change};
use tickwheel_core::parents::Parents;
use tickwheel_core::ports::{Changed, StoreResult};
use tickwheel_core::settle::Burst;
use tickwheel_core::{AttemptRecord, Job, JobId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::dependencies::{block_children, hold_children_again, lock_parents};
use super::error::{not_done, write_failed};
use super::pipeline::{BEGIN_SNAPSHOT, Param, Step, run, transact};
use super::row::{column, count, finished_columns, live_columns, read_job, read_jobs};
use super::submit::INSERT_TAGS;
use crate::columns::{decode_count, decode_failure, decode_outcome, encode_failure, encode_tags};

// One statement is one moment: a job on its way from one table to the other is seen in exactly one of them.
pub(super) const GET_JOBS: &str = concat!(
    "SELECT ",
    live_columns!(),
    " FROM jobs AS j WHERE j.id = ANY ($1::uuid[]) UNION ALL SELECT ",
    finished_columns!(),
    " FROM finished_jobs AS j WHERE j.id = ANY ($1::uuid[])"
);

const LOCK_LIVE: &str =
    concat!("SELECT ", live_columns!(), " FROM jobs AS j WHERE j.id = $1::uuid FOR UPDATE");

const LOCK_FINISHED: &str =
    concat!("SELECT ", finished_columns!(), " FROM finished_jobs AS j WHERE j.id = $1::uuid FOR UPDATE");

const EXISTS: &str = "\
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = $1::uuid) OR EXISTS (SELECT 1 FROM finished_jobs WHERE id = $1::uuid)";

const UPDATE: &str = "\
UPDATE jobs
SET state = $2::smallint, execute_at = $3::bigint, due_at = $4::bigint, priority = $5::smallint, payload = $6::text,
    tags = $7::text, cancel_requested = $8::boolean
WHERE id = $1::uuid";

const DELETE_TAGS: &str = "\
DELETE FROM job_tags WHERE tag = ANY ($1::text[]) AND job_id = $2::uuid";

const FINISH: &str = "\
WITH ended AS (
    DELETE FROM jobs WHERE id = $1::uuid RETURNING *
), to_tell AS (
    INSERT INTO callbacks (job_id, completed_at, due_at, attempt, state, url, error_code, error_message)
    SELECT id, $3::bigint, $3::bigint, attempt, $2::smallint, $4::text, error_code, error_message
    FROM ended WHERE $4::text IS NOT NULL
)
INSERT INTO finished_jobs (id, execute_at, due_at, created_at, timeout_ms, completed_at, attempt, retries, lost,
                           partition, priority, state, target, tenant, type, queue, spec, payload, tags,
                           started_at, error_code, error_message, schedule_id, open_parents, failed_parents)
SELECT id, execute_at, due_at, created_at, timeout_ms, $3::bigint, attempt, retries, lost,
       partition, priority, $2::smallint, target, tenant, type, queue, spec, payload, tags,
       started_at, error_code, error_message, schedule_id, open_parents, failed_parents
FROM ended";

const REVIVE: &str = "\
WITH ended AS (
    DELETE FROM finished_jobs WHERE id = $1::uuid RETURNING *
), no_longer_dead AS (
    DELETE FROM dead_letters WHERE job_id = $1::uuid
)
INSERT INTO jobs (id, execute_at, due_at, created_at, timeout_ms, attempt, retries, lost,
                  partition, priority, state, target, tenant, type, queue, spec, payload, tags,
                  started_at, error_code, error_message, schedule_id, open_parents, failed_parents)
SELECT id, execute_at, $3::bigint, created_at, timeout_ms, attempt, $5::integer, $6::integer,
       partition, priority, $2::smallint, target, tenant, type, queue, spec, $4::text, tags,
       started_at, error_code, error_message, schedule_id, $7::integer, $8::integer
FROM ended";

const INSERT_ATTEMPT: &str = "\
INSERT INTO attempts (job_id, number, outcome, started_at, ended_at, error_code, error_message)
VALUES ($1::uuid, $2::integer, $3::smallint, $4::bigint, $5::bigint, $6::text, $7::text)";

const GET_ATTEMPTS: &str = "\
SELECT number, outcome, started_at, ended_at, error_code, error_message
FROM attempts WHERE job_id = $1::uuid ORDER BY number";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    GET_JOBS,
    LOCK_LIVE,
    LOCK_FINISHED,
    EXISTS,
    UPDATE,
    DELETE_TAGS,
    FINISH,
    REVIVE,
    INSERT_ATTEMPT,
    GET_ATTEMPTS,
];

/// The jobs that exist.
pub(super) async fn get_jobs(store: &PostgresStore, ids: Vec<JobId>) -> StoreResult<Vec<Job>> {
    let ids: Vec<Uuid> = ids.into_iter().map(JobId::as_uuid).collect();
    read_jobs(&store.read(GET_JOBS, &[&ids]).await?)
}

/// Every attempt of a job, the first one first.
pub(super) async fn attempts(store: &PostgresStore, id: JobId) -> StoreResult<Option<Vec<AttemptRecord>>> {
    let client = store.client().await?;
    let (id, ids) = (id.as_uuid(), [id.as_uuid()]);
    let ids = ids.as_slice();
    let steps = [
        Step::prepare(&client, GET_JOBS, vec![&ids]).await?,
        Step::prepare(&client, GET_ATTEMPTS, vec![&id]).await?,
    ];
    let answers = transact(&client, BEGIN_SNAPSHOT, &steps).await.map_err(not_done)?;
    let [jobs, past] = answers.as_slice() else { return Ok(None) };
    let Some(job) = jobs.first() else { return Ok(None) };
    let mut attempts = past.iter().map(read_attempt).collect::<StoreResult<Vec<_>>>()?;
    attempts.extend(read_job(job)?.current_attempt());
    Ok(Some(attempts))
}

fn read_attempt(row: &Row) -> StoreResult<AttemptRecord> {
    Ok(AttemptRecord {
        number: decode_count("attempt", column::<i32>(row, 0)?.into())?,
        outcome: Some(decode_outcome(column::<i16>(row, 1)?.into())?),
        started_at: Timestamp::from_millis(column(row, 2)?),
        ended_at: Some(Timestamp::from_millis(column(row, 3)?)),
        error: decode_failure(column(row, 4)?, column(row, 5)?),
    })
}

/// Applies a change: reads the job under a lock, lets the core decide, writes what it decided.
pub(super) async fn change_job(
    store: &PostgresStore,
    id: JobId,
    change: Change,
    now: Timestamp,
) -> StoreResult<Changed> {
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    let parents = match change {
        Change::Revive { .. } => count_parents(&transaction, id.as_uuid()).await?,
        _ => None,
    };
    let Some(mut before) = lock(&transaction, id.as_uuid()).await? else { return Ok(Changed::NotFound) };
    before.parents = parents.unwrap_or(before.parents);
    let after = match change::apply(&before, &change, now) {
        Ok(after) => after,
        Err(illegal) => return Ok(Changed::Illegal(illegal)),
    };
    let after = match (before.state.is_terminal(), after.state.is_terminal()) {
        // The wish of an ended job to be cancelled was fulfilled before.
        (true, true) => after,
        (false, true) => finish(&transaction, after).await?,
        (true, false) => revive(&transaction, &before, after).await?,
        (false, false) => update(&transaction, &before, after).await?,
    };
    transaction.commit().await.map_err(write_failed)?;
    Ok(Changed::Done(Box::new(after)))
}

/// How the parents of the job stand, and will stand until the transaction ends; `None`: it has none. They are locked before the job
/// itself, as those of a new job are; what a job depends on never changes.
async fn count_parents(transaction: &Transaction<'_>, id: Uuid) -> StoreResult<Option<Parents>> {
    let job = run(transaction, GET_JOBS, &[&vec![id]]).await?.first().map(read_job).transpose()?;
    match job {
        Some(job) if !job.spec.depends_on.is_empty() => {
            let ids = job.spec.depends_on.iter().copied().collect();
            Ok(Some(lock_parents(transaction, ids).await?.counted()))
        }
        _ => Ok(None),
    }
}

/// The job, locked until the transaction ends. It may move from one table to the other and back while it is looked for.
async fn lock(transaction: &Transaction<'_>, id: Uuid) -> StoreResult<Option<Job>> {
    loop {
        for sql in [LOCK_LIVE, LOCK_FINISHED] {
            if let Some(row) = run(transaction, sql, &[&id]).await?.first() {
                return read_job(row).map(Some);
            }
        }
        let exists = run(transaction, EXISTS, &[&id]).await?;
        if !exists.first().map_or(Ok(false), |row| column(row, 0))? {
            return Ok(None);
        }
    }
}

async fn update(transaction: &Transaction<'_>, before: &Job, after: Job) -> StoreResult<Job> {
    let id = after.id.as_uuid();
    let params: [Param<'_>; 8] = [
        &id,
        &after.state.code(),
        &after.execute_at.as_millis(),
        &after.due_at.as_millis(),
        &after.priority.code(),
        &after.payload.as_str(),
        &encode_tags(&after.tags),
        &after.cancel_requested,
    ];
    run(transaction, UPDATE, &params).await?;
    if before.tags != after.tags {
        run(transaction, DELETE_TAGS, &[&before.tags, &id]).await?;
        run(transaction, INSERT_TAGS, &[&after.tags, &vec![id; after.tags.len()]]).await?;
    }
    Ok(after)
}

/// Moves a job to history whose end was not the end of an attempt. What only a live job has is dropped.
async fn finish(transaction: &Transaction<'_>, mut after: Job) -> StoreResult<Job> {
    let completed_at = after.completed_at.map(Timestamp::as_millis);
    let params: [Param<'_>; 4] =
        [&after.id.as_uuid(), &after.state.code(), &completed_at, &after.spec.callback_url];
    run(transaction, FINISH, &params).await?;
    block_children(transaction, after.id.as_uuid()).await?;
    (after.session, after.deadline, after.cancel_requested, after.burst) =
        (None, None, false, Burst::default());
    Ok(after)
}

async fn revive(transaction: &Transaction<'_>, before: &Job, after: Job) -> StoreResult<Job> {
    let id = after.id.as_uuid();
    if let Some(last) = before.current_attempt() {
        let (code, message) = encode_failure(last.error.as_ref());
        let params: [Param<'_>; 7] = [
            &id,
            &count(last.number),
            &last.outcome.map(|outcome| outcome.code()),
            &last.started_at.as_millis(),
            &last.ended_at.map(Timestamp::as_millis),
            &code,
            &message,
        ];
        run(transaction, INSERT_ATTEMPT, &params).await?;
    }
    let params: [Param<'_>; 8] = [
        &id,
        &after.state.code(),
        &after.due_at.as_millis(),
        &after.payload.as_str(),
        &count(after.retries),
        &count(after.lost),
        &count(after.parents.open),
        &count(after.parents.failed),
    ];
    run(transaction, REVIVE, &params).await?;
    hold_children_again(transaction, id).await?;
    Ok(after)
}
