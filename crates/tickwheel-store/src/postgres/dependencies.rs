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
//!
//! Tasks of a workflow ([`tasks`]) have no edges. Who waits for one is part of its place, and whoever ends or revives one has locked its run before anything else: so
//! nobody else moves a task of the run meanwhile, and their counts are simply changed.

use std::collections::BTreeSet;

use deadpool_postgres::Transaction;
use tickwheel_core::ports::{NewJob, Scheduled, Settled, SettledBatch, StoreResult};
use tickwheel_core::{JobId, State};
use tokio_postgres::Row;
use tracing::error;
use uuid::Uuid;

use super::claim::read_due_job;
use super::pipeline::{Param, run};
use super::row::{column, read_sound};
use crate::columns::{decode_state, decode_target};
use crate::links::{Edge, Ended, FoundParents};

const LOCK_LIVE: &str = "\
SELECT id, tenant, state FROM jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE";

const LOCK_FINISHED: &str = "\
SELECT id, tenant, state FROM finished_jobs WHERE id = ANY ($1::uuid[]) ORDER BY id FOR KEY SHARE";

// The tenant, and not the id, which the index of types has too: where the planner takes history for empty, it would walk that one.
const EXIST: &str = "\
SELECT tenant FROM jobs WHERE id = ANY ($1::uuid[])
UNION ALL
SELECT tenant FROM finished_jobs WHERE id = ANY ($1::uuid[])";

const INSERT_EDGES: &str = "\
INSERT INTO dependencies (parent, child, state) SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::smallint[])";

/// Tells children, `AS w (child, parent, ended_at, completed, failed)`, how many of their parents have ended. What the counts mean is what
/// [`Parents::after`](tickwheel_core::parents::Parents::after) and [`next_state`](tickwheel_core::parents::Parents::next_state) say: 0 is pending, 8
/// blocked; of who lets it go, 1 is the counts if all went well, above that the conductor.
macro_rules! tell_children {
    ($children:literal, $which:literal) => {
        concat!(
            "\
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
    FROM ",
            $children,
            "
    WHERE j.id = ANY (ARRAY[w.child]) AND j.state IN (0, 8)",
            $which,
            "
    RETURNING j.id, j.partition, j.due_at, j.priority, j.tenant, j.queue, j.release, j.schedule_id, j.target, w.parent, j.state,
              j.open_parents"
        )
    };
}

/// Answers the children that wait for nothing any more.
macro_rules! answer_released {
    () => {
        "\nSELECT id, partition, due_at, priority, tenant, queue, release, schedule_id, target, parent FROM told WHERE state = 1"
    };
}

/// Asks for looks at the children where [`Release::wants_a_look`](tickwheel_core::parents::Release::wants_a_look): 3
/// and 5 are watched by the conductor. Answers their ids after those that wait for nothing any more.
macro_rules! ask_and_answer {
    ($others:literal) => {
        concat!(
            ", asked AS (
    INSERT INTO workflow_looks (id)
    SELECT id FROM told
    WHERE state IN (0, 8) AND (release IN (3, 5) OR release IN (1, 2, 4) AND open_parents = 0)",
            $others,
            "
    ORDER BY id
    ON CONFLICT (id) DO UPDATE SET times = DEFAULT
    RETURNING id
)",
            answer_released!(),
            "
UNION ALL
SELECT id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM asked"
        )
    };
}

