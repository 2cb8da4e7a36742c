//! Runs: reading them, listing them, and writing how far they have come.

use const_format::formatcp;
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use tickwheel_core::ports::{Page, RunQuery, StoreError};
use tickwheel_core::workflow::{ParentData, ParentResults, Run, RunTask};
use tickwheel_core::{JobId, JsonText, RunId, Timestamp};
use tracing::error;
use uuid::Uuid;

use crate::codes::RUN_RUNNING;
use crate::columns::{decode_failure, decode_state};
use crate::schedule_columns::encode_number;
use crate::sqlite::fault::Verb;
use crate::sqlite::row::is_text;
use crate::sqlite::walk::EXAMINED_MAX;
use crate::workflow_columns::{
    ERROR_CHARS_READ, ERRORS_BYTES_MAX, RunColumns, RunProgressColumns, TaskColumns, task_ids,
};

/// What [`run_from_row`] reads.
macro_rules! run_columns {
    () => {
        "id, partition, tenant, workflow, version, created_at, job_id, total, open, revision, input,
         status, cancel_requested, ended_at, next_index, after_first, blocked, stalled, stalls_at,
         had_failure, data_bytes, paused_at"
    };
}

fn run_from_row(row: &Row<'_>) -> Verb<Run> {
    let columns = RunColumns {
        id: row.get(0)?,
        partition: row.get(1)?,
        tenant: row.get_ref(2)?.as_str()?,
        workflow: row.get_ref(3)?.as_str()?,
        version: row.get(4)?,
        created_at: row.get(5)?,
        job_id: row.get(6)?,
        total: row.get(7)?,
        open: row.get(8)?,
        had_failure: row.get(19)?,
        revision: row.get(9)?,
        input: row.get_ref(10)?.as_str()?,
        progress: RunProgressColumns {
            status: row.get(11)?,
            cancel_requested: row.get(12)?,
            ended_at: row.get(13)?,
            paused_at: row.get(21)?,
            next_index: row.get(14)?,
            after_first: row.get(15)?,
            blocked: row.get(16)?,
            stalled: row.get(17)?,
            stalls_at: row.get(18)?,
            data_bytes: row.get(20)?,
        },
    };
    Ok(columns.decode()?)
}

/// The run, if there is one.
pub(super) fn find_run(connection: &Connection, id: RunId) -> Verb<Option<Run>> {
    let mut statement =
        connection.prepare_cached(concat!("SELECT ", run_columns!(), " FROM workflow_runs WHERE id = ?1"))?;
    statement.query_row([id.as_uuid()], |row| Ok(run_from_row(row))).optional()?.transpose()
}

/// See [`tickwheel_core::ports::RunStore::get_runs`]. Without those that make no sense: one bad row must not keep all
/// others from going on.
pub(super) fn get_runs(connection: &Connection, ids: &[RunId]) -> Verb<Vec<Run>> {
    let mut sound = Vec::with_capacity(ids.len());
    for id in ids {
        match find_run(connection, *id).map_err(StoreError::from) {
            Ok(found) => sound.extend(found),
            Err(cause @ StoreError::Corrupt(_)) => {
                error!(run_id = %id, %cause, "a run cannot be read and is left alone");
            }
            Err(other) => return Err(other.into()),
        }
    }
    Ok(sound)
}

/// Writes what changes of a run.
pub(super) fn write_run(connection: &Connection, run: &Run) -> Verb<()> {
    let mut statement = connection.prepare_cached(
        "UPDATE workflow_runs SET total = :total, open = :open, had_failure = :had_failure, revision = :revision, status = :status,
             cancel_requested = :cancel_requested, ended_at = :ended_at, next_index = :next_index,
             after_first = :after_first, blocked = :blocked, stalled = :stalled, stalls_at = :stalls_at,
             data_bytes = :data_bytes, paused_at = :paused_at
         WHERE id = :id",
    )?;
    let progress = RunProgressColumns::from(&run.progress);
    statement.execute(named_params! {
        ":id": run.id.as_uuid(),
        ":total": run.total,
        ":open": run.open,
        ":had_failure": run.had_failure,
        ":revision": encode_number(run.revision),
        ":status": progress.status,
        ":cancel_requested": progress.cancel_requested,
        ":ended_at": progress.ended_at,
        ":next_index": progress.next_index,
        ":after_first": progress.after_first,
        ":blocked": progress.blocked,
        ":stalled": progress.stalled,
        ":stalls_at": progress.stalls_at,
        ":data_bytes": progress.data_bytes,
        ":paused_at": progress.paused_at,
    })?;
    Ok(())
}

/// See [`tickwheel_core::ports::RunStore::read_results`].
pub(super) fn read_results(connection: &Connection, ids: &[JobId], bytes_max: usize) -> Verb<ParentResults> {
    let mut finished = connection
        .prepare_cached("SELECT state, error_code, error_message, result FROM finished_jobs WHERE id = ?1")?;
    let mut live =
        connection.prepare_cached("SELECT state, error_code, error_message, NULL FROM jobs WHERE id = ?1")?;
    let (mut needed, mut bytes) = (ParentResults::default(), 0);
    for id in ids {
        let mut found = finished.query_row([id.as_uuid()], |row| Ok(result_from_row(row))).optional()?;
        if found.is_none() {
            found = live.query_row([id.as_uuid()], |row| Ok(result_from_row(row))).optional()?;
        }
        let Some(data) = found.transpose()? else { continue };
        bytes += data.result.as_ref().map_or(0, |result| result.as_str().len());
        needed.jobs.insert(*id, data);
        if bytes > bytes_max {
            needed.is_cut = true;
            break;
        }
    }
    Ok(needed)
}

