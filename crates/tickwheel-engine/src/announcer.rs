//! The one place that knows who cares. Whoever changed something in the store says here what changed; nobody else
//! notifies anybody.
//!
//! ```text
//!  what happened           who hears of it
//!  ----------------------  ---------------------------------------------------------------------------------------
//!  jobs_scheduled          planner
//!  job_changed             planner; reconciler if it is a task; schedule timer, waiters and callbacks if it ended
//!  jobs_settled            worker board; planner of what waits now; schedule timer and waiters of what ended;
//!                          callbacks if one was written; reconciler if it was asked for
//!  jobs_ended_elsewhere    waiters
//!  run_started             planner of what waits now; reconciler; callbacks if one was written
//!  run_advanced            planner of what waits now, what ended and the pause; waiters of what ended; reconciler;
//!                          callbacks if one was written
//!  schedule_changed        schedule timer
//!  schedule_deleted        schedule timer
//!  callback_written        callbacks
//!  halt_changed            planner
//!  queue_pause_changed     planner
//!  controls_read           planner
//!  routes_read             planner
//!  session_replaced        planner
//!  ownership_changed       planner; schedule timer
//!  server_stopping         waiters; worker board
//! ```
//! An announcement follows the commit. It makes things prompt, never correct: a process that dies in between loses
//! nothing, because every listener also asks the store now and then.
//!
//! Listeners that are only woken hear first. The planner comes last: while its inbox is full the announcement waits,
//! and so does whoever makes it.
//!
//! Not here: answers to what the planner asked for (claims), and requests to stop an attempt. They are not news.

use std::sync::Arc;

use tickwheel_core::machine::Event;
use tickwheel_core::matching::Route;
use tickwheel_core::ports::{Controls, PartitionSet, Scheduled};
use tickwheel_core::schedule::Schedule;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::workflow::ReconcileRequest;
use tickwheel_core::{Job, JobId, RunId, ScheduleId, State};

use crate::loops::planner::PlannerEvents;
use crate::loops::schedule_runner::ScheduleTimerHandle;
use crate::waiters::Waiters;
use crate::wake_up::WakeUpSender;
use crate::worker_board::WorkerBoard;

/// See the module. Clones are the same.
#[derive(Clone)]
pub struct Announcer(Arc<Listeners>);

/// Everybody who may want to hear of something.
pub struct Listeners {
    pub planner: PlannerEvents,
    pub schedule_timer: ScheduleTimerHandle,
    pub waiters: Waiters,
    pub callbacks: WakeUpSender,
    pub reconciler: WakeUpSender,
    pub workers: WorkerBoard,
}

/// A job that is over.
#[derive(Clone, Copy, Debug)]
pub struct EndedJob {
    pub id: JobId,
    /// The schedule that made it.
    pub schedule_id: Option<ScheduleId>,
}

impl From<&Job> for EndedJob {
    fn from(job: &Job) -> Self {
        Self { id: job.id, schedule_id: job.schedule_id }
    }
}

/// Ends of attempts, and what followed from them.
pub struct JobsSettled<Ended> {
    /// The attempts that were with workers.
    pub of_workers: Vec<AttemptRef>,
    /// Jobs that wait for their time now: to be tried again, or released by the end of another.
    pub scheduled: Vec<Scheduled>,
    /// Jobs that are over.
    pub ended: Ended,
    /// There is a callback to send.
    pub callbacks_written: bool,
    /// There is something for the workflow reconciler to do.
    pub reconcile_requested: bool,
}

/// A step of a run, and what followed from it.
pub struct RunAdvance<'r> {
    pub run_id: RunId,
    /// It was paused (`true`) or resumed by this step.
    pub pause_changed: Option<bool>,
    /// It ended with this step.
    pub is_over: bool,
    /// Tasks that wait for their time now.
    pub scheduled: Vec<Scheduled>,
    /// Tasks that ended without being started.
    pub ended: &'r [JobId],
    /// There is a callback to send.
    pub callbacks_written: bool,
}

impl Announcer {
    /// The only one of an engine.
    pub fn new(listeners: Listeners) -> Self {
        Self(Arc::new(listeners))
    }

    /// These jobs wait for their time: they are new.
    pub async fn jobs_scheduled(&self, jobs: impl IntoIterator<Item = Scheduled>) {
        self.0.planner.learned(jobs).await;
    }

    /// Somebody changed a job that was not running, or asked for the end of one that is: edited, cancelled, retried.
    pub async fn job_changed(&self, job: &Job) {
        if job.spec.position.is_some() {
            self.0.reconciler.send();
        }
        if job.state().is_terminal() {
            self.jobs_ended(std::iter::once(job.into()));
            self.0.callbacks.send();
        }
        match scheduled(job) {
            Some(job) => self.0.planner.learned([job]).await,
            None => self.0.planner.tell(Event::Forgotten(job.id)).await,
        }
    }

