//! Which loop and which service gets what. Nothing runs here yet: see [`supervisor`](crate::supervisor).

use std::collections::HashMap;
use std::sync::Arc;

use tickwheel_core::TargetKind;
use tickwheel_core::machine::{ClaimRequest, Machine};
use tickwheel_core::ports::{CallbackSender, Clock, Executor, PartitionSet, Store};
use tickwheel_core::schedule::timer::ScheduleTimer;
use tickwheel_core::token::TokenKey;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::announcer::{Announcer, Listeners};
use crate::attempt_notes::AttemptNoteService;
use crate::batch::BatchLimits;
use crate::callback_delivery::{CallbackDelivery, DeliveryOptions};
use crate::definitions::Definitions;
use crate::error::Error;
use crate::followers::Followers;
use crate::host::Host;
use crate::lease::Lease;
use crate::loops::callbacks::{Callbacks, CallbacksHandle, CallbacksOptions, CallbacksParts};
use crate::loops::controls_reader::{ControlsReader, ControlsReaderOptions};
use crate::loops::dispatcher::{Dispatcher, DispatcherOptions};
use crate::loops::end_poller::{EndPoller, EndPollerOptions};
use crate::loops::expiry::{Expiry, ExpiryOptions};
use crate::loops::gauges::{Gauges, GaugesOptions, Named};
use crate::loops::intake::{Intake, IntakeHandle, IntakeOptions, Submission};
use crate::loops::log_writer::{LogWriter, LogWriterHandle, LogWriterOptions, Unwritten};
use crate::loops::planner::{self, Loads, Planner, PlannerHandle, PlannerOptions};
use crate::loops::progress_writer::{LatestProgress, ProgressWriter, ProgressWriterOptions};
use crate::loops::reaper::{Reaper, ReaperOptions};
use crate::loops::schedule_runner::{
    self, ScheduleRunner, ScheduleRunnerOptions, ScheduleRunnerState, ScheduleTimerHandle,
};
use crate::loops::session_keeper::{SessionKeeper, SessionOptions};
use crate::loops::settler::{Settler, SettlerHandle, SettlerOptions, Unsettled};
use crate::loops::vacuum::{Vacuum, VacuumOptions};
use crate::loops::worker_keeper::{WorkerKeeper, WorkerKeeperOptions};
use crate::loops::workflow_reconciler::{ReconcilerOptions, WorkflowReconciler};
use crate::options::EngineOptions;
use crate::payloads::Payloads;
use crate::redrive_service::{Known, RedriveService};
use crate::reports::Reports;
use crate::run_stepper::RunStepper;
use crate::running::Running;
use crate::schedule_service::ScheduleService;
use crate::schedule_stepper::ScheduleStepper;
use crate::scheduler_service::SchedulerService;
use crate::start_gate::StartGate;
use crate::store_watch::StoreWatch;
use crate::waiters::Waiters;
use crate::wake_up::{self, WakeUpReceiver};
use crate::worker_board::WorkerBoard;
use crate::worker_service::WorkerService;
use crate::workflow_service::WorkflowService;

/// What the API is given.
pub struct Services {
    pub scheduler: Arc<SchedulerService>,
    pub schedules: Arc<ScheduleService>,
    pub workflows: Arc<WorkflowService>,
    pub redrives: Arc<RedriveService>,
    pub workers: Arc<WorkerService>,
    pub notes: Arc<AttemptNoteService>,
}

/// What most loops and services use.
#[derive(Clone)]
pub struct Shared {
    pub host: Host,
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub lease: Arc<Lease>,
    pub running: Running,
    pub workers: WorkerBoard,
    pub gate: StartGate,
    pub waiters: Waiters,
    pub intake: IntakeHandle,
    pub planner: PlannerHandle,
    pub settler: SettlerHandle,
    pub logs: LogWriterHandle,
    pub followers: Followers,
    pub progress: LatestProgress,
    pub announcer: Announcer,
}

