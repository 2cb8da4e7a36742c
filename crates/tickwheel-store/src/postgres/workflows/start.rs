//! Runs begin: the run, its jobs, who waits for whom, and the first reconcile requests. A few statements, however many
//! jobs there are.

use deadpool_postgres::Transaction;
use tickwheel_core::ports::{Creation, RunStart, StoreResult};
use tickwheel_core::workflow::Run;
use tickwheel_core::{JobId, RunId};
use uuid::Uuid;

use super::reconcile_requests::REQUEST_RECONCILE;
use super::runs::{GET, read_run_row};
use super::writes::NoticeRows;
use crate::error::corrupt;
use crate::postgres::PostgresStore;
use crate::postgres::error::{not_done, write_failed};
use crate::postgres::pipeline::{Param, run, run_all};
use crate::postgres::row::{column, count};
use crate::postgres::submit::Rows;
use crate::postgres::workers::write_routes;
use crate::schedule_columns::encode_number;
use crate::workflow_columns::RunProgressColumns;

// A run of that id or key that somebody else is writing right now is waited for.
const INSERT: &str = "\
INSERT INTO workflow_runs (id, revision, created_at, version, next_index, blocked, stalled, total, open, partition, status,
                           cancel_requested, tenant, workflow, input, ended_at, stalls_at, job_id, after_first,
                           idempotency_key, fingerprint, had_failure, data_bytes, paused_at)
VALUES ($1::uuid, $2::bigint, $3::bigint, $4::integer, $5::integer, $6::integer, $7::integer, $8::integer, $9::integer,
        $10::smallint, $11::smallint, $12::boolean, $13::text, $14::text, $15::text, $16::bigint, $17::bigint, $18::uuid,
        $19::integer, $20::text, $21::bytea, $22::boolean, $23::bigint, $24::bigint)
ON CONFLICT DO NOTHING
RETURNING id";

const FIND_KEY: &str = "\
SELECT id, fingerprint FROM workflow_runs WHERE tenant = $1::text AND idempotency_key = $2::text";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, FIND_KEY];

/// Stores a run and all that belongs to it, unless there is one of that id or key.
pub(super) async fn start_run(store: &PostgresStore, start: RunStart) -> StoreResult<Creation<Run>> {
    write_routes(store, start.jobs.iter()).await?;
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    if !insert_run(&transaction, &start).await? {
        return find_seen(&transaction, &start).await;
    }
    let rows = Rows::of(start.jobs.iter(), store);
    let reconcile_requests: Vec<Uuid> =
        start.reconcile_requests.iter().copied().map(JobId::as_uuid).collect();
    let mut statements = rows.statements();
    if !reconcile_requests.is_empty() {
        statements.push((REQUEST_RECONCILE, vec![&reconcile_requests]));
    }
    let notices = NoticeRows::of([(&*start.notices, &start.run, start.run.created_at)]);
    statements.extend(notices.statement());
    run_all(&transaction, &statements).await?;
    transaction.commit().await.map_err(write_failed)?;
    store.remember_queues(&rows.new_queues);
    drop(statements);
    drop(rows);
    drop(notices);
    Ok(Creation::created(start.run))
}

/// Whether there was none of that id or key.
async fn insert_run(transaction: &Transaction<'_>, start: &RunStart) -> StoreResult<bool> {
    let (new, idempotency) = (&start.run, start.idempotency.as_ref());
    let progress = RunProgressColumns::from(&new.progress);
    let (tenant, workflow): (&str, &str) = (&new.tenant, &new.workflow);
    let values: [Param<'_>; 24] = [
        &new.id.as_uuid(),
        &encode_number(new.revision),
        &new.created_at.as_millis(),
        &count(new.version),
        &count(new.progress.next_index),
        &count(new.progress.blocked),
        &count(new.progress.stalled),
        &count(new.total),
        &count(new.open),
        &new.partition.0.cast_signed(),
        &progress.status,
        &progress.cancel_requested,
        &tenant,
        &workflow,
        &new.input.as_str(),
        &progress.ended_at,
        &progress.stalls_at,
        &new.job_id.map(JobId::as_uuid),
        &new.progress.after_first.map(count),
        &idempotency.map(|idempotency| &idempotency.key),
        &idempotency.map(|idempotency| idempotency.fingerprint.as_slice()),
        &new.had_failure,
        &progress.data_bytes,
        &progress.paused_at,
    ];
    Ok(!run(transaction, INSERT, &values).await?.is_empty())
}

/// What there is already of that id or key.
async fn find_seen(transaction: &Transaction<'_>, start: &RunStart) -> StoreResult<Creation<Run>> {
    if let Some(existing) = find(transaction, start.run.id).await? {
        return Ok(existing);
    }
    let gone = || corrupt("run", "it conflicts and does not exist");
    let idempotency = start.idempotency.as_ref().ok_or_else(gone)?;
    let tenant: &str = &start.run.tenant;
    let rows = run(transaction, FIND_KEY, &[&tenant, &idempotency.key]).await?;
    let seen = rows.first().ok_or_else(gone)?;
    let id = RunId::from_uuid(column(seen, 0)?);
    if column::<&[u8]>(seen, 1)? != idempotency.fingerprint {
        return Ok(Creation::Conflict(id));
    }
    find(transaction, id).await?.ok_or_else(gone)
}

async fn find(transaction: &Transaction<'_>, id: RunId) -> StoreResult<Option<Creation<Run>>> {
    let rows = run(transaction, GET, &[&vec![id.as_uuid()]]).await?;
    let existing = rows.first().map(read_run_row).transpose()?;
    Ok(existing.map(Creation::existing))
}