fn result_from_row(row: &Row<'_>) -> Verb<ParentData> {
    Ok(ParentData {
        state: decode_state(row.get(0)?)?,
        error: decode_failure(row.get_ref(1)?.as_str_or_null()?, row.get_ref(2)?.as_str_or_null()?),
        result: row.get_ref(3)?.as_str_or_null()?.map(JsonText::from_checked),
    })
}

macro_rules! list_sql {
    ($from:literal) => {
        concat!("SELECT ", run_columns!(), " FROM workflow_runs ", $from, " AND id < ?1 ORDER BY id DESC")
    };
}

const LIST_OF_WORKFLOW: &str =
    list_sql!("INDEXED BY workflow_runs_workflow WHERE tenant = ?2 AND workflow = ?3");
const LIST: &str = list_sql!("WHERE TRUE");

/// See [`tickwheel_core::ports::RunStore::list_runs`].
pub(super) fn list_runs(connection: &Connection, query: &RunQuery) -> Verb<Page<Run, RunId>> {
    let before = query.after.unwrap_or(RunId::LAST).as_uuid();
    let mut statement =
        connection.prepare_cached(if query.workflow.is_some() { LIST_OF_WORKFLOW } else { LIST })?;
    let mut rows = match &query.workflow {
        Some(workflow) => statement.query((before, &query.tenant, workflow))?,
        None => statement.query([before])?,
    };
    let mut items: Vec<Run> = Vec::new();
    let mut examined = 0;
    while let Some(row) = rows.next()? {
        let is_wanted = is_text(row, 2, Some(&query.tenant))?
            && query.status.is_none_or(|wanted| row.get(11) == Ok(wanted.code()));
        if is_wanted && items.len() >= query.limit {
            let next = items.last().map(|last| last.id);
            return Ok(Page { items, next });
        }
        if is_wanted {
            items.push(run_from_row(row)?);
        }
        examined += 1;
        if examined >= EXAMINED_MAX {
            return Ok(Page { items, next: Some(RunId::from_uuid(row.get(0)?)) });
        }
    }
    Ok(Page { items, next: None })
}

/// The jobs of a range of ids, without what only they themselves need.
macro_rules! tasks_sql {
    ($table:literal, $cancel_requested:literal, $completed_at:literal) => {
        concat!(
            "SELECT id, type, state, due_at, spec, attempt, started_at, ",
            $cancel_requested,
            ", ",
            $completed_at,
            ", error_code, CASE WHEN ?4 > ?5 THEN substr(error_message, 1, ?3) ELSE error_message END, open_parents,
             failed_parents, fan_out
             FROM ",
            $table,
            " WHERE id >= ?1 AND id <= ?2"
        )
    };
}

const LIVE_TASKS: &str = tasks_sql!("jobs", "cancel_requested", "NULL");
const FINISHED_TASKS: &str = tasks_sql!("finished_jobs", "0", "completed_at");

/// How long the errors are is known without reading them.
const ERROR_BYTES: &str = "\
SELECT coalesce(sum(bytes), 0) FROM
    (SELECT octet_length(error_message) AS bytes FROM jobs WHERE id >= ?1 AND id <= ?2
     UNION ALL
     SELECT octet_length(error_message) FROM finished_jobs WHERE id >= ?1 AND id <= ?2)";

/// See [`tickwheel_core::ports::RunStore::read_run`].
pub(super) fn read_run(connection: &Connection, id: RunId) -> Verb<Option<(Run, Vec<RunTask>)>> {
    let Some(run) = find_run(connection, id)? else { return Ok(None) };
    let ids = task_ids(id);
    let (first, last) = (ids.start().as_uuid(), ids.end().as_uuid());
    let error_bytes: i64 =
        connection.prepare_cached(ERROR_BYTES)?.query_row((first, last), |row| row.get(0))?;
    let mut tasks = Vec::with_capacity(run.total as usize);
    for sql in [LIVE_TASKS, FINISHED_TASKS] {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query((first, last, ERROR_CHARS_READ, error_bytes, ERRORS_BYTES_MAX))?;
        while let Some(row) = rows.next()? {
            tasks.extend(task_from_row(row, error_bytes)?);
        }
    }
    tasks.sort_unstable_by_key(|task| task.job_id);
    Ok(Some((run, tasks)))
}

fn task_from_row(row: &Row<'_>, error_bytes: i64) -> Verb<Option<RunTask>> {
    let columns = TaskColumns {
        id: row.get(0)?,
        job_type: row.get_ref(1)?.as_str()?,
        state: row.get(2)?,
        due_at: row.get(3)?,
        spec: row.get_ref(4)?.as_str()?,
        attempt: row.get(5)?,
        started_at: row.get(6)?,
        cancel_requested: row.get(7)?,
        completed_at: row.get(8)?,
        error_code: row.get_ref(9)?.as_str_or_null()?,
        error_message: row.get_ref(10)?.as_str_or_null()?,
        error_bytes,
        open_parents: row.get(11)?,
        failed_parents: row.get(12)?,
        fan_out: row.get_ref(13)?.as_str_or_null()?,
    };
    Ok(columns.decode()?)
}

/// See [`tickwheel_core::ports::RunStore::stalling_runs`].
pub(super) fn stalling_runs(connection: &Connection, now: Timestamp, limit: usize) -> Verb<Vec<RunId>> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT id FROM workflow_runs INDEXED BY workflow_runs_stalls
         WHERE status = {RUN_RUNNING} AND stalls_at IS NOT NULL AND stalls_at <= ?1 ORDER BY stalls_at LIMIT ?2"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let ids = statement.query_map((now.as_millis(), limit), |row| row.get::<_, Uuid>(0))?;
    Ok(ids.map(|id| id.map(RunId::from_uuid)).collect::<rusqlite::Result<_>>()?)
}
