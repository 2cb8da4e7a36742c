//! Workflows on the server: a verb a function, a concern a file, the same names as for SQLite.
//!
//! ```text
//!   settlement, cancel, retry            step of a run (`advance.rs`)
//!   ───────────────────────────          ────────────────────────────
//!   the run                              the run: has it the revision that was decided on?
//!   jobs that end or come back           jobs that change
//!   their children                       all that is written, their children
//!   requests                             requests
//! ```
//! Locks are taken in one order by everybody: runs by id, then jobs by id, then reconcile requests, which are written
//! by nobody who has not locked their run.
//!
//! Invariant: what belongs to a step is written in the transaction that found its run at the expected revision, under
//! the run's lock.

mod advance;
pub(super) mod counts;
mod definitions;
pub(super) mod locks;
pub(super) mod reconcile_requests;
mod runs;
mod start;
mod writes;

use async_trait::async_trait;
use tickwheel_core::ports::{
    Creation, Page, RunAdvanced, RunQuery, RunStart, RunStore, StoreResult, WorkflowPut, WorkflowQuery,
    WorkflowStore,
};
use tickwheel_core::workflow::{ParentResults, ReconcileRequest, Run, RunStep, RunTask, Workflow};
use tickwheel_core::{JobId, RunId, Timestamp};

use super::PostgresStore;
use super::lists::EXAMINED_MAX;

#[cfg(test)]
pub(super) use runs::list_runs;

#[cfg(test)]
pub(super) const STATEMENTS: &[&[&str]] = &[
    counts::STATEMENTS,
    definitions::STATEMENTS,
    locks::STATEMENTS,
    reconcile_requests::STATEMENTS,
    runs::STATEMENTS,
    start::STATEMENTS,
    writes::STATEMENTS,
];

#[async_trait]
impl WorkflowStore for PostgresStore {
    async fn put_workflow(&self, workflow: Workflow) -> StoreResult<WorkflowPut> {
        definitions::put_workflow(self, &workflow).await
    }

    async fn get_workflow(
        &self,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> StoreResult<Option<Workflow>> {
        definitions::get_workflow(self, tenant, name, version).await
    }

    async fn latest_version(&self, tenant: &str, name: &str) -> StoreResult<Option<u32>> {
        definitions::latest_version(self, tenant, name).await
    }

    async fn remove_workflow(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        definitions::remove_workflow(self, tenant, name).await
    }

    async fn list_workflows(&self, query: WorkflowQuery) -> StoreResult<Page<Workflow, String>> {
        definitions::list_workflows(self, &query).await
    }

    async fn list_workflow_versions(
        &self,
        tenant: &str,
        name: &str,
        before: Option<u32>,
        limit: usize,
    ) -> StoreResult<Page<Workflow, u32>> {
        definitions::list_workflow_versions(self, tenant, name, before, limit).await
    }
}

#[async_trait]
impl RunStore for PostgresStore {
    async fn start_run(&self, start: RunStart) -> StoreResult<Creation<Run>> {
        start::start_run(self, start).await
    }

    async fn get_runs(&self, ids: Vec<RunId>) -> StoreResult<Vec<Run>> {
        runs::get_runs(self, &ids).await
    }

    async fn list_runs(&self, query: RunQuery) -> StoreResult<Page<Run, RunId>> {
        runs::list_runs(self, &query, EXAMINED_MAX).await
    }

    async fn read_run(&self, id: RunId) -> StoreResult<Option<(Run, Vec<RunTask>)>> {
        runs::read_run(self, id).await
    }

    async fn read_results(&self, ids: Vec<JobId>, bytes_max: usize) -> StoreResult<ParentResults> {
        runs::read_results(self, &ids, bytes_max).await
    }

    async fn reconcile_requests(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<ReconcileRequest>> {
        reconcile_requests::reconcile_requests(self, after, limit).await
    }

    async fn advance_runs(&self, steps: Vec<RunStep>) -> StoreResult<Vec<RunAdvanced>> {
        advance::advance_runs(self, &steps).await
    }

    async fn stalling_runs(&self, now: Timestamp, limit: usize) -> StoreResult<Vec<RunId>> {
        runs::stalling_runs(self, now, limit).await
    }
}