/// What the loops read from, each its own.
pub struct Inboxes {
    pub submissions: mpsc::Receiver<Submission>,
    pub planner: mpsc::Receiver<planner::Message>,
    pub unsettled: mpsc::Receiver<Unsettled>,
    pub unwritten_logs: mpsc::Receiver<Unwritten>,
    pub schedule_timer: mpsc::Receiver<schedule_runner::Message>,
    pub callbacks: WakeUpReceiver,
    pub reconciler: WakeUpReceiver,
}

/// Makes every channel, and hands the sending ends of what is announced to the announcer.
pub fn wire(
    host: Host,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    lease: Arc<Lease>,
    kinds: Arc<[TargetKind]>,
    options: &EngineOptions,
) -> (Shared, Inboxes) {
    let (planner_events, planner, planner_inbox) = planner::channel(kinds);
    let (schedule_timer, schedule_inbox) = ScheduleTimerHandle::new();
    let (callbacks, callback_wake_ups) = wake_up::channel();
    let (reconciler, reconciler_wake_ups) = wake_up::channel();
    let (intake, submissions) = IntakeHandle::new(options.intake_len_max);
    let (settler, unsettled) = SettlerHandle::new(2 * options.machine.slots.max(options.commit_len_max));
    let (logs, unwritten_logs) = LogWriterHandle::new();
    let waiters = Waiters::default();
    let workers = WorkerBoard::new(planner.clone());
    let listeners = Listeners {
        planner: planner_events,
        schedule_timer,
        waiters: waiters.clone(),
        callbacks,
        reconciler,
        workers: workers.clone(),
    };
    let shared = Shared {
        watch: StoreWatch::new(host.clone()),
        host,
        store,
        clock,
        lease,
        running: Running::default(),
        workers,
        gate: StartGate::default(),
        waiters,
        intake,
        planner,
        settler,
        logs,
        followers: Followers::default(),
        progress: LatestProgress::default(),
        announcer: Announcer::new(listeners),
    };
    let inboxes = Inboxes {
        submissions,
        planner: planner_inbox,
        unsettled,
        unwritten_logs,
        schedule_timer: schedule_inbox,
        callbacks: callback_wake_ups,
        reconciler: reconciler_wake_ups,
    };
    (shared, inboxes)
}

const fn batches(options: &EngineOptions) -> BatchLimits {
    BatchLimits { weight_max: options.commit_len_max, in_flight_max: options.commits_in_flight_max }
}

/// What the API is given.
impl Shared {
    pub fn services(&self, options: &EngineOptions) -> Services {
        let workflows = Arc::new(WorkflowService(RunStepper {
            store: self.store.clone(),
            clock: self.clock.clone(),
            definitions: Definitions::new(self.store.clone()),
            limits: options.run_data,
            settler: self.settler.clone(),
            running: self.running.clone(),
            workers: self.workers.clone(),
            gate: self.gate.clone(),
            announcer: self.announcer.clone(),
        }));
        let reports =
            Reports { store: self.store.clone(), clock: self.clock.clone(), settler: self.settler.clone() };
        let workers = Arc::new(WorkerService {
            host: self.host.clone(),
            store: self.store.clone(),
            clock: self.clock.clone(),
            planner: self.planner.clone(),
            board: self.workers.clone(),
            reports: reports.clone(),
        });
        let scheduler = Arc::new(SchedulerService {
            store: self.store.clone(),
            clock: self.clock.clone(),
            intake: self.intake.clone(),
            planner: self.planner.clone(),
            reports: reports.clone(),
            running: self.running.clone(),
            workers: self.workers.clone(),
            waiters: self.waiters.clone(),
            gate: self.gate.clone(),
            announcer: self.announcer.clone(),
            workflows: workflows.clone(),
            slots: options.machine.slots,
        });
        let notes = Arc::new(AttemptNoteService {
            store: self.store.clone(),
            logs: self.logs.clone(),
            followers: self.followers.clone(),
            progress: self.progress.clone(),
        });
        let redrives = Arc::new(RedriveService {
            host: self.host.clone(),
            store: self.store.clone(),
            scheduler: scheduler.clone(),
            known: Known::default(),
        });
        let schedules = Arc::new(ScheduleService {
            host: self.host.clone(),
            store: self.store.clone(),
            calendars: self.store.clone(),
            clock: self.clock.clone(),
            announcer: self.announcer.clone(),
            stepper: ScheduleStepper {
                host: self.host.clone(),
                store: self.store.clone(),
                scheduler: scheduler.clone(),
                announcer: self.announcer.clone(),
            },
            counting: Arc::new(Semaphore::new(1)),
        });
        Services { scheduler, schedules, workflows, redrives, workers, notes }
    }
}

