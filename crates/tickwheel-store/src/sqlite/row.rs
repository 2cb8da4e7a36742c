//! Between rows and jobs: reading a job from either table, writing a whole job into either.
//!
//! Both tables are read through one list of columns, in which a table's missing ones are constants; so there is one way
//! to decode a job. The hot path moves rows inside SQL and writes whole jobs only on submission.

use const_format::concatcp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tickwheel_core::matching::Route;
use tickwheel_core::ports::Projection;
use tickwheel_core::workflow::FanOut;
use tickwheel_core::{Job, JobId};

use super::fault::Verb;
use super::workers::write_route;
use crate::columns::{self, JobColumns};
use crate::job_columns::{self, Selection, Table, at};
use crate::sql_text::sql;

/// What [`job_from_row`] reads, of `jobs`.
pub(super) const LIVE_COLUMNS: &str = sql!(job_columns::read(Table::Live, "", false));

/// What [`job_from_row`] reads, of `finished_jobs`.
const FINISHED_COLUMNS: &str = sql!(job_columns::read(Table::Finished, "", false));

/// What a list reads of the row that `$found` selects: at the place of a payload or a result that is not asked for is
/// nothing.
macro_rules! listed {
    ($found:expr) => {
        concatcp!(
            "SELECT ",
            sql!(job_columns::read_again(&[
                ("payload", "CASE WHEN ?2 THEN payload ELSE 'null' END"),
                ("result", "CASE WHEN ?3 THEN result END"),
            ])),
            " FROM (",
            $found,
            ")"
        )
    };
}

