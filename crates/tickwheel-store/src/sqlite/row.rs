//! Between rows and jobs: reading a job from either table, writing a whole job into either.
//!
//! Both tables are read through one list of columns, in which a table's missing ones are constants; so there is one way
//! to decode a job. The hot path moves rows inside SQL and writes whole jobs only on submission.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tickwheel_core::ports::Projection;
use tickwheel_core::{Job, JobId};

use super::fault::Verb;
use crate::columns::{self, JobColumns};

/// What [`job_from_row`] reads, of `jobs`.
macro_rules! live_columns {
    () => {
        "id, partition, tenant, type, queue, priority, state, execute_at, due_at, created_at, spec, payload, tags,
         attempt, retries, lost, burst_started_at, burst_failures, session, started_at, deadline, cancel_requested,
         NULL AS completed_at, NULL AS last_outcome, NULL AS result, error_code, error_message, schedule_id,
         open_parents, failed_parents"
    };
}

/// How many columns a job has: what a statement adds comes after them.
pub(super) const JOB_COLUMNS: usize = 30;
/// The place of its state among them,
pub(super) const STATE: usize = 6;
/// and of its time.
pub(super) const DUE_AT: usize = 8;

/// What [`job_from_row`] reads, of `finished_jobs`.
macro_rules! finished_columns {
    () => {
        "id, partition, tenant, type, queue, priority, state, execute_at, due_at, created_at, spec, payload, tags,
         attempt, retries, lost, NULL AS burst_started_at, 0 AS burst_failures, NULL AS session, started_at,
         NULL AS deadline, 0 AS cancel_requested, completed_at, last_outcome, result, error_code, error_message,
         schedule_id, open_parents, failed_parents"
    };
}

/// What a list reads of the row that `$found` selects: at the place of a payload or a result that is not asked for is
/// nothing.
macro_rules! listed {
    ($found:expr) => {
        concat!(
            "SELECT id, partition, tenant, type, queue, priority, state, execute_at, due_at, created_at, spec,
                 CASE WHEN ?2 THEN payload ELSE 'null' END, tags, attempt, retries, lost, burst_started_at, burst_failures,
                 session, started_at, deadline, cancel_requested, completed_at, last_outcome, CASE WHEN ?3 THEN result END,
                 error_code, error_message, schedule_id, open_parents, failed_parents
             FROM (",
            $found,
            ")"
        )
    };
}

pub(super) use live_columns;

/// The job in a row of [`live_columns`] or [`finished_columns`].
pub(super) fn job_from_row(row: &Row<'_>) -> Verb<Job> {
    let columns = JobColumns {
        id: row.get(0)?,
        partition: row.get(1)?,
        tenant: row.get_ref(2)?.as_str()?,
        job_type: row.get_ref(3)?.as_str()?,
        queue: row.get_ref(4)?.as_str()?,
        priority: row.get(5)?,
        state: row.get(6)?,
        execute_at: row.get(7)?,
        due_at: row.get(8)?,
        created_at: row.get(9)?,
        spec: row.get_ref(10)?.as_str()?,
        payload: row.get_ref(11)?.as_str()?,
        tags: row.get_ref(12)?.as_str()?,
        attempt: row.get(13)?,
        retries: row.get(14)?,
        lost: row.get(15)?,
        burst_started_at: row.get(16)?,
        burst_failures: row.get(17)?,
        session: row.get(18)?,
        started_at: row.get(19)?,
        deadline: row.get(20)?,
        cancel_requested: row.get(21)?,
        completed_at: row.get(22)?,
        last_outcome: row.get(23)?,
        result: row.get_ref(24)?.as_str_or_null()?,
        error_code: row.get_ref(25)?.as_str_or_null()?,
        error_message: row.get_ref(26)?.as_str_or_null()?,
        schedule_id: row.get(27)?,
        open_parents: row.get(28)?,
        failed_parents: row.get(29)?,
    };
    Ok(columns.decode()?)
}

/// Whether a column says `wanted`, if anything is wanted of it.
pub(super) fn is_text(row: &Row<'_>, column: usize, wanted: Option<&str>) -> Verb<bool> {
    match wanted {
        None => Ok(true),
        Some(wanted) => Ok(row.get_ref(column)?.as_str_or_null()? == Some(wanted)),
    }
}

/// The job, live or finished.
pub(super) fn find_job(connection: &Connection, id: JobId) -> Verb<Option<Job>> {
    match find_live(connection, id)? {
        Some(job) => Ok(Some(job)),
        None => find_finished(connection, id),
    }
}

/// The job, if it waits or runs.
fn find_live(connection: &Connection, id: JobId) -> Verb<Option<Job>> {
    find_one(connection, concat!("SELECT ", live_columns!(), " FROM jobs WHERE id = ?1"), id)
}

/// The job, if it is in history.
pub(super) fn find_finished(connection: &Connection, id: JobId) -> Verb<Option<Job>> {
    find_one(connection, concat!("SELECT ", finished_columns!(), " FROM finished_jobs WHERE id = ?1"), id)
}

/// The job, live or finished, as a list carries it, and what it weighs.
pub(super) fn find_listed(
    connection: &Connection,
    id: JobId,
    projection: Projection,
) -> Verb<Option<(Job, usize)>> {
    for sql in [
        listed!(concat!("SELECT ", live_columns!(), " FROM jobs WHERE id = ?1")),
        listed!(concat!("SELECT ", finished_columns!(), " FROM finished_jobs WHERE id = ?1")),
    ] {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![id.as_uuid(), projection.payload, projection.result])?;
        if let Some(row) = rows.next()? {
            return Ok(Some((job_from_row(row)?, weight(row)?)));
        }
    }
    Ok(None)
}

