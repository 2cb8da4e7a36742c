//! Jobs that wait for other jobs: the edges between them, and what a parent's end or revival means to its children.
//!
//! ```text
//!  submission, or revival of a child          end, or revival of a parent
//!  ─────────────────────────────────          ───────────────────────────
//!  lock the parents (FOR KEY SHARE)     ◀──▶  take the parent out of its table: waits for that lock
//!  insert the child and its edges             a later statement: sees every edge that was committed meanwhile,
//!  commit                                     moves the edges, changes the counts of the children
//! ```
//! Whoever makes edges keeps the parents where they are until it commits; whoever moves a parent looks for its edges afterwards. So an
//! edge mirrors its parent, and a child counts every parent once, whichever comes first.
//!
//! Counts are changed relative to the latest version of the child's row under its lock: of two parents that end together, the
//! second sees what the first did. Locks are taken in one order by everybody: live parents by id, finished parents by id, the job itself,
//! its children by id.

use std::collections::BTreeSet;

use deadpool_postgres::Transaction;
use tickwheel_core::JobId;
use tickwheel_core::ports::{NewJob, StoreResult};
use tokio_postgres::Row;
use uuid::Uuid;

use super::pipeline::{Param, run};
use super::row::{column, live_columns};
use crate::columns::decode_state;
use crate::links::{Edge, FoundParents};

const LOCK_LIVE: &str = "\
SELECT id, tenant, state FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE";

const LOCK_FINISHED: &str = "\
SELECT id, tenant, state FROM finished_jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE";

// The tenant, and not the id, which the index of due times has too: where the planner takes the table for empty, it would walk that one.
const EXIST: &str = "\
SELECT tenant FROM jobs WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT tenant FROM finished_jobs WHERE id = ANY ($1::uuid[])";

const INSERT_EDGES: &str = "\
INSERT INTO dependencies (parent, child, state) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::smallint[])";

/// Of the jobs in the array those that have ended: closes their open edges and counts them in their children. Answers the children
/// that wait for nothing any more.
///
/// A store in which no job ever depended on another has nothing in the table: that is seen once a batch, not once a job, by its size
/// and not by its rows, for rows that are dead and cannot be removed would have to be walked. Children are sorted by the edge's end and not
/// by their own id, which is the same: else the planner may walk the jobs in that order and look each one up. What the counts mean is what
/// [`Parents::after`](tickwheel_core::parents::Parents::after) and [`next_state`](tickwheel_core::parents::Parents::next_state) say: 0 is
/// pending, 8 blocked, 1 scheduled, 4 completed; of who lets it go, 1 is the counts if all went well, above that the conductor.
pub(super) const RELEASE: &str = concat!(
    "\
WITH closed AS (
    UPDATE dependencies AS d
    SET state = CASE ended.state WHEN 4 THEN 1 ELSE 2 END
    FROM finished_jobs AS ended
    WHERE (SELECT pg_relation_size('dependencies') > 0)
      AND d.parent = ANY ($1::uuid[]) AND d.state = 0 AND ended.id = ANY (ARRAY[d.parent])
    RETURNING d.child, d.state, ended.completed_at
), counted AS (
    SELECT child, max(completed_at) AS ended_at,
           (count(*) FILTER (WHERE state = 1))::integer AS completed, (count(*) FILTER (WHERE state = 2))::integer AS failed
    FROM closed GROUP BY child
), waiting AS (
    SELECT j.id, c.ended_at, c.completed, c.failed
    FROM counted AS c JOIN jobs AS j ON j.id = ANY (ARRAY[c.child])
    WHERE j.state IN (0, 8)
    ORDER BY c.child FOR NO KEY UPDATE OF j
), told AS (
    UPDATE jobs AS j
    SET open_parents = GREATEST(j.open_parents - w.completed - w.failed, 0),
        failed_parents = j.failed_parents + w.failed,
        state = CASE WHEN j.release > 1 THEN j.state
                     WHEN j.failed_parents + w.failed = 0 AND j.open_parents <= w.completed + w.failed THEN 1
                     WHEN j.release = 1 THEN j.state
                     WHEN j.failed_parents + w.failed > 0 THEN 8
                     ELSE 0 END,
        due_at = CASE WHEN j.release > 1 OR j.failed_parents + w.failed > 0 OR j.open_parents > w.completed + w.failed
                      THEN j.due_at
                      ELSE GREATEST(j.execute_at, w.ended_at) END
    FROM waiting AS w
    WHERE j.id = ANY (ARRAY[w.id]) AND j.state IN (0, 8)
    RETURNING j.*
)
SELECT ",
    live_columns!(),
    " FROM told AS j WHERE j.state = 1"
);

