//! Reconcile requests, and the counts of open jobs from which they follow.

use rusqlite::{Connection, OptionalExtension};
use tickwheel_core::workflow::{ReconcileRequest, RunCounts, TaskEnds};
use tickwheel_core::{JobId, RunId};

use super::runs::{find_run, write_run};
use crate::dependency_edges::{Ended, ends_by_run};
use crate::schedule_columns::encode_number;
use crate::sqlite::fault::Verb;
use crate::workflow_columns::decode_reconcile_request;

/// Puts it on the list. It gets a number that was never given before: what is on the list already is requested again.
pub(in crate::sqlite) fn request_reconcile(connection: &Connection, at: JobId) -> Verb<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO reconcile_requests (id) VALUES (?1)")?
        .execute([at.as_uuid()])?;
    Ok(())
}

/// See [`tickwheel_core::ports::RunStore::reconcile_requests`].
pub(super) fn reconcile_requests(
    connection: &Connection,
    after: Option<JobId>,
    limit: usize,
) -> Verb<Vec<ReconcileRequest>> {
    let mut statement = connection
        .prepare_cached("SELECT id, times FROM reconcile_requests WHERE id > ?1 ORDER BY id LIMIT ?2")?;
    let after = after.unwrap_or(JobId::FIRST).as_uuid();
    let mut rows = statement.query((after, i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut reconcile_requests = Vec::new();
    while let Some(row) = rows.next()? {
        reconcile_requests.push(decode_reconcile_request(row.get(0)?, row.get(1)?)?);
    }
    Ok(reconcile_requests)
}

/// Takes off the list what was not requested again.
pub(super) fn delete_reconciled(connection: &Connection, reconciled: &[ReconcileRequest]) -> Verb<()> {
    let mut statement =
        connection.prepare_cached("DELETE FROM reconcile_requests WHERE times = ?1 AND id = ?2")?;
    for request in reconciled {
        statement.execute((encode_number(request.times), request.id.as_uuid()))?;
    }
    Ok(())
}

/// Takes jobs that have ended off the open ones of their runs. Whether a reconcile of a run was requested.
pub(in crate::sqlite) fn count_ends(connection: &Connection, ended: &[Ended<'_>]) -> Verb<bool> {
    let mut requested = false;
    for (run, ends) in ends_by_run(ended) {
        requested |= count_ends_of(connection, run, ends)?;
    }
    Ok(requested)
}

fn count_ends_of(connection: &Connection, run: RunId, ends: TaskEnds) -> Verb<bool> {
    let before = connection
        .prepare_cached("SELECT open, blocked, had_failure FROM workflow_runs WHERE id = ?1")?
        .query_row([run.as_uuid()], |row| {
            Ok(RunCounts { open: row.get(0)?, blocked: row.get(1)?, had_failure: row.get(2)? })
        })
        .optional()?;
    let Some(after) = before.map(|counts| counts.after(ends)) else { return Ok(false) };
    connection
        .prepare_cached("UPDATE workflow_runs SET open = ?2, had_failure = ?3 WHERE id = ?1")?
        .execute((run.as_uuid(), after.open, after.had_failure))?;
    let wanted = after.need_reconcile_after(ends);
    if wanted {
        request_reconcile(connection, ReconcileRequest::id_of_run(run))?;
    }
    Ok(wanted)
}

/// One of its jobs, that had ended, was brought back by somebody: the run goes on.
pub(in crate::sqlite) fn go_on(connection: &Connection, id: RunId) -> Verb<()> {
    let Some(mut run) = find_run(connection, id)? else { return Ok(()) };
    run.open += 1;
    run.revision += 1;
    run.progress = run.progress.retried();
    write_run(connection, &run)?;
    request_reconcile(connection, ReconcileRequest::id_of_run(id))
}
