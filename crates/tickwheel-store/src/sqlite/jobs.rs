//! One job: reading it, changing it, and its attempts.

use const_format::formatcp;
use rusqlite::Connection;
use tickwheel_core::change::{Change, apply};
use tickwheel_core::parents::Parents;
use tickwheel_core::ports::{CallbackSubject, Changed};
use tickwheel_core::{AttemptRecord, Job, JobId, Timestamp};

use super::callbacks::{NewCallback, insert_callback};
use super::dependencies::{find_parents, hold_children_again, release_children};
use super::fault::Verb;
use super::lists::delete_dead_letter;
use super::row::{delete_finished, delete_live, delete_tags, find_job, insert, insert_tags};
use super::workflows::reconcile_requests::{count_ends, go_on};
use crate::codes::{RUN_PAUSED, RUN_RUNNING};
use crate::columns::{decode_count, decode_failure, decode_outcome, encode_failure};
use crate::dependency_edges::Ended;

/// See [`tickwheel_core::ports::JobStore::get_jobs`].
pub(super) fn get_jobs(connection: &Connection, ids: &[JobId]) -> Verb<Vec<Job>> {
    ids.iter().filter_map(|id| find_job(connection, *id).transpose()).collect()
}

/// See [`tickwheel_core::ports::JobStore::ended_among`].
pub(super) fn ended_among(connection: &Connection, ids: &[JobId]) -> Verb<Vec<JobId>> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT EXISTS (SELECT 1 FROM finished_jobs WHERE id = ?1)
             OR EXISTS (SELECT 1 FROM workflow_runs WHERE id = ?1 AND status NOT IN ({RUN_RUNNING}, {RUN_PAUSED}))"
    ))?;
    let mut ended = Vec::new();
    for id in ids {
        if statement.query_row([id.as_uuid()], |row| row.get(0))? {
            ended.push(*id);
        }
    }
    Ok(ended)
}

/// See [`tickwheel_core::ports::JobStore::change_job`].
pub(super) fn change_job(
    connection: &Connection,
    id: JobId,
    change: &Change,
    now: Timestamp,
) -> Verb<Changed> {
    let Some(mut before) = find_job(connection, id)? else { return Ok(Changed::NotFound) };
    if matches!(change, Change::Retry { .. }) {
        before.parents = count_parents(connection, &before)?;
    }
    let mut after = match apply(&before, change, now) {
        Err(illegal) => return Ok(Changed::Illegal(illegal)),
        Ok(after) => after,
    };
    if after != before {
        replace(connection, &before, &after)?;
        // History does not keep everything: the answer is what the next reader will see.
        after = find_job(connection, id)?.unwrap_or(after);
    }
    Ok(Changed::Done(Box::new(after)))
}

fn replace(connection: &Connection, before: &Job, after: &Job) -> Verb<()> {
    if before.tags != after.tags {
        delete_tags(connection, before.id, &before.tags)?;
        insert_tags(connection, after.id, &after.tags)?;
    }
    restore(connection, before, after)?;
    match (before.state().is_terminal(), after.state().is_terminal()) {
        (false, true) => {
            let ended: Vec<Ended<'_>> = Ended::of(after).into_iter().collect();
            release_children(connection, &ended)?;
            count_ends(connection, &ended)?;
        }
        (true, false) => {
            hold_children_again(connection, after)?;
            if let Some(position) = &after.spec.position {
                go_on(connection, position.run)?;
            }
        }
        (true, true) | (false, false) => {}
    }
    Ok(())
}

/// How those stand that the job waits for.
pub(super) fn count_parents(connection: &Connection, job: &Job) -> Verb<Parents> {
    Ok(find_parents(connection, &job.waits_for())?.counted(job))
}

/// Moves a job to where it belongs now, with what belongs to its end or its retry; its completion is not propagated.
pub(super) fn restore(connection: &Connection, before: &Job, after: &Job) -> Verb<()> {
    if before.state().is_terminal() {
        delete_finished(connection, before.id)?;
        delete_dead_letter(connection, before.id)?;
        // The attempt that ended the job lived in its row of history, which goes: from now on it has a row of its own.
        if let Some(last) = before.current_attempt() {
            insert_attempt(connection, before.id, &last)?;
        }
    } else {
        delete_live(connection, before.id)?;
    }
    if after.state().is_terminal() { end(connection, after) } else { insert(connection, after) }
}

fn end(connection: &Connection, job: &Job) -> Verb<()> {
    insert(connection, job)?;
    let (Some(completed_at), Some(url)) = (job.completed_at, &job.spec.callback_url) else { return Ok(()) };
    insert_callback(
        connection,
        &NewCallback {
            subject: CallbackSubject::Job(job.id),
            url,
            state: job.state(),
            attempt: job.attempt,
            completed_at,
            result: job.result.as_ref().map(|result| result.as_str()),
            error: job.error.as_ref(),
        },
    )
}

/// Records an attempt that is over and did not end its job for good.
pub(super) fn insert_attempt(connection: &Connection, id: JobId, attempt: &AttemptRecord) -> Verb<()> {
    let (error_code, error_message) = encode_failure(attempt.error.as_ref());
    connection
        .prepare_cached(
            "INSERT INTO attempts (job_id, number, started_at, ended_at, outcome, error_code, error_message)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            id.as_uuid(),
            attempt.number,
            attempt.started_at.as_millis(),
            attempt.ended_at.map(|at| at.as_millis()),
            attempt.outcome.map(|outcome| outcome.code()),
            error_code,
            error_message,
        ))?;
    Ok(())
}

/// See [`tickwheel_core::ports::JobStore::attempts`].
pub(super) fn attempts(connection: &Connection, id: JobId) -> Verb<Option<Vec<AttemptRecord>>> {
    let Some(job) = find_job(connection, id)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "SELECT number, started_at, ended_at, outcome, error_code, error_message
         FROM attempts WHERE job_id = ?1 ORDER BY number",
    )?;
    let mut rows = statement.query([id.as_uuid()])?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next()? {
        attempts.push(AttemptRecord {
            number: decode_count("attempt number", row.get(0)?)?,
            started_at: Timestamp::from_millis(row.get(1)?),
            ended_at: Some(Timestamp::from_millis(row.get(2)?)),
            outcome: Some(decode_outcome(row.get(3)?)?),
            error: decode_failure(row.get_ref(4)?.as_str_or_null()?, row.get_ref(5)?.as_str_or_null()?),
        });
    }
    attempts.extend(job.current_attempt());
    Ok(Some(attempts))
}
