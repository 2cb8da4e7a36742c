//! Carries out steps of runs: writes what the core decided, and announces what followed.
//!
//! The [workflow reconciler](crate::loops::workflow_reconciler) decides what follows from the ends of tasks; people's
//! commands are decided here. A step is valid only for the revision of the run it was decided on, so whoever is slower
//! decides again.

use std::sync::Arc;

use tickwheel_core::ports::{
    Clock, RunAdvanced, RunChanged, SchedulerError, StepEffects, Store, StoreResult,
};
use tickwheel_core::settle::Outcome;
use tickwheel_core::workflow::{
    DataLimits, Definition, PARENT_RESULTS_BYTES_MAX, ParentResults, Run, RunCommand, RunContext,
    RunProgress, RunStatus, RunStep, apply_command, room_to_pause,
};
use tickwheel_core::{Failure, Job, JobId, JsonText, RunId, State, TargetKind};
use tokio::time::Instant;

use crate::announcer::{Announcer, RunAdvance};
use crate::definitions::Definitions;
use crate::loops::settler::SettlerHandle;
use crate::metrics;
use crate::running::Running;
use crate::start_gate::StartGate;
use crate::worker_board::WorkerBoard;

/// So often a command is tried that meets a step of the reconciler, before somebody is told to come back.
const TRIES_MAX: usize = 50;

/// See the module.
#[derive(Clone)]
pub struct RunStepper {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub definitions: Definitions,
    pub limits: DataLimits,
    pub settler: SettlerHandle,
    pub running: Running,
    pub workers: WorkerBoard,
    pub gate: StartGate,
    pub announcer: Announcer,
}

/// What came of some steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileProgress {
    /// There was nothing to do.
    Nothing,
    /// Something was written.
    Made,
    /// Somebody else was faster: it has to be decided again.
    Stale,
}

impl ReconcileProgress {
    /// Of both together.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Made, _) | (_, Self::Made) => Self::Made,
            (Self::Stale, _) | (_, Self::Stale) => Self::Stale,
            (Self::Nothing, Self::Nothing) => Self::Nothing,
        }
    }
}

/// A step, and the run as it was when it was decided on.
pub struct Decided {
    pub run: Run,
    pub step: RunStep,
}

impl RunStepper {
    /// What a decision about the run is about.
    pub fn context<'r>(&self, definition: &'r Definition, run: &'r Run) -> RunContext<'r> {
        RunContext {
            workflow: &definition.workflow,
            graph: &definition.graph,
            run,
            now: self.clock.now(),
            limits: self.limits,
        }
    }

    /// What these jobs resulted in, within the bound of what is read at once.
    pub async fn results(&self, ids: Vec<JobId>) -> StoreResult<ParentResults> {
        if ids.is_empty() {
            return Ok(ParentResults::default());
        }
        self.store.read_results(ids, PARENT_RESULTS_BYTES_MAX).await
    }

    /// Writes steps and announces what followed.
    pub async fn carry_out(&self, decided: Vec<Decided>) -> StoreResult<ReconcileProgress> {
        if decided.is_empty() {
            return Ok(ReconcileProgress::Nothing);
        }
        let asked = Instant::now();
        let written = self.store.advance_runs(decided.iter().map(|d| d.step.clone()).collect()).await?;
        metrics::commit("reconcile", decided.len(), asked.elapsed());
        let mut progress = ReconcileProgress::Stale;
        for (Decided { run, step }, written) in decided.iter().zip(written) {
            if let RunAdvanced::Done(effects) = written {
                progress = ReconcileProgress::Made;
                self.announce(run, step, effects).await;
            }
        }
        Ok(progress)
    }

    /// The job that waits for a run that is over ends with it. An attempt that began later is there to let the run go
    /// on.
    pub async fn end_job_of(&self, run: &Run) -> StoreResult<()> {
        let (Some(job_id), Some(ended_at)) = (run.job_id, run.progress.ended_at) else { return Ok(()) };
        let waits =
            |job: &Job| job.state() == State::Running && job.started_at.is_none_or(|at| at <= ended_at);
        if let Some(job) = self.store.get_job(job_id).await?.filter(waits) {
            self.settler.settle_and_wait(job, outcome(run, run.progress.status), ended_at).await;
        }
        Ok(())
    }

