//! A workflow service that writes straight to the store, and reconciles every run as far as it goes before it answers.
//! What the engine makes of crashes and rivals is tested where the engine is.

use std::sync::Arc;

use async_trait::async_trait;
use tickwheel_core::ports::{
    Clock, Creation, RunAdvanced, RunChanged, RunRefused, RunStart, RunStore, SchedulerError, StartRun,
    StoreResult, WorkflowPut, WorkflowStore, Workflows,
};
use tickwheel_core::workflow::{
    Beginning, DataLimits, Definition, Graph, PARENT_RESULTS_BYTES_MAX, ReconcileRequest, Run, RunCommand,
    RunContext, RunStep, Workflow, apply_command, begin, needs_of_review, step_of_review,
};
use tickwheel_core::{RunId, Timestamp};
use tickwheel_testkit::{ManualClock, ModelStore};

pub struct WorkflowService {
    pub store: ModelStore,
    pub clock: ManualClock,
}

#[async_trait]
impl Workflows for WorkflowService {
    async fn put(&self, workflow: Workflow) -> Result<WorkflowPut, SchedulerError> {
        Ok(self.store.put_workflow(workflow).await?)
    }

    async fn remove(&self, tenant: &str, name: &str) -> Result<bool, SchedulerError> {
        Ok(self.store.remove_workflow(tenant, name).await?)
    }

    async fn definition_of(&self, run: &Run) -> Result<Arc<Definition>, SchedulerError> {
        let workflow = self.store.get_workflow(&run.tenant, &run.workflow, Some(run.version)).await?;
        let definition = Definition::stored(workflow.expect("a run has a workflow"));
        Ok(Arc::new(definition.expect("the API lets nothing else through")))
    }

    async fn start(&self, start: StartRun) -> Result<Creation<Run, RunRefused>, SchedulerError> {
        let Some(workflow) = self.store.get_workflow(&start.tenant, &start.workflow, None).await? else {
            return Ok(Creation::Refused(RunRefused::NoSuchWorkflow));
        };
        let graph = Graph::stored(&workflow.spec).expect("the API lets nothing else through");
        let now = self.clock.now();
        let Beginning { run, jobs, notices } =
            match begin(&graph, &workflow, start.id, start.input, start.job_id, now) {
                Ok(beginning) => beginning,
                Err(refused) => return Ok(Creation::Refused(RunRefused::Input(refused))),
            };
        let stored = RunStart {
            run,
            jobs: jobs.jobs,
            reconcile_requests: jobs.reconcile_requests,
            notices,
            idempotency: start.idempotency,
        };
        let started = self.store.start_run(stored).await?;
        reconcile(&self.store, now).await?;
        Ok(started.map_refused(|never| match never {}))
    }

    async fn change(&self, id: RunId, command: RunCommand) -> Result<RunChanged, SchedulerError> {
        let Some((run, tasks)) = self.store.read_run(id).await? else { return Ok(RunChanged::NotFound) };
        let now = self.clock.now();
        let workflow = self.store.get_workflow(&run.tenant, &run.workflow, Some(run.version)).await?;
        let workflow = workflow.expect("a run has a workflow");
        let graph = Graph::stored(&workflow.spec).expect("the API lets nothing else through");
        let context =
            RunContext { workflow: &workflow, graph: &graph, run: &run, now, limits: DataLimits::default() };
        match apply_command(&context, &tasks, &command) {
            Ok(None) => return Ok(RunChanged::Done(Box::new(run))),
            Ok(Some(step)) => advance(&self.store, step).await?,
            Err(refused) => return Ok(RunChanged::Refused(refused)),
        }
        reconcile(&self.store, now).await?;
        let changed = self.store.get_runs(vec![id]).await?.pop().expect("it was just changed");
        Ok(RunChanged::Done(Box::new(changed)))
    }
}

/// Reconciles all that is requested.
pub async fn reconcile(store: &ModelStore, now: Timestamp) -> StoreResult<()> {
    loop {
        let reconcile_requests = store.reconcile_requests(None, 1_000).await?;
        let Some(id) = reconcile_requests.first().map(|request| request.run()) else { return Ok(()) };
        let reconciled: Vec<ReconcileRequest> =
            reconcile_requests.into_iter().filter(|request| request.run() == id).collect();
        let (run, tasks) = store.read_run(id).await?.expect("what is requested is there");
        let workflow = store.get_workflow(&run.tenant, &run.workflow, Some(run.version)).await?;
        let workflow = workflow.expect("a run has a workflow");
        let graph = Graph::stored(&workflow.spec).expect("the API lets nothing else through");
        let context =
            RunContext { workflow: &workflow, graph: &graph, run: &run, now, limits: DataLimits::default() };
        let found = context.review(&tasks);
        let data =
            store.read_results(needs_of_review(&graph, &tasks, &found), PARENT_RESULTS_BYTES_MAX).await?;
        advance(store, RunStep { reconciled, ..step_of_review(&context, &tasks, &found, &data) }).await?;
    }
}

async fn advance(store: &ModelStore, step: RunStep) -> StoreResult<()> {
    let advanced = store.advance_runs(vec![step]).await?;
    assert!(matches!(advanced[..], [RunAdvanced::Done(_)]), "nobody else writes here");
    Ok(())
}
