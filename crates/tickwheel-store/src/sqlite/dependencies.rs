//! Jobs that wait for other jobs: the edges between them, and what a parent's end or revival means to its children.
//!
//! All of it happens in the transaction that ends or revives the parent, and there is one writer: nobody can come in between.

use rusqlite::{Connection, OptionalExtension};
use tickwheel_core::parents::{Parents, Release};
use tickwheel_core::ports::{DueJob, Group, Scheduled};
use tickwheel_core::{Job, JobId, ScheduleId, State, Timestamp};
use uuid::Uuid;

use super::fault::Verb;
use super::workflows::looks::ask_for_look;
use crate::columns::{decode_partition, decode_priority, decode_release, decode_state, decode_target};
use crate::links::{Edge, Ended, FoundParents, Tie, tallies, ties};

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

/// Ties children to their parents.
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
pub(super) struct Told {
    /// They wait for nothing any more.
    pub released: Vec<Scheduled>,
    /// Some of them are to be looked at.
    pub looks: bool,
}

/// Every child counts the parents that have ended.
pub(super) fn release_children(connection: &Connection, ended: &[Ended<'_>]) -> Verb<Told> {
    let mut told = Told::default();
    if ended.is_empty() {
        return Ok(told);
    }
    let mut tallies = tallies(ended);
    if has_open_edges(connection)? {
        for parent in ended {
            let end = if parent.state == State::Completed { &COMPLETE } else { &FAIL };
            for child in move_edges(connection, parent.id, end)? {
                tallies.entry((child, Tie::Stored)).or_default().count(parent);
            }
        }
    }
    for ((child, tie), tally) in tallies {
        let count = |parents: Parents| parents.after(tally.completed, tally.failed);
        match change_waiting(connection, child, tie, tally.latest, count)? {
            Some(ToldChild::Scheduled(child)) => told.released.push(child),
            Some(ToldChild::LookedAt) => told.looks = true,
            Some(ToldChild::Waits) | None => {}
        }
    }
    Ok(told)
}

/// Every child that is still held up waits for the revived job again.
pub(super) fn hold_children_again(connection: &Connection, revived: &Job) -> Verb<()> {
    let stored = move_edges(connection, revived.id, &REOPEN)?;
    let in_the_run = revived.spec.place.iter().flat_map(ties);
    for (child, tie) in stored.into_iter().map(|child| (child, Tie::Stored)).chain(in_the_run) {
        change_waiting(connection, child, tie, None, Parents::after_revival)?;
    }
    Ok(())
}

/// One look in an index that is empty unless somebody waits.
fn has_open_edges(connection: &Connection) -> Verb<bool> {
    let mut statement = connection
        .prepare_cached("SELECT 1 FROM dependencies INDEXED BY dependencies_open WHERE state = 0 LIMIT 1")?;
    Ok(statement.exists([])?)
}

/// A way of edges from one state to another: how to find them, and how to move them. The states are part of the statements, because an index holds only
/// the open ones: with a parameter in their place SQLite would plan anew at every binding.
struct Move {
    find: &'static str,
    write: &'static str,
}

/// Open (0) to completed (1).
const COMPLETE: Move = Move {
    find: "SELECT child FROM dependencies WHERE parent = ?1 AND state = 0",
    write: "UPDATE dependencies SET state = 1 WHERE parent = ?1 AND state = 0",
};
/// Open (0) to failed (2).
const FAIL: Move =
    Move { find: COMPLETE.find, write: "UPDATE dependencies SET state = 2 WHERE parent = ?1 AND state = 0" };
/// Failed (2) to open (0).
const REOPEN: Move = Move {
    find: "SELECT child FROM dependencies WHERE parent = ?1 AND state = 2",
    write: "UPDATE dependencies SET state = 0 WHERE parent = ?1 AND state = 2",
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

/// A child that was told of its parents.
enum ToldChild {
    /// It waits on.
    Waits,
    /// The conductor is to look at it.
    LookedAt,
    /// It waits for nobody any more.
    Scheduled(Scheduled),
}

/// What there is to know of a job that waits, without reading all of it.
struct Waiting {
    state: State,
    parents: Parents,
    release: Release,
    execute_at: Timestamp,
}

/// A job that waits for others, whose parents stand differently now. One that does not wait (cancelled, most likely) is left alone: should it come
/// back, its parents are counted anew. So is a fan-out that waits for its parts, if it is not one of those that moved.
fn change_waiting(
    connection: &Connection,
    id: JobId,
    tie: Tie,
    latest_end: Option<Timestamp>,
    count: impl FnOnce(Parents) -> Parents,
) -> Verb<Option<ToldChild>> {
    let mut find = connection.prepare_cached(
        "SELECT state, open_parents, failed_parents, release, execute_at, partition, priority, target, tenant, queue, schedule_id
         FROM jobs WHERE id = ?1",
    )?;
    let mut rows = find.query([id.as_uuid()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let before = Waiting {
        state: decode_state(row.get(0)?)?,
        parents: Parents { open: row.get(1)?, failed: row.get(2)? },
        release: decode_release(row.get(3)?)?,
        execute_at: Timestamp::from_millis(row.get(4)?),
    };
    let waits = matches!(before.state, State::Pending | State::Blocked);
    if !waits || !tie.holds(before.release) {
        return Ok(None);
    }
    let parents = count(before.parents);
    let next = parents.next_state(before.state, before.release);
    let state = next.expect("whoever waits for parents follows them");
    let mut scheduled = None;
    if state == State::Scheduled {
        let due_at = latest_end.map_or(before.execute_at, |at| before.execute_at.max(at));
        let schedule = row.get::<_, Option<Uuid>>(10)?.map(ScheduleId::from_uuid);
        let due = DueJob {
            id,
            partition: decode_partition(row.get(5)?)?,
            due_at,
            priority: decode_priority(row.get(6)?)?,
            tenant: row.get_ref(8)?.as_str()?.into(),
            queue: row.get_ref(9)?.as_str()?.into(),
            group: Group::of(id, before.release, schedule),
        };
        scheduled = Some(Scheduled { due, target: decode_target(row.get(7)?)? });
    }
    drop(rows);
    write_waiting(connection, id, (before.state, state), parents, scheduled.as_ref())?;
    if before.release.wants_a_look(parents, state) {
        ask_for_look(connection, id)?;
        return Ok(Some(ToldChild::LookedAt));
    }
    Ok(Some(scheduled.map_or(ToldChild::Waits, ToldChild::Scheduled)))
}

/// Most children only count, and then no index has to follow.
fn write_waiting(
    connection: &Connection,
    id: JobId,
    (before, after): (State, State),
    parents: Parents,
    scheduled: Option<&Scheduled>,
) -> Verb<()> {
    let (id, open, failed) = (id.as_uuid(), parents.open, parents.failed);
    if let Some(scheduled) = scheduled {
        let due_at = scheduled.due.due_at.as_millis();
        connection
            .prepare_cached(
                "UPDATE jobs SET open_parents = ?2, failed_parents = ?3, state = ?4, due_at = ?5 WHERE id = ?1",
            )?
            .execute((id, open, failed, after.code(), due_at))?;
    } else if after != before {
        connection
            .prepare_cached(
                "UPDATE jobs SET open_parents = ?2, failed_parents = ?3, state = ?4 WHERE id = ?1",
            )?
            .execute((id, open, failed, after.code()))?;
    } else {
        connection
            .prepare_cached("UPDATE jobs SET open_parents = ?2, failed_parents = ?3 WHERE id = ?1")?
            .execute((id, open, failed))?;
    }
    Ok(())
}