    /// Applies what somebody asked for to a run.
    pub async fn apply(&self, id: RunId, command: &RunCommand) -> Result<RunChanged, SchedulerError> {
        let changed = self.decide_and_write(id, command).await?;
        if *command == RunCommand::Pause {
            // Also if somebody else has just paused it: what was claimed before has to have started when this is
            // answered.
            self.gate.wait_for_starts().await;
        }
        Ok(changed)
    }

    async fn decide_and_write(&self, id: RunId, command: &RunCommand) -> Result<RunChanged, SchedulerError> {
        for _ in 0..TRIES_MAX {
            let Some((run, tasks)) = self.store.read_run(id).await? else { return Ok(RunChanged::NotFound) };
            let definition = self.definitions.of_run(&run).await?;
            let step = match apply_command(&self.context(&definition, &run), &tasks, command) {
                Ok(Some(step)) => step,
                Ok(None) => return Ok(RunChanged::Done(Box::new(run))),
                Err(refused) => return Ok(RunChanged::Refused(refused)),
            };
            if step.pauses()
                && let Err(refused) = room_to_pause(self.store.controls().await?.paused_runs.len())
            {
                return Ok(RunChanged::Refused(refused));
            }
            if self.carry_out(vec![Decided { run, step }]).await? == ReconcileProgress::Made {
                let run = self.store.get_runs(vec![id]).await?.pop();
                return Ok(run.map_or(RunChanged::NotFound, |run| RunChanged::Done(Box::new(run))));
            }
        }
        Err(SchedulerError::Overloaded)
    }

    /// Attempts under way are asked to stop, wherever they are: one that waits for a run of its own ends with that.
    async fn stop(&self, jobs: Vec<JobId>) {
        // A claim may have taken one and not have started it yet: there is nothing to stop before that.
        self.gate.wait_for_starts().await;
        for id in &jobs {
            self.running.stop(*id);
            self.workers.stop(*id);
        }
        let stopping = self.store.get_jobs(jobs).await.unwrap_or_default();
        for job in stopping.iter().filter(|job| job.spec.target.kind() == TargetKind::Workflow) {
            let cancelling = Box::pin(self.apply(RunId::of_job(job.id), &RunCommand::Cancel));
            if let Err(error) = cancelling.await {
                tracing::warn!(%error, job_id = %job.id, "could not cancel the run that a task waits for");
            }
        }
    }

    async fn announce(&self, run: &Run, step: &RunStep, effects: StepEffects) {
        let StepEffects { scheduled, ended, stopping } = effects;
        metrics::tasks_ended(&step.changes, &ended);
        if let Some(progress) = &step.progress {
            report_progress(run, progress);
        }
        let is_paused = |progress: &RunProgress| progress.status == RunStatus::Paused;
        let after = step.progress.as_ref();
        let advance = RunAdvance {
            run_id: run.id,
            pause_changed: after.map(is_paused).filter(|paused| *paused != is_paused(&run.progress)),
            is_over: after.is_some_and(|progress| progress.status.is_over()),
            scheduled,
            ended: &ended,
            callbacks_written: !step.notices.is_empty(),
        };
        self.announcer.run_advanced(advance).await;
        if !stopping.is_empty() {
            self.stop(stopping).await;
        }
    }
}

/// What people see of a step.
fn report_progress(run: &Run, progress: &RunProgress) {
    let Run { id, workflow, .. } = run;
    if progress.status.is_over() {
        metrics::run_finished(progress.status);
        tracing::info!(run_id = %id, %workflow, status = %progress.status, "workflow run ended");
    }
    if progress.stalled > run.progress.stalled {
        metrics::stalled(progress.stalled - run.progress.stalled);
        tracing::warn!(run_id = %id, %workflow, tasks = progress.stalled, "tasks have waited too long");
    }
}

/// What the end of a run means to the job that waits for it.
fn outcome(run: &Run, status: RunStatus) -> Outcome {
    let run_id = run.id;
    match status {
        RunStatus::Completed => {
            let result = format!("{{\"workflow_run_id\":\"{run_id}\",\"status\":\"{status}\"}}");
            Outcome::Completed { result: Some(JsonText::from_checked(result)) }
        }
        RunStatus::Cancelled => Outcome::Cancelled,
        RunStatus::Failed | RunStatus::Running | RunStatus::Paused => Outcome::Failed {
            failure: Failure::new(
                "workflow_failed",
                format!("run {run_id} of workflow {} failed", run.workflow),
            ),
            retryable: true,
            retry_after: None,
        },
    }
}
