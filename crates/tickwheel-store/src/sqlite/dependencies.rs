//! Jobs that wait for other jobs: the edges between them, and what a parent's end or retry means to its children.
//!
//! All of it happens in the transaction that ends or retries the parent, and there is one writer: nobody can come in
//! between.

use const_format::formatcp;
use rusqlite::{Connection, OptionalExtension, Row};
use tickwheel_core::parents::{EdgeKind, Parents, Propagated, Release, WaitingJob};
use tickwheel_core::ports::{DueJob, FairShareGroup, Scheduled};
use tickwheel_core::{Job, JobId, ScheduleId, State, Timestamp};
use uuid::Uuid;

use super::claim::read_class;
use super::fault::Verb;
use super::workflows::reconcile_requests::request_reconcile;
use crate::codes::{EDGE_COMPLETED, EDGE_FAILED, EDGE_OPEN};
use crate::columns::{decode_partition, decode_priority, decode_release, decode_state, decode_target};
use crate::dependency_edges::{Edge, Ended, FoundParents, dependents, ends_by_child};

/// What there is of these jobs.
pub(super) fn find_parents(connection: &Connection, ids: &[JobId]) -> Verb<FoundParents> {
    let mut statement = connection.prepare_cached(
        "SELECT tenant, state FROM jobs WHERE id = ?1 UNION ALL SELECT tenant, state FROM finished_jobs WHERE id = ?1",
    )?;
    let mut found = FoundParents::default();
    for id in ids {
        let parent = statement
            .query_row([id.as_uuid()], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
            .optional()?;
        if let Some((tenant, state)) = parent {
            found.add(*id, &tenant, decode_state(state)?);
        }
    }
    Ok(found)
}

/// Stores the edges between children and their parents.
pub(super) fn insert_edges(connection: &Connection, edges: &[Edge]) -> Verb<()> {
    let mut statement =
        connection.prepare_cached("INSERT INTO dependencies (parent, child, state) VALUES (?1, ?2, ?3)")?;
    for edge in edges {
        statement.execute((edge.parent.as_uuid(), edge.child.as_uuid(), edge.state.code()))?;
    }
    Ok(())
}

/// What became of children.
#[derive(Default)]
pub(super) struct Propagation {
    /// They wait for nothing any more.
    pub released: Vec<Scheduled>,
    /// A reconcile of some of them is requested.
    pub reconcile_requested: bool,
}

/// Every child counts the parents that have ended.
pub(super) fn release_children(connection: &Connection, ended: &[Ended<'_>]) -> Verb<Propagation> {
    let mut propagation = Propagation::default();
    if ended.is_empty() {
        return Ok(propagation);
    }
    let mut by_child = ends_by_child(ended);
    if has_open_edges(connection)? {
        for parent in ended {
            let end = if parent.state == State::Completed { &COMPLETE } else { &FAIL };
            for child in move_edges(connection, parent.id, end)? {
                let ends = by_child.entry((child, EdgeKind::Stored)).or_default();
                ends.count(parent.state, parent.at);
            }
        }
    }
    for ((child, edge), ends) in by_child {
        let (released, reconcile_requested) =
            change_waiting(connection, child, |job| job.after_ends(edge, ends))?;
        propagation.released.extend(released);
        propagation.reconcile_requested |= reconcile_requested;
    }
    Ok(propagation)
}

/// Every child that is still held up waits for the retried job again.
pub(super) fn hold_children_again(connection: &Connection, retried: &Job) -> Verb<()> {
    let stored = move_edges(connection, retried.id, &REOPEN)?;
    let in_the_run = retried.spec.position.iter().flat_map(dependents);
    for (child, edge) in stored.into_iter().map(|child| (child, EdgeKind::Stored)).chain(in_the_run) {
        change_waiting(connection, child, |job| job.after_retries(edge, 1))?;
    }
    Ok(())
}

/// One look in an index that is empty unless somebody waits.
fn has_open_edges(connection: &Connection) -> Verb<bool> {
    let mut statement = connection.prepare_cached(formatcp!(
        "SELECT 1 FROM dependencies INDEXED BY dependencies_open WHERE state = {EDGE_OPEN} LIMIT 1"
    ))?;
    Ok(statement.exists([])?)
}

/// A way of edges from one state to another: how to find them, and how to move them. The states are part of the
/// statements, because an index holds only the open ones: with a parameter in their place SQLite would plan anew at
/// every binding.
struct Move {
    find: &'static str,
    write: &'static str,
}

const COMPLETE: Move = Move {
    find: formatcp!("SELECT child FROM dependencies WHERE parent = ?1 AND state = {EDGE_OPEN}"),
    write: formatcp!(
        "UPDATE dependencies SET state = {EDGE_COMPLETED} WHERE parent = ?1 AND state = {EDGE_OPEN}"
    ),
};
const FAIL: Move = Move {
    find: COMPLETE.find,
    write: formatcp!(
        "UPDATE dependencies SET state = {EDGE_FAILED} WHERE parent = ?1 AND state = {EDGE_OPEN}"
    ),
};
const REOPEN: Move = Move {
    find: formatcp!("SELECT child FROM dependencies WHERE parent = ?1 AND state = {EDGE_FAILED}"),
    write: formatcp!(
        "UPDATE dependencies SET state = {EDGE_OPEN} WHERE parent = ?1 AND state = {EDGE_FAILED}"
    ),
};

/// Moves the edges of a parent and answers the children at their other ends.
fn move_edges(connection: &Connection, parent: JobId, by: &Move) -> Verb<Vec<JobId>> {
    let mut find = connection.prepare_cached(by.find)?;
    let children = find
        .query_map([parent.as_uuid()], |row| row.get::<_, Uuid>(0).map(JobId::from_uuid))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    if !children.is_empty() {
        connection.prepare_cached(by.write)?.execute([parent.as_uuid()])?;
    }
    Ok(children)
}

/// Writes what `follow` makes of a job. Answers the job if it waits for nobody any more, and whether its reconcile was
/// requested.
fn change_waiting(
    connection: &Connection,
    id: JobId,
    follow: impl FnOnce(WaitingJob) -> Option<Propagated>,
) -> Verb<(Option<Scheduled>, bool)> {
    let mut find = connection.prepare_cached(formatcp!(
        "SELECT state, open_parents, failed_parents, release, execute_at, partition, priority, target, tenant, queue,
                schedule_id, route
         FROM jobs WHERE id = ?1",
    ))?;
    let mut rows = find.query([id.as_uuid()])?;
    let Some(row) = rows.next()? else { return Ok((None, false)) };
    let before = WaitingJob {
        state: decode_state(row.get(0)?)?,
        parents: Parents { open: row.get(1)?, failed: row.get(2)? },
        release: decode_release(row.get(3)?)?,
        execute_at: Timestamp::from_millis(row.get(4)?),
    };
    let Some(after) = follow(before) else { return Ok((None, false)) };
    let scheduled = after.due_at.map(|due_at| read_scheduled(row, id, before.release, due_at)).transpose()?;
    drop(rows);
    write_waiting(connection, id, before, after)?;
    if after.wants_reconcile {
        request_reconcile(connection, id)?;
    }
    Ok((scheduled, after.wants_reconcile))
}

/// The job of a row of [`change_waiting`], due at a time of its own.
fn read_scheduled(row: &Row<'_>, id: JobId, release: Release, due_at: Timestamp) -> Verb<Scheduled> {
    let schedule = row.get::<_, Option<Uuid>>(10)?.map(ScheduleId::from_uuid);
    let due = DueJob {
        id,
        partition: decode_partition(row.get(5)?)?,
        due_at,
        priority: decode_priority(row.get(6)?)?,
        tenant: row.get_ref(8)?.as_str()?.into(),
        queue: row.get_ref(9)?.as_str()?.into(),
        group: FairShareGroup::of(id, release, schedule),
        class: read_class(row, 11)?,
    };
    Ok(Scheduled { due, target: decode_target(row.get(7)?)?, route: None })
}

/// Most children only count, and then no index has to follow.
fn write_waiting(connection: &Connection, id: JobId, before: WaitingJob, after: Propagated) -> Verb<()> {
    let Parents { open, failed } = after.job.parents;
    let (id, state) = (id.as_uuid(), after.job.state);
    if let Some(due_at) = after.due_at {
        connection
            .prepare_cached(
                "UPDATE jobs SET open_parents = ?2, failed_parents = ?3, state = ?4, due_at = ?5 WHERE id = ?1",
            )?
            .execute((id, open, failed, state.code(), due_at.as_millis()))?;
    } else if state != before.state {
        connection
            .prepare_cached(
                "UPDATE jobs SET open_parents = ?2, failed_parents = ?3, state = ?4 WHERE id = ?1",
            )?
            .execute((id, open, failed, state.code()))?;
    } else {
        connection
            .prepare_cached("UPDATE jobs SET open_parents = ?2, failed_parents = ?3 WHERE id = ?1")?
            .execute((id, open, failed))?;
    }
    Ok(())
}
