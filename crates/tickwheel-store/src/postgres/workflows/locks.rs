//! What a step changes, locked before anything of it is written: runs first, then jobs.

use std::collections::{BTreeMap, BTreeSet};

use const_format::concatcp;
use deadpool_postgres::Transaction;
use tickwheel_core::ports::StoreResult;
use tickwheel_core::workflow::{Run, RunStep};
use tickwheel_core::{Job, JobId, RunId};
use uuid::Uuid;

use super::runs::{read_run_row, run_columns};
use crate::dependency_edges::FoundParents;
use crate::postgres::dependencies::lock_parents;
use crate::postgres::jobs::GET_JOBS;
use crate::postgres::pipeline::run;
use crate::postgres::row::{FINISHED_COLUMNS, LIVE_COLUMNS, read_jobs};

const LOCK_LIVE: &str = concatcp!(
    "SELECT ",
    LIVE_COLUMNS,
    " FROM unnest($1::uuid[]) AS w (id) JOIN jobs AS j ON j.id = ANY (ARRAY[w.id]) ORDER BY w.id FOR UPDATE OF j"
);

const LOCK_FINISHED: &str = concatcp!(
    "SELECT ",
    FINISHED_COLUMNS,
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
pub(in crate::postgres) async fn lock_runs(
    transaction: &Transaction<'_>,
    ids: impl IntoIterator<Item = RunId>,
) -> StoreResult<BTreeMap<RunId, Run>> {
    let ids: Vec<Uuid> = ids.into_iter().map(RunId::as_uuid).collect();
    let rows = run(transaction, LOCK_RUNS, &[&ids]).await?;
    rows.iter().map(|row| read_run_row(row).map(|run| (run.id, run))).collect()
}

/// What the steps change, as it is and stays until the transaction ends. Those that are to come back have counted their
/// parents.
pub(super) async fn lock_jobs(
    transaction: &Transaction<'_>,
    steps: &[&RunStep],
) -> StoreResult<BTreeMap<JobId, Job>> {
    let changes = || steps.iter().flat_map(|step| &step.changes);
    let named: BTreeSet<JobId> = changes().map(|(id, _)| *id).collect();
    let retried: BTreeSet<JobId> =
        changes().filter(|(_, change)| change.brings_back()).map(|(id, _)| *id).collect();
    let mut found = BTreeMap::new();
    let parents = lock_parents_of(transaction, &retried).await?;
    if !named.is_empty() {
        add(&mut found, read_jobs(&run(transaction, LOCK_LIVE, &[&uuids(&named)]).await?)?);
    }
    let ended: Vec<Uuid> =
        retried.iter().filter(|id| !found.contains_key(id)).map(|id| id.as_uuid()).collect();
    if !ended.is_empty() {
        let mut ended = read_jobs(&run(transaction, LOCK_FINISHED, &[&ended]).await?)?;
        ended.iter_mut().for_each(|job| job.parents = parents.counted(job));
        add(&mut found, ended);
    }
    Ok(found)
}

/// Whom these wait for once they are back: neither ends nor comes back until the transaction ends.
async fn lock_parents_of(
    transaction: &Transaction<'_>,
    retried: &BTreeSet<JobId>,
) -> StoreResult<FoundParents> {
    if retried.is_empty() {
        return Ok(FoundParents::default());
    }
    let jobs = read_jobs(&run(transaction, GET_JOBS, &[&uuids(retried)]).await?)?;
    lock_parents(transaction, jobs.iter().flat_map(Job::waits_for).collect()).await
}

fn add(found: &mut BTreeMap<JobId, Job>, jobs: Vec<Job>) {
    found.extend(jobs.into_iter().map(|job| (job.id, job)));
}

fn uuids(ids: &BTreeSet<JobId>) -> Vec<Uuid> {
    ids.iter().map(|id| id.as_uuid()).collect()
}