/// The bytes of what may be long.
fn weight(row: &Row<'_>) -> Verb<usize> {
    let mut bytes = 0;
    for column in [10, 11, 24, 26] {
        bytes += row.get_ref(column)?.as_str_or_null()?.map_or(0, str::len);
    }
    Ok(bytes)
}

fn find_one(connection: &Connection, sql: &str, id: JobId) -> Verb<Option<Job>> {
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([id.as_uuid()], |row| Ok(job_from_row(row))).optional()?.transpose()
}

/// Writes a whole job into the live table.
pub(super) fn insert_live(connection: &Connection, job: &Job) -> Verb<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO jobs (id, partition, tenant, type, queue, priority, state, target, execute_at, due_at, created_at,
             timeout_ms, attempt, retries, lost, burst_started_at, burst_failures, session, started_at, deadline,
             cancel_requested, error_code, error_message, tags, spec, payload, schedule_id, open_parents, failed_parents,
             release)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
             ?24, ?25, ?26, ?27, ?28, ?29, ?30)",
    )?;
    let (error_code, error_message) = columns::encode_failure(job.error.as_ref());
    statement.execute(params![
        job.id.as_uuid(),
        job.partition.0,
        &*job.tenant,
        &*job.job_type,
        &*job.queue,
        job.priority.code(),
        job.state().code(),
        job.spec.target.kind().code(),
        job.execute_at.as_millis(),
        job.due_at.as_millis(),
        job.created_at.as_millis(),
        columns::encode_timeout(&job.spec),
        job.attempt,
        job.retries,
        job.lost,
        job.burst.started_at.map(|at| at.as_millis()),
        job.burst.failures,
        job.session.map(|session| session.as_uuid()),
        job.started_at.map(|at| at.as_millis()),
        job.deadline.map(|at| at.as_millis()),
        job.cancel_requested,
        error_code,
        error_message,
        columns::encode_tags(&job.tags),
        columns::encode_spec(&job.spec),
        job.payload.as_str(),
        job.schedule_id.map(|schedule| schedule.as_uuid()),
        job.parents.open,
        job.parents.failed,
        job.release().code(),
    ])?;
    Ok(())
}

/// Writes a whole job into history.
pub(super) fn insert_finished(connection: &Connection, job: &Job) -> Verb<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO finished_jobs (id, partition, tenant, type, queue, priority, state, target, execute_at, due_at,
             created_at, timeout_ms, attempt, retries, lost, started_at, completed_at, last_outcome, error_code,
             error_message, tags, spec, payload, result, schedule_id, open_parents, failed_parents)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
             ?24, ?25, ?26, ?27)",
    )?;
    let (error_code, error_message) = columns::encode_failure(job.error.as_ref());
    statement.execute(params![
        job.id.as_uuid(),
        job.partition.0,
        &*job.tenant,
        &*job.job_type,
        &*job.queue,
        job.priority.code(),
        job.state().code(),
        job.spec.target.kind().code(),
        job.execute_at.as_millis(),
        job.due_at.as_millis(),
        job.created_at.as_millis(),
        columns::encode_timeout(&job.spec),
        job.attempt,
        job.retries,
        job.lost,
        job.started_at.map(|at| at.as_millis()),
        job.completed_at.map(|at| at.as_millis()),
        job.last_outcome.map(|outcome| outcome.code()),
        error_code,
        error_message,
        columns::encode_tags(&job.tags),
        columns::encode_spec(&job.spec),
        job.payload.as_str(),
        job.result.as_ref().map(|result| result.as_str()),
        job.schedule_id.map(|schedule| schedule.as_uuid()),
        job.parents.open,
        job.parents.failed,
    ])?;
    Ok(())
}

/// Takes a job out of the live table.
pub(super) fn delete_live(connection: &Connection, id: JobId) -> Verb<()> {
    connection.prepare_cached("DELETE FROM jobs WHERE id = ?1")?.execute([id.as_uuid()])?;
    Ok(())
}

/// Takes a job out of history.
pub(super) fn delete_finished(connection: &Connection, id: JobId) -> Verb<()> {
    connection.prepare_cached("DELETE FROM finished_jobs WHERE id = ?1")?.execute([id.as_uuid()])?;
    Ok(())
}

/// Makes a job findable by its tags.
pub(super) fn insert_tags(connection: &Connection, id: JobId, tags: &[String]) -> Verb<()> {
    for tag in tags {
        connection
            .prepare_cached("INSERT OR IGNORE INTO job_tags (tag, job_id) VALUES (?1, ?2)")?
            .execute((tag, id.as_uuid()))?;
    }
    Ok(())
}

/// The opposite of [`insert_tags`].
pub(super) fn delete_tags(connection: &Connection, id: JobId, tags: &[String]) -> Verb<()> {
    for tag in tags {
        connection
            .prepare_cached("DELETE FROM job_tags WHERE tag = ?1 AND job_id = ?2")?
            .execute((tag, id.as_uuid()))?;
    }
    Ok(())
}