    /// Ends of attempts were written.
    pub async fn jobs_settled(&self, settled: JobsSettled<impl Iterator<Item = EndedJob> + Clone>) {
        // Before a retry is announced: its claim must not meet the attempt it follows.
        self.0.workers.settled(settled.of_workers.into_iter());
        if settled.reconcile_requested {
            self.0.reconciler.send();
        }
        self.jobs_ended(settled.ended);
        if settled.callbacks_written {
            self.0.callbacks.send();
        }
        self.0.planner.learned(settled.scheduled).await;
    }

    /// Another process has ended these jobs or runs.
    pub fn jobs_ended_elsewhere(&self, jobs: impl IntoIterator<Item = JobId>) {
        self.0.waiters.ended(jobs);
    }

    /// A run was stored with its tasks, of which these wait for their time.
    pub async fn run_started(&self, scheduled: impl IntoIterator<Item = Scheduled>, callbacks_written: bool) {
        self.0.reconciler.send();
        if callbacks_written {
            self.0.callbacks.send();
        }
        self.0.planner.learned(scheduled).await;
    }

    /// A step of a run was written.
    pub async fn run_advanced(&self, advance: RunAdvance<'_>) {
        let run = advance.is_over.then(|| ReconcileRequest::id_of_run(advance.run_id));
        self.0.waiters.ended(advance.ended.iter().copied().chain(run));
        if advance.callbacks_written {
            self.0.callbacks.send();
        }
        self.0.reconciler.send();
        if let Some(is_paused) = advance.pause_changed {
            self.0.planner.tell(Event::RunPauseChanged(advance.run_id, is_paused)).await;
        }
        self.0.planner.learned(advance.scheduled).await;
        for id in advance.ended {
            self.0.planner.tell(Event::Forgotten(*id)).await;
        }
    }

    /// A schedule was created or changed by somebody.
    pub async fn schedule_changed(&self, schedule: &Schedule) {
        self.0.schedule_timer.changed(schedule).await;
    }

    /// A schedule is gone.
    pub async fn schedule_deleted(&self, id: ScheduleId) {
        self.0.schedule_timer.forgotten(id).await;
    }

    /// There is a callback to send.
    pub fn callback_written(&self) {
        self.0.callbacks.send();
    }

    /// The stop switch was turned.
    pub async fn halt_changed(&self, is_halted: bool) {
        self.0.planner.tell(Event::HaltChanged(is_halted)).await;
    }

    /// A queue was paused (`true`) or resumed.
    pub async fn queue_pause_changed(&self, queue: &str, is_paused: bool) {
        self.0.planner.tell(Event::QueuePauseChanged(queue.into(), is_paused)).await;
    }

    /// What the store forbids at the moment: another server may have changed it.
    pub async fn controls_read(&self, controls: Controls) {
        self.0.planner.tell(Event::ControlsRead(controls)).await;
    }

    /// Somebody is about to ask the store for its routes; the number of this question.
    pub async fn asking_for_routes(&self) -> u64 {
        self.0.planner.asking_for_routes().await
    }

    /// The routes that the store has, as it answered this question: others may have added some, or removed them.
    pub async fn routes_read(&self, routes: Vec<Route>, question: u64) {
        self.0.planner.routes_read(routes.into_iter().map(Arc::new).collect(), question).await;
    }

    /// This node's session was lost, and it has a new one.
    pub async fn session_replaced(&self) {
        self.0.planner.tell(Event::StartedOver).await;
    }

    /// This node owns these partitions now.
    pub async fn ownership_changed(&self, partitions: PartitionSet) {
        self.0.schedule_timer.ownership_changed(partitions).await;
        self.0.planner.tell(Event::OwnershipChanged(partitions)).await;
    }

    /// The server is about to stop: nobody may wait any longer.
    pub fn server_stopping(&self) {
        self.0.waiters.wake_all();
        self.0.workers.wake_all();
    }

    fn jobs_ended(&self, jobs: impl Iterator<Item = EndedJob> + Clone) {
        jobs.clone().filter_map(|job| job.schedule_id).for_each(|id| self.0.schedule_timer.job_ended(id));
        self.0.waiters.ended(jobs.map(|job| job.id));
    }
}

/// The job as a planner wants to know it, if it waits for its time.
pub fn scheduled(job: &Job) -> Option<Scheduled> {
    (job.state() == State::Scheduled).then(|| job.into())
}

#[cfg(test)]
pub mod tests;
