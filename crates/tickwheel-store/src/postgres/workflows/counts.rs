//! How many tasks of a run have not ended: counted by whoever ends one, under the run's lock.

use std::collections::BTreeMap;

use tickwheel_core::RunId;
use tickwheel_core::ports::StoreResult;
use tickwheel_core::workflow::{ReconcileRequest, RunCounts};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::columns::decode_count;
use crate::dependency_edges::{Ended, ends_by_run};
use crate::postgres::pipeline::BoundStatement;
use crate::postgres::row::{column, count};

/// Locks runs, and answers what they count.
pub(in crate::postgres) const LOCK_COUNTS: &str = "\
SELECT r.id, r.open, r.blocked, r.had_failure
FROM unnest($1::uuid[]) AS w (id) JOIN workflow_runs AS r ON r.id = ANY (ARRAY[w.id])
ORDER BY w.id FOR NO KEY UPDATE OF r";

const WRITE_COUNTS: &str = "\
UPDATE workflow_runs AS r SET open = s.open, had_failure = s.had_failure
FROM unnest($1::uuid[], $2::integer[], $3::boolean[]) AS s (id, open, had_failure)
WHERE r.id = ANY (ARRAY[s.id])";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LOCK_COUNTS, WRITE_COUNTS];

/// The answer to [`LOCK_COUNTS`].
pub(in crate::postgres) fn read_counts(rows: &[Row]) -> StoreResult<BTreeMap<RunId, RunCounts>> {
    let read = |row: &Row| {
        let counts = RunCounts {
            open: decode_count("open jobs of a run", column::<i32>(row, 1)?.into())?,
            blocked: decode_count("blocked jobs of a run", column::<i32>(row, 2)?.into())?,
            had_failure: column(row, 3)?,
        };
        Ok((RunId::from_uuid(column(row, 0)?), counts))
    };
    rows.iter().map(read).collect()
}

/// What runs count after tasks of theirs have ended, as columns.
#[derive(Default)]
pub(in crate::postgres) struct CountRows {
    ids: Vec<Uuid>,
    open: Vec<i32>,
    had_failure: Vec<bool>,
    /// The runs of which a reconcile is requested.
    pub reconcile_requests: Vec<Uuid>,
}

impl CountRows {
    /// Of runs that counted this before. One that does not exist any more is left out.
    pub fn of(ended: &[Ended<'_>], before: &BTreeMap<RunId, RunCounts>) -> Self {
        let mut rows = Self::default();
        for (run, ends) in ends_by_run(ended) {
            let Some(after) = before.get(&run).map(|counts| counts.after(ends)) else { continue };
            rows.ids.push(run.as_uuid());
            rows.open.push(count(after.open));
            rows.had_failure.push(after.had_failure);
            if after.need_reconcile_after(ends) {
                rows.reconcile_requests.push(ReconcileRequest::id_of_run(run).as_uuid());
            }
        }
        rows
    }

    /// Writes them down, if there are any.
    pub fn statement(&self) -> Option<BoundStatement<'_>> {
        let params: BoundStatement<'_> = (WRITE_COUNTS, vec![&self.ids, &self.open, &self.had_failure]);
        (!self.ids.is_empty()).then_some(params)
    }
}