/// The way of a job.
impl Shared {
    pub fn intake_loop(&self, options: &EngineOptions) -> Intake {
        Intake {
            options: IntakeOptions { batches: batches(options) },
            store: self.store.clone(),
            watch: self.watch.clone(),
            announcer: self.announcer.clone(),
        }
    }

    pub fn planner_loop(
        &self,
        machine: Machine,
        kinds: Arc<[TargetKind]>,
        claims: mpsc::Sender<ClaimRequest>,
    ) -> Result<Planner, Error> {
        Ok(Planner {
            options: PlannerOptions::default(),
            machine,
            store: self.store.clone(),
            watch: self.watch.clone(),
            clock: self.clock.clone(),
            kinds,
            running: self.running.clone(),
            claims,
            alarm: self.host.alarm()?,
            loads: Loads::new(),
            effects: Vec::new(),
        })
    }

    pub fn dispatcher(
        &self,
        executors: HashMap<TargetKind, Arc<dyn Executor>>,
        tokens: TokenKey,
        release: watch::Receiver<bool>,
        options: &EngineOptions,
    ) -> Arc<Dispatcher> {
        Arc::new(Dispatcher {
            options: DispatcherOptions {
                deadline_grace: options.deadline_grace,
                ..DispatcherOptions::default()
            },
            store: self.store.clone(),
            sessions: self.store.clone(),
            watch: self.watch.clone(),
            clock: self.clock.clone(),
            executors: Arc::new(executors),
            tokens,
            payloads: Payloads::new(self.store.clone()),
            lease: self.lease.clone(),
            gate: self.gate.clone(),
            running: self.running.clone(),
            workers: self.workers.clone(),
            planner: self.planner.clone(),
            settler: self.settler.clone(),
            host: self.host.clone(),
            release,
        })
    }

    pub fn settler_loop(&self, options: &EngineOptions) -> Settler {
        Settler {
            options: SettlerOptions { poison: options.poison, batches: batches(options) },
            host: self.host.clone(),
            store: self.store.clone(),
            watch: self.watch.clone(),
            handle: self.settler.clone(),
            announcer: self.announcer.clone(),
        }
    }

    pub fn callbacks(
        &self,
        sender: Arc<dyn CallbackSender>,
        handle: CallbacksHandle,
        wake_ups: WakeUpReceiver,
        options: &EngineOptions,
    ) -> Callbacks {
        let delivery = CallbackDelivery {
            options: DeliveryOptions {
                tries_max: options.callback_tries_max,
                delay: options.callback_delay,
                ..DeliveryOptions::default()
            },
            store: self.store.clone(),
            clock: self.clock.clone(),
            sender,
        };
        let parts = CallbacksParts {
            store: self.store.clone(),
            watch: self.watch.clone(),
            clock: self.clock.clone(),
            lease: self.lease.clone(),
            host: self.host.clone(),
            delivery: Arc::new(delivery),
            wake_ups,
            handle,
        };
        Callbacks::new(CallbacksOptions { limits: options.callbacks, ..CallbacksOptions::default() }, parts)
    }
}

