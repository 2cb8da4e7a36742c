//! Reconcile requests.

use deadpool_postgres::Transaction;
use tickwheel_core::JobId;
use tickwheel_core::ports::StoreResult;
use tickwheel_core::workflow::{ReconcileRequest, Run};
use tokio_postgres::Row;

use super::writes::RunRows;
use crate::postgres::PostgresStore;
use crate::postgres::pipeline::{BoundStatement, run_all};
use crate::postgres::row::{column, limit};
use crate::workflow_columns::decode_reconcile_request;

/// Requests a reconcile of these. What is on the list already gets another number: it is requested again.
pub(in crate::postgres) const REQUEST_RECONCILE: &str = "\
INSERT INTO reconcile_requests (id) SELECT id FROM unnest($1::uuid[]) AS n (id) ORDER BY id
ON CONFLICT (id) DO UPDATE SET times = DEFAULT";

const REQUESTS: &str = "\
SELECT id, times FROM reconcile_requests WHERE id > $1::uuid ORDER BY id LIMIT $2::bigint";

/// Takes off the list what was not requested again.
pub(super) const DELETE_RECONCILED: &str = "\
DELETE FROM reconcile_requests AS l USING unnest($1::uuid[], $2::bigint[]) AS s (id, times)
WHERE l.id = ANY (ARRAY[s.id]) AND l.times = s.times";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[REQUEST_RECONCILE, REQUESTS, DELETE_RECONCILED];

/// The reconcile requests.
pub(super) async fn reconcile_requests(
    store: &PostgresStore,
    after: Option<JobId>,
    at_most: usize,
) -> StoreResult<Vec<ReconcileRequest>> {
    let read = |row: &Row| decode_reconcile_request(column(row, 0)?, column(row, 1)?);
    let after = after.unwrap_or(JobId::FIRST).as_uuid();
    store.read(REQUESTS, &[&after, &limit(at_most)]).await?.iter().map(read).collect()
}

/// Tells the run of a task that has been brought back in this transaction: it goes on.
pub(in crate::postgres) async fn go_on(transaction: &Transaction<'_>, run: Run) -> StoreResult<()> {
    let whole = vec![ReconcileRequest::id_of_run(run.id).as_uuid()];
    let progress = run.progress.retried();
    let run = Run { open: run.open + 1, revision: run.revision + 1, progress, ..run };
    let rows = RunRows::of([&run]);
    let mut statements: Vec<BoundStatement<'_>> = rows.statement().into_iter().collect();
    statements.push((REQUEST_RECONCILE, vec![&whole]));
    run_all(transaction, &statements).await.map(drop)
}
