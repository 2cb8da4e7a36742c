//! Runs: reading and listing them.

use const_format::formatcp;
use tickwheel_core::ports::{Page, RunQuery, StoreResult};
use tickwheel_core::workflow::{ParentData, ParentResults, Run, RunStatus, RunTask};
use tickwheel_core::{JobId, JsonText, RunId, Timestamp};
use tokio_postgres::Row;
use tracing::error;
use uuid::Uuid;

use crate::codes::RUN_RUNNING;
use crate::columns::{decode_failure, decode_state};
use crate::postgres::PostgresStore;
use crate::postgres::error::not_done;
use crate::postgres::lists::snapshot;
use crate::postgres::pipeline::{BEGIN_SNAPSHOT, Param, Step, run, transact};
use crate::postgres::row::{column, limit, read_sound};
use crate::workflow_columns::{
    ERROR_CHARS_READ, ERRORS_BYTES_MAX, RunColumns, RunProgressColumns, TaskColumns, task_ids,
};

/// The columns of a run in `workflow_runs AS r`.
macro_rules! run_columns {
    () => {
        "r.id, r.partition, r.tenant, r.workflow, r.version, r.created_at, r.job_id, r.total, r.open, r.revision, r.input, \
         r.status, r.cancel_requested, r.ended_at, r.next_index, r.after_first, r.blocked, r.stalled, r.stalls_at, \
         r.had_failure, r.data_bytes, r.paused_at"
    };
}

pub(super) use run_columns;

pub(super) const GET: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM unnest($1::uuid[]) AS w (id) JOIN workflow_runs AS r ON r.id = ANY (ARRAY[w.id])"
);

/// The jobs of a range of ids, without what only they themselves need. In their order, for that is the order of the key
/// and of no other index.
macro_rules! select_tasks {
    ($table:literal, $cancel_requested:literal, $completed_at:literal) => {
        concat!(
            "(SELECT id, type, state, due_at, spec, attempt, started_at, ",
            $cancel_requested,
            ", ",
            $completed_at,
            ", error_code, error_message, open_parents, failed_parents, fan_out
FROM ",
            $table,
            " WHERE id >= $1::uuid AND id <= $2::uuid ORDER BY id)"
        )
    };
}

