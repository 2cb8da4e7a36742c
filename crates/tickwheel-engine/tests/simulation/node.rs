//! A node: the real engine, on a host that can be stopped and killed, with a clock that can be set.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::RngExt;
use tickwheel_core::machine::MachineOptions;
use tickwheel_core::ports::{Clock, Executor};
use tickwheel_core::schedule::timer::ScheduleTimerOptions;
use tickwheel_core::settle::PoisonRule;
use tickwheel_core::token::TokenKey;
use tickwheel_core::workflow::DataLimits;
use tickwheel_core::{TargetKind, Timestamp};
use tickwheel_engine::{Engine, EngineOptions, EngineParts, Host, SimulatedNode, SimulatedTask};
use tickwheel_testkit::fixtures::job_id;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::cluster::SharedCluster;
use crate::network::NodeStore;
use crate::target::{Silent, Target};
use crate::tasks::Tasks;
use crate::{GRACE, LEASE, NODES};

/// The machines of a cluster are not alike: here jobs find a free slot, there they wait for their turn.
const SLOTS: [usize; NODES] = [20, 4, 20];
/// How long a process that could not start waits before it tries again.
const START_PAUSE: Duration = Duration::from_millis(100);

/// A place in the cluster, and the process that lives there.
pub struct Node {
    number: usize,
    cluster: SharedCluster,
    /// Grows with every start.
    pub life: u32,
    /// None: it has crashed.
    process: Option<Arc<Process>>,
}

/// One process, from its start to its crash.
pub struct Process {
    node: usize,
    cluster: SharedCluster,
    engine: Mutex<Option<Engine>>,
    tasks: Tasks,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    pub fn new(number: usize, cluster: SharedCluster) -> Self {
        Self { number, cluster, life: 0, process: None }
    }

    /// A process starts with empty hands.
    pub fn start(&mut self) {
        self.life += 1;
        let process = Arc::new(Process {
            node: self.number,
            cluster: self.cluster.clone(),
            engine: Mutex::new(None),
            tasks: Tasks::new(self.cluster.clone()),
        });
        self.cluster.lock().processes[self.number] = Arc::downgrade(&process);
        let starting = process.clone();
        let life = self.life;
        process.spawn(Box::pin(async move { starting.start_engine(life).await }));
        self.process = Some(process);
    }

    /// The process is gone. Whatever it has asked the store for is done or not.
    pub fn crash(&mut self) {
        if let Some(process) = self.process.take() {
            process.tasks.end();
            lock(&process.engine).take();
        }
    }

    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// Whether it does anything now.
    pub fn is_healthy(&self) -> bool {
        self.running().is_some_and(|process| !process.tasks.are_frozen())
            && !self.cluster.lock().cut_off[self.number]
    }

    /// The process, if its engine works.
    pub fn running(&self) -> Option<Arc<Process>> {
        self.process.clone().filter(|process| lock(&process.engine).is_some())
    }

    pub fn freeze(&self) {
        if let Some(process) = &self.process {
            process.tasks.freeze();
        }
    }

    /// It goes on as if nothing had happened.
    pub fn thaw(&self) {
        if let Some(process) = &self.process {
            process.tasks.thaw();
        }
    }
}

impl Process {
    async fn start_engine(self: Arc<Self>, life: u32) {
        loop {
            let target: Arc<dyn Executor> = Arc::new(Target::new(self.node, life, self.cluster.clone()));
            let parts = EngineParts {
                store: Arc::new(NodeStore { node: self.node, cluster: self.cluster.clone() }),
                clock: Arc::new(NodeClock { node: self.node, cluster: self.cluster.clone() }),
                executors: HashMap::from([(TargetKind::Http, target)]),
                callback_sender: Arc::new(Silent),
                tokens: TokenKey::new([7; 32]),
            };
            let host = Host::Simulated(self.clone());
            match Engine::start_on(host, parts, options(self.node)).await {
                Ok(engine) => {
                    *lock(&self.engine) = Some(engine);
                    return;
                }
                // sleep: in simulated time
                Err(_) => tokio::time::sleep(START_PAUSE).await,
            }
        }
    }

    /// The number of its node.
    pub fn node(&self) -> usize {
        self.node
    }

    /// Asks the engine for something.
    pub fn with_engine<T>(&self, ask: impl FnOnce(&Engine) -> T) -> Option<T> {
        lock(&self.engine).as_ref().map(ask)
    }

    /// Deals with the call of a worker, which may be gone before it ends.
    pub fn accept(&self, call: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.spawn(Box::pin(call))
    }

    /// Deals with the request of a client, who hears nothing if the process dies of something meanwhile.
    pub fn serve(&self, request: impl Future<Output = ()> + Send + 'static) {
        self.cluster.lock().open_requests += 1;
        let open = OpenRequest(self.cluster.clone());
        self.spawn(Box::pin(async move {
            let _open = open;
            request.await;
        }));
    }
}

/// A request that is not answered yet.
struct OpenRequest(SharedCluster);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.lock().open_requests -= 1;
    }
}

impl SimulatedNode for Process {
    fn spawn(&self, task: SimulatedTask) -> JoinHandle<()> {
        self.tasks.spawn(task)
    }

    fn random_bits(&self) -> u64 {
        self.cluster.lock().rng.random()
    }

    fn fresh_uuid(&self) -> Uuid {
        let mut cluster = self.cluster.lock();
        let (now, number) = (cluster.now_of(self.node), cluster.next_number());
        job_id(now, number).as_uuid()
    }
}

/// The clock of a node. It is off, and somebody sets it.
struct NodeClock {
    node: usize,
    cluster: SharedCluster,
}

impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        self.cluster.lock().now_of(self.node)
    }
}

/// Small bounds, so that every limit is met all the time.
fn options(node: usize) -> EngineOptions {
    EngineOptions {
        node: format!("node-{node}"),
        machine: MachineOptions {
            near_window: Duration::from_millis(2_000),
            near_jobs_max: 12,
            load_len_max: 5,
            sweep_interval: Duration::from_millis(300),
            whole_sweep_interval: Duration::from_secs(2),
            claim_len_max: 3,
            claims_max: 2,
            slots: SLOTS[node],
        },
        schedule_timer: ScheduleTimerOptions {
            near_window: Duration::from_millis(1_500),
            load_len_max: 2,
            sweep_interval: Duration::from_millis(300),
            take_len_max: 2,
            ..ScheduleTimerOptions::default()
        },
        poison: poison_rule(),
        lease: LEASE,
        deadline_grace: GRACE,
        commit_len_max: 3,
        reap_interval: Duration::from_millis(250),
        run_data: DataLimits { step_jobs_max: 2, ..DataLimits::default() },
        vacuum_dead_rows_min: 0,
        ..EngineOptions::default()
    }
}

/// Strict: most jobs have retries left when they are given up.
pub const fn poison_rule() -> PoisonRule {
    PoisonRule { failures_max: 3, window: Duration::from_secs(2), lost_max: 2 }
}
