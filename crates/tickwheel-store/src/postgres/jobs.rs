//! One job: reading it, and what people do to it.

use const_format::{concatcp, formatcp};
use deadpool_postgres::Transaction;
use tickwheel_core::change::{self, Change};
use tickwheel_core::parents::Parents;
use tickwheel_core::ports::{Changed, StoreResult};
use tickwheel_core::workflow::{Run, RunCounts};
use tickwheel_core::{AttemptRecord, Job, JobId, RunId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::dependencies::{Moved, lock_parents, propagate};
use super::error::{not_done, write_failed};
use super::pipeline::{BEGIN_SNAPSHOT, BoundStatement, Param, Step, run, run_all, transact};
use super::restore::{EndedRows, RetriedRows};
use super::row::{FINISHED_COLUMNS, LIVE_COLUMNS, column, read_job, read_jobs};
use super::submit::INSERT_TAGS;
use super::workflows::counts::CountRows;
use super::workflows::locks::lock_runs;
use super::workflows::reconcile_requests::{REQUEST_RECONCILE, go_on};
use crate::codes::{RUN_PAUSED, RUN_RUNNING};
use crate::columns::{decode_count, decode_failure, decode_outcome, encode_tags};
use crate::dependency_edges::Ended;

// One statement is one moment: a job on its way from one table to the other is seen in exactly one of them.
pub(super) const GET_JOBS: &str = concatcp!(
    "SELECT ",
    LIVE_COLUMNS,
    " FROM jobs AS j WHERE j.id = ANY ($1::uuid[]) UNION ALL SELECT ",
    FINISHED_COLUMNS,
    " FROM finished_jobs AS j WHERE j.id = ANY ($1::uuid[])"
);

const ENDED_AMONG: &str = formatcp!(
    "\
SELECT id FROM finished_jobs WHERE id = ANY ($1::uuid[])
UNION ALL SELECT id FROM workflow_runs WHERE id = ANY ($1::uuid[]) AND status NOT IN ({RUN_RUNNING}, {RUN_PAUSED})"
);

const LOCK_LIVE: &str =
    concatcp!("SELECT ", LIVE_COLUMNS, " FROM jobs AS j WHERE j.id = $1::uuid FOR UPDATE");

const LOCK_FINISHED: &str =
    concatcp!("SELECT ", FINISHED_COLUMNS, " FROM finished_jobs AS j WHERE j.id = $1::uuid FOR UPDATE");

const EXISTS: &str = "\
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = $1::uuid) OR EXISTS (SELECT 1 FROM finished_jobs WHERE id = $1::uuid)";

const UPDATE: &str = "\
UPDATE jobs
SET state = $2::smallint, execute_at = $3::bigint, due_at = $4::bigint, priority = $5::smallint, payload = $6::text,
    tags = $7::text, cancel_requested = $8::boolean
WHERE id = $1::uuid";

const DELETE_TAGS: &str = "\
DELETE FROM job_tags WHERE tag = ANY ($1::text[]) AND job_id = $2::uuid";

const GET_ATTEMPTS: &str = "\
SELECT number, outcome, started_at, ended_at, error_code, error_message
FROM attempts WHERE job_id = $1::uuid ORDER BY number";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[GET_JOBS, ENDED_AMONG, LOCK_LIVE, LOCK_FINISHED, EXISTS, UPDATE, DELETE_TAGS, GET_ATTEMPTS];

/// The jobs that exist.
pub(super) async fn get_jobs(store: &PostgresStore, ids: Vec<JobId>) -> StoreResult<Vec<Job>> {
    let ids: Vec<Uuid> = ids.into_iter().map(JobId::as_uuid).collect();
    read_jobs(&store.read(GET_JOBS, &[&ids]).await?)
}

/// Those of the jobs and runs that have ended.
pub(super) async fn ended_among(store: &PostgresStore, ids: Vec<JobId>) -> StoreResult<Vec<JobId>> {
    let ids: Vec<Uuid> = ids.into_iter().map(JobId::as_uuid).collect();
    let rows = store.read(ENDED_AMONG, &[&ids]).await?;
    rows.iter().map(|row| column(row, 0).map(JobId::from_uuid)).collect()
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
    // Whoever moves a task of a run locks the run before anything else. Of a job that is no task it would be a run that
    // does not exist.
    let its_run = lock_runs(&transaction, [RunId::of_task(id)]).await?.into_values().next();
    let parents = match change {
        Change::Retry { .. } => count_parents(&transaction, id.as_uuid()).await?,
        _ => None,
    };
    let Some(mut before) = lock(&transaction, id.as_uuid()).await? else { return Ok(Changed::NotFound) };
    before.parents = parents.unwrap_or(before.parents);
    let after = match change::apply(&before, &change, now) {
        Ok(after) => after,
        Err(illegal) => return Ok(Changed::Illegal(illegal)),
    };
    let after = match (before.state().is_terminal(), after.state().is_terminal()) {
        // The cancel of an ended job was carried out before.
        (true, true) => after,
        (false, true) => finish(&transaction, after, its_run).await?,
        (true, false) => retry(&transaction, &before, after, its_run).await?,
        (false, false) => update(&transaction, &before, after).await?,
    };
    transaction.commit().await.map_err(write_failed)?;
    Ok(Changed::Done(Box::new(after)))
}

/// How the parents of the job stand, and will stand until the transaction ends; `None`: it has none. They are locked
/// before the job itself, as those of a new job are; whom an ended job waited for does not change.
async fn count_parents(transaction: &Transaction<'_>, id: Uuid) -> StoreResult<Option<Parents>> {
    let job = run(transaction, GET_JOBS, &[&vec![id]]).await?.first().map(read_job).transpose()?;
    let Some(job) = job else { return Ok(None) };
    let parents = lock_parents(transaction, job.waits_for().into_iter().collect()).await?;
    Ok(Some(parents.counted(&job)))
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
        &after.state().code(),
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

/// Moves a job to history whose end was not the end of an attempt.
async fn finish(transaction: &Transaction<'_>, after: Job, its_run: Option<Run>) -> StoreResult<Job> {
    let after = after.archived();
    let ended = EndedRows::of([&after]);
    let moved = Moved::ended(Ended::of(&after));
    let propagation = propagate(transaction, ended.statements(), &moved).await?;
    let before = its_run.iter().map(|run| (run.id, RunCounts::of(run))).collect();
    let counts = CountRows::of(&moved.ended, &before);
    let reconcile_requests: Vec<Uuid> =
        propagation.reconcile_requests.iter().chain(&counts.reconcile_requests).copied().collect();
    let mut statements: Vec<BoundStatement<'_>> = Vec::new();
    statements.extend(propagation.statement());
    statements.extend(counts.statement());
    statements.push((REQUEST_RECONCILE, vec![&reconcile_requests]));
    run_all(transaction, &statements).await?;
    Ok(after)
}

async fn retry(
    transaction: &Transaction<'_>,
    before: &Job,
    after: Job,
    its_run: Option<Run>,
) -> StoreResult<Job> {
    let retried = RetriedRows::of([(before, &after)]);
    let moved = Moved { ended: Vec::new(), retried: vec![&after] };
    let propagation = propagate(transaction, retried.statements(), &moved).await?;
    let mut statements: Vec<BoundStatement<'_>> = Vec::new();
    statements.extend(propagation.statement());
    statements.push((REQUEST_RECONCILE, vec![&propagation.reconcile_requests]));
    run_all(transaction, &statements).await?;
    if let Some(run) = its_run.filter(|_| after.spec.position.is_some()) {
        go_on(transaction, run).await?;
    }
    Ok(after)
}