/// How long the errors are is known without reading them; if they are too long together, only the beginnings are read.
const TASKS: &str = concat!(
    "\
SELECT id, type, state, due_at, spec, attempt, started_at, cancel_requested, completed_at, error_code,
       CASE WHEN error_bytes > $4::bigint THEN left(error_message, $3::integer) ELSE error_message END,
       open_parents, failed_parents, fan_out, error_bytes
FROM (SELECT *, coalesce(sum(octet_length(error_message)) OVER (), 0) AS error_bytes FROM (",
    select_tasks!("jobs", "cancel_requested", "NULL::bigint AS completed_at"),
    "\nUNION ALL\n",
    select_tasks!("finished_jobs", "false AS cancel_requested", "completed_at"),
    ") AS found) AS tasks\nORDER BY id"
);

/// How long a result is is known without reading it.
const RESULTS: &str = "\
SELECT r.id, r.state, r.error_code, r.error_message, r.result
FROM (SELECT w.n, coalesce(f.id, j.id) AS id, coalesce(f.state, j.state) AS state,
             coalesce(f.error_code, j.error_code) AS error_code,
             coalesce(f.error_message, j.error_message) AS error_message, f.result,
             sum(coalesce(octet_length(f.result), 0)) OVER (ORDER BY w.n) - coalesce(octet_length(f.result), 0) AS before
      FROM unnest($1::uuid[]) WITH ORDINALITY AS w (id, n)
      LEFT JOIN finished_jobs AS f ON f.id = ANY (ARRAY[w.id])
      LEFT JOIN jobs AS j ON j.id = ANY (ARRAY[w.id])) AS r
WHERE r.before <= $2::bigint AND r.id IS NOT NULL
ORDER BY r.n";

/// A page: parameters 1 tenant, 2 before id, 3 status, 4 rows found, 5 rows examined, and 6 the workflow if it is
/// one's.
macro_rules! page {
    ($examined:literal) => {
        concat!(
            "SELECT ",
            run_columns!(),
            " FROM (SELECT * FROM workflow_runs WHERE id < $2::uuid",
            $examined,
            " LIMIT $5::bigint) AS r
WHERE r.tenant = $1::text AND ($3::smallint IS NULL OR r.status = $3)
ORDER BY r.id DESC LIMIT $4::bigint"
        )
    };
}

const LIST: &str = page!(" ORDER BY id DESC");
const LIST_OF_WORKFLOW: &str =
    page!(" AND tenant = $1::text AND workflow = $6::text ORDER BY tenant DESC, workflow DESC, id DESC");

const BOUND: &str = "\
SELECT id FROM workflow_runs WHERE id < $1::uuid ORDER BY id DESC OFFSET $2::bigint - 1 LIMIT 1";
const BOUND_OF_WORKFLOW: &str = "\
SELECT id FROM workflow_runs WHERE id < $1::uuid AND tenant = $3::text AND workflow = $4::text
ORDER BY tenant DESC, workflow DESC, id DESC OFFSET $2::bigint - 1 LIMIT 1";

const STALLING: &str = formatcp!(
    "\
SELECT id FROM workflow_runs WHERE status = {RUN_RUNNING} AND stalls_at IS NOT NULL AND stalls_at <= $1::bigint
ORDER BY stalls_at LIMIT $2::bigint"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[GET, TASKS, RESULTS, LIST, LIST_OF_WORKFLOW, BOUND, BOUND_OF_WORKFLOW, STALLING];

/// Results of jobs, until there are too many bytes of them.
pub(super) async fn read_results(
    store: &PostgresStore,
    ids: &[JobId],
    bytes_max: usize,
) -> StoreResult<ParentResults> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let rows = store.read(RESULTS, &[&ids, &i64::try_from(bytes_max).unwrap_or(i64::MAX)]).await?;
    let (mut needed, mut bytes) = (ParentResults::default(), 0);
    for row in &rows {
        let result = column::<Option<&str>>(row, 4)?.map(JsonText::from_checked);
        bytes += result.as_ref().map_or(0, |result| result.as_str().len());
        let state = decode_state(column::<i16>(row, 1)?.into())?;
        let error = decode_failure(column(row, 2)?, column(row, 3)?);
        needed.jobs.insert(JobId::from_uuid(column(row, 0)?), ParentData { state, result, error });
    }
    needed.is_cut = bytes > bytes_max;
    Ok(needed)
}

/// The run of a row that starts with [`run_columns`].
pub(super) fn read_run_row(row: &Row) -> StoreResult<Run> {
    RunColumns {
        id: column(row, 0)?,
        partition: column::<i16>(row, 1)?.into(),
        tenant: column(row, 2)?,
        workflow: column(row, 3)?,
        version: column::<i32>(row, 4)?.into(),
        created_at: column(row, 5)?,
        job_id: column(row, 6)?,
        total: column::<i32>(row, 7)?.into(),
        open: column::<i32>(row, 8)?.into(),
        had_failure: column(row, 19)?,
        revision: column(row, 9)?,
        input: column(row, 10)?,
        progress: RunProgressColumns {
            status: column(row, 11)?,
            cancel_requested: column(row, 12)?,
            ended_at: column(row, 13)?,
            paused_at: column(row, 21)?,
            next_index: column::<i32>(row, 14)?.into(),
            after_first: column::<Option<i32>>(row, 15)?.map(i64::from),
            blocked: column::<i32>(row, 16)?.into(),
            stalled: column::<i32>(row, 17)?.into(),
            stalls_at: column(row, 18)?,
            data_bytes: column(row, 20)?,
        },
    }
    .decode()
}

/// The runs that exist, without those that make no sense: one bad row must not keep all others from going on.
pub(super) async fn get_runs(store: &PostgresStore, ids: &[RunId]) -> StoreResult<Vec<Run>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let rows = store.read(GET, &[&ids]).await?;
    Ok(read_sound(&rows, read_run_row, |run_id, cause| {
        error!(?run_id, %cause, "a run cannot be read and is left alone");
    }))
}

/// Runs, the latest first.
pub(in crate::postgres) async fn list_runs(
    store: &PostgresStore,
    query: &RunQuery,
    examined_max: usize,
) -> StoreResult<Page<Run, RunId>> {
    let before = query.after.unwrap_or(RunId::LAST).as_uuid();
    let status = query.status.map(RunStatus::code);
    let (found_max, examined_max) = (limit(query.limit.saturating_add(1)), limit(examined_max));
    let mut params: Vec<Param<'_>> = vec![&query.tenant, &before, &status, &found_max, &examined_max];
    let mut bounds: Vec<Param<'_>> = vec![&before, &examined_max];
    let (mut list, mut bound) = (LIST, BOUND);
    if let Some(workflow) = &query.workflow {
        (list, bound) = (LIST_OF_WORKFLOW, BOUND_OF_WORKFLOW);
        params.push(workflow);
        bounds.extend([&query.tenant as Param<'_>, workflow]);
    }
    let mut client = store.client().await?;
    let snapshot = snapshot(&mut client).await?;
    let rows = run(&snapshot, list, &params).await?;
    let mut items = rows.iter().map(read_run_row).collect::<StoreResult<Vec<_>>>()?;
    if items.len() > query.limit {
        items.truncate(query.limit);
        let next = items.last().map(|last| last.id);
        return Ok(Page { items, next });
    }
    let bound = run(&snapshot, bound, &bounds).await?;
    Ok(Page { items, next: bound.first().map(|row| column(row, 0).map(RunId::from_uuid)).transpose()? })
}

/// A run and all its jobs by number, in one snapshot.
pub(super) async fn read_run(store: &PostgresStore, id: RunId) -> StoreResult<Option<(Run, Vec<RunTask>)>> {
    let ids = task_ids(id);
    let (first, last) = (ids.start().as_uuid(), ids.end().as_uuid());
    let run_ids = vec![id.as_uuid()];
    let client = store.client().await?;
    let steps = [
        Step::prepare(&client, GET, vec![&run_ids]).await?,
        Step::prepare(&client, TASKS, vec![&first, &last, &ERROR_CHARS_READ, &ERRORS_BYTES_MAX]).await?,
    ];
    let answers = transact(&client, BEGIN_SNAPSHOT, &steps).await.map_err(not_done)?;
    let [runs, tasks] = answers.as_slice() else { return Ok(None) };
    let Some(run) = runs.first().map(read_run_row).transpose()? else { return Ok(None) };
    let tasks = tasks.iter().filter_map(|row| read_task(row).transpose()).collect::<StoreResult<_>>()?;
    Ok(Some((run, tasks)))
}

fn read_task(row: &Row) -> StoreResult<Option<RunTask>> {
    TaskColumns {
        id: column(row, 0)?,
        job_type: column(row, 1)?,
        state: column::<i16>(row, 2)?.into(),
        due_at: column(row, 3)?,
        spec: column(row, 4)?,
        attempt: column::<i32>(row, 5)?.into(),
        started_at: column(row, 6)?,
        cancel_requested: column(row, 7)?,
        completed_at: column(row, 8)?,
        error_code: column(row, 9)?,
        error_message: column(row, 10)?,
        open_parents: column::<i32>(row, 11)?.into(),
        failed_parents: column::<i32>(row, 12)?.into(),
        fan_out: column(row, 13)?,
        error_bytes: column(row, 14)?,
    }
    .decode()
}

/// Running runs in which a task may wait for too long.
pub(super) async fn stalling_runs(
    store: &PostgresStore,
    now: Timestamp,
    at_most: usize,
) -> StoreResult<Vec<RunId>> {
    let rows = store.read(STALLING, &[&now.as_millis(), &limit(at_most)]).await?;
    rows.iter().map(|row| column(row, 0).map(RunId::from_uuid)).collect()
}
