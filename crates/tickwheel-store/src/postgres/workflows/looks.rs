//! What the conductor is to look at, and the counts of open jobs from which that follows.

use deadpool_postgres::Transaction;
use tickwheel_core::ports::StoreResult;
use tickwheel_core::workflow::{Look, Run};
use tokio_postgres::Row;
use uuid::Uuid;

use super::writes::{RunRows, Statement};
use crate::links::{Ended, run_tallies};
use crate::postgres::PostgresStore;
use crate::postgres::pipeline::{Param, run_all};
use crate::postgres::row::{column, count, limit};
use crate::workflow_columns::decode_look;

/// Takes ended tasks off the open jobs of their runs, and asks for looks at those runs of which something ended badly or of which nothing but blocked
/// jobs is open.
const COUNT_ENDS: &str = "\
WITH tallied AS (
    UPDATE workflow_runs AS r SET open = GREATEST(r.open - s.ended, 0), spoiled = r.spoiled OR s.badly
    FROM unnest($1::uuid[], $2::integer[], $3::boolean[]) AS s (run, ended, badly)
    WHERE r.id = ANY (ARRAY[s.run])
    RETURNING r.id, s.badly OR r.open <= r.blocked AS is_wanted
)
INSERT INTO workflow_looks (id) SELECT id FROM tallied WHERE is_wanted ORDER BY id
ON CONFLICT (id) DO UPDATE SET times = DEFAULT
RETURNING id";

/// Asks for looks at these. What is on the list already gets another number: it is asked for again.
pub(super) const ASK: &str = "\
INSERT INTO workflow_looks (id) SELECT id FROM unnest($1::uuid[]) AS n (id) ORDER BY id
ON CONFLICT (id) DO UPDATE SET times = DEFAULT";

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

/// What ends mean to the runs that they are tasks of, as columns.
#[derive(Default)]
pub(in crate::postgres) struct RunTallyRows {
    runs: Vec<Uuid>,
    ended: Vec<i32>,
    badly: Vec<bool>,
}

impl RunTallyRows {
    pub fn of(ended: &[Ended<'_>]) -> Self {
        let mut rows = Self::default();
        for (run, tally) in run_tallies(ended) {
            rows.runs.push(run.as_uuid());
            rows.ended.push(count(tally.ended));
            rows.badly.push(tally.badly);
        }
        rows
    }

    /// Tells the runs, if there are any. Answers those that are to be looked at.
    pub fn statement(&self) -> Option<Statement<'_>> {
        let params: [Param<'_>; 3] = [&self.runs, &self.ended, &self.badly];
        (!self.runs.is_empty()).then(|| (COUNT_ENDS, params.to_vec()))
    }
}

/// Tells the run of a task that has been brought back in this transaction: it goes on.
pub(in crate::postgres) async fn go_on(transaction: &Transaction<'_>, run: Run) -> StoreResult<()> {
    let whole = vec![Look::place_of(run.id).as_uuid()];
    let progress = run.progress.revived();
    let run = Run { open: run.open + 1, revision: run.revision + 1, progress, ..run };
    let rows = RunRows::of([&run]);
    let mut statements: Vec<Statement<'_>> = rows.statement().into_iter().collect();
    statements.push((ASK, vec![&whole]));
    run_all(transaction, &statements).await.map(drop)
}
