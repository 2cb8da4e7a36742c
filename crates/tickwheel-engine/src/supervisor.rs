//! Starts the loops, and stops them in the order in which nothing is lost or repeated.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tickwheel_core::TargetKind;
use tickwheel_core::callback::CallbackSlots;
use tickwheel_core::machine::Machine;
use tickwheel_core::ports::{
    CallbackSender, Clock, Executor, PartitionSet, Scheduler, Schedules, Store, StoreResult, Workflows,
};
use tickwheel_core::schedule::agenda::Agenda;
use tickwheel_core::token::TokenKey;
use tokio::sync::{RwLock, mpsc, watch};
use tokio::task::AbortHandle;

use crate::alarm::Alarm;
use crate::announcer::{Announcer, Listeners};
use crate::batch::BatchLimits;
use crate::callbacks::{Callbacks, CallbacksHandle};
use crate::conductor::{Conducting, Conductor};
use crate::controls::ControlsReader;
use crate::definitions::Definitions;
use crate::dispatcher::Dispatcher;
use crate::error::Error;
use crate::firer::{Firer, ScheduleTimerHandle, Stepper, StoreAway};
use crate::front::Front;
use crate::intake::{self, IntakeHandle};
use crate::lease::Lease;
use crate::options::EngineOptions;
use crate::payloads::Payloads;
use crate::planner::{self, Planner, PlannerHandle};
use crate::reaper::Reaper;
use crate::running::Running;
use crate::schedules::ScheduleFront;
use crate::session::{self, SessionKeeper};
use crate::settler::{Settler, SettlerHandle};
use crate::store_watch::StoreWatch;
use crate::waiters::{self, Waiters};
use crate::workflows::{WorkflowExecutor, WorkflowFront};
use crate::{gauges, metrics, vacuum, wake_up};

/// How long a shutdown waits for the last writes.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// What an engine is made of.
pub struct EngineParts {
    /// The truth.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who runs which kind of target. Jobs for other kinds wait.
    pub executors: HashMap<TargetKind, Arc<dyn Executor>>,
    /// Who tells outcomes.
    pub callback_sender: Arc<dyn CallbackSender>,
    /// Makes attempt tokens.
    pub tokens: TokenKey,
}

/// A running engine.
pub struct Engine {
    // Dropped first: what ends because the rest is gone ends as it should.
    loops: Loops,
    front: Arc<Front>,
    schedules: Arc<ScheduleFront>,
    workflows: Arc<WorkflowFront>,
    store: Arc<dyn Store>,
    lease: Arc<Lease>,
    planner: PlannerHandle,
    running: Running,
    settler: SettlerHandle,
    callbacks: CallbacksHandle,
    release: watch::Sender<bool>,
    drain_timeout: Duration,
}

/// Runs short-lived tasks for the loops, so that spawning stays in this file.
#[derive(Clone, Copy, Debug)]
pub struct Tasks;

impl Tasks {
    /// Runs `task` beside everything else.
    pub fn spawn(self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }
}