/// Closes the open edges of jobs that have ended, and counts them in their children. One that has not ended after all, because its settlement was stale, is still
/// among the live jobs, or ended before and has no open edges.
///
/// A store in which no job ever depended on another has nothing in the table: that is seen once a batch, not once a job, by its size
/// and not by its rows, for rows that are dead and cannot be removed would have to be walked. Children are sorted by the edge's end and not
/// by their own id, which is the same: else the planner may walk the jobs in that order and look each one up.
macro_rules! close_edges {
    () => {
        concat!(
            "\
WITH closed AS (
    UPDATE dependencies AS d
    SET state = CASE WHEN e.completed THEN 1 ELSE 2 END
    FROM unnest($1::uuid[], $2::boolean[], $3::bigint[]) AS e (parent, completed, ended_at)
    WHERE (SELECT pg_relation_size('dependencies') > 0)
      AND d.parent = ANY (ARRAY[e.parent]) AND d.state = 0
      AND NOT EXISTS (SELECT 1 FROM jobs AS live WHERE live.id = ANY (ARRAY[e.parent]))
    RETURNING d.child, d.parent, d.state, e.ended_at
), counted AS (
    SELECT child, max(ended_at) AS ended_at, (array_agg(parent))[1] AS parent,
           (count(*) FILTER (WHERE state = 1))::integer AS completed, (count(*) FILTER (WHERE state = 2))::integer AS failed
    FROM closed GROUP BY child
), waiting AS (
    SELECT j.id AS child, c.ended_at, c.parent, c.completed, c.failed
    FROM counted AS c JOIN jobs AS j ON j.id = ANY (ARRAY[c.child])
    WHERE j.state IN (0, 8)
    ORDER BY c.child FOR NO KEY UPDATE OF j
), told AS (
    ",
            tell_children!("waiting AS w", ""),
            "
)"
        )
    };
}

/// Jobs that have ended, to the ends of their edges. Answers are for [`read_told`].
pub(super) const RELEASE: &str = concat!(close_edges!(), answer_released!());

/// The same of tasks. Those of runs from before places knew their children wait for each other by edges, and may have to be looked at.
pub(super) const RELEASE_AND_ASK: &str = concat!(close_edges!(), ask_and_answer!(""));

mod tasks;

pub(super) use self::tasks::*;

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

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    LOCK_LIVE,
    LOCK_FINISHED,
    EXIST,
    INSERT_EDGES,
    RELEASE,
    RELEASE_AND_ASK,
    HOLD_AGAIN,
    RELEASE_TASKS,
    HOLD_TASKS_AGAIN,
];

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

/// What became of children.
#[derive(Default)]
pub(super) struct Told {
    /// They wait for nothing any more; and a parent of theirs, of those that are tied to it by an edge.
    pub released: Vec<(Scheduled, Option<JobId>)>,
    /// Some of them are to be looked at.
    pub looks: bool,
}

impl Told {
    /// The answer to settlements of which this has become.
    pub fn in_batch(self, settled: Vec<Settled>) -> SettledBatch {
        let released = self.released.into_iter().map(|(job, _)| job).collect();
        SettledBatch { settled, released, looks: self.looks }
    }
}

/// The answers to [`RELEASE`], [`RELEASE_AND_ASK`] and [`RELEASE_TASKS`]: the children that wait for nothing any more, and with their ids alone those that are looked at. One
/// that makes no sense is left alone: it must not keep the others from running.
pub(super) fn read_told<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Told {
    let mut told = Told::default();
    let released = rows.into_iter().filter(|row| {
        let is_looked_at = row.try_get::<_, Option<i64>>(2).is_ok_and(|due_at| due_at.is_none());
        told.looks |= is_looked_at;
        !is_looked_at
    });
    told.released = read_sound(released, read_released, |job_id, cause| {
        error!(?job_id, %cause, "a job cannot be read and is left alone");
    });
    told
}

fn read_released(row: &Row) -> StoreResult<(Scheduled, Option<JobId>)> {
    let target = decode_target(column::<i16>(row, 8)?.into())?;
    let parent = column::<Option<Uuid>>(row, 9)?.map(JobId::from_uuid);
    Ok((Scheduled { due: read_due_job(row)?, target }, parent))
}

/// Jobs that have ended, no one twice, as columns.
#[derive(Default)]
pub(super) struct EndRows {
    parents: Vec<Uuid>,
    completed: Vec<bool>,
    ended_at: Vec<i64>,
}

impl EndRows {
    pub fn of<'a>(ended: impl IntoIterator<Item = &'a Ended<'a>>) -> Self {
        let mut rows = Self::default();
        for end in ended {
            rows.parents.push(end.id.as_uuid());
            rows.completed.push(end.state == State::Completed);
            rows.ended_at.push(end.at.as_millis());
        }
        rows
    }

    /// What [`RELEASE`] and [`RELEASE_AND_ASK`] are asked with.
    pub fn params(&self) -> Vec<Param<'_>> {
        vec![&self.parents, &self.completed, &self.ended_at]
    }
}
