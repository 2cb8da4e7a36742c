//! For tests: the services over the model store, with everybody listening and no loop running.

use std::sync::Arc;

use tickwheel_core::workflow::DataLimits;
use tickwheel_testkit::fixtures::at;
use tickwheel_testkit::{ManualClock, ModelStore};

use crate::announcer::Announcer;
use crate::announcer::tests::listening::{Listening, listening};
use crate::definitions::Definitions;
use crate::loops::intake::IntakeHandle;
use crate::loops::planner;
use crate::loops::settler::SettlerHandle;
use crate::reports::Reports;
use crate::run_stepper::RunStepper;
use crate::running::Running;
use crate::scheduler_service::SchedulerService;
use crate::start_gate::StartGate;
use crate::worker_board::WorkerBoard;
use crate::workflow_service::WorkflowService;

/// See the module.
pub struct Services {
    pub store: Arc<ModelStore>,
    pub clock: ManualClock,
    pub announcer: Announcer,
    pub listening: Listening,
    pub run_stepper: RunStepper,
    pub workflows: Arc<WorkflowService>,
    pub scheduler: Arc<SchedulerService>,
}

/// On an empty store, at the beginning of time.
pub fn services() -> Services {
    let (store, clock) = (Arc::new(ModelStore::new()), ManualClock::at(at(0)));
    let (announcer, listening) = listening();
    // Nobody reads from these: what is handed in is refused, and a planner that is gone sees nothing.
    let ((settler, _), (intake, _)) = (SettlerHandle::new(1), IntakeHandle::new(1));
    let (_, planner, _) = planner::channel([].into());
    let (running, gate) = (Running::default(), StartGate::default());
    let workers = WorkerBoard::new(planner.clone());
    let run_stepper = RunStepper {
        store: store.clone(),
        clock: Arc::new(clock.clone()),
        definitions: Definitions::new(store.clone()),
        limits: DataLimits::default(),
        settler: settler.clone(),
        running: running.clone(),
        workers: workers.clone(),
        gate: gate.clone(),
        announcer: announcer.clone(),
    };
    let workflows = Arc::new(WorkflowService(run_stepper.clone()));
    let scheduler = Arc::new(SchedulerService {
        store: store.clone(),
        clock: Arc::new(clock.clone()),
        intake,
        planner,
        reports: Reports { store: store.clone(), clock: Arc::new(clock.clone()), settler },
        running,
        workers,
        waiters: listening.waiters.clone(),
        gate,
        announcer: announcer.clone(),
        workflows: workflows.clone(),
        slots: 10,
    });
    Services { store, clock, announcer, listening, run_stepper, workflows, scheduler }
}