impl Engine {
    /// Opens a session, learns what the store knows and starts working.
    pub async fn start(parts: EngineParts, options: EngineOptions) -> Result<Self, Error> {
        metrics::describe();
        let EngineParts { store, clock, mut executors, callback_sender, tokens } = parts;
        let watch = StoreWatch::default();
        let opened_at = Instant::now();
        let session = session::open(&*store, &options.node, options.lease, clock.now()).await?;
        let lease = Arc::new(Lease::new(session, opened_at + options.lease));
        let kinds: Arc<[TargetKind]> = executors.keys().copied().chain([TargetKind::Workflow]).collect();
        let (planner_events, planner, planner_inbox) = planner::channel(kinds.clone());
        let (settler, unsettled) = SettlerHandle::new(2 * options.machine.slots.max(options.commit_len_max));
        let (intake, submissions) = IntakeHandle::new(options.intake_len_max);
        let (claims, claims_inbox) = mpsc::channel(options.machine.claims_max);
        let (schedule_timer, schedule_inbox) = ScheduleTimerHandle::new();
        let (callback_wake_up, callback_wake_ups) = wake_up::channel();
        let (reconciler_wake_up, reconciler_wake_ups) = wake_up::channel();
        let (release, released) = watch::channel(false);
        let (running, waiters) = (Running::default(), Waiters::default());
        let gate = Arc::new(RwLock::new(()));
        let limits =
            BatchLimits { weight_max: options.commit_len_max, in_flight_max: options.commits_in_flight_max };

        let announcer = Announcer::new(Listeners {
            planner: planner_events,
            schedule_timer,
            waiters: waiters.clone(),
            callbacks: callback_wake_up,
            reconciler: reconciler_wake_up,
        });

        let conducting = Conducting {
            store: store.clone(),
            watch: watch.clone(),
            clock: clock.clone(),
            definitions: Definitions::new(store.clone()),
            settler: settler.clone(),
            running: running.clone(),
            gate: gate.clone(),
            announcer: announcer.clone(),
        };
        let workflows = Arc::new(WorkflowFront(conducting.clone()));
        executors.insert(TargetKind::Workflow, Arc::new(WorkflowExecutor(workflows.clone())));

        let machine = restore_machine(&*store, &*clock, &options).await?;
        let planner_loop = Planner {
            machine,
            store: store.clone(),
            watch: watch.clone(),
            clock: clock.clone(),
            kinds,
            running: running.clone(),
            claims,
            alarm: Alarm::start()?,
        };
        let dispatcher = Arc::new(Dispatcher {
            store: store.clone(),
            watch: watch.clone(),
            clock: clock.clone(),
            executors: Arc::new(executors),
            tokens,
            payloads: Payloads::new(store.clone()),
            lease: lease.clone(),
            gate: gate.clone(),
            running: running.clone(),
            planner: planner.clone(),
            settler: settler.clone(),
            tasks: Tasks,
            deadline_grace: options.deadline_grace,
            release: released,
        });
        let settler_loop = Settler {
            store: store.clone(),
            watch: watch.clone(),
            poison: options.poison,
            handle: settler.clone(),
            announcer: announcer.clone(),
        };
        let keeper = SessionKeeper {
            store: store.clone(),
            watch: watch.clone(),
            clock: clock.clone(),
            node: options.node,
            length: options.lease,
            lease: lease.clone(),
            announcer: announcer.clone(),
        };
        let reaper = Reaper {
            store: store.clone(),
            watch: watch.clone(),
            clock: clock.clone(),
            lease: lease.clone(),
            lease_length: options.lease,
            running: running.clone(),
            settler: settler.clone(),
            interval: options.reap_interval,
            grace: options.deadline_grace,
        };
        let controls =
            ControlsReader { store: store.clone(), watch: watch.clone(), announcer: announcer.clone() };
        let callbacks = Arc::new(Callbacks {
            store: store.clone(),
            watch: watch.clone(),
            clock: clock.clone(),
            sender: callback_sender,
            lease: lease.clone(),
            tasks: Tasks,
            tries_max: options.callback_tries_max,
            delay: options.callback_delay,
            written: callback_wake_ups,
            handle: CallbacksHandle::default(),
        });
        let callbacks_handle = callbacks.handle.clone();
        let awaited = waiters.clone();
        let front = Arc::new(Front {
            store: store.clone(),
            clock: clock.clone(),
            intake,
            planner: planner.clone(),
            settler: settler.clone(),
            running: running.clone(),
            waiters,
            gate,
            announcer: announcer.clone(),
            workflows: workflows.clone(),
            slots: options.machine.slots,
        });
        let stepper =
            Stepper { store: store.clone(), scheduler: front.clone(), announcer: announcer.clone() };
        let firer_loop = Firer {
            store: store.clone(),
            watch: watch.clone(),
            clock: clock.clone(),
            stepper: stepper.clone(),
            alarm: Alarm::start()?,
            agenda: Agenda::new(options.agenda, PartitionSet::ALL, clock.now()),
            away: StoreAway::default(),
        };
        let schedules =
            Arc::new(ScheduleFront { store: store.clone(), clock, announcer: announcer.clone(), stepper });
        let mut loops = Loops::default();
        let vacuum_watch = watch.clone();
        loops.start("intake", intake::run(submissions, limits, store.clone(), watch, announcer.clone()));
        loops.start("settler", settler_loop.run(unsettled, limits));
        loops.start("dispatcher", dispatcher.run(claims_inbox));
        loops.start("planner", planner_loop.run(planner_inbox));
        loops.start("session", keeper.run());
        loops.start("reaper", reaper.run());
        loops.start("controls", controls.run());
        loops.start("callbacks", callbacks.run(CallbackSlots::new(options.callbacks)));
        loops.start("conductor", Conductor { conducting, wake_ups: reconciler_wake_ups }.run());
        loops.start("firer", firer_loop.run(schedule_inbox));
        loops.start("waiters", waiters::sweep(store.clone(), awaited, announcer));
        loops.start("vacuum", vacuum::run(store.clone(), vacuum_watch, options.vacuum_dead_rows_min));
        loops.start("gauges", gauges::run(store.clone(), planner.clone(), running.clone()));
        Ok(Self {
            front,
            schedules,
            workflows,
            store,
            lease,
            planner,
            running,
            settler,
            callbacks: callbacks_handle,
            release,
            drain_timeout: options.drain_timeout,
            loops,
        })
    }

