//! Jobs that wait for other jobs: the edges between them, and what a parent's end or retry means to its children.
//!
//! ```text
//!  submission, or retry of a child            end, or retry of a parent
//!  ─────────────────────────────────          ───────────────────────────
//!  lock the parents (FOR KEY SHARE)     ◀──▶  take the parent out of its table: waits for that lock
//!  insert the child and its edges             a later statement: sees every edge that was committed meanwhile,
//!  commit                                     moves the edges, changes the counts of the children
//! ```
//! Whoever makes edges keeps the parents where they are until it commits; whoever moves a parent looks for its edges
//! afterwards. So an edge mirrors its parent, and a child counts every parent once, whichever comes first.
//!
//! What an end means to a child is decided by the core ([`tickwheel_core::parents::WaitingJob`]) between two round
//! trips ([`children`]): the first reads the children under their locks, the second writes what was decided. Of two
//! parents that end together, the second sees what the first did. Locks are taken in one order by everybody: live
//! parents by id, finished parents by id, the job itself, its children by id.
//!
//! Tasks of a workflow have no edges. Who waits for one is part of its position, and whoever ends or retries one has
//! locked its run before anything else: so nobody else moves a task of the run meanwhile, and they are read without a
//! lock.

use std::collections::BTreeSet;

use const_format::{concatcp, formatcp};
use deadpool_postgres::Transaction;
use tickwheel_core::JobId;
use tickwheel_core::ports::{NewJob, StoreResult};
use tokio_postgres::Row;
use uuid::Uuid;

use super::claim::DUE_COLUMNS;
use super::pipeline::{Param, run};
use super::row::column;
use crate::codes::{BLOCKED, EDGE_FAILED, EDGE_OPEN, PENDING};
use crate::columns::decode_state;
use crate::dependency_edges::{Edge, FoundParents};

const LOCK_LIVE: &str = "\
SELECT id, tenant, state FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE";

const LOCK_FINISHED: &str = "\
SELECT id, tenant, state FROM finished_jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE";

// The tenant, and not the id, which the index of types has too: where the planner takes history for empty, it would
// walk that one.
const EXIST: &str = "\
SELECT tenant FROM jobs WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT tenant FROM finished_jobs WHERE id = ANY ($1::uuid[])";

const INSERT_EDGES: &str = "\
INSERT INTO dependencies (parent, child, state) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::smallint[])";

/// Closes or reopens edges, which `$moved` does, and answers who waits at their other ends, locked: a [`Child`] each,
/// with the parents at the edges that moved. Whoever comes second to a child's row reads what the first one made of it.
///
/// A store in which no job ever depended on another has nothing in the table: that is seen once a batch, not once a
/// job, by its size and not by its rows, for rows that are dead and cannot be removed would have to be walked. Children
/// are sorted by the edge's end and not by their own id, which is the same: else the planner may walk the jobs in that
/// order and look each one up.
macro_rules! children_at {
    ($moved:expr) => {
        concatcp!(
            "\
WITH moved AS (
    ",
            $moved,
            "
), by_child AS (
    SELECT child, array_agg(parent) AS parents FROM moved GROUP BY child
)
SELECT ",
            CHILD_COLUMNS,
            ", c.parents
FROM by_child AS c JOIN jobs AS j ON j.id = ANY (ARRAY[c.child])
WHERE j.",
            IS_WAITING,
            "
ORDER BY c.child FOR NO KEY UPDATE OF j"
        )
    };
}

/// Closes the open edges of jobs that have ended.
pub(super) const CLOSE_EDGES: &str = children_at!(concatcp!(
    "UPDATE dependencies AS d SET state = e.state
    FROM unnest($1::uuid[], $2::smallint[]) AS e (parent, state)
    WHERE (SELECT pg_relation_size('dependencies') > 0) AND d.parent = ANY (ARRAY[e.parent]) AND d.state = ",
    EDGE_OPEN,
    "
    RETURNING d.child, d.parent"
));

/// Reopens the failed edges of jobs that are to run again.
pub(super) const REOPEN_EDGES: &str = children_at!(concatcp!(
    "UPDATE dependencies AS d SET state = ",
    EDGE_OPEN,
    "
    FROM unnest($1::uuid[]) AS e (parent)
    WHERE (SELECT pg_relation_size('dependencies') > 0) AND d.parent = ANY (ARRAY[e.parent]) AND d.state = ",
    EDGE_FAILED,
    "
    RETURNING d.child, d.parent"
));

/// The tasks among these that wait. Nobody else changes them: their run is locked.
pub(super) const READ_TASKS: &str = concatcp!(
    "SELECT ",
    CHILD_COLUMNS,
    ", NULL::uuid[] AS parents FROM unnest($1::uuid[]) AS w (id) JOIN jobs AS j ON j.id = ANY (ARRAY[w.id]) WHERE j.",
    IS_WAITING
);

