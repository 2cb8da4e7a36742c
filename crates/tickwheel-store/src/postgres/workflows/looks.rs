//! What the conductor is to look at.

use deadpool_postgres::Transaction;
use tickwheel_core::JobId;
use tickwheel_core::ports::StoreResult;
use tickwheel_core::workflow::{Look, Run};
use tokio_postgres::Row;

use super::writes::RunRows;
use crate::postgres::PostgresStore;
use crate::postgres::pipeline::{BoundStatement, run_all};
use crate::postgres::row::{column, limit};
use crate::workflow_columns::decode_look;

/// Asks for looks at these. What is on the list already gets another number: it is asked for again.
pub(in crate::postgres) const ASK: &str = "\
INSERT INTO workflow_looks (id) SELECT id FROM unnest($1::uuid[]) AS n (id) ORDER BY id
ON CONFLICT (id) DO UPDATE SET times = DEFAULT";

const LOOKS: &str = "\
SELECT id, times FROM workflow_looks WHERE id > $1::uuid ORDER BY id LIMIT $2::bigint";

/// Takes off the list what was not asked for again.
pub(super) const HAVE_LOOKED: &str = "\
DELETE FROM workflow_looks AS l USING unnest($1::uuid[], $2::bigint[]) AS s (id, times)
WHERE l.id = ANY (ARRAY[s.id]) AND l.times = s.times";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[ASK, LOOKS, HAVE_LOOKED];

/// What is to be looked at.
pub(super) async fn looks(
    store: &PostgresStore,
    after: Option<JobId>,
    at_most: usize,
) -> StoreResult<Vec<Look>> {
    let read = |row: &Row| decode_look(column(row, 0)?, column(row, 1)?);
    let after = after.unwrap_or(JobId::FIRST).as_uuid();
    store.read(LOOKS, &[&after, &limit(at_most)]).await?.iter().map(read).collect()
}

/// Tells the run of a task that has been brought back in this transaction: it goes on.
pub(in crate::postgres) async fn go_on(transaction: &Transaction<'_>, run: Run) -> StoreResult<()> {
    let whole = vec![Look::place_of(run.id).as_uuid()];
    let progress = run.progress.revived();
    let run = Run { open: run.open + 1, revision: run.revision + 1, progress, ..run };
    let rows = RunRows::of([&run]);
    let mut statements: Vec<BoundStatement<'_>> = rows.statement().into_iter().collect();
    statements.push((ASK, vec![&whole]));
    run_all(transaction, &statements).await.map(drop)
}
