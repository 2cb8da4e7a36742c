//! Runs begin: the run, its jobs, who waits for whom, and the first reconcile requests.

use rusqlite::{Connection, OptionalExtension, params};
use tickwheel_core::RunId;
use tickwheel_core::ports::{Creation, Idempotency, RunStart};
use tickwheel_core::workflow::Run;
use uuid::Uuid;

use super::advance::tell;
use super::reconcile_requests::request_reconcile;
use super::runs::find_run;
use crate::error::corrupt;
use crate::schedule_columns::encode_number;
use crate::sqlite::fault::Verb;
use crate::sqlite::submit::insert_jobs;
use crate::workflow_columns::RunProgressColumns;

/// See [`tickwheel_core::ports::RunStore::start_run`].
pub(super) fn start_run(connection: &Connection, start: RunStart) -> Verb<Creation<Run>> {
    if let Some(seen) = find_seen(connection, &start)? {
        return Ok(seen);
    }
    insert_run(connection, &start.run, start.idempotency.as_ref())?;
    insert_jobs(connection, &start.jobs)?;
    start.reconcile_requests.iter().try_for_each(|at| request_reconcile(connection, *at))?;
    tell(connection, &start.notices, &start.run, start.run.created_at)?;
    Ok(Creation::created(start.run))
}

/// What there is already of that id or key.
fn find_seen(connection: &Connection, start: &RunStart) -> Verb<Option<Creation<Run>>> {
    if let Some(run) = find_run(connection, start.run.id)? {
        return Ok(Some(Creation::existing(run)));
    }
    let Some(idempotency) = &start.idempotency else { return Ok(None) };
    let seen = connection
        .prepare_cached(
            "SELECT id, fingerprint FROM workflow_runs INDEXED BY workflow_runs_key
             WHERE tenant = ?1 AND idempotency_key = ?2",
        )?
        .query_row((&*start.run.tenant, &idempotency.key), |row| {
            Ok((row.get::<_, Uuid>(0)?, row.get_ref(1)?.as_blob()? == idempotency.fingerprint))
        })
        .optional()?;
    let Some((id, same)) = seen else { return Ok(None) };
    let id = RunId::from_uuid(id);
    if !same {
        return Ok(Some(Creation::Conflict(id)));
    }
    let run = find_run(connection, id)?.ok_or_else(|| corrupt("run of an idempotency key", id))?;
    Ok(Some(Creation::existing(run)))
}

fn insert_run(connection: &Connection, run: &Run, idempotency: Option<&Idempotency>) -> Verb<()> {
    let progress = RunProgressColumns::from(&run.progress);
    connection
        .prepare_cached(
            "INSERT INTO workflow_runs (id, partition, tenant, workflow, version, status, created_at, ended_at,
                 cancel_requested, next_index, after_first, blocked, stalled, stalls_at, job_id, total, open, revision,
                 idempotency_key, fingerprint, input, had_failure, data_bytes, paused_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                 ?22, ?23, ?24)",
        )?
        .execute(params![
            run.id.as_uuid(),
            run.partition.0,
            &*run.tenant,
            &*run.workflow,
            run.version,
            progress.status,
            run.created_at.as_millis(),
            progress.ended_at,
            progress.cancel_requested,
            progress.next_index,
            progress.after_first,
            progress.blocked,
            progress.stalled,
            progress.stalls_at,
            run.job_id.map(|job| job.as_uuid()),
            run.total,
            run.open,
            encode_number(run.revision),
            idempotency.map(|idempotency| &idempotency.key),
            idempotency.map(|idempotency| idempotency.fingerprint),
            run.input.as_str(),
            run.had_failure,
            progress.data_bytes,
            progress.paused_at,
        ])?;
    Ok(())
}
