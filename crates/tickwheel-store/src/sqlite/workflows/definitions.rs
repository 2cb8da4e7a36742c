//! The definitions: versions of workflows are stored, found, and taken away.

use rusqlite::{Connection, OptionalExtension, Row};
use tickwheel_core::ports::{Page, WorkflowPut, WorkflowQuery};
use tickwheel_core::workflow::Workflow;

use crate::sqlite::fault::Verb;
use crate::workflow_columns::{WorkflowColumns, encode_workflow_spec, is_same_spec};

/// See [`tickwheel_core::ports::WorkflowStore::put_workflow`].
pub(super) fn put_workflow(connection: &Connection, workflow: &Workflow) -> Verb<WorkflowPut> {
    let latest = connection
        .prepare_cached(
            "SELECT version, spec, removed FROM workflows WHERE tenant = ?1 AND name = ?2 ORDER BY version DESC LIMIT 1",
        )?
        .query_row((&*workflow.tenant, &*workflow.name), |row| {
            let is_same = is_same_spec(row.get_ref(1)?.as_str()?, &workflow.spec);
            Ok((row.get::<_, u32>(0)?, is_same && !row.get::<_, bool>(2)?))
        })
        .optional()?;
    let version = match latest {
        Some((version, true)) => return Ok(WorkflowPut::Unchanged(version)),
        Some((version, false)) => version + 1,
        None => 1,
    };
    connection
        .prepare_cached(
            "INSERT INTO workflows (tenant, name, version, created_at, spec) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((
            &*workflow.tenant,
            &*workflow.name,
            version,
            workflow.created_at.as_millis(),
            encode_workflow_spec(&workflow.spec),
        ))?;
    Ok(WorkflowPut::Created(version))
}

/// A statement for versions of workflows.
macro_rules! select_workflows {
    ($which:literal) => {
        concat!("SELECT tenant, name, version, created_at, spec FROM ", $which)
    };
}

fn workflow_from_row(row: &Row<'_>) -> Verb<Workflow> {
    let columns = WorkflowColumns {
        tenant: row.get_ref(0)?.as_str()?,
        name: row.get_ref(1)?.as_str()?,
        version: row.get(2)?,
        created_at: row.get(3)?,
        spec: row.get_ref(4)?.as_str()?,
    };
    Ok(columns.decode()?)
}

/// See [`tickwheel_core::ports::WorkflowStore::get_workflow`].
pub(super) fn get_workflow(
    connection: &Connection,
    tenant: &str,
    name: &str,
    version: Option<u32>,
) -> Verb<Option<Workflow>> {
    // Whether it is removed is asked of the latest version only: the ones before it are not the latest because of that.
    let mut statement = connection.prepare_cached(select_workflows!(
        "(SELECT * FROM workflows WHERE tenant = ?1 AND name = ?2 AND (?3 IS NULL OR version = ?3)
          ORDER BY version DESC LIMIT 1) WHERE ?3 IS NOT NULL OR NOT removed"
    ))?;
    statement.query_row((tenant, name, version), |row| Ok(workflow_from_row(row))).optional()?.transpose()
}

/// See [`tickwheel_core::ports::WorkflowStore::latest_version`].
pub(super) fn latest_version(connection: &Connection, tenant: &str, name: &str) -> Verb<Option<u32>> {
    let mut statement = connection.prepare_cached(
        "SELECT version, removed FROM workflows WHERE tenant = ?1 AND name = ?2 ORDER BY version DESC LIMIT 1",
    )?;
    let read = |row: &Row<'_>| Ok((!row.get::<_, bool>(1)?).then_some(row.get(0)?));
    Ok(statement.query_row((tenant, name), read).optional()?.flatten())
}

/// See [`tickwheel_core::ports::WorkflowStore::remove_workflow`].
pub(super) fn remove_workflow(connection: &Connection, tenant: &str, name: &str) -> Verb<bool> {
    let removed = connection
        .prepare_cached(
            "UPDATE workflows SET removed = 1 WHERE tenant = ?1 AND name = ?2 AND NOT removed
             AND version = (SELECT max(version) FROM workflows WHERE tenant = ?1 AND name = ?2)",
        )?
        .execute((tenant, name))?;
    Ok(removed > 0)
}

/// See [`tickwheel_core::ports::WorkflowStore::list_workflows`]. From name to name: earlier versions are not looked at.
pub(super) fn list_workflows(connection: &Connection, query: &WorkflowQuery) -> Verb<Page<Workflow, String>> {
    let mut items: Vec<Workflow> = Vec::new();
    let mut at = next_name(connection, &query.tenant, query.after.as_deref())?;
    while let Some(name) = at {
        if let Some(workflow) = get_workflow(connection, &query.tenant, &name, None)? {
            if items.len() >= query.limit {
                let next = items.last().map(|last| last.name.to_string());
                return Ok(Page { items, next });
            }
            items.push(workflow);
        }
        at = next_name(connection, &query.tenant, Some(&name))?;
    }
    Ok(Page { items, next: None })
}

/// The first name after this one, or of all.
fn next_name(connection: &Connection, tenant: &str, after: Option<&str>) -> Verb<Option<String>> {
    let name = match after {
        Some(after) => connection
            .prepare_cached("SELECT min(name) FROM workflows WHERE tenant = ?1 AND name > ?2")?
            .query_row((tenant, after), |row| row.get(0))?,
        None => connection
            .prepare_cached("SELECT min(name) FROM workflows WHERE tenant = ?1")?
            .query_row([tenant], |row| row.get(0))?,
    };
    Ok(name)
}

/// See [`tickwheel_core::ports::WorkflowStore::list_workflow_versions`].
pub(super) fn list_workflow_versions(
    connection: &Connection,
    tenant: &str,
    name: &str,
    before: Option<u32>,
    limit: usize,
) -> Verb<Page<Workflow, u32>> {
    let mut statement = connection.prepare_cached(select_workflows!(
        "workflows WHERE tenant = ?1 AND name = ?2 AND version < ?3 ORDER BY version DESC"
    ))?;
    let mut rows = statement.query((tenant, name, before.map_or(i64::MAX, i64::from)))?;
    let mut items: Vec<Workflow> = Vec::new();
    while let Some(row) = rows.next()? {
        if items.len() >= limit {
            let next = items.last().map(|last| last.version);
            return Ok(Page { items, next });
        }
        items.push(workflow_from_row(row)?);
    }
    Ok(Page { items, next: None })
}