/// What a [`Child`] is read from; begins with what [`read_due_job`] reads.
const CHILD_COLUMNS: &str =
    concatcp!(DUE_COLUMNS, ", j.target, j.state, j.open_parents, j.failed_parents, j.execute_at");

/// A job that waits for others.
const IS_WAITING: &str = formatcp!("state IN ({PENDING}, {BLOCKED})");

/// Writes what became of children.
const WRITE_CHILDREN: &str = "\
UPDATE jobs AS j
SET open_parents = s.open_parents, failed_parents = s.failed_parents, state = s.state, due_at = coalesce(s.due_at, j.due_at)
FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::smallint[], $5::bigint[])
  AS s (id, open_parents, failed_parents, state, due_at)
WHERE j.id = ANY (ARRAY[s.id])";

mod children;

pub(super) use self::children::{Children, Lookup, Moved, Propagation, Released, propagate};

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[LOCK_LIVE, LOCK_FINISHED, EXIST, INSERT_EDGES, CLOSE_EDGES, REOPEN_EDGES, READ_TASKS, WRITE_CHILDREN];

/// What was found of the parents of a job.
pub(super) enum ParentLookup {
    /// Nothing.
    Alone,
    /// Edges, to be written if the job is new.
    To(Vec<Edge>),
    /// A parent that its tenant does not have.
    Unknown(JobId),
}

impl ParentLookup {
    /// Whether the job may be stored.
    pub const fn is_sound(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    /// The edges to write with it.
    pub fn edges(&self) -> &[Edge] {
        match self {
            Self::To(edges) => edges,
            Self::Alone | Self::Unknown(_) => &[],
        }
    }
}

/// Makes of the jobs of a batch what their parents make of them, and keeps the parents from ending until the
/// transaction does.
pub(super) async fn resolve_parents(
    transaction: &Transaction<'_>,
    jobs: &mut [NewJob],
) -> StoreResult<Vec<ParentLookup>> {
    let parents: BTreeSet<JobId> = jobs.iter().flat_map(|new| &new.job.spec.depends_on).copied().collect();
    let found = lock_parents(transaction, parents).await?;
    let resolve_one = |NewJob { job, .. }: &mut NewJob| {
        if job.spec.depends_on.is_empty() {
            return ParentLookup::Alone;
        }
        match found.edges_to(job) {
            Ok(found) => {
                *job = job.clone().waiting_for(found.parents);
                ParentLookup::To(found.edges)
            }
            Err(unknown) => ParentLookup::Unknown(unknown),
        }
    };
    Ok(jobs.iter_mut().map(resolve_one).collect())
}

/// Looks the jobs up and keeps them from ending, and from being retried, until the transaction ends. One may move from
/// one table to the other while it is looked for.
pub(super) async fn lock_parents(
    transaction: &Transaction<'_>,
    ids: BTreeSet<JobId>,
) -> StoreResult<FoundParents> {
    let mut found = FoundParents::default();
    let mut missing: Vec<Uuid> = ids.into_iter().map(JobId::as_uuid).collect();
    while !missing.is_empty() {
        for sql in [LOCK_LIVE, LOCK_FINISHED] {
            for row in run(transaction, sql, &[&missing]).await? {
                add(&mut found, &row)?;
            }
            missing.retain(|id| !found.contains(JobId::from_uuid(*id)));
            if missing.is_empty() {
                return Ok(found);
            }
        }
        if run(transaction, EXIST, &[&missing]).await?.is_empty() {
            break;
        }
    }
    Ok(found)
}

fn add(found: &mut FoundParents, row: &Row) -> StoreResult<()> {
    let state = decode_state(column::<i16>(row, 2)?.into())?;
    found.add(JobId::from_uuid(column(row, 0)?), column(row, 1)?, state);
    Ok(())
}

/// Edges to be written, as columns.
#[derive(Default)]
pub(super) struct EdgeRows {
    parents: Vec<Uuid>,
    children: Vec<Uuid>,
    states: Vec<i16>,
}

impl EdgeRows {
    pub fn of(edges: impl IntoIterator<Item = Edge>) -> Self {
        let mut rows = Self::default();
        for edge in edges {
            rows.parents.push(edge.parent.as_uuid());
            rows.children.push(edge.child.as_uuid());
            rows.states.push(edge.state.code());
        }
        rows
    }

    /// The edges between children and their parents, if there are any.
    pub fn statement(&self) -> Option<(&'static str, Vec<Param<'_>>)> {
        let params: [Param<'_>; 3] = [&self.parents, &self.children, &self.states];
        (!self.parents.is_empty()).then(|| (INSERT_EDGES, params.to_vec()))
    }
}
