//! The model's workflows behind their port, with the same faults on demand as its jobs.

use async_trait::async_trait;
use tickwheel_core::ports::{
    Page, RunAdvanced, RunQuery, RunStart, RunStarted, StoreResult, WorkflowPut, WorkflowQuery, WorkflowStore,
};
use tickwheel_core::workflow::{Look, Needed, Run, RunStep, RunTask, Workflow};
use tickwheel_core::{JobId, RunId, Timestamp};

use super::ModelStore;

#[async_trait]
impl WorkflowStore for ModelStore {
    async fn put_workflow(&self, workflow: Workflow) -> StoreResult<WorkflowPut> {
        self.write(|model| model.put_workflow(workflow))
    }

    async fn get_workflow(
        &self,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> StoreResult<Option<Workflow>> {
        self.read(|model| model.get_workflow(tenant, name, version))
    }

    async fn latest_version(&self, tenant: &str, name: &str) -> StoreResult<Option<u32>> {
        self.read(|model| model.get_workflow(tenant, name, None).map(|workflow| workflow.version))
    }

    async fn remove_workflow(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        self.write(|model| model.remove_workflow(tenant, name))
    }

    async fn list_workflows(&self, query: WorkflowQuery) -> StoreResult<Page<Workflow, String>> {
        self.read(|model| model.list_workflows(&query))
    }

    async fn list_workflow_versions(
        &self,
        tenant: &str,
        name: &str,
        before: Option<u32>,
        limit: usize,
    ) -> StoreResult<Page<Workflow, u32>> {
        self.read(|model| model.list_workflow_versions(tenant, name, before, limit))
    }

    async fn start_run(&self, start: RunStart) -> StoreResult<RunStarted> {
        self.try_write(|model| model.start_run(start))
    }

    async fn get_runs(&self, ids: Vec<RunId>) -> StoreResult<Vec<Run>> {
        self.read(|model| model.get_runs(&ids))
    }

    async fn list_runs(&self, query: RunQuery) -> StoreResult<Page<Run, RunId>> {
        self.read(|model| model.list_runs(&query))
    }

    async fn read_run(&self, id: RunId) -> StoreResult<Option<(Run, Vec<RunTask>)>> {
        self.read(|model| model.read_run(id))
    }

    async fn read_results(&self, ids: Vec<JobId>, bytes_max: usize) -> StoreResult<Needed> {
        self.read(|model| model.read_results(&ids, bytes_max))
    }

    async fn looks(&self, after: Option<JobId>, limit: usize) -> StoreResult<Vec<Look>> {
        self.read(|model| model.looks(after, limit))
    }

    async fn advance_runs(&self, steps: Vec<RunStep>) -> StoreResult<Vec<RunAdvanced>> {
        self.write(|model| model.advance_runs(steps))
    }

    async fn stalling_runs(&self, now: Timestamp, limit: usize) -> StoreResult<Vec<RunId>> {
        self.read(|model| model.stalling_runs(now, limit))
    }
}
