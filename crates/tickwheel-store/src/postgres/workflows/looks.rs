//! What the conductor is to look at, and the counts of open jobs from which that follows.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;
use tickwheel_core::ports::StoreResult;
use tickwheel_core::settle::Settlement;
use tickwheel_core::workflow::Look;
use tickwheel_core::{Job, JobId, RunId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::locks::lock_runs;
use super::writes::RunRows;
use crate::postgres::PostgresStore;
use crate::postgres::pipeline::{Param, run, run_all};
use crate::postgres::row::{column, limit};
use crate::workflow_columns::decode_look;

/// The children of these parents that this transaction has told of them, and that the conductor is to look at now. The same as
/// [`Release::wants_a_look`](tickwheel_core::parents::Release::wants_a_look): 0 is pending, 8 blocked; 1 is let go by its counts if all went
/// well, 2 by the conductor, 3 is watched by him. From an array, for the planner takes its length to be more than nothing: where it takes the
/// table for empty, it would walk the index of due times for the one child that it expects.
macro_rules! children_to_look_at {
    ($parents:literal) => {
        concat!(
            "SELECT j.id FROM unnest(ARRAY(SELECT d.child FROM dependencies AS d WHERE d.parent = ANY (",
            $parents,
            "::uuid[]))) AS c (id) JOIN jobs AS j ON j.id = ANY (ARRAY[c.id])
    WHERE j.xmin = pg_current_xact_id()::xid AND j.state IN (0, 8)
      AND (j.release = 3 OR j.release IN (1, 2) AND j.open_parents = 0)"
        )
    };
}

/// Puts what `$wanted` selects on the list. What is there already gets another number: it is asked for again.
macro_rules! ask_for {
    ($wanted:expr) => {
        concat!(
            "INSERT INTO workflow_looks (id) SELECT id FROM (",
            $wanted,
            ") AS wanted ORDER BY id
ON CONFLICT (id) DO UPDATE SET times = DEFAULT
RETURNING id"
        )
    };
}

/// Of tasks and their runs, in two arrays, those that this very transaction has ended: takes them off the open jobs of their runs, and
/// asks for looks at the runs and at the tasks' children. 4 is completed.
pub(in crate::postgres) const COUNT_ENDS: &str = concat!(
    "\
WITH counted AS (
    SELECT s.run, count(*)::integer AS ended, bool_or(f.state <> 4) AS badly
    FROM unnest($1::uuid[], $2::uuid[]) AS s (id, run)
    JOIN finished_jobs AS f ON f.id = ANY (ARRAY[s.id]) AND f.xmin = pg_current_xact_id()::xid
    GROUP BY s.run
), locked AS (
    SELECT r.id, c.ended, c.badly FROM counted AS c JOIN workflow_runs AS r ON r.id = ANY (ARRAY[c.run])
    ORDER BY c.run FOR NO KEY UPDATE OF r
), tallied AS (
    UPDATE workflow_runs AS r SET open = GREATEST(r.open - l.ended, 0)
    FROM locked AS l WHERE r.id = ANY (ARRAY[l.id])
    RETURNING r.id, l.badly OR r.open <= r.blocked AS is_wanted
)
",
    ask_for!(concat!("SELECT id FROM tallied WHERE is_wanted UNION ", children_to_look_at!("$1")))
);

/// Asks for looks at these and at the children of those.
pub(super) const ASK: &str =
    ask_for!(concat!("SELECT id FROM unnest($1::uuid[]) AS n (id) UNION ", children_to_look_at!("$2")));

const LOOKS: &str = "\
SELECT id, times FROM workflow_looks ORDER BY id LIMIT $1::bigint";

/// Takes off the list what was not asked for again.
pub(super) const HAVE_LOOKED: &str = "\
DELETE FROM workflow_looks AS l USING unnest($1::uuid[], $2::bigint[]) AS s (id, times)
WHERE l.id = ANY (ARRAY[s.id]) AND l.times = s.times";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[COUNT_ENDS, ASK, LOOKS, HAVE_LOOKED];

/// What is to be looked at, the oldest runs first: that is cheap, and close to the order in which it was asked for.
pub(super) async fn looks(store: &PostgresStore, at_most: usize) -> StoreResult<Vec<Look>> {
    let read = |row: &Row| decode_look(column(row, 0)?, column(row, 1)?);
    store.read(LOOKS, &[&limit(at_most)]).await?.iter().map(read).collect()
}

/// Tasks that may have ended, and their runs, as columns. No task twice.
#[derive(Default)]
pub(in crate::postgres) struct EndedTasks {
    ids: Vec<Uuid>,
    runs: Vec<Uuid>,
}

impl EndedTasks {
    /// Those that settlements are to end.
    pub fn of(settlements: &[Settlement]) -> Self {
        let ends = settlements.iter().filter(|settlement| settlement.next.state().is_terminal());
        ends.filter_map(|settlement| Some((settlement.job_id, settlement.run?))).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The parameters of [`COUNT_ENDS`].
    pub fn params(&self) -> Vec<Param<'_>> {
        vec![&self.ids, &self.runs]
    }
}

impl FromIterator<(JobId, RunId)> for EndedTasks {
    fn from_iter<T: IntoIterator<Item = (JobId, RunId)>>(tasks: T) -> Self {
        let tasks: BTreeMap<JobId, RunId> = tasks.into_iter().collect();
        let (ids, runs) = tasks.into_iter().map(|(job, run)| (job.as_uuid(), run.as_uuid())).unzip();
        Self { ids, runs }
    }
}

/// Tells the run of a task that has been cancelled in this transaction.
pub(in crate::postgres) async fn count_end(transaction: &Transaction<'_>, ended: &Job) -> StoreResult<()> {
    let Some(place) = &ended.spec.place else { return Ok(()) };
    let tasks = EndedTasks::from_iter([(ended.id, place.run)]);
    run(transaction, COUNT_ENDS, &tasks.params()).await.map(drop)
}

/// Tells the run of a task that has been brought back in this transaction: it goes on.
pub(in crate::postgres) async fn go_on(transaction: &Transaction<'_>, revived: &Job) -> StoreResult<()> {
    let Some(place) = &revived.spec.place else { return Ok(()) };
    let Some(mut found) = lock_runs(transaction, [place.run]).await?.remove(&place.run) else {
        return Ok(());
    };
    found.open += 1;
    found.revision += 1;
    found.progress = found.progress.revived();
    let (rows, whole) = (RunRows::of([&found]), vec![Look::place_of(found.id).as_uuid()]);
    let parents = vec![revived.id.as_uuid()];
    let mut statements: Vec<(&str, Vec<Param<'_>>)> = rows.statement().into_iter().collect();
    statements.push((ASK, vec![&whole, &parents]));
    run_all(transaction, &statements).await.map(drop)
}