/// Opens the edges of revived jobs again; children that are still held up wait for them once more. Tasks of a workflow stay as they are:
/// the conductor lets them go.
pub(super) const HOLD_AGAIN: &str = "\
WITH reopened AS (
    UPDATE dependencies SET state = 0 WHERE parent = ANY ($1::uuid[]) AND state = 2 RETURNING child
), counted AS (
    SELECT child, count(*)::integer AS revived FROM reopened GROUP BY child
), waiting AS (
    SELECT j.id, c.revived FROM counted AS c JOIN jobs AS j ON j.id = ANY (ARRAY[c.child])
    WHERE j.state IN (0, 8)
    ORDER BY c.child FOR NO KEY UPDATE OF j
)
UPDATE jobs AS j
SET open_parents = j.open_parents + w.revived,
    failed_parents = GREATEST(j.failed_parents - w.revived, 0),
    state = CASE WHEN j.release > 0 THEN j.state WHEN j.failed_parents > w.revived THEN 8 ELSE 0 END
FROM waiting AS w
WHERE j.id = ANY (ARRAY[w.id]) AND j.state IN (0, 8)";

/// Children wait for these parents no more.
pub(super) const DELETE_EDGES: &str = "\
DELETE FROM dependencies AS d USING unnest($1::uuid[], $2::uuid[]) AS s (parent, child)
WHERE d.parent = ANY (ARRAY[s.parent]) AND d.child = s.child";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[LOCK_LIVE, LOCK_FINISHED, EXIST, INSERT_EDGES, RELEASE, HOLD_AGAIN, DELETE_EDGES];

/// What ties a job of a batch to others.
pub(super) enum Linkage {
    /// Nothing.
    Alone,
    /// Edges, to be written if the job is new.
    To(Vec<Edge>),
    /// A parent that its tenant does not have.
    Unknown(JobId),
}

impl Linkage {
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

/// Makes of the jobs of a batch what their parents make of them, and keeps the parents from ending until the transaction does.
pub(super) async fn link(transaction: &Transaction<'_>, jobs: &mut [NewJob]) -> StoreResult<Vec<Linkage>> {
    let parents: BTreeSet<JobId> = jobs.iter().flat_map(|new| &new.job.spec.depends_on).copied().collect();
    let found = lock_parents(transaction, parents).await?;
    let link_one = |NewJob { job, .. }: &mut NewJob| {
        if job.spec.depends_on.is_empty() {
            return Linkage::Alone;
        }
        match found.link(job) {
            Ok(link) => {
                *job = job.clone().waiting_for(link.parents);
                Linkage::To(link.edges)
            }
            Err(unknown) => Linkage::Unknown(unknown),
        }
    };
    Ok(jobs.iter_mut().map(link_one).collect())
}

/// Looks the jobs up and keeps them from ending, and from being revived, until the transaction ends. One may move from one table to
/// the other while it is looked for.
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

    /// Ties children to their parents, if there are any.
    pub fn statement(&self) -> Option<(&'static str, Vec<Param<'_>>)> {
        let params: [Param<'_>; 3] = [&self.parents, &self.children, &self.states];
        (!self.parents.is_empty()).then(|| (INSERT_EDGES, params.to_vec()))
    }
}

/// Tells the children of a job that was cancelled while it waited. It completed nothing, so nobody is released.
pub(super) async fn block_children(transaction: &Transaction<'_>, cancelled: Uuid) -> StoreResult<()> {
    run(transaction, RELEASE, &[&vec![cancelled]]).await.map(drop)
}

/// Tells the children of a revived job.
pub(super) async fn hold_children_again(transaction: &Transaction<'_>, revived: Uuid) -> StoreResult<()> {
    run(transaction, HOLD_AGAIN, &[&vec![revived]]).await.map(drop)
}