    /// What the API may ask for.
    pub fn scheduler(&self) -> Arc<dyn Scheduler> {
        self.front.clone()
    }

    /// What the API may ask for about schedules.
    pub fn schedules(&self) -> Arc<dyn Schedules> {
        self.schedules.clone()
    }

    /// What the API may ask for about runs of workflows.
    pub fn workflows(&self) -> Arc<dyn Workflows> {
        self.workflows.clone()
    }

    /// Claims nothing more, waits for what runs (and gives back what does not end in time), writes everything, says goodbye.
    /// Nobody may use [`scheduler`](Self::scheduler) to submit any more.
    pub async fn shutdown(self) {
        self.planner.close().await;
        // What has been claimed and not been started by now is given back.
        self.lease.give_up();
        tracing::info!(running = self.running.len(), "draining");
        let drained = async {
            self.front.wait_for_starts().await;
            self.running.idle().await;
        };
        if tokio::time::timeout(self.drain_timeout, drained).await.is_err() {
            tracing::warn!(running = self.running.len(), "giving back what did not end in time");
            self.release.send_replace(true);
        }
        let flush = async {
            self.running.idle().await;
            self.settler.flushed().await;
            self.callbacks.stop().await;
            self.store.end_session(self.lease.session()).await
        };
        match tokio::time::timeout(FLUSH_TIMEOUT, flush).await {
            Ok(Ok(())) => tracing::info!("drained"),
            Ok(Err(error)) => tracing::warn!(%error, "could not end the session, its lease will"),
            Err(_) => tracing::warn!("the store did not take the last writes in time, the lease will tell"),
        }
        self.loops.stop();
    }
}

/// A machine that knows what forbids starts before it makes its first decision.
async fn restore_machine(
    store: &dyn Store,
    clock: &dyn Clock,
    options: &EngineOptions,
) -> StoreResult<Machine> {
    let controls = store.controls().await?;
    let mut machine = Machine::new(options.machine, PartitionSet::ALL, clock.now());
    machine.restore(controls);
    Ok(machine)
}

/// The loops, and whether they are supposed to go on.
#[derive(Default)]
struct Loops {
    stopping: Arc<AtomicBool>,
    handles: Vec<AbortHandle>,
}

impl Loops {
    /// Runs a loop. If it ends before it is stopped, whether by a panic or not, so does the process: half an engine would look
    /// alive and do nothing. Another process takes over what this one had.
    fn start(&mut self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(work);
        self.handles.push(task.abort_handle());
        let stopping = self.stopping.clone();
        tokio::spawn(async move {
            let as_told = match task.await {
                Ok(()) => stopping.load(Ordering::Acquire),
                Err(error) => error.is_cancelled(),
            };
            if !as_told {
                tracing::error!(name, "a loop has ended, and with it the process");
                std::process::abort();
            }
        });
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.handles.iter().for_each(AbortHandle::abort);
    }
}

/// Loops end by themselves when nobody holds the engine any more.
impl Drop for Loops {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    const IN_A_CHILD: &str = "TICKWHEEL_TEST_LOOP";
    const SIGABRT: i32 = 6;

    /// In a process of its own: how that ended.
    fn ends_by(how: &str) -> Option<i32> {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let test = std::thread::current().name().unwrap().to_owned();
        child.args(["--exact", &test]).env(IN_A_CHILD, how).stdout(Stdio::null()).stderr(Stdio::null());
        child.status().unwrap().signal()
    }

    #[test]
    fn a_loop_that_ends_unasked_takes_the_process_with_it() {
        let Some(how) = std::env::var_os(IN_A_CHILD) else {
            assert_eq!(ends_by("panic"), Some(SIGABRT));
            assert_eq!(ends_by("return"), Some(SIGABRT));
            assert_eq!(ends_by("stop"), None);
            return;
        };
        tokio::runtime::Runtime::new().unwrap().block_on(async move {
            let mut loops = Loops::default();
            match how.to_str().unwrap() {
                "panic" => loops.start("test", async { panic!("on purpose") }),
                "return" => loops.start("test", async {}),
                _ => loops.start("test", std::future::pending()),
            }
            if how == "stop" {
                loops.stop();
                return;
            }
            std::future::pending::<()>().await;
        });
    }
}
