//! What a step changes, locked before anything of it is written: jobs first, then runs.

use std::collections::{BTreeMap, BTreeSet};

use deadpool_postgres::Transaction;
use tickwheel_core::ports::StoreResult;
use tickwheel_core::workflow::{Run, RunStep, TaskChange};
use tickwheel_core::{Job, JobId, RunId};
use uuid::Uuid;

use super::runs::{read_run_row, run_columns};
use crate::links::{FoundParents, waited_for};
use crate::postgres::dependencies::lock_parents;
use crate::postgres::jobs::GET_JOBS;
use crate::postgres::pipeline::run;
use crate::postgres::row::{finished_columns, live_columns, read_jobs};

/// The live ones among these jobs, and of the children of those the ones that wait: in one order, for settlements lock children too.
const LOCK_LIVE: &str = concat!(
    "SELECT ",
    live_columns!(),
    "
FROM (SELECT id, bool_or(is_named) AS is_named
      FROM (SELECT id, true AS is_named FROM unnest($1::uuid[]) AS n (id)
            UNION ALL
            SELECT child, false FROM dependencies WHERE parent = ANY ($2::uuid[])) AS all_of_them
      GROUP BY id) AS w
JOIN jobs AS j ON j.id = ANY (ARRAY[w.id])
WHERE w.is_named OR j.state IN (0, 8)
ORDER BY w.id FOR UPDATE OF j"
);

const LOCK_FINISHED: &str = concat!(
    "SELECT ",
    finished_columns!(),
    " FROM unnest($1::uuid[]) AS w (id) JOIN finished_jobs AS j ON j.id = ANY (ARRAY[w.id]) ORDER BY w.id FOR UPDATE OF j"
);

const LOCK_RUNS: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM unnest($1::uuid[]) AS w (id) JOIN workflow_runs AS r ON r.id = ANY (ARRAY[w.id])
ORDER BY w.id FOR NO KEY UPDATE OF r"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LOCK_LIVE, LOCK_FINISHED, LOCK_RUNS];

/// The runs that exist, locked until the transaction ends.
pub(super) async fn lock_runs(
    transaction: &Transaction<'_>,
    ids: impl IntoIterator<Item = RunId>,
) -> StoreResult<BTreeMap<RunId, Run>> {
    let ids: Vec<Uuid> = ids.into_iter().map(RunId::as_uuid).collect();
    let rows = run(transaction, LOCK_RUNS, &[&ids]).await?;
    rows.iter().map(|row| read_run_row(row).map(|run| (run.id, run))).collect()
}

/// The jobs that steps change, by what is to become of them.
#[derive(Default)]
struct Wanted {
    /// They run, most likely: settlements lock those before any that wait.
    stopping: BTreeSet<JobId>,
    /// They wait, most likely.
    others: BTreeSet<JobId>,
    /// Their children hear of it.
    moving: BTreeSet<JobId>,
    /// They have ended, most likely.
    revived: BTreeSet<JobId>,
}

impl Wanted {
    fn of(steps: &[&RunStep]) -> Self {
        let mut wanted = Self::default();
        for (id, change) in steps.iter().flat_map(|step| &step.changes) {
            match change {
                TaskChange::Stop => wanted.stopping.insert(*id),
                _ => wanted.others.insert(*id),
            };
            if matches!(change, TaskChange::End { .. } | TaskChange::Revive) {
                wanted.moving.insert(*id);
            }
            if *change == TaskChange::Revive {
                wanted.revived.insert(*id);
            }
        }
        wanted
    }
}

/// What the steps change, as it is and stays until the transaction ends. Those that are to come back have counted their parents. One that moves
/// from one table to the other meanwhile is not found: somebody else was faster.
pub(super) async fn lock_jobs(
    transaction: &Transaction<'_>,
    steps: &[&RunStep],
) -> StoreResult<BTreeMap<JobId, Job>> {
    let wanted = Wanted::of(steps);
    let mut found = BTreeMap::new();
    let parents = lock_parents_of(transaction, &wanted.revived).await?;
    if !wanted.stopping.is_empty() {
        add(&mut found, lock_live(transaction, &wanted.stopping, &BTreeSet::new()).await?);
    }
    if !wanted.others.is_empty() {
        add(&mut found, lock_live(transaction, &wanted.others, &wanted.moving).await?);
    }
    let ended: Vec<Uuid> =
        wanted.revived.iter().filter(|id| !found.contains_key(id)).map(|id| id.as_uuid()).collect();
    if !ended.is_empty() {
        let ended = read_jobs(&run(transaction, LOCK_FINISHED, &[&ended]).await?)?;
        add(&mut found, ended.into_iter().map(|job| Job { parents: parents.counted(&job), ..job }).collect());
    }
    Ok(found)
}

async fn lock_live(
    transaction: &Transaction<'_>,
    named: &BTreeSet<JobId>,
    parents: &BTreeSet<JobId>,
) -> StoreResult<Vec<Job>> {
    read_jobs(&run(transaction, LOCK_LIVE, &[&uuids(named), &uuids(parents)]).await?)
}

/// Whom these wait for once they are back: neither ends nor comes back until the transaction ends.
async fn lock_parents_of(
    transaction: &Transaction<'_>,
    revived: &BTreeSet<JobId>,
) -> StoreResult<FoundParents> {
    if revived.is_empty() {
        return Ok(FoundParents::default());
    }
    let jobs = read_jobs(&run(transaction, GET_JOBS, &[&uuids(revived)]).await?)?;
    lock_parents(transaction, jobs.iter().flat_map(waited_for).collect()).await
}

fn add(found: &mut BTreeMap<JobId, Job>, jobs: Vec<Job>) {
    found.extend(jobs.into_iter().map(|job| (job.id, job)));
}

fn uuids(ids: &BTreeSet<JobId>) -> Vec<Uuid> {
    ids.iter().map(|id| id.as_uuid()).collect()
}
