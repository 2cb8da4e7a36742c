//! The definitions: versions of workflows are stored, found, and taken away.

use tickwheel_core::ports::{Page, StoreResult, WorkflowPut, WorkflowQuery};
use tickwheel_core::workflow::Workflow;
use tokio_postgres::Row;

use crate::columns::decode_count;
use crate::postgres::PostgresStore;
use crate::postgres::pipeline::Param;
use crate::postgres::row::{column, limit};
use crate::workflow_columns::{WorkflowColumns, encode_workflow_spec, is_same_spec};

/// A statement for versions of workflows.
macro_rules! select_workflows {
    ($which:literal) => {
        concat!("SELECT w.tenant, w.name, w.version, w.created_at, w.spec FROM ", $which)
    };
}

// Whether it is removed is asked of the latest version only: the ones before it are not the latest because of that.
const GET_LATEST: &str = select_workflows!(
    "(SELECT * FROM workflows WHERE tenant = $1::text AND name = $2::text ORDER BY version DESC LIMIT 1) AS w
WHERE NOT w.removed"
);

const GET_VERSION: &str = select_workflows!(
    "workflows AS w WHERE w.tenant = $1::text AND w.name = $2::text AND w.version = $3::integer"
);

const LATEST_VERSION: &str = "\
SELECT version, removed FROM workflows WHERE tenant = $1::text AND name = $2::text ORDER BY version DESC LIMIT 1";

const LAST: &str = "\
SELECT version, spec, removed FROM workflows WHERE tenant = $1::text AND name = $2::text ORDER BY version DESC LIMIT 1";

const INSERT: &str = "\
INSERT INTO workflows (tenant, name, version, created_at, spec)
VALUES ($1::text, $2::text, $3::integer, $4::bigint, $5::text)
ON CONFLICT DO NOTHING";

const REMOVE: &str = "\
UPDATE workflows SET removed = true WHERE tenant = $1::text AND name = $2::text AND NOT removed
AND version = (SELECT max(version) FROM workflows WHERE tenant = $1::text AND name = $2::text)";

// From name to name, each one lookup in the key: earlier versions are not looked at, and removed workflows are passed
// over.
const LIST: &str = concat!(
    "\
WITH RECURSIVE names AS (
    (SELECT name FROM workflows WHERE tenant = $1::text AND ($2::text IS NULL OR name > $2) ORDER BY name LIMIT 1)
    UNION ALL
    SELECT (SELECT w.name FROM workflows AS w WHERE w.tenant = $1::text AND w.name > n.name ORDER BY w.name LIMIT 1)
    FROM names AS n WHERE n.name IS NOT NULL
)
",
    select_workflows!(
        "(SELECT l.* FROM names AS n
    CROSS JOIN LATERAL (SELECT * FROM workflows AS v WHERE v.tenant = $1::text AND v.name = n.name
                        ORDER BY v.version DESC LIMIT 1) AS l
    WHERE n.name IS NOT NULL AND NOT l.removed LIMIT $3::bigint) AS w
ORDER BY w.name"
    )
);

const LIST_VERSIONS: &str = select_workflows!(
    "workflows AS w WHERE w.tenant = $1::text AND w.name = $2::text AND w.version < $3::bigint
ORDER BY w.version DESC LIMIT $4::bigint"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[GET_LATEST, GET_VERSION, LATEST_VERSION, LAST, INSERT, REMOVE, LIST, LIST_VERSIONS];

/// Stores the next version, unless the latest one says the same. Of two who come together the second one looks again.
pub(super) async fn put_workflow(store: &PostgresStore, workflow: &Workflow) -> StoreResult<WorkflowPut> {
    let (tenant, name): (&str, &str) = (&workflow.tenant, &workflow.name);
    let spec = encode_workflow_spec(&workflow.spec);
    loop {
        let last = store.read(LAST, &[&tenant, &name]).await?;
        let version = match last.first() {
            Some(row) if !column::<bool>(row, 2)? && is_same_spec(column(row, 1)?, &workflow.spec) => {
                return Ok(WorkflowPut::Unchanged(column::<i32>(row, 0)?.cast_unsigned()));
            }
            Some(row) => column::<i32>(row, 0)? + 1,
            None => 1,
        };
        let params: [Param<'_>; 5] = [&tenant, &name, &version, &workflow.created_at.as_millis(), &spec];
        if store.write(INSERT, &params).await? == 1 {
            return Ok(WorkflowPut::Created(version.cast_unsigned()));
        }
    }
}

fn read_workflow(row: &Row) -> StoreResult<Workflow> {
    WorkflowColumns {
        tenant: column(row, 0)?,
        name: column(row, 1)?,
        version: column::<i32>(row, 2)?.into(),
        created_at: column(row, 3)?,
        spec: column(row, 4)?,
    }
    .decode()
}

/// A version, or the latest.
pub(super) async fn get_workflow(
    store: &PostgresStore,
    tenant: &str,
    name: &str,
    version: Option<u32>,
) -> StoreResult<Option<Workflow>> {
    let rows = match version.map(i32::try_from) {
        None => store.read(GET_LATEST, &[&tenant, &name]).await?,
        Some(Ok(version)) => store.read(GET_VERSION, &[&tenant, &name, &version]).await?,
        // No workflow has so many.
        Some(Err(_)) => Vec::new(),
    };
    rows.first().map(read_workflow).transpose()
}

/// The number of the latest version, unless the workflow was removed.
pub(super) async fn latest_version(
    store: &PostgresStore,
    tenant: &str,
    name: &str,
) -> StoreResult<Option<u32>> {
    let rows = store.read(LATEST_VERSION, &[&tenant, &name]).await?;
    let Some(latest) = rows.first().filter(|row| !row.try_get::<_, bool>(1).unwrap_or(true)) else {
        return Ok(None);
    };
    decode_count("version", column::<i32>(latest, 0)?.into()).map(Some)
}

/// Takes a workflow away. Of those who come together one finds it there; whoever stores it meanwhile stores it after
/// the removal.
pub(super) async fn remove_workflow(store: &PostgresStore, tenant: &str, name: &str) -> StoreResult<bool> {
    Ok(store.write(REMOVE, &[&tenant, &name]).await? > 0)
}

/// The latest version of each, by name.
pub(super) async fn list_workflows(
    store: &PostgresStore,
    query: &WorkflowQuery,
) -> StoreResult<Page<Workflow, String>> {
    let found_max = limit(query.limit.saturating_add(1));
    let rows = store.read(LIST, &[&query.tenant, &query.after, &found_max]).await?;
    page(&rows, query.limit, |workflow| workflow.name.to_string())
}

/// The versions of one, the latest first.
pub(super) async fn list_workflow_versions(
    store: &PostgresStore,
    tenant: &str,
    name: &str,
    before: Option<u32>,
    at_most: usize,
) -> StoreResult<Page<Workflow, u32>> {
    let before = before.map_or(i64::MAX, i64::from);
    let found_max = limit(at_most.saturating_add(1));
    let rows = store.read(LIST_VERSIONS, &[&tenant, &name, &before, &found_max]).await?;
    page(&rows, at_most, |workflow| workflow.version)
}

/// One row more was asked for than the page takes: it tells whether there is a next one.
fn page<C>(rows: &[Row], at_most: usize, cursor: impl Fn(&Workflow) -> C) -> StoreResult<Page<Workflow, C>> {
    let items = rows.iter().take(at_most).map(read_workflow).collect::<StoreResult<Vec<_>>>()?;
    let next = items.last().filter(|_| rows.len() > at_most).map(cursor);
    Ok(Page { items, next })
}
