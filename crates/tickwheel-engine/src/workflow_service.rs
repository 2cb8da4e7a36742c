//! The workflow service: everything about workflows and runs that the API may ask for; and the executor of jobs that
//! start one.

use std::sync::Arc;

use async_trait::async_trait;
use tickwheel_core::ports::{
    AttemptContext, Creation, Executor, RunChanged, RunRefused, RunStart, SchedulerError, StartRun,
    WorkflowPut, Workflows,
};
use tickwheel_core::settle::Outcome;
use tickwheel_core::workflow::{Beginning, Definition, Run, RunCommand, RunStatus, Workflow, begin};
use tickwheel_core::{Failure, RunId, Target};

use crate::announcer::scheduled;
use crate::metrics;
use crate::run_stepper::RunStepper;

/// See the module.
pub struct WorkflowService(pub RunStepper);

#[async_trait]
impl Workflows for WorkflowService {
    async fn put(&self, workflow: Workflow) -> Result<WorkflowPut, SchedulerError> {
        Ok(self.0.store.put_workflow(workflow).await?)
    }

    async fn remove(&self, tenant: &str, name: &str) -> Result<bool, SchedulerError> {
        Ok(self.0.store.remove_workflow(tenant, name).await?)
    }

    async fn definition_of(&self, run: &Run) -> Result<Arc<Definition>, SchedulerError> {
        Ok(self.0.definitions.of_run(run).await?)
    }

    async fn start(&self, start: StartRun) -> Result<Creation<Run, RunRefused>, SchedulerError> {
        let Some(definition) = self.0.definitions.latest(&start.tenant, &start.workflow).await? else {
            // A run outlives its workflow: the job that started it before the removal finds it again.
            let run = self.0.store.get_runs(vec![start.id]).await?.pop();
            return Ok(run.map_or(Creation::Refused(RunRefused::NoSuchWorkflow), Creation::existing));
        };
        let now = self.0.clock.now();
        let begun = begin(&definition.graph, &definition.workflow, start.id, start.input, start.job_id, now);
        let Beginning { run, jobs, notices } = match begun {
            Ok(begun) => begun,
            Err(refused) => return Ok(Creation::Refused(RunRefused::Input(refused))),
        };
        let waiting: Vec<_> = jobs.jobs.iter().filter_map(scheduled).collect();
        let (count, callbacks_written) = (jobs.jobs.len(), !notices.is_empty());
        let stored = RunStart {
            run,
            jobs: jobs.jobs,
            reconcile_requests: jobs.reconcile_requests,
            notices,
            idempotency: start.idempotency,
        };
        let started = self.0.store.start_run(stored).await?;
        if started.as_new().is_some() {
            metrics::submitted(count);
            metrics::run_started();
            self.0.announcer.run_started(waiting, callbacks_written).await;
        }
        Ok(started.map_refused(|never| match never {}))
    }

    async fn change(&self, id: RunId, command: RunCommand) -> Result<RunChanged, SchedulerError> {
        self.0.apply(id, &command).await
    }
}

/// Runs a job whose target is a workflow: starts its run, or lets it go on if it failed before. The run's end is the
/// job's.
pub struct WorkflowExecutor(pub Arc<WorkflowService>);

#[async_trait]
impl Executor for WorkflowExecutor {
    async fn run(&self, attempt: &AttemptContext) -> Outcome {
        let job = &attempt.job;
        let Target::Workflow(target) = &job.spec.target else {
            return refused("not_a_workflow", "the job's target is no workflow".into());
        };
        let start = StartRun {
            tenant: job.tenant.clone(),
            workflow: target.name.clone(),
            id: RunId::of_job(job.id),
            input: attempt.payload.to_text(),
            job_id: Some(job.id),
            idempotency: None,
        };
        match self.0.start(start).await {
            Ok(Creation::Created(_)) => Outcome::Accepted,
            Ok(Creation::Existing(run)) => self.go_on(&run).await,
            Ok(Creation::Conflict(run)) => refused("conflict", format!("run {run} is in the way")),
            Ok(Creation::Refused(RunRefused::Input(why))) => refused("unresolved_reference", why.to_string()),
            Ok(Creation::Refused(RunRefused::NoSuchWorkflow)) => {
                refused("unknown_workflow", format!("there is no workflow named {:?}", target.name))
            }
            Err(error) => unavailable(&error),
        }
    }
}

impl WorkflowExecutor {
    /// An earlier attempt has started the run.
    async fn go_on(&self, run: &Run) -> Outcome {
        match run.progress.status {
            RunStatus::Running | RunStatus::Paused => Outcome::Accepted,
            RunStatus::Completed => Outcome::Completed { result: None },
            RunStatus::Failed | RunStatus::Cancelled => {
                match self.0.change(run.id, RunCommand::Retry).await {
                    Ok(RunChanged::Done(_)) => Outcome::Accepted,
                    Ok(RunChanged::Refused(why)) => refused("not_retryable", why.to_string()),
                    Ok(RunChanged::NotFound) => refused("unknown_run", format!("run {} is gone", run.id)),
                    Err(error) => unavailable(&error),
                }
            }
        }
    }
}

fn refused(code: &str, message: String) -> Outcome {
    Outcome::Failed { failure: Failure::new(code, message), retryable: false, retry_after: None }
}

fn unavailable(error: &SchedulerError) -> Outcome {
    let failure = Failure::new("store_unavailable", error.to_string());
    Outcome::Failed { failure, retryable: true, retry_after: None }
}
