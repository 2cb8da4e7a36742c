//! What all parts of a simulated cluster share: chance, time, what is going to happen, the store and the checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{JobId, SessionId, Timestamp};
use tickwheel_testkit::ModelStore;
use tickwheel_testkit::fixtures::START;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::checks::{Checks, violation};
use crate::injected::{FaultKind, Injected};
use crate::node::Process;
use crate::schedule_checks::ScheduleChecks;
use crate::workflow_checks::WorkflowChecks;
use crate::{FAULTS_STOP_MS, NODES, Violation};

/// How far the clocks of a cluster that nobody has touched are from the real time, in milliseconds.
const CLOCK_OFFSET_MS: i64 = 300;

/// A write that reaches the store when nobody waits for it any more.
pub type LateWrite = Box<dyn FnOnce(&mut Cluster) + Send>;

/// Something that is going to happen.
pub enum Happening {
    /// A client acts.
    Client,
    /// A fault strikes.
    Fault,
    /// A node dies of a job, if it still lives the same life.
    KilledByJob { node: usize, life: u32 },
    /// Something happens to a worker.
    WorkerFault,
    /// A worker dies of a job, if it still lives the same life.
    WorkerKilledByJob { worker: usize, life: u32 },
    /// A worker stops standing still, if it still lives the same life.
    WorkerThaw { worker: usize, life: u32 },
    /// A worker that died or left comes back.
    WorkerRestart(usize),
    /// A node stops standing still, if it still lives the same life.
    Thaw { node: usize, life: u32 },
    /// A crashed node comes back.
    Restart(usize),
    /// A node reaches the store again.
    Reconnect(usize),
    /// A target that accepted an attempt reports.
    Report(AttemptRef, Outcome),
    /// A request arrives at the store after its time.
    LateWrite(LateWrite),
    /// Somebody looks at the whole.
    Inspection,
    /// No more faults.
    FaultsOver,
    /// Whatever was halted or paused goes on.
    LetGo,
}

/// See the module.
pub struct Cluster {
    pub rng: StdRng,
    started: Instant,
    /// What the clock of each node is ahead of the real time, in milliseconds.
    pub clocks_ahead_ms: [i64; NODES],
    /// The latest that any of them has ever shown.
    pub latest: Timestamp,
    pub model: ModelStore,
    pub checks: Checks,
    pub schedule_checks: ScheduleChecks,
    pub workflow_checks: WorkflowChecks,
    pub injected: Injected,
    /// The first invariant that did not hold.
    pub violation: Option<Violation>,
    /// The latest process of each node.
    pub processes: [Weak<Process>; NODES],
    /// The latest session of each node.
    pub sessions: [Option<SessionId>; NODES],
    /// Which nodes do not reach the store.
    pub cut_off: [bool; NODES],
    /// What is at its target now, and who sent it there.
    pub executing: BTreeMap<(JobId, u32), usize>,
    /// What is written now comes when nobody waits for it any more.
    pub is_late: bool,
    /// Requests of clients that are not answered yet.
    pub open_requests: usize,
    pub freezes_wanted: BTreeSet<usize>,
    happenings: BTreeMap<(Instant, u64), Happening>,
    /// Tells the world that something is to happen that it may not know of.
    pub changed: Arc<Notify>,
    number: u64,
}

/// The cluster in the hands of its many parts. All of them run in one thread.
#[derive(Clone)]
pub struct SharedCluster(Arc<Mutex<Cluster>>);

impl SharedCluster {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Cluster::new(seed))))
    }

    pub fn lock(&self) -> MutexGuard<'_, Cluster> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        Self {
            started: Instant::now(),
            clocks_ahead_ms: [(); NODES].map(|()| rng.random_range(-CLOCK_OFFSET_MS..=CLOCK_OFFSET_MS)),
            rng,
            latest: START,
            model: ModelStore::new(),
            checks: Checks::default(),
            schedule_checks: ScheduleChecks::default(),
            workflow_checks: WorkflowChecks::default(),
            injected: Injected::default(),
            violation: None,
            processes: Default::default(),
            sessions: [None; NODES],
            cut_off: [false; NODES],
            executing: BTreeMap::new(),
            is_late: false,
            open_requests: 0,
            freezes_wanted: BTreeSet::new(),
            happenings: BTreeMap::new(),
            changed: Arc::new(Notify::new()),
            number: 0,
        }
    }

    // --- time -----------------------------------------------------------------------------------------------

    /// How long the world has existed.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Time as it really passes, and as the store sees it.
    pub fn real(&self) -> Timestamp {
        START + self.age()
    }

    /// What the clock of a node shows.
    pub fn now_of(&mut self, node: usize) -> Timestamp {
        let now = Timestamp::from_millis(self.real().as_millis() + self.clocks_ahead_ms[node]);
        self.latest = self.latest.max(now);
        now
    }

    pub fn faults_are_over(&self) -> bool {
        self.age() >= Duration::from_millis(FAULTS_STOP_MS)
    }

    pub fn at(&mut self, delay_ms: u64, happening: Happening) {
        let (at, number) = (Instant::now() + Duration::from_millis(delay_ms), self.next_number());
        self.happenings.insert((at, number), happening);
        self.changed.notify_one();
    }

    /// When something happens next.
    pub fn next_at(&self) -> Option<Instant> {
        self.happenings.first_key_value().map(|((at, _), _)| *at)
    }

    /// What happens now.
    pub fn next_happening(&mut self) -> Option<Happening> {
        let due = self.next_at()? <= Instant::now();
        due.then(|| self.happenings.pop_first()).flatten().map(|(_, happening)| happening)
    }

    // --- chance ---------------------------------------------------------------------------------------------

    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    /// While there are faults, this one strikes so often.
    pub fn goes_wrong(&mut self, fault: FaultKind, percent: u32) -> bool {
        let strikes = self.chance(percent) && !self.faults_are_over();
        if strikes {
            self.injected.count(fault);
        }
        strikes
    }

    /// How long a message takes: mostly no time to speak of, now and then very long.
    pub fn some_delay(&mut self) -> Duration {
        let slow = self.chance(3);
        if slow {
            self.injected.count(FaultKind::Slow);
        }
        Duration::from_millis(self.rng.random_range(0..if slow { 400 } else { 4 }))
    }

    pub fn some_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.rng.random_range(0..all.len())])
    }

    pub fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    // --- checks ---------------------------------------------------------------------------------------------

    /// Remembers what a check found. The world ends with the first violation.
    pub fn check(&mut self, found: Result<(), Violation>) {
        if let Err(found) = found {
            self.violation.get_or_insert(found);
            self.changed.notify_one();
        }
    }

    pub fn violated(&mut self, invariant: &'static str, what: String) {
        let found = violation(invariant, self.real(), what);
        self.check(Err(found));
    }
}
