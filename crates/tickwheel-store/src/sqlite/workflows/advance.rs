//! Runs on their way: carrying out what was decided about them.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tickwheel_core::ports::{CallbackSubject, RunAdvanced, Scheduled};
use tickwheel_core::workflow::{FanOut, ReconcileRequest, Run, RunNotice, RunStep};
use tickwheel_core::{Job, JobId, Timestamp};

use super::reconcile_requests::{delete_reconciled, request_reconcile};
use super::runs::{find_run, write_run};
use crate::dependency_edges::Ended;
use crate::sqlite::callbacks::{NewCallback, insert_callback};
use crate::sqlite::dependencies::{hold_children_again, release_children};
use crate::sqlite::fault::Verb;
use crate::sqlite::jobs::{count_parents, restore};
use crate::sqlite::row::find_job;
use crate::sqlite::submit::insert_jobs;
use crate::task_changes::Applied;
use crate::workflow_columns::state_of;

/// See [`tickwheel_core::ports::RunStore::advance_runs`].
pub(super) fn advance_runs(connection: &Connection, steps: &[RunStep]) -> Verb<Vec<RunAdvanced>> {
    steps.iter().map(|step| advance_one(connection, step)).collect()
}

fn advance_one(connection: &Connection, step: &RunStep) -> Verb<RunAdvanced> {
    let run = find_run(connection, step.run)?.filter(|run| run.revision == step.revision);
    let Some(run) = run else { return Ok(RunAdvanced::Stale) };
    let applied = Applied::of(step, &find_jobs(connection, step)?);
    let mut effects = applied.effects(step);
    effects.scheduled.extend(write_tasks(connection, &applied)?);
    insert_jobs(connection, &step.jobs)?;
    let after = applied.run_after(&run, step);
    if after != run {
        write_run(connection, &after)?;
    }
    let whole = applied.needs_reconcile(&after).then(|| ReconcileRequest::id_of_run(run.id));
    step.reconcile_requests
        .iter()
        .copied()
        .chain(whole)
        .try_for_each(|at| request_reconcile(connection, at))?;
    delete_reconciled(connection, &step.reconciled)?;
    tell(connection, &step.notices, &after, step.now)?;
    Ok(RunAdvanced::Done(effects))
}

/// What a step changes, as it is. Those that are to come back have counted their parents as they stand.
fn find_jobs(connection: &Connection, step: &RunStep) -> Verb<BTreeMap<JobId, Job>> {
    let mut found = BTreeMap::new();
    for (id, _) in &step.changes {
        if !found.contains_key(id)
            && let Some(job) = find_job(connection, *id)?
        {
            found.insert(*id, job);
        }
    }
    for id in step.changes.iter().filter(|(_, change)| change.brings_back()).map(|(id, _)| id) {
        if let Some(job) = found.get_mut(id).filter(|job| job.state().is_terminal()) {
            job.parents = count_parents(connection, job)?;
        }
    }
    Ok(found)
}

/// Writes the jobs first, then tells those who wait for them; answers who waits no more.
fn write_tasks(connection: &Connection, applied: &Applied) -> Verb<Vec<Scheduled>> {
    for task in applied.tasks.iter().filter(|task| task.was_retried() || task.has_ended()) {
        restore(connection, &task.before, &task.after)?;
    }
    for task in applied.updated() {
        update_task(connection, &task.before, &task.after)?;
    }
    for task in applied.retried() {
        hold_children_again(connection, &task.after)?;
    }
    let ended: Vec<Ended<'_>> = applied.ended().filter_map(|task| Ended::of(&task.after)).collect();
    Ok(release_children(connection, &ended)?.released)
}

/// Writes what a step can change of a job that was not over and is not. Where it is neither another time nor other
/// data, no index and no long text has to follow.
fn update_task(connection: &Connection, before: &Job, after: &Job) -> Verb<()> {
    let (id, state, stop) = (after.id.as_uuid(), after.state().code(), after.cancel_requested);
    let (open, failed, release) = (after.parents.open, after.parents.failed, after.release().code());
    let fan_out = after.fan_out.map(FanOut::to_text);
    if before.due_at == after.due_at && before.payload == after.payload {
        connection
            .prepare_cached(
                "UPDATE jobs SET state = ?2, cancel_requested = ?3, open_parents = ?4, failed_parents = ?5, release = ?6,
                     fan_out = ?7 WHERE id = ?1",
            )?
            .execute((id, state, stop, open, failed, release, fan_out))?;
        return Ok(());
    }
    connection
        .prepare_cached(
            "UPDATE jobs SET state = ?2, cancel_requested = ?3, open_parents = ?4, failed_parents = ?5, release = ?6,
                 fan_out = ?7, due_at = ?8, payload = ?9 WHERE id = ?1",
        )?
        .execute((
            id,
            state,
            stop,
            open,
            failed,
            release,
            fan_out,
            after.due_at.as_millis(),
            after.payload.as_str(),
        ))?;
    Ok(())
}

/// Writes down what is to be told of a run as it stands.
pub(super) fn tell(connection: &Connection, notices: &[RunNotice], run: &Run, now: Timestamp) -> Verb<()> {
    for notice in notices {
        let callback = NewCallback {
            subject: CallbackSubject::Run { id: run.id, document: notice.body.clone() },
            url: &notice.url,
            state: state_of(run.progress.status),
            attempt: 0,
            completed_at: now,
            result: None,
            error: None,
        };
        insert_callback(connection, &callback)?;
    }
    Ok(())
}
