//! A task that ends passes its turn on: those that waited for nothing else are started by the transaction that writes its end.
//!
//! That saves them a transaction each to be let go and one to be claimed, and it is nothing but what the planner would do: it lends slots only if nobody
//! waits for a turn, and the store starts only what a claim would take. So the planner never hears of these tasks, unless they have to go again.
//!
//! If the store's answer is lost, tasks may run of which nobody here knows. The settlement is tried again, without leave to start anything; when that is answered,
//! the first try can have no effect any more, and whatever runs under our session without being known is ours to run. Claims under way
//! are not to be mistaken for that: so those that look like it are looked at again after the gate was closed for a moment.

use std::sync::Arc;
use std::time::Instant;

use tickwheel_core::id::IdSet;
use tickwheel_core::machine::Event;
use tickwheel_core::ports::{PartitionSet, StartTasks};
use tickwheel_core::settle::{Next, Settlement};
use tickwheel_core::{Job, JobId, SessionId};
use tokio::sync::OwnedRwLockReadGuard;

use crate::dispatcher::Dispatcher;
use crate::metrics;
use crate::settler::Unsettled;

/// See the module.
#[derive(Clone)]
pub struct PassingOn {
    pub dispatcher: Arc<Dispatcher>,
}

/// Leave to start the tasks that a batch of ends may let go. Slots are lent for all of them.
pub struct Leave {
    start: StartTasks,
    tasks: Vec<JobId>,
    gate: Arc<OwnedRwLockReadGuard<()>>,
}

impl Leave {
    /// What the store is to start.
    pub fn start(&self) -> StartTasks {
        self.start.clone()
    }
}

/// Tasks that may have been started: the store did not say.
pub struct Doubt {
    session: SessionId,
    tasks: Vec<JobId>,
}

impl From<Leave> for Doubt {
    fn from(leave: Leave) -> Self {
        Self { session: leave.start.session, tasks: leave.tasks }
    }
}

impl PassingOn {
    /// Asks for leave to start what these ends may let go.
    pub async fn ask(&self, batch: &[Unsettled], settlements: &[Settlement]) -> Option<Leave> {
        let mut tasks: IdSet<JobId> = IdSet::default();
        let mut partitions = PartitionSet::NONE;
        for (item, settlement) in batch.iter().zip(settlements) {
            if let (Next::Complete { .. }, Some(place)) = (&settlement.next, settlement.place()) {
                tasks.extend(place.child_ids());
                partitions = partitions.with(item.job.partition);
            }
        }
        let Dispatcher { planner, gate, lease, clock, .. } = &*self.dispatcher;
        if tasks.is_empty()
            || !lease.is_trusted(Instant::now())
            || !planner.lend_slots(tasks.len(), partitions).await
        {
            return None;
        }
        let gate = Arc::new(gate.clone().read_owned().await);
        let start = StartTasks { session: lease.session(), kinds: planner.kinds(), now: clock.now() };
        Some(Leave { start, tasks: tasks.into_iter().collect(), gate })
    }

    /// The store has started these: they are run, and the other slots are given back.
    pub async fn run(&self, leave: Leave, started: Vec<Job>) {
        self.run_and_give_back(leave.tasks.len(), started, &leave.gate).await;
    }

    /// Whatever was started without our hearing of it is run.
    pub async fn resolve(&self, doubt: Doubt) {
        let suspects = self.read_unknown(&doubt).await;
        // Whoever had taken one of them when they were read has started it when the gate is closed.
        drop(self.dispatcher.gate.write().await);
        let gate = Arc::new(self.dispatcher.gate.clone().read_owned().await);
        let is_suspect = |job: &Job| suspects.iter().any(|s| (s.id, s.attempt) == (job.id, job.attempt));
        let ours: Vec<Job> = self.read_unknown(&doubt).await.into_iter().filter(is_suspect).collect();
        tracing::info!(tasks = ours.len(), "a settlement lost its answer, and these had been started by it");
        self.run_and_give_back(doubt.tasks.len(), ours, &gate).await;
    }

    /// Tasks that run under our session in an attempt that was not known here before they were read.
    async fn read_unknown(&self, doubt: &Doubt) -> Vec<Job> {
        let known = self.dispatcher.running.attempts_of(&doubt.tasks);
        self.dispatcher.read_ours(&doubt.tasks, doubt.session, &known).await
    }

    /// Nothing was started for certain.
    pub async fn refuse(&self, leave: Leave) {
        self.give_back(leave.tasks.len()).await;
    }

    async fn run_and_give_back(&self, slots: usize, started: Vec<Job>, gate: &Arc<OwnedRwLockReadGuard<()>>) {
        let unused = slots - started.len();
        metrics::passed_on(started.len());
        self.dispatcher.start_all(started, gate);
        self.give_back(unused).await;
    }

    async fn give_back(&self, slots: usize) {
        if slots > 0 {
            self.dispatcher.planner.tell(Event::SlotsFreed(slots)).await;
        }
    }
}
