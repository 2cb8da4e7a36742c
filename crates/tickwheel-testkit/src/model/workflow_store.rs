//! The model's workflows behind their port, with the same faults on demand as its jobs.

use async_trait::async_trait;
use tickwheel_core::ports::{
    Creation, Page, RunAdvanced, RunQuery, RunStart, RunStore, StoreResult, WorkflowPut, WorkflowQuery,
    WorkflowStore,
};
use tickwheel_core::workflow::{ParentResults, ReconcileRequest, Run, RunStep, RunTask, Workflow};
use tickwheel_core::{JobId, RunId, Timestamp};

use super::ModelStore;
use super::faults::Verb;

#[async_trait]
impl WorkflowStore for ModelStore {
    async fn put_workflow(&self, workflow: Workflow) -> StoreResult<WorkflowPut> {
        self.write(Verb::PutWorkflow, move |model| model.put_workflow(workflow)).await
    }

    async fn get_workflow(
        &self,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> StoreResult<Option<Workflow>> {
        self.read(Verb::GetWorkflow, |model| model.get_workflow(tenant, name, version)).await
    }

    async fn latest_version(&self, tenant: &str, name: &str) -> StoreResult<Option<u32>> {
        self.read(Verb::LatestVersion, |model| {
            model.get_workflow(tenant, name, None).map(|workflow| workflow.version)
        })
        .await
    }

    async fn remove_workflow(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.write(Verb::RemoveWorkflow, move |model| model.remove_workflow(&tenant, &name)).await
    }

    async fn list_workflows(&self, query: WorkflowQuery) -> StoreResult<Page<Workflow, String>> {
        self.read(Verb::ListWorkflows, |model| model.list_workflows(&query)).await
    }

    async fn list_workflow_versions(
        &self,
        tenant: &str,
        name: &str,
        before: Option<u32>,
        limit: usize,
    ) -> StoreResult<Page<Workflow, u32>> {
        self.read(Verb::ListWorkflowVersions, |model| {
            model.list_workflow_versions(tenant, name, before, limit)
        })
        .await
    }
}

#[async_trait]
impl RunStore for ModelStore {
    async fn start_run(&self, start: RunStart) -> StoreResult<Creation<Run>> {
        self.try_write(Verb::StartRun, move |model| model.start_run(start)).await
    }

    async fn get_runs(&self, ids: Vec<RunId>) -> StoreResult<Vec<Run>> {
        self.read(Verb::GetRuns, |model| model.get_runs(&ids)).await
    }

    async fn list_runs(&self, query: RunQuery) -> StoreResult<Page<Run, RunId>> {
        self.read(Verb::ListRuns, |model| model.list_runs(&query)).await
    }

    async fn read_run(&self, id: RunId) -> StoreResult<Option<(Run, Vec<RunTask>)>> {
        self.read(Verb::ReadRun, |model| model.read_run(id)).await
    }

    async fn read_results(&self, ids: Vec<JobId>, bytes_max: usize) -> StoreResult<ParentResults> {
        self.read(Verb::ReadResults, |model| model.read_results(&ids, bytes_max)).await
    }

    async fn reconcile_requests(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<ReconcileRequest>> {
        self.read(Verb::ReconcileRequests, |model| model.reconcile_requests(after, limit)).await
    }

    async fn advance_runs(&self, steps: Vec<RunStep>) -> StoreResult<Vec<RunAdvanced>> {
        self.write(Verb::AdvanceRuns, move |model| model.advance_runs(steps)).await
    }

    async fn stalling_runs(&self, now: Timestamp, limit: usize) -> StoreResult<Vec<RunId>> {
        self.read(Verb::StallingRuns, |model| model.stalling_runs(now, limit)).await
    }
}
