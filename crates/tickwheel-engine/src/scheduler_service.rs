//! The scheduler service: everything about jobs that the API may ask for.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{
    Callback, Changed, Clock, Creation, Heartbeat, NewJob, QueueSnapshot, ReportOutcome, Scheduler,
    SchedulerError, SchedulerSnapshot, Store, StoreError, UnknownParent, WorkerReport, Workflows,
};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::workflow::RunCommand;
use tickwheel_core::{Job, JobId, RunId, State, TargetKind};

use crate::announcer::Announcer;
use crate::loops::intake::IntakeHandle;
use crate::loops::planner::PlannerHandle;
use crate::metrics;
use crate::reports::Reports;
use crate::running::Running;
use crate::start_gate::StartGate;
use crate::waiters::Waiters;
use crate::worker_board::WorkerBoard;
use crate::workflow_service::WorkflowService;

/// Jobs handed to the intake at once: a large batch must not make small ones wait for it.
const SUBMIT_LEN_MAX: usize = 1_000;

/// See the module.
pub struct SchedulerService {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub intake: IntakeHandle,
    pub planner: PlannerHandle,
    pub reports: Reports,
    pub running: Running,
    pub workers: WorkerBoard,
    pub waiters: Waiters,
    pub gate: StartGate,
    pub announcer: Announcer,
    pub workflows: Arc<WorkflowService>,
    pub slots: usize,
}

#[async_trait]
impl Scheduler for SchedulerService {
    async fn submit(
        &self,
        mut jobs: Vec<NewJob>,
    ) -> Result<Vec<Creation<Job, UnknownParent>>, SchedulerError> {
        if jobs.len() <= SUBMIT_LEN_MAX {
            return self.intake.submit(jobs).await;
        }
        let mut results = Vec::with_capacity(jobs.len());
        while !jobs.is_empty() {
            let rest = jobs.split_off(jobs.len().min(SUBMIT_LEN_MAX));
            match self.intake.submit(std::mem::replace(&mut jobs, rest)).await {
                Ok(stored) => results.extend(stored),
                Err(error) if results.is_empty() => return Err(error),
                // What is stored stays stored: nobody may be told that nothing happened.
                Err(error) => {
                    let why = format!("{} jobs of the batch were stored, then: {error}", results.len());
                    return Err(StoreError::Unknown(why).into());
                }
            }
        }
        Ok(results)
    }

    async fn change(&self, job_id: JobId, change: Change) -> Result<Changed, SchedulerError> {
        let changed = self.store.change_job(job_id, change, self.clock.now()).await?;
        if let Changed::Done(job) = &changed {
            if job.state().is_terminal() {
                metrics::cancelled_while_waiting();
            }
            self.announcer.job_changed(job).await;
            if job.cancel_requested {
                let known = self.running.attempts_of(&[job_id]).get(&job_id) == Some(&job.attempt);
                if !known && !self.workers.has(job_id) {
                    // A claim may have taken it and not have started it yet: there is nothing to stop before that.
                    self.gate.wait_for_starts().await;
                }
                self.running.stop(job_id);
                self.workers.stop(job_id);
                self.cancel_run_of(job).await?;
            }
        }
        Ok(changed)
    }

    async fn report(&self, attempt: AttemptRef, outcome: Outcome) -> Result<ReportOutcome, SchedulerError> {
        let Some(job) = self.store.get_job(attempt.job_id).await? else {
            return Ok(ReportOutcome::NotFound);
        };
        Ok(match self.reports.record(job, attempt, outcome).await? {
            WorkerReport::Recorded(_) => ReportOutcome::Recorded,
            WorkerReport::Stale | WorkerReport::NotCancelled => ReportOutcome::Stale,
            WorkerReport::NotFound => ReportOutcome::NotFound,
        })
    }

    async fn heartbeat(&self, attempt: AttemptRef) -> Result<Heartbeat, SchedulerError> {
        let Some(job) = self.store.get_job(attempt.job_id).await? else { return Ok(Heartbeat::NotFound) };
        if let (State::Cancelled, Some(deadline)) = (job.state(), job.completed_at)
            && job.attempt == attempt.attempt
        {
            return Ok(Heartbeat::Current { cancel_requested: true, deadline });
        }
        let deadline = job.deadline.filter(|_| is_current(&job, attempt));
        Ok(deadline.map_or(Heartbeat::Stale, |deadline| Heartbeat::Current {
            cancel_requested: job.cancel_requested,
            deadline,
        }))
    }

    async fn send_callback(&self, callback: Callback) -> Result<i64, SchedulerError> {
        let id = self.store.write_callback(callback).await?;
        self.announcer.callback_written();
        Ok(id)
    }

    async fn discard_dead_letter(&self, job_id: JobId) -> Result<bool, SchedulerError> {
        Ok(self.store.discard_dead_letter(job_id).await?)
    }

    async fn set_queue_paused(&self, queue: &str, paused: bool) -> Result<(), SchedulerError> {
        self.store.set_queue_paused(queue, paused).await?;
        self.announcer.queue_pause_changed(queue, paused).await;
        self.gate.wait_for_starts().await;
        Ok(())
    }

    async fn set_halted(&self, halted: bool) -> Result<(), SchedulerError> {
        self.store.set_halted(halted).await?;
        self.announcer.halt_changed(halted).await;
        self.gate.wait_for_starts().await;
        Ok(())
    }

    fn end_of(&self, job_id: JobId) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.waiters.end_of(job_id))
    }

    fn wake_waiting(&self) {
        self.announcer.server_stopping();
    }

    async fn snapshot(&self) -> SchedulerSnapshot {
        let planner = self.planner.snapshot().await;
        let mut queues: BTreeMap<String, QueueSnapshot> = BTreeMap::new();
        for (name, waiting) in planner.waiting {
            queues.entry(name.to_string()).or_default().waiting = waiting;
        }
        for (name, running) in self.running.by_queue().into_iter().chain(self.workers.by_queue()) {
            queues.entry(name.to_string()).or_default().running += running;
        }
        let named = queues.into_iter().map(|(name, queue)| QueueSnapshot { name, ..queue });
        SchedulerSnapshot {
            halted: planner.halted,
            slots: self.slots as u64,
            slots_free: planner.slots_free as u64,
            queues: named.collect(),
        }
    }
}

impl SchedulerService {
    /// A job that waits for a run ends with it.
    async fn cancel_run_of(&self, job: &Job) -> Result<(), SchedulerError> {
        if job.spec.target.kind() == TargetKind::Workflow {
            self.workflows.change(RunId::of_job(job.id), RunCommand::Cancel).await?;
        }
        Ok(())
    }
}

fn is_current(job: &Job, attempt: AttemptRef) -> bool {
    job.state() == State::Running && job.attempt == attempt.attempt
}
