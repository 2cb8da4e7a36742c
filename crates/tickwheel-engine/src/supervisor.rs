//! Puts the engine together, starts its loops, and stops them in the order in which nothing is lost or repeated.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::TargetKind;
use tickwheel_core::machine::Machine;
use tickwheel_core::ports::{
    AttemptNotes, CallbackSender, Clock, Executor, PartitionSet, Redrives, Scheduler, Schedules, Store,
    StoreResult, Workers, Workflows,
};
use tickwheel_core::token::TokenKey;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::background::Loops;
use crate::error::Error;
use crate::host::Host;
use crate::lease::Lease;
use crate::loops::callbacks::CallbacksHandle;
use crate::loops::session_keeper;
use crate::metrics;
use crate::options::EngineOptions;
use crate::wiring::{Services, Shared, wire};
use crate::workflow_service::WorkflowExecutor;

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
    services: Services,
    shared: Shared,
    callbacks: CallbacksHandle,
    release: watch::Sender<bool>,
    drain_timeout: Duration,
}

impl Engine {
    /// Opens a session, learns what the store knows and starts working, in this process.
    pub async fn start(parts: EngineParts, options: EngineOptions) -> Result<Self, Error> {
        Self::start_on(Host::Process, parts, options).await
    }

    /// The same on another host.
    pub async fn start_on(host: Host, parts: EngineParts, options: EngineOptions) -> Result<Self, Error> {
        metrics::describe();
        let EngineParts { store, clock, mut executors, callback_sender, tokens } = parts;
        let lease = open_lease(&host, &*store, &*clock, &options).await?;
        let kinds: Arc<[TargetKind]> = executors.keys().copied().chain([TargetKind::Workflow]).collect();
        let (shared, inboxes) = wire(host, store, clock, lease, kinds.clone(), &options);
        // Time in which nobody listened does not count.
        shared.store.extend_workers(shared.clock.now()).await?;
        let services = shared.services(&options);
        executors.insert(TargetKind::Workflow, Arc::new(WorkflowExecutor(services.workflows.clone())));

        let machine = restore_machine(&*shared.store, &*shared.clock, &options).await?;
        let (claims, claims_inbox) = mpsc::channel(options.machine.claims_max);
        let (release, released) = watch::channel(false);
        let callbacks = CallbacksHandle::default();
        let planner = shared.planner_loop(machine, kinds, claims)?;
        let dispatcher = shared.dispatcher(executors, tokens, released, &options);
        let schedule_runner = shared.schedule_runner(&services, &options)?;
        let callback_loop = shared.callbacks(callback_sender, callbacks.clone(), inboxes.callbacks, &options);

        let mut loops = Loops::new(shared.host.clone());
        loops.start("intake", shared.intake_loop(&options).run(inboxes.submissions));
        loops.start("settler", shared.settler_loop(&options).run(inboxes.unsettled));
        loops.start("dispatcher", dispatcher.run(claims_inbox));
        loops.start("planner", planner.run(inboxes.planner));
        loops.start("session", shared.session_keeper(&options).run());
        loops.start("reaper", shared.reaper(&options).run());
        loops.start("controls", shared.controls_reader().run());
        loops.start("callbacks", callback_loop.run());
        loops.start("workflow_reconciler", shared.workflow_reconciler(&services, inboxes.reconciler).run());
        loops.start("schedule_runner", schedule_runner.run(inboxes.schedule_timer));
        loops.start("waiters", shared.end_poller().run());
        loops.start("workers", shared.worker_keeper(&services).run());
        loops.start("logs", shared.log_writer().run(inboxes.unwritten_logs));
        loops.start("progress", shared.progress_writer().run());
        loops.start("expiry", shared.expiry().run());
        loops.start("vacuum", shared.vacuum(&options).run());
        loops.start("gauges", shared.gauges().run());
        Ok(Self { loops, services, shared, callbacks, release, drain_timeout: options.drain_timeout })
    }

    /// What the API may ask for.
    pub fn scheduler(&self) -> Arc<dyn Scheduler> {
        self.services.scheduler.clone()
    }

    /// What the API may ask for about schedules.
    pub fn schedules(&self) -> Arc<dyn Schedules> {
        self.services.schedules.clone()
    }

    /// What the API may ask for about runs of workflows.
    pub fn workflows(&self) -> Arc<dyn Workflows> {
        self.services.workflows.clone()
    }

    /// What workers may ask for.
    pub fn workers(&self) -> Arc<dyn Workers> {
        self.services.workers.clone()
    }

    /// What attempts may say beside how they ended.
    pub fn notes(&self) -> Arc<dyn AttemptNotes> {
        self.services.notes.clone()
    }

    /// What the API may ask for about dead letters by the many.
    pub fn redrives(&self) -> Arc<dyn Redrives> {
        self.services.redrives.clone()
    }

    /// From now on this node plans the jobs and schedules of these partitions only: those of all others are left to
    /// other nodes. Nobody does so yet but the simulation.
    pub fn change_ownership(&self, partitions: PartitionSet) -> impl Future<Output = ()> + Send + use<> {
        let announcer = self.shared.announcer.clone();
        async move { announcer.ownership_changed(partitions).await }
    }

    /// Claims nothing more, waits for what runs (and gives back what does not end in time), writes everything, says
    /// goodbye. Nobody may use [`scheduler`](Self::scheduler) to submit any more.
    pub async fn shutdown(self) {
        let Shared { store, lease, running, gate, planner, settler, .. } = &self.shared;
        planner.close().await;
        // What has been claimed and not been started by now is given back.
        lease.give_up();
        tracing::info!(running = running.len(), "draining");
        let drained = async {
            gate.wait_for_starts().await;
            running.idle().await;
        };
        if tokio::time::timeout(self.drain_timeout, drained).await.is_err() {
            tracing::warn!(running = running.len(), "giving back what did not end in time");
            self.release.send_replace(true);
        }
        let flush = async {
            running.idle().await;
            settler.flushed().await;
            self.callbacks.stop().await;
            store.end_session(lease.session()).await
        };
        match tokio::time::timeout(FLUSH_TIMEOUT, flush).await {
            Ok(Ok(())) => tracing::info!("drained"),
            Ok(Err(error)) => tracing::warn!(%error, "could not end the session; it ends with its lease"),
            Err(_) => tracing::warn!(
                "the store did not accept the last writes in time; the end of the lease makes up for it"
            ),
        }
        self.loops.stop();
    }
}

async fn open_lease(
    host: &Host,
    store: &dyn Store,
    clock: &dyn Clock,
    options: &EngineOptions,
) -> StoreResult<Arc<Lease>> {
    let opened_at = Instant::now();
    let session = session_keeper::open(host, store, &options.node, options.lease, clock.now()).await?;
    Ok(Arc::new(Lease::new(session, opened_at + options.lease)))
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
