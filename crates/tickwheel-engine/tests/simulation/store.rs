//! The port of the store, as a node sees it: every verb travels over the network. What the invariants are about is
//! checked when it is committed; the rest goes to the model as it is.

use std::future::Future;

use async_trait::async_trait;
use futures::FutureExt;
use tickwheel_core::callback::Receiver;
use tickwheel_core::change::Change;
use tickwheel_core::log::{LogAppend, LogPage};
use tickwheel_core::matching::Route;
use tickwheel_core::once::{OnceAnswer, OnceCall, OnceReport, OnceReported};
use tickwheel_core::ports::*;
use tickwheel_core::progress::Progress;
use tickwheel_core::schedule::{Calendar, Fire, Schedule};
use tickwheel_core::settle::Settlement;
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::workflow::{ParentResults, ReconcileRequest, Run, RunStep, RunTask, Workflow};
use tickwheel_core::{
    AttemptRecord, Job, JobId, RouteId, RunId, ScheduleId, SessionId, TargetKind, Timestamp,
};
use tickwheel_testkit::model::Verb;

use crate::network::NodeStore;

/// Implements a part of the port: some verbs in their own words, and the others by asking the model.
macro_rules! port {
    ($port:ident { $($own:tt)* } $($way:ident $verb:ident: $name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl $port for NodeStore {
            $($own)*
            $(async fn $name(&self, $($arg: $type),*) -> StoreResult<$answer> {
                self.$way(Verb::$verb, move |model| at_once(model.$name($($arg),*))).await
            })*
        }
    };
}

/// The model does not wait.
fn at_once<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().expect("no fault of its own was asked for")
}

