//! Workflows and their runs in the store: the same truth, the same compare-and-set as for jobs and schedules.

use std::sync::Arc;

use async_trait::async_trait;

use super::creation::{Creation, RunRefused};
use super::jobs::{Idempotency, Scheduled};
use super::scheduler::SchedulerError;
use super::store::{Page, StoreResult};
use crate::id::{JobId, RunId};
use crate::job::{Job, JsonText};
use crate::payload::Reference;
use crate::time::Timestamp;
use crate::workflow::{
    CommandRejected, Definition, PARENT_RESULTS_BYTES_MAX, ParentResults, ReconcileRequest, ReferenceSource,
    Run, RunCommand, RunNotice, RunStatus, RunStep, RunTask, Workflow,
};

/// What became of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowPut {
    /// It is stored as this version.
    Created(u32),
    /// It is what the latest version says already: this one.
    Unchanged(u32),
}

/// Which workflows to list, by name: the latest version of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowQuery {
    /// Of this tenant.
    pub tenant: String,
    /// After this name.
    pub after: Option<String>,
    /// This many at the most.
    pub limit: usize,
}

/// Which runs to list, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Of this tenant.
    pub tenant: String,
    /// Of this workflow.
    pub workflow: Option<String>,
    /// Standing like this.
    pub status: Option<RunStatus>,
    /// Older than this run.
    pub after: Option<RunId>,
    /// This many at the most.
    pub limit: usize,
}

/// A run to be stored.
#[derive(Clone, Debug)]
pub struct RunStart {
    /// The run.
    pub run: Run,
    /// Its jobs, as they are: those that wait for others are pending, and count them.
    pub jobs: Vec<Job>,
    /// Which of the jobs to reconcile.
    pub reconcile_requests: Vec<JobId>,
    /// What is to be told of it.
    pub notices: Vec<RunNotice>,
    /// Makes a repeated request harmless.
    pub idempotency: Option<Idempotency>,
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunAdvanced {
    /// It is written.
    Done(StepEffects),
    /// The run is gone or has another revision: nothing changed.
    Stale,
}

/// What followed from a step.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StepEffects {
    /// Jobs that are scheduled now: released, retried, or new.
    pub scheduled: Vec<Scheduled>,
    /// Jobs that have ended.
    pub ended: Vec<JobId>,
    /// Running jobs that are asked to stop.
    pub stopping: Vec<JobId>,
}

/// The part of the store that keeps workflows.
///
/// As with jobs, every method is one transaction, durable when it returns.
#[async_trait]
pub trait WorkflowStore: Send + Sync {
    /// Stores a definition as the next version of its name, unless the latest version says the same. `workflow.version`
    /// is not looked at. After a [removal](Self::remove_workflow) it is a new version whatever it says, and the numbers
    /// go on.
    async fn put_workflow(&self, workflow: Workflow) -> StoreResult<WorkflowPut>;

    /// A version of a workflow, removed or not; without one the latest, and `None` if the workflow was removed.
    async fn get_workflow(
        &self,
        tenant: &str,
        name: &str,
        version: Option<u32>,
    ) -> StoreResult<Option<Workflow>>;

    /// The number of the latest version, and `None` if the workflow was removed: cheaper than reading what it says.
    async fn latest_version(&self, tenant: &str, name: &str) -> StoreResult<Option<u32>>;

    /// Takes a workflow away: there is no latest version of it until it is stored again. Its versions stay, since runs
    /// follow them. `false`: there is none, or none any more.
    async fn remove_workflow(&self, tenant: &str, name: &str) -> StoreResult<bool>;

    /// The latest version of each workflow, by name. Removed ones are left out.
    async fn list_workflows(&self, query: WorkflowQuery) -> StoreResult<Page<Workflow, String>>;

    /// The versions of a workflow before `before`, the latest first; also of a removed one.
    async fn list_workflow_versions(
        &self,
        tenant: &str,
        name: &str,
        before: Option<u32>,
        limit: usize,
    ) -> StoreResult<Page<Workflow, u32>>;
}

/// Runs of workflows: what the reconciler reads and writes.
#[async_trait]
pub trait RunStore: Send + Sync {
    /// Stores a run with its jobs, reconcile requests and notices, all of it or nothing. Queue names not seen before
    /// become known. A run that has the id is the same request, and so is one that has the key and the digest.
    async fn start_run(&self, start: RunStart) -> StoreResult<Creation<Run>>;

    /// The runs that exist, in no particular order.
    async fn get_runs(&self, ids: Vec<RunId>) -> StoreResult<Vec<Run>>;

    /// Runs, the latest first. MUST do bounded work a call: a page may be short and still have a next.
    async fn list_runs(&self, query: RunQuery) -> StoreResult<Page<Run, RunId>>;