/// The job in a row of [`LIVE_COLUMNS`] or [`FINISHED_COLUMNS`].
pub(super) fn job_from_row(row: &Row<'_>) -> Verb<Job> {
    let columns = JobColumns {
        id: row.get(at!("id"))?,
        partition: row.get(at!("partition"))?,
        tenant: row.get_ref(at!("tenant"))?.as_str()?,
        job_type: row.get_ref(at!("type"))?.as_str()?,
        queue: row.get_ref(at!("queue"))?.as_str()?,
        priority: row.get(at!("priority"))?,
        state: row.get(at!("state"))?,
        execute_at: row.get(at!("execute_at"))?,
        due_at: row.get(at!("due_at"))?,
        created_at: row.get(at!("created_at"))?,
        spec: row.get_ref(at!("spec"))?.as_str()?,
        payload: row.get_ref(at!("payload"))?.as_str()?,
        fan_out: row.get_ref(at!("fan_out"))?.as_str_or_null()?,
        tags: row.get_ref(at!("tags"))?.as_str()?,
        attempt: row.get(at!("attempt"))?,
        retries: row.get(at!("retries"))?,
        lost: row.get(at!("lost"))?,
        burst_started_at: row.get(at!("burst_started_at"))?,
        burst_failures: row.get(at!("burst_failures"))?,
        session: row.get(at!("session"))?,
        started_at: row.get(at!("started_at"))?,
        deadline: row.get(at!("deadline"))?,
        cancel_requested: row.get(at!("cancel_requested"))?,
        completed_at: row.get(at!("completed_at"))?,
        last_outcome: row.get(at!("last_outcome"))?,
        result: row.get_ref(at!("result"))?.as_str_or_null()?,
        error_code: row.get_ref(at!("error_code"))?.as_str_or_null()?,
        error_message: row.get_ref(at!("error_message"))?.as_str_or_null()?,
        schedule_id: row.get(at!("schedule_id"))?,
        open_parents: row.get(at!("open_parents"))?,
        failed_parents: row.get(at!("failed_parents"))?,
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
    find_one(connection, concatcp!("SELECT ", LIVE_COLUMNS, " FROM jobs WHERE id = ?1"), id)
}

/// The job, if it is in history.
pub(super) fn find_finished(connection: &Connection, id: JobId) -> Verb<Option<Job>> {
    find_one(connection, concatcp!("SELECT ", FINISHED_COLUMNS, " FROM finished_jobs WHERE id = ?1"), id)
}

/// The job, live or finished, as a list carries it, and what it weighs.
pub(super) fn find_listed(
    connection: &Connection,
    id: JobId,
    projection: Projection,
) -> Verb<Option<(Job, usize)>> {
    for sql in [
        listed!(concatcp!("SELECT ", LIVE_COLUMNS, " FROM jobs WHERE id = ?1")),
        listed!(concatcp!("SELECT ", FINISHED_COLUMNS, " FROM finished_jobs WHERE id = ?1")),
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
    for column in [at!("spec"), at!("payload"), at!("result"), at!("error_message")] {
        bytes += row.get_ref(column)?.as_str_or_null()?.map_or(0, str::len);
    }
    Ok(bytes)
}

fn find_one(connection: &Connection, sql: &str, id: JobId) -> Verb<Option<Job>> {
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([id.as_uuid()], |row| Ok(job_from_row(row))).optional()?.transpose()
}

const INSERT_LIVE: &str = concatcp!(
    "INSERT INTO jobs (",
    sql!(Selection::all(Table::Live).names()),
    ") VALUES (",
    sql!(Selection::all(Table::Live).parameters()),
    ")"
);

const INSERT_FINISHED: &str = concatcp!(
    "INSERT INTO finished_jobs (",
    sql!(Selection::all(Table::Finished).names()),
    ") VALUES (",
    sql!(Selection::all(Table::Finished).parameters()),
    ")"
);

/// Binds the values of those columns that the table has. All columns have to be named, or it does not compile.
macro_rules! bind {
    ($statement:ident, $table:ident, { $($name:literal => $value:expr,)* }) => {
        const { job_columns::require_all(&[$($name),*]) };
        $(if const { job_columns::COLUMNS[job_columns::place($name)] }.is_in($table) {
            $statement.raw_bind_parameter(at!($name) + 1, $value)?;
        })*
    };
}

/// Writes a whole job into the table in which it belongs; where it is live, with its route.
pub(super) fn insert(connection: &Connection, job: &Job) -> Verb<()> {
    let (table, sql) = match job.state().is_terminal() {
        false => (Table::Live, INSERT_LIVE),
        true => (Table::Finished, INSERT_FINISHED),
    };
    let route = Route::of(job);
    if let (Table::Live, Some(route)) = (table, &route) {
        write_route(connection, route)?;
    }
    let mut statement = connection.prepare_cached(sql)?;
    let (error_code, error_message) = columns::encode_failure(job.error.as_ref());
    bind!(statement, table, {
        "id" => job.id.as_uuid(),
        "partition" => job.partition.0,
        "tenant" => &*job.tenant,
        "type" => &*job.job_type,
        "queue" => &*job.queue,
        "priority" => job.priority.code(),
        "state" => job.state().code(),
        "execute_at" => job.execute_at.as_millis(),
        "due_at" => job.due_at.as_millis(),
        "created_at" => job.created_at.as_millis(),
        "spec" => columns::encode_spec(&job.spec),
        "payload" => job.payload.as_str(),
        "fan_out" => job.fan_out.map(FanOut::to_text),
        "tags" => columns::encode_tags(&job.tags),
        "attempt" => job.attempt,
        "retries" => job.retries,
        "lost" => job.lost,
        "burst_started_at" => job.burst.started_at.map(|at| at.as_millis()),
        "burst_failures" => job.burst.failures,
        "session" => job.session.map(|session| session.as_uuid()),
        "started_at" => job.started_at.map(|at| at.as_millis()),
        "deadline" => job.deadline.map(|at| at.as_millis()),
        "cancel_requested" => job.cancel_requested,
        "completed_at" => job.completed_at.map(|at| at.as_millis()),
        "last_outcome" => job.last_outcome.map(|outcome| outcome.code()),
        "result" => job.result.as_ref().map(|result| result.as_str()),
        "error_code" => error_code,
        "error_message" => error_message,
        "schedule_id" => job.schedule_id.map(|schedule| schedule.as_uuid()),
        "open_parents" => job.parents.open,
        "failed_parents" => job.parents.failed,
        "target" => job.spec.target.kind().code(),
        "timeout_ms" => columns::encode_timeout(&job.spec),
        "release" => job.release().code(),
        "route" => route.map(|route| route.id.as_uuid()),
    });
    statement.raw_execute()?;
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