port! { JobStore {
    async fn submit_jobs(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Creation<Job, UnknownParent>>> {
        self.commit(Verb::SubmitJobs, move |cluster| cluster.submit_jobs(jobs.clone())).await
    }

    async fn claim(&self, claim: Claim) -> StoreResult<Vec<Job>> {
        self.commit(Verb::Claim, move |cluster| Ok(cluster.claim(&claim))).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> StoreResult<SettledBatch> {
        self.commit(Verb::Settle, move |cluster| Ok(cluster.settle(&settlements))).await
    }

    async fn await_report(&self, job_id: JobId, attempt: u32) -> StoreResult<Settled> {
        self.commit(Verb::AwaitReport, move |cluster| Ok(cluster.await_report(job_id, attempt))).await
    }

    async fn change_job(&self, id: JobId, change: Change, now: Timestamp) -> StoreResult<Changed> {
        self.commit(Verb::ChangeJob, move |cluster| Ok(cluster.change_job(id, &change, now))).await
    }
}
    read LoadDue: load_due(load: LoadDue, kinds: &[TargetKind]) -> Vec<DueJob>;
    read GetJob: get_job(id: JobId) -> Option<Job>;
    read GetJobs: get_jobs(ids: Vec<JobId>) -> Vec<Job>;
    read EndedAmong: ended_among(ids: Vec<JobId>) -> Vec<JobId>;
    read Attempts: attempts(id: JobId) -> Option<Vec<AttemptRecord>>;
    write DiscardDeadLetter: discard_dead_letter(id: JobId) -> bool;
}

port! { SessionStore {
    async fn now(&self, _: Timestamp) -> StoreResult<Timestamp> {
        self.read(Verb::Ping, |_| Ok(self.cluster.lock().real())).await
    }

    async fn open_session(&self, session: Session) -> StoreResult<()> {
        let node = self.node;
        self.commit(Verb::OpenSession, move |cluster| cluster.open_session(node, session.clone())).await
    }
}
    write RenewSession: renew_session(id: SessionId, expires_at: Timestamp) -> bool;
    write EndSession: end_session(id: SessionId) -> ();
    write ExpireSessions: expire_sessions(own: SessionId, now: Timestamp) -> Vec<SessionId>;
    read FindAbandoned: find_abandoned(find: FindAbandoned) -> Vec<Job>;
}

// The leases of workers follow the store's clock.
port! { WorkerStore {
    async fn open_worker(&self, worker: NewWorker, _: Timestamp) -> StoreResult<WorkerSession> {
        self.commit(Verb::OpenWorker, move |cluster| cluster.open_worker(worker.clone())).await
    }

    async fn renew_worker(&self, id: SessionId, _: Timestamp) -> StoreResult<Option<WorkerRenewal>> {
        self.commit(Verb::RenewWorker, move |cluster| Ok(cluster.renew_worker(id))).await
    }

    async fn extend_workers(&self, _: Timestamp) -> StoreResult<()> {
        self.commit(Verb::ExtendWorkers, move |cluster| {
            cluster.extend_workers();
            Ok(())
        })
        .await
    }
}
    read GetWorker: get_worker(id: SessionId) -> Option<WorkerSession>;
    read ListWorkers: list_workers(after: Option<SessionId>, limit: usize) -> Vec<WorkerSession>;
    write SetWorkerDraining: set_worker_draining(id: SessionId, draining: bool) -> bool;
    write EndWorker: end_worker(id: SessionId) -> bool;
    read HeldBy: held_by(id: SessionId, limit: usize) -> Vec<HeldAttempt>;
    read ClaimedBy: claimed_by(node: SessionId, jobs: Vec<JobId>) -> Vec<Job>;
    read CountHeld: count_held(ids: Vec<SessionId>) -> Vec<u64>;
    read CountDueRoutes: count_due_routes(routes: Vec<RouteId>, now: Timestamp, limit: usize) -> u64;
    read Routes: routes() -> Vec<Route>;
    write RemoveUnusedRoutes: remove_unused_routes(after: Option<RouteId>, limit: usize) -> RoutesLookedAt;
}

port! { AttemptLogStore {}
    write AppendLogs: append_logs(appends: Vec<LogAppend>) -> Vec<bool>;
    read ReadLogs: read_logs(query: LogQuery) -> LogPage;
}

port! { ProgressStore {}
    write PutProgress: put_progress(notes: Vec<Progress>) -> ();
    read GetProgress: get_progress(id: JobId) -> Option<Progress>;
    write ForgetProgress: forget_progress(before: Timestamp, limit: usize) -> usize;
}

port! { OnceStore {}
    write AskOnce: ask_once(call: OnceCall) -> OnceAnswer;
    write ReportOnce: report_once(report: OnceReport) -> OnceReported;
    write ExpireOnce: expire_once(now: Timestamp, limit: usize) -> usize;
}

port! { QueryStore {}
    read ListJobs: list_jobs(query: JobQuery) -> Page<Job, JobId>;
    read ListDeadLetters: list_dead_letters(query: DeadLetterQuery) -> Page<DeadLetter, DeadLetterCursor>;
    read GetDeadLetter: get_dead_letter(id: JobId) -> Option<DeadLetter>;
    read CountDeadLetters: count_dead_letters() -> u64;
    read CountDeadLettersLike: count_dead_letters_like(query: DeadLetterQuery) -> u64;
}

port! { CallbackStore {}
    read DueReceivers: due_receivers(after: Option<Receiver>, now: Timestamp, limit: usize) -> Page<Receiver, Receiver>;
    write TakeCallbacks: take_callbacks(take: TakeCallbacks) -> Vec<Callback>;
    write SettleCallback: settle_callback(session: SessionId, id: i64, tried: CallbackTry) -> ();
    write WriteCallback: write_callback(callback: Callback) -> i64;
    read CallbacksOf: callbacks_of(job: JobId) -> Vec<CallbackRecord>;
    write ReturnCallbacks: return_callbacks(own: SessionId, kept: Vec<i64>) -> usize;
}

port! { ControlStore {
    async fn set_queue_paused(&self, queue: &str, paused: bool) -> StoreResult<()> {
        let queue = queue.to_owned();
        self.commit(Verb::SetQueuePaused, move |cluster| {
            cluster.set_queue_paused(&queue, paused);
            Ok(())
        })
        .await
    }

    async fn set_halted(&self, halted: bool) -> StoreResult<()> {
        self.commit(Verb::SetHalted, move |cluster| {
            cluster.set_halted(halted);
            Ok(())
        })
        .await
    }
}
    read ListQueues: list_queues() -> Vec<Queue>;
    read CountDue: count_due(queues: Vec<String>, now: Timestamp, limit: usize) -> Vec<DueCount>;
    read Controls: controls() -> Controls;
    read Halted: halted() -> bool;
    write InstallationSecret: installation_secret(candidate: [u8; 32]) -> [u8; 32];
    read Ping: ping() -> ();
}

port! { ScheduleStore {
    async fn create_schedule(&self, schedule: Schedule) -> StoreResult<ScheduleCreated> {
        self.commit(Verb::CreateSchedule, move |cluster| cluster.create_schedule(&schedule)).await
    }

    async fn advance_schedules(&self, steps: Vec<ScheduleStep>) -> StoreResult<Vec<Advanced>> {
        self.commit(Verb::AdvanceSchedules, move |cluster| Ok(cluster.advance_schedules(&steps))).await
    }

    async fn change_schedule(&self, schedule: Schedule, fires: Vec<Fire>) -> StoreResult<Advanced> {
        self.commit(Verb::ChangeSchedule, move |cluster| Ok(cluster.change_schedule(&schedule, &fires))).await
    }

    async fn delete_schedule(&self, id: ScheduleId) -> StoreResult<bool> {
        self.commit(Verb::DeleteSchedule, move |cluster| Ok(cluster.delete_schedule(id))).await
    }
}
    read GetSchedules: get_schedules(ids: Vec<ScheduleId>) -> Vec<Schedule>;
    read FindSchedule: find_schedule(tenant: &str, name: &str) -> Option<Schedule>;
    read ListSchedules: list_schedules(query: ScheduleQuery) -> Page<Schedule, String>;
    read LoadSchedules: load_schedules(load: LoadSchedules) -> Vec<DueSchedule>;
    write TriggerSchedule: trigger_schedule(job: NewJob, fire: Fire) -> Creation<Job, NoSuchSchedule>;
    read ActiveJobs: active_jobs(ids: Vec<ScheduleId>) -> Vec<(ScheduleId, JobId)>;
}

port! { LedgerStore {}
    read ListFires: list_fires(query: FireQuery) -> Page<Fire, Timestamp>;
    read QueuedFirings: queued_firings(id: ScheduleId, from: Timestamp, limit: usize) -> Vec<Timestamp>;
    read FiresWithin: fires_within(id: ScheduleId, after: Timestamp, until: Timestamp) -> Vec<Fire>;
    read LatestFires: latest_fires(ids: Vec<ScheduleId>, count: usize) -> Vec<Fire>;
}

port! { CalendarStore {}
    write PutCalendar: put_calendar(calendar: Calendar) -> ();
    read ListCalendars: list_calendars(tenant: &str) -> Vec<Calendar>;
    write DeleteCalendar: delete_calendar(tenant: &str, name: &str) -> bool;
}

port! { WorkflowStore {}
    write PutWorkflow: put_workflow(workflow: Workflow) -> WorkflowPut;
    read GetWorkflow: get_workflow(tenant: &str, name: &str, version: Option<u32>) -> Option<Workflow>;
    read LatestVersion: latest_version(tenant: &str, name: &str) -> Option<u32>;
    write RemoveWorkflow: remove_workflow(tenant: &str, name: &str) -> bool;
    read ListWorkflows: list_workflows(query: WorkflowQuery) -> Page<Workflow, String>;
    read ListWorkflowVersions:
        list_workflow_versions(tenant: &str, name: &str, before: Option<u32>, limit: usize) -> Page<Workflow, u32>;
}

port! { RunStore {
    async fn start_run(&self, start: RunStart) -> StoreResult<Creation<Run>> {
        self.commit(Verb::StartRun, move |cluster| cluster.start_run(start.clone())).await
    }

    async fn advance_runs(&self, steps: Vec<RunStep>) -> StoreResult<Vec<RunAdvanced>> {
        self.commit(Verb::AdvanceRuns, move |cluster| Ok(cluster.advance_runs(&steps))).await
    }
}
    read GetRuns: get_runs(ids: Vec<RunId>) -> Vec<Run>;
    read ListRuns: list_runs(query: RunQuery) -> Page<Run, RunId>;
    read ReadRun: read_run(id: RunId) -> Option<(Run, Vec<RunTask>)>;
    read ReadResults: read_results(ids: Vec<JobId>, bytes_max: usize) -> ParentResults;
    read ReconcileRequests: reconcile_requests(after: Option<JobId>, limit: usize) -> Vec<ReconcileRequest>;
    read StallingRuns: stalling_runs(now: Timestamp, limit: usize) -> Vec<RunId>;
}
