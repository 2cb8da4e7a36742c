//! Workflows in the file: a verb a function, a concern a file, the same names as for PostgreSQL.
//!
//! Invariant: whoever moves a run compares its revision in the same transaction; there is one writer, so nobody comes
//! in between.

mod advance;
mod definitions;
pub(super) mod reconcile_requests;
mod runs;
mod start;

use async_trait::async_trait;
use tickwheel_core::ports::{
    Creation, Page, RunAdvanced, RunQuery, RunStart, RunStore, StoreResult, WorkflowPut, WorkflowQuery,
    WorkflowStore,
};
use tickwheel_core::workflow::{ParentResults, ReconcileRequest, Run, RunStep, RunTask, Workflow};
use tickwheel_core::{JobId, RunId, Timestamp};

use super::SqliteStore;

#[async_trait]
impl WorkflowStore for SqliteStore {
    async fn put_workflow(&self, workflow: Workflow) -> StoreResult<WorkflowPut> {
        self.writer.write(move |c| definitions::put_workflow(c, &workflow)).await
    }

    async fn get_workflow(
        &self,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> StoreResult<Option<Workflow>> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.readers.read(move |c| definitions::get_workflow(c, &tenant, &name, version)).await
    }

    async fn latest_version(&self, tenant: &str, name: &str) -> StoreResult<Option<u32>> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.readers.read(move |c| definitions::latest_version(c, &tenant, &name)).await
    }

    async fn remove_workflow(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.writer.write(move |c| definitions::remove_workflow(c, &tenant, &name)).await
    }

    async fn list_workflows(&self, query: WorkflowQuery) -> StoreResult<Page<Workflow, String>> {
        self.readers.read(move |c| definitions::list_workflows(c, &query)).await
    }

    async fn list_workflow_versions(
        &self,
        tenant: &str,
        name: &str,
        before: Option<u32>,
        limit: usize,
    ) -> StoreResult<Page<Workflow, u32>> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.readers
            .read(move |c| definitions::list_workflow_versions(c, &tenant, &name, before, limit))
            .await
    }
}

#[async_trait]
impl RunStore for SqliteStore {
    async fn start_run(&self, start: RunStart) -> StoreResult<Creation<Run>> {
        self.writer.write(move |c| start::start_run(c, start)).await
    }

    async fn get_runs(&self, ids: Vec<RunId>) -> StoreResult<Vec<Run>> {
        self.readers.read(move |c| runs::get_runs(c, &ids)).await
    }

    async fn list_runs(&self, query: RunQuery) -> StoreResult<Page<Run, RunId>> {
        self.readers.read(move |c| runs::list_runs(c, &query)).await
    }

    async fn read_run(&self, id: RunId) -> StoreResult<Option<(Run, Vec<RunTask>)>> {
        self.readers.read(move |c| runs::read_run(c, id)).await
    }

    async fn read_results(&self, ids: Vec<JobId>, bytes_max: usize) -> StoreResult<ParentResults> {
        self.readers.read(move |c| runs::read_results(c, &ids, bytes_max)).await
    }

    async fn reconcile_requests(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<ReconcileRequest>> {
        self.readers.read(move |c| reconcile_requests::reconcile_requests(c, after, limit)).await
    }

    async fn advance_runs(&self, steps: Vec<RunStep>) -> StoreResult<Vec<RunAdvanced>> {
        self.writer.write(move |c| advance::advance_runs(c, &steps)).await
    }

    async fn stalling_runs(&self, now: Timestamp, limit: usize) -> StoreResult<Vec<RunId>> {
        self.readers.read(move |c| runs::stalling_runs(c, now, limit)).await
    }
}
