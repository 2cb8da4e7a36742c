//! The shell around the machine: feeds it events and time, performs its loads, passes its claims on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tickwheel_core::id::IdSet;
use tickwheel_core::machine::{Effect, Event, Load, Machine};
use tickwheel_core::ports::{Clock, DueJob, LoadDue, Scheduled, Store};
use tickwheel_core::{JobId, TargetKind, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::alarm::Alarm;
use crate::running::Running;
use crate::store_watch::StoreWatch;

/// After this time the clock is asked again, whatever it said before: it may have been set.
const WAIT_MAX: Duration = Duration::from_secs(1);
const INBOX_LEN_MAX: usize = 4_096;

/// What the planner sees of its machine, for people.
#[derive(Clone, Debug, Default)]
pub struct PlannerSnapshot {
    pub halted: bool,
    pub slots_free: usize,
    pub waiting: HashMap<Arc<str>, u64>,
}

pub enum Message {
    Event(Event),
    Snapshot(oneshot::Sender<PlannerSnapshot>),
}

/// Both ways to the planner, and what its loop reads from. Only jobs for one of `kinds` of target are planned here.
pub fn channel(kinds: Arc<[TargetKind]>) -> (PlannerEvents, PlannerHandle, mpsc::Receiver<Message>) {
    let (inbox, messages) = mpsc::channel(INBOX_LEN_MAX);
    (PlannerEvents { inbox: inbox.clone(), kinds }, PlannerHandle(inbox), messages)
}

/// What happened, for the machine. Not `Clone`: the [`Announcer`](crate::announcer::Announcer) has it, and is told what
/// happened.
pub struct PlannerEvents {
    inbox: mpsc::Sender<Message>,
    kinds: Arc<[TargetKind]>,
}

impl PlannerEvents {
    /// Passes an event on. A planner that has stopped needs none.
    pub async fn tell(&self, event: Event) {
        let _ = self.inbox.send(Message::Event(event)).await;
    }

    /// Passes on those of the jobs that are run here.
    pub async fn learned(&self, jobs: impl IntoIterator<Item = Scheduled>) {
        let here = |job: Scheduled| self.kinds.contains(&job.target).then_some(job.due);
        let due: Vec<DueJob> = jobs.into_iter().filter_map(here).collect();
        if !due.is_empty() {
            self.tell(Event::Learned(due)).await;
        }
    }
}

/// Answers the planner's claims, closes it, and asks what it sees.
#[derive(Clone)]
pub struct PlannerHandle(mpsc::Sender<Message>);

impl PlannerHandle {
    /// The answer to a claim: what of it was taken.
    pub async fn claimed(&self, asked: Vec<JobId>, taken: IdSet<JobId>) {
        self.send(Event::Claimed { asked, taken }).await;
    }

    /// A claim certainly took nothing.
    pub async fn claim_failed(&self, asked: Vec<JobId>) {
        self.send(Event::ClaimFailed(asked)).await;
    }

    /// Nothing more is claimed from now on.
    pub async fn close(&self) {
        self.send(Event::Closed).await;
    }

    /// What the planner sees.
    pub async fn snapshot(&self) -> PlannerSnapshot {
        let (answer, answered) = oneshot::channel();
        let _ = self.0.send(Message::Snapshot(answer)).await;
        answered.await.unwrap_or_default()
    }

    async fn send(&self, event: Event) {
        let _ = self.0.send(Message::Event(event)).await;
    }
}

/// See the module.
pub struct Planner {
    pub machine: Machine,
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub kinds: Arc<[TargetKind]>,
    pub running: Running,
    pub claims: mpsc::Sender<Vec<JobId>>,
    pub alarm: Alarm,
}

impl Planner {
    /// Runs until every handle is gone.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        let mut loads: FuturesUnordered<BoxFuture<'static, Event>> = FuturesUnordered::new();
        let mut effects = Vec::new();
        let running = self.running.clone();
        let mut wake_at = None;
        self.machine.handle(Event::Tick, self.clock.now(), &mut effects);
        loop {
            self.perform(&mut effects, &mut loads).await;
            wake_at = Some(self.set_alarm(wake_at));
            let event = tokio::select! {
                message = inbox.recv() => match message {
                    Some(Message::Event(event)) => event,
                    Some(Message::Snapshot(answer)) => {
                        let _ = answer.send(self.snapshot());
                        continue;
                    }
                    None => return,
                },
                Some(event) = loads.next(), if !loads.is_empty() => event,
                freed = running.slots_freed() => Event::SlotsFreed(freed),
                () = self.alarm.rings() => {
                    wake_at = None;
                    Event::Tick
                }
            };
            self.machine.handle(event, self.clock.now(), &mut effects);
        }
    }

    /// Sets the alarm if the moment to wake up is not `set` already; says which it is now.
    fn set_alarm(&self, set: Option<Timestamp>) -> Timestamp {
        let wake = self.machine.next_wake();
        if set != Some(wake) {
            // The longest wait is short: the machine sweeps every second or so.
            self.alarm.set(Instant::now() + self.clock.until(wake).min(WAIT_MAX));
        }
        wake
    }

    async fn perform(
        &self,
        effects: &mut Vec<Effect>,
        loads: &mut FuturesUnordered<BoxFuture<'static, Event>>,
    ) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Load(load) => {
                    let (kinds, store, watch) = (self.kinds.clone(), self.store.clone(), self.watch.clone());
                    loads.push(Box::pin(perform_load(load, kinds, store, watch)));
                }
                // The machine keeps to its number of claims under way, so this never waits.
                Effect::Claim(ids) => {
                    let _ = self.claims.send(ids).await;
                }
            }
        }
    }

    fn snapshot(&self) -> PlannerSnapshot {
        let waiting = self.machine.waiting_by_queue().map(|(queue, len)| (queue.clone(), len as u64));
        PlannerSnapshot {
            halted: self.machine.is_halted(),
            slots_free: self.machine.slots_free(),
            waiting: waiting.collect(),
        }
    }
}

async fn perform_load(
    load: Load,
    kinds: Arc<[TargetKind]>,
    store: Arc<dyn Store>,
    watch: StoreWatch,
) -> Event {
    let wanted = LoadDue {
        priority: load.priority,
        partitions: load.partitions,
        kinds: kinds.to_vec(),
        after: load.after,
        until: load.until,
        limit: load.limit,
    };
    match store.load_due(wanted).await {
        Ok(jobs) => {
            watch.succeeded("load");
            Event::Loaded(load, jobs)
        }
        Err(error) => {
            watch.wait_after("load", &error).await;
            Event::LoadFailed(load)
        }
    }
}