    /// A run and all its jobs by number, as they stand at one moment. `None`: no such run. MUST NOT read more of
    /// the errors than a [`TaskError`](crate::workflow::TaskError) needs.
    async fn read_run(&self, id: RunId) -> StoreResult<Option<(Run, Vec<RunTask>)>>;

    /// The results of jobs and how they stand, in this order, until the results have more than `bytes_max` bytes: the
    /// rest is left out, and that is said. MUST NOT read more than that and one result, nor any payload. Jobs that do
    /// not exist are left out, silently.
    async fn read_results(&self, ids: Vec<JobId>, bytes_max: usize) -> StoreResult<ParentResults>;

    /// A value that payloads of jobs of this run refer to; `None`: it is not there, or not any more.
    async fn referenced_value(&self, run: RunId, reference: &Reference) -> StoreResult<Option<Arc<str>>> {
        if reference.task == 0 {
            let run = self.get_runs(vec![run]).await?.pop();
            return Ok(run.and_then(|run| reference.resolve_in(ReferenceSource::Input(&run.input)).ok()));
        }
        let task = JobId::of_task(run, reference.task);
        let found = self.read_results(vec![task], PARENT_RESULTS_BYTES_MAX).await?;
        Ok(found.jobs.get(&task).and_then(|task| reference.resolve_in(ReferenceSource::Task(task)).ok()))
    }

    /// The reconcile requests that come `after` that id, in the order of the ids: those of a run follow each other.
    /// Reading takes nothing off the list.
    ///
    /// Whoever ends a job of a run ([`settle`](super::JobStore::settle), a cancel) takes it off the run's open ones in
    /// the same transaction, and requests a reconcile of the run if the job ended other than well or if not more than
    /// the blocked ones are open; whoever changes the counts of a waiting job requests one of that job where
    /// [`Release::wants_reconcile`](crate::parents::Release::wants_reconcile). Whoever retries a job of a run
    /// ([`RunProgress::retried`](crate::workflow::RunProgress::retried)) adds it to the open ones, lets the revision
    /// grow and requests a reconcile of the run.
    async fn reconcile_requests(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> StoreResult<Vec<ReconcileRequest>>;

    /// Carries decisions out. MUST be atomic per step, and change nothing if the run is gone or has another revision.
    /// In this order: the [changes](crate::workflow::TaskChange::apply), one after the other; those that do not apply
    /// are left out, and then a reconcile of the run is requested. Jobs that ended are counted by their children and
    /// taken off the open ones, as when they are settled; jobs that were retried are waited for again and counted as
    /// open. New jobs are stored and counted. If there is progress it is written, and the revision grows by one. No
    /// claim that commits after a step returns that [pauses](RunStep::pauses) a run takes a job of it. Reconcile
    /// requests that were made as often as `reconciled` says are done. Notices become callbacks.
    async fn advance_runs(&self, steps: Vec<RunStep>) -> StoreResult<Vec<RunAdvanced>>;

    /// Running runs whose [`stalls_at`](crate::workflow::RunProgress::stalls_at) is not after `now`.
    async fn stalling_runs(&self, now: Timestamp, limit: usize) -> StoreResult<Vec<RunId>>;
}

/// A run that somebody wants.
#[derive(Clone, Debug)]
pub struct StartRun {
    /// Whose.
    pub tenant: Arc<str>,
    /// Of this workflow.
    pub workflow: String,
    /// Its id.
    pub id: RunId,
    /// What it is given.
    pub input: JsonText,
    /// The job that waits for it.
    pub job_id: Option<JobId>,
    /// Makes a repeated request harmless.
    pub idempotency: Option<Idempotency>,
}

/// What became of a command to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunChanged {
    /// It is applied; this is the run.
    Done(Box<Run>),
    /// As the run stands, it cannot be.
    Refused(CommandRejected),
    /// There is no such run.
    NotFound,
}

/// The engine's service for workflows and their runs. Once acknowledged, a change is in force.
#[async_trait]
pub trait Workflows: Send + Sync {
    /// Stores a workflow, as its next version unless the latest says the same.
    async fn put(&self, workflow: Workflow) -> Result<WorkflowPut, SchedulerError>;

    /// Removes a workflow: no run of it starts after the answer. `false`: there was none.
    async fn remove(&self, tenant: &str, name: &str) -> Result<bool, SchedulerError>;

    /// The definition that a run follows. A version never changes, so most are known.
    async fn definition_of(&self, run: &Run) -> Result<Arc<Definition>, SchedulerError>;

    /// Starts a run.
    async fn start(&self, start: StartRun) -> Result<Creation<Run, RunRefused>, SchedulerError>;

    /// Applies a command to a run.
    async fn change(&self, run: RunId, command: RunCommand) -> Result<RunChanged, SchedulerError>;
}