/// Schedules and runs.
impl Shared {
    pub fn schedule_runner(
        &self,
        services: &Services,
        options: &EngineOptions,
    ) -> Result<ScheduleRunner, Error> {
        let timer = ScheduleTimer::new(options.schedule_timer, PartitionSet::ALL, self.clock.now());
        Ok(ScheduleRunner {
            options: ScheduleRunnerOptions::default(),
            store: self.store.clone(),
            watch: self.watch.clone(),
            clock: self.clock.clone(),
            stepper: services.schedules.stepper.clone(),
            alarm: self.host.alarm()?,
            state: ScheduleRunnerState::new(timer),
        })
    }

    pub fn workflow_reconciler(&self, services: &Services, wake_ups: WakeUpReceiver) -> WorkflowReconciler {
        WorkflowReconciler {
            options: ReconcilerOptions::default(),
            watch: self.watch.clone(),
            stepper: services.workflows.0.clone(),
            wake_ups,
            turn: None,
        }
    }
}

/// Care for sessions, for what other processes did, and for what people see.
impl Shared {
    pub fn session_keeper(&self, options: &EngineOptions) -> SessionKeeper {
        SessionKeeper {
            options: SessionOptions {
                node: options.node.clone(),
                lease: options.lease,
                ..SessionOptions::default()
            },
            host: self.host.clone(),
            store: self.store.clone(),
            watch: self.watch.clone(),
            clock: self.clock.clone(),
            lease: self.lease.clone(),
            announcer: self.announcer.clone(),
        }
    }

    pub fn reaper(&self, options: &EngineOptions) -> Reaper {
        Reaper {
            options: ReaperOptions {
                interval: options.reap_interval,
                lease: options.lease,
                deadline_grace: options.deadline_grace,
                ..ReaperOptions::default()
            },
            store: self.store.clone(),
            watch: self.watch.clone(),
            clock: self.clock.clone(),
            lease: self.lease.clone(),
            running: self.running.clone(),
            workers: self.workers.clone(),
            settler: self.settler.clone(),
        }
    }

    pub fn controls_reader(&self) -> ControlsReader {
        ControlsReader {
            options: ControlsReaderOptions::default(),
            store: self.store.clone(),
            watch: self.watch.clone(),
            announcer: self.announcer.clone(),
        }
    }

    pub fn worker_keeper(&self, services: &Services) -> WorkerKeeper {
        WorkerKeeper {
            options: WorkerKeeperOptions::default(),
            store: self.store.clone(),
            watch: self.watch.clone(),
            clock: self.clock.clone(),
            announcer: self.announcer.clone(),
            service: services.workers.clone(),
        }
    }

    pub fn end_poller(&self) -> EndPoller {
        EndPoller {
            options: EndPollerOptions::default(),
            store: self.store.clone(),
            waiters: self.waiters.clone(),
            announcer: self.announcer.clone(),
        }
    }

    pub fn vacuum(&self, options: &EngineOptions) -> Vacuum {
        let dead_rows_min = options.vacuum_dead_rows_min;
        Vacuum {
            options: VacuumOptions { dead_rows_min, ..VacuumOptions::default() },
            store: self.store.clone(),
            watch: self.watch.clone(),
        }
    }

    pub fn log_writer(&self) -> LogWriter {
        LogWriter {
            options: LogWriterOptions::default(),
            store: self.store.clone(),
            watch: self.watch.clone(),
            followers: self.followers.clone(),
        }
    }

    pub fn progress_writer(&self) -> ProgressWriter {
        ProgressWriter {
            options: ProgressWriterOptions::default(),
            store: self.store.clone(),
            watch: self.watch.clone(),
            latest: self.progress.clone(),
        }
    }

    pub fn expiry(&self) -> Expiry {
        Expiry {
            options: ExpiryOptions::default(),
            store: self.store.clone(),
            watch: self.watch.clone(),
            clock: self.clock.clone(),
            route: None,
        }
    }

    pub fn gauges(&self) -> Gauges {
        Gauges {
            options: GaugesOptions::default(),
            store: self.store.clone(),
            clock: self.clock.clone(),
            planner: self.planner.clone(),
            running: self.running.clone(),
            workers: self.workers.clone(),
            named: Named::default(),
        }
    }
}
