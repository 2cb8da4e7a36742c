//! Jobs that wait for other jobs: the edges between them, and what a parent's end or revival means to its children.
//!
//! All of it happens in the transaction that ends or revives the parent, and there is one writer: nobody can come in between.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension};
use tickwheel_core::parents::Parents;
use tickwheel_core::{Job, JobId, RunId, State, Timestamp};
use uuid::Uuid;

use super::fault::Verb;
use super::row::find_live;
use super::workflows::looks::ask_for_look;
use crate::columns::decode_state;
use crate::links::{Edge, FoundParents};

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

/// An edge less a parent: the child waits for them no more.
pub(super) fn delete_edges(connection: &Connection, parents: &[JobId], child: JobId) -> Verb<()> {
    let mut statement =
        connection.prepare_cached("DELETE FROM dependencies WHERE parent = ?1 AND child = ?2")?;
    for parent in parents {
        statement.execute((parent.as_uuid(), child.as_uuid()))?;
    }
    Ok(())
}

/// A job that has ended, and when.
pub(super) struct Ended {
    pub id: JobId,
    pub state: State,
    pub at: Timestamp,
    /// The run that it is a task of.
    pub run: Option<RunId>,
}

impl Ended {
    /// A job that is over.
    pub fn of(job: &Job) -> Option<Self> {
        let run = job.spec.place.as_ref().map(|place| place.run);
        Some(Self { id: job.id, state: job.state, at: job.completed_at?, run })
    }
}

/// What became of children.
#[derive(Default)]
pub(super) struct Told {
    /// They wait for nothing any more.
    pub released: Vec<Job>,
    /// Some of them are to be looked at.
    pub looks: bool,
}

/// What the ends of a batch mean to one child.
#[derive(Default)]
struct Tally {
    completed: u32,
    failed: u32,
    latest: Option<Timestamp>,
}

impl Tally {
    fn count(&mut self, parent: &Ended) {
        if parent.state == State::Completed {
            self.completed += 1;
        } else {
            self.failed += 1;
        }
        self.latest = self.latest.max(Some(parent.at));
    }
}

/// Every child counts the parents that have ended.
pub(super) fn release_children(connection: &Connection, ended: &[Ended]) -> Verb<Told> {
    let mut told = Told::default();
    if ended.is_empty() || !has_open_edges(connection)? {
        return Ok(told);
    }
    let mut tallies: BTreeMap<JobId, Tally> = BTreeMap::new();
    for parent in ended {
        let end = if parent.state == State::Completed { &COMPLETE } else { &FAIL };
        for child in move_edges(connection, parent.id, end)? {
            tallies.entry(child).or_default().count(parent);
        }
    }
    for (child, tally) in tallies {
        if counts_down_only(connection, child, &tally)? {
            continue;
        }
        let count = |parents: Parents| parents.after(tally.completed, tally.failed);
        let Some(job) = change_waiting(connection, child, tally.latest, count)? else { continue };
        told.looks |= wants_a_look(&job);
        told.released.extend(Some(job).filter(|job| job.state == State::Scheduled));
    }
    Ok(told)
}

fn wants_a_look(job: &Job) -> bool {
    job.spec.release().wants_a_look(job.parents, job.state)
}

/// Every child that is still held up waits for the revived job again.
pub(super) fn hold_children_again(connection: &Connection, revived: JobId) -> Verb<()> {
    for child in move_edges(connection, revived, &REOPEN)? {
        change_waiting(connection, child, None, Parents::after_revival)?;
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

/// A child that waits for more than these, of which none failed so far, only counts down, and the job need not be read for that: 0 is pending, and 3
/// is watched by the conductor. `false`: something else may follow, and nothing was done.
fn counts_down_only(connection: &Connection, child: JobId, tally: &Tally) -> Verb<bool> {
    if tally.failed > 0 {
        return Ok(false);
    }
    let mut statement = connection.prepare_cached(
        "UPDATE jobs SET open_parents = open_parents - ?2
         WHERE id = ?1 AND state = 0 AND failed_parents = 0 AND open_parents > ?2 AND release < 3",
    )?;
    Ok(statement.execute((child.as_uuid(), tally.completed))? == 1)
}

/// A waiting job whose parents stand differently now. One that does not wait (cancelled, most likely) is left alone: should it come
/// back, its parents are counted anew.
fn change_waiting(
    connection: &Connection,
    id: JobId,
    latest_end: Option<Timestamp>,
    count: impl FnOnce(Parents) -> Parents,
) -> Verb<Option<Job>> {
    let waits = |job: &Job| matches!(job.state, State::Pending | State::Blocked);
    let Some(mut job) = find_live(connection, id)?.filter(waits) else { return Ok(None) };
    job.parents = count(job.parents);
    let next = job.parents.next_state(job.state, job.spec.release());
    job.state = next.expect("whoever waits for parents follows them");
    if job.state == State::Scheduled {
        job.due_at = latest_end.map_or(job.execute_at, |at| job.execute_at.max(at));
    }
    connection
        .prepare_cached(
            "UPDATE jobs SET state = ?2, due_at = ?3, open_parents = ?4, failed_parents = ?5 WHERE id = ?1",
        )?
        .execute((
            id.as_uuid(),
            job.state.code(),
            job.due_at.as_millis(),
            job.parents.open,
            job.parents.failed,
        ))?;
    if wants_a_look(&job) {
        ask_for_look(connection, id)?;
    }
    Ok(Some(job))
}
