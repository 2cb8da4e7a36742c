//! The shell around the machine: feeds it events and time, performs its loads, passes its claims on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tickwheel_core::machine::{Effect, Event, Load, Machine};
use tickwheel_core::ports::{Clock, DueJob, LoadDue, Scheduled, Store};
use tickwheel_core::{Job, JobId, State, TargetKind, Timestamp};
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

/// Where the planner is told things.
#[derive(Clone)]
pub struct PlannerHandle {
    inbox: mpsc::Sender<Message>,
    kinds: Arc<[TargetKind]>,
}

impl PlannerHandle {
    /// A handle and what the loop reads from. Only jobs for one of `kinds` of target are planned here.
    pub fn new(kinds: Arc<[TargetKind]>) -> (Self, mpsc::Receiver<Message>) {
        let (inbox, messages) = mpsc::channel(INBOX_LEN_MAX);
        (Self { inbox, kinds }, messages)
    }

    /// Passes an event on. A planner that has stopped needs none.
    pub async fn tell(&self, event: Event) {
        let _ = self.inbox.send(Message::Event(event)).await;
    }

    /// The job as the planner wants to know it, if it waits and can be run here.
    pub fn if_waiting(&self, job: &Job) -> Option<DueJob> {
        let wanted = job.state == State::Scheduled && self.kinds.contains(&job.spec.target.kind());
        wanted.then(|| DueJob::from(job))
    }

    /// The job as the planner has to know it, if it is run here.
    pub fn if_run_here(&self, job: Scheduled) -> Option<DueJob> {
        self.kinds.contains(&job.target).then_some(job.due)
    }

    /// Tells how a changed job stands now.
    pub async fn job_changed(&self, job: &Job) {
        match self.if_waiting(job) {
            Some(due) => self.tell(Event::Learned(vec![due])).await,
            None => self.tell(Event::Forgotten(job.id)).await,
        }
    }

    /// What the planner sees.
    pub async fn snapshot(&self) -> PlannerSnapshot {
        let (answer, answered) = oneshot::channel();
        let _ = self.inbox.send(Message::Snapshot(answer)).await;
        answered.await.unwrap_or_default()
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
