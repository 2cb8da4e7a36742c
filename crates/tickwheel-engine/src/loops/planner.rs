//! The shell around the machine: feeds it events and time, performs its loads, passes its claims on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tickwheel_core::id::{IdMap, IdSet};
use tickwheel_core::machine::{ClaimRequest, Effect, Event, Load, Machine};
use tickwheel_core::matching::{Class, Demand, Offer, Route};
use tickwheel_core::ports::{Clock, DueJob, JobStore, Scheduled};
use tickwheel_core::{JobId, RouteId, SessionId, TargetKind, Timestamp};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::running::Running;
use crate::store_watch::StoreWatch;

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

/// Both ways to the planner, and what its loop reads from. Only jobs for workers and for one of `kinds` of target are
/// planned here.
pub fn channel(kinds: Arc<[TargetKind]>) -> (PlannerEvents, PlannerHandle, mpsc::Receiver<Message>) {
    let (inbox, messages) = mpsc::channel(INBOX_LEN_MAX);
    let events = PlannerEvents { inbox: inbox.clone(), kinds, routes: Mutex::default() };
    (events, PlannerHandle(inbox), messages)
}

/// What happened, for the machine. Not `Clone`: the [`Announcer`](crate::announcer::Announcer) has it, and is told what
/// happened.
pub struct PlannerEvents {
    inbox: mpsc::Sender<Message>,
    kinds: Arc<[TargetKind]>,
    /// Locked until the machine is told, so that it hears in the order in which this changes.
    routes: Mutex<KnownRoutes>,
}

/// The routes that the machine knows. One that the store does not have any more is forgotten, unless it was learned
/// since somebody began to ask the store: a job may have come with it meanwhile.
#[derive(Default)]
struct KnownRoutes {
    /// How often somebody began to ask.
    asked: u64,
    /// Of each route, how often somebody had begun to ask when it was last learned.
    learned: IdMap<RouteId, u64>,
}

impl KnownRoutes {
    /// Says which of the routes are new.
    fn learn(&mut self, mut routes: Vec<Arc<Route>>) -> Vec<Arc<Route>> {
        let asked = self.asked;
        routes.retain(|route| self.learned.insert(route.id, asked).is_none());
        routes
    }

    /// Forgets all but these, which are what the store has according to the question of this number.
    fn forget_all_but(&mut self, routes: &[Arc<Route>], question: u64) -> IdSet<RouteId> {
        let kept: IdSet<RouteId> = routes.iter().map(|route| route.id).collect();
        let is_gone = |id: &RouteId, learned: &mut u64| *learned < question && !kept.contains(id);
        self.learned.extract_if(is_gone).map(|(id, _)| id).collect()
    }
}

impl PlannerEvents {
    /// Passes an event on. A planner that has stopped needs none.
    pub async fn tell(&self, event: Event) {
        let _ = self.inbox.send(Message::Event(event)).await;
    }

    /// Passes on those of the jobs that are run here, or by workers.
    pub async fn learned(&self, jobs: impl IntoIterator<Item = Scheduled>) {
        let is_here = |job: &Scheduled| job.due.class != Class::BuiltIn || self.kinds.contains(&job.target);
        let mut routes = Vec::new();
        let due = jobs.into_iter().filter(is_here).map(|job| {
            routes.extend(job.route);
            job.due
        });
        let due: Vec<DueJob> = due.collect();
        if !routes.is_empty() {
            self.routes_learned(routes).await;
        }
        if !due.is_empty() {
            self.tell(Event::Learned(due)).await;
        }
    }

    /// Passes on those of the routes that the machine does not know yet.
    async fn routes_learned(&self, routes: Vec<Arc<Route>>) {
        let mut known = self.routes.lock().await;
        let new = known.learn(routes);
        if !new.is_empty() {
            self.tell(Event::RoutesLearned(new)).await;
        }
    }

    /// Somebody is about to ask the store for its routes; the number of this question.
    pub async fn asking_for_routes(&self) -> u64 {
        let mut known = self.routes.lock().await;
        known.asked += 1;
        known.asked
    }

    /// Passes on what is different from what the machine knows, according to the answer to this question.
    pub async fn routes_read(&self, routes: Vec<Arc<Route>>, question: u64) {
        let mut known = self.routes.lock().await;
        let gone = known.forget_all_but(&routes, question);
        let new = known.learn(routes);
        if !gone.is_empty() {
            self.tell(Event::RoutesForgotten(gone)).await;
        }
        if !new.is_empty() {
            self.tell(Event::RoutesLearned(new)).await;
        }
    }
}

/// Answers the planner's claims, closes it, and asks what it sees.
#[derive(Clone)]
pub struct PlannerHandle(mpsc::Sender<Message>);

impl PlannerHandle {
    /// The answer to a claim: what of it was taken.
    pub async fn claimed(&self, claim: ClaimRequest, taken: IdSet<JobId>) {
        self.send(Event::Claimed { claim, taken }).await;
    }

    /// A claim certainly took nothing.
    pub async fn claim_failed(&self, claim: ClaimRequest) {
        self.send(Event::ClaimFailed(claim)).await;
    }

    /// A worker has a session here and can run what it offers.
    pub async fn session_opened(&self, session: SessionId, offer: Offer) {
        self.send(Event::SessionOpened(session, Arc::new(offer))).await;
    }

    /// A worker's session has ended.
    pub async fn session_closed(&self, session: SessionId) {
        self.send(Event::SessionClosed(session)).await;
    }

    /// A worker waits for this much.
    pub async fn demand_changed(&self, session: SessionId, demand: Demand) {
        self.send(Event::DemandChanged(session, demand)).await;
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

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct PlannerOptions {
    /// After this time the clock is asked again, whatever it said before: it may have been set.
    pub wait_max: Duration,
}

impl Default for PlannerOptions {
    fn default() -> Self {
        Self { wait_max: Duration::from_secs(1) }
    }
}

/// Loads under way; each ends with an event for the machine.
pub type Loads = FuturesUnordered<BoxFuture<'static, Event>>;

/// See the module.
pub struct Planner {
    pub options: PlannerOptions,
    pub machine: Machine,
    pub store: Arc<dyn JobStore>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub kinds: Arc<[TargetKind]>,
    pub running: Running,
    pub claims: mpsc::Sender<ClaimRequest>,
    pub alarm: Alarm,
    pub loads: Loads,
    /// Empty between two events: its room is used again.
    pub effects: Vec<Effect>,
}

impl Planner {
    /// Runs until every handle is gone.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        let running = self.running.clone();
        let mut event = Event::Tick;
        let mut wake_at = None;
        loop {
            self.run_once(event, self.clock.now()).await;
            event = loop {
                wake_at = Some(self.set_alarm(wake_at));
                // The inbox comes last, for it may never be empty. None of the others can starve it: the alarm rings once
                // for each time it is set, and loads and freed slots come of what the machine asked for.
                tokio::select! {
                    biased;
                    () = self.alarm.rings() => {
                        wake_at = None;
                        break Event::Tick;
                    }
                    freed = running.slots_freed() => break Event::SlotsFreed(freed),
                    Some(event) = self.loads.next(), if !self.loads.is_empty() => break event,
                    message = inbox.recv() => match message {
                        Some(Message::Event(event)) => break event,
                        Some(Message::Snapshot(answer)) => drop(answer.send(self.snapshot())),
                        None => return,
                    },
                }
            };
        }
    }

    /// Hands an event to the machine and performs what it asks for: begins its loads, passes its claims on.
    pub async fn run_once(&mut self, event: Event, now: Timestamp) {
        let mut effects = std::mem::take(&mut self.effects);
        self.machine.handle(event, now, &mut effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Load(load) => {
                    let (kinds, store, watch) = (self.kinds.clone(), self.store.clone(), self.watch.clone());
                    self.loads.push(Box::pin(perform_load(load, kinds, store, watch)));
                }
                // The dispatcher takes whatever comes: this waits for it, but not for any claim.
                Effect::Claim(claim) => {
                    let _ = self.claims.send(claim).await;
                }
            }
        }
        self.effects = effects;
    }

    /// Sets the alarm if the moment to wake up is not `set` already; says which it is now.
    fn set_alarm(&self, set: Option<Timestamp>) -> Timestamp {
        let wake = self.machine.next_wake();
        if set != Some(wake) {
            // The longest wait is short: the machine sweeps every second or so.
            self.alarm.set(Instant::now() + self.clock.until(wake).min(self.options.wait_max));
        }
        wake
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
    store: Arc<dyn JobStore>,
    watch: StoreWatch,
) -> Event {
    match store.load_due(load.due, &kinds).await {
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

#[cfg(test)]
mod tests {
    use tickwheel_core::machine::MachineOptions;
    use tickwheel_core::matching::{Labels, Skill};
    use tickwheel_core::ports::{JobStore, PartitionSet};
    use tickwheel_testkit::fixtures::{at, job_numbered};
    use tickwheel_testkit::{ManualClock, ModelStore};

    use super::*;

    fn planner(store: &Arc<ModelStore>) -> (Planner, mpsc::Receiver<ClaimRequest>) {
        let (claims, claimed) = mpsc::channel(4);
        let planner = Planner {
            options: PlannerOptions::default(),
            machine: Machine::new(MachineOptions::default(), PartitionSet::ALL, at(0)),
            store: store.clone(),
            watch: StoreWatch::default(),
            clock: Arc::new(ManualClock::at(at(0))),
            kinds: [TargetKind::Http].into(),
            running: Running::default(),
            claims,
            alarm: Alarm::with_thread().unwrap(),
            loads: Loads::new(),
            effects: Vec::new(),
        };
        (planner, claimed)
    }

    #[tokio::test]
    async fn a_job_is_claimed_at_its_time_and_not_before() {
        let (mut planner, mut claims) = planner(&Arc::new(ModelStore::new()));
        let job = job_numbered(1).due_at(at(5_000)).build();
        planner.run_once(Event::Learned(vec![DueJob::from(&job)]), at(0)).await;
        planner.run_once(Event::Tick, at(4_999)).await;
        assert!(claims.try_recv().is_err());
        planner.run_once(Event::Tick, at(5_000)).await;
        assert_eq!(claims.try_recv().unwrap().jobs, [job.id]);
        planner.run_once(Event::Tick, at(5_001)).await;
        assert!(claims.try_recv().is_err(), "a claim is under way");
    }

    #[tokio::test]
    async fn what_nobody_told_is_loaded_from_the_store() {
        let store = Arc::new(ModelStore::new());
        let new = job_numbered(1).build_new();
        let id = new.job.id;
        store.submit_jobs(vec![new]).await.unwrap();
        let (mut planner, mut claims) = planner(&store);
        planner.run_once(Event::Tick, at(0)).await;
        while let Some(loaded) = planner.loads.next().await {
            planner.run_once(loaded, at(0)).await;
        }
        assert_eq!(claims.try_recv().unwrap().jobs, [id]);
    }

    #[tokio::test]
    async fn only_jobs_that_are_run_here_reach_the_machine() {
        let (events, _, mut inbox) = channel([TargetKind::Http].into());
        let job = Scheduled::from(&job_numbered(1).build());
        events.learned([Scheduled { target: TargetKind::Workflow, ..job.clone() }]).await;
        assert!(inbox.try_recv().is_err());
        events.learned([job]).await;
        assert!(matches!(inbox.try_recv(), Ok(Message::Event(Event::Learned(jobs))) if jobs.len() == 1));
    }

    fn route(job_type: &str) -> Arc<Route> {
        Arc::new(Route::new("default".into(), Skill::Handler(job_type.into()), Labels::new()))
    }

    fn events(inbox: &mut mpsc::Receiver<Message>) -> Vec<String> {
        let text = |message| match message {
            Message::Event(Event::RoutesLearned(routes)) => {
                let types: Vec<&str> =
                    routes.iter().filter_map(|route| route.job_type().map(|name| &**name)).collect();
                format!("learned {}", types.join(" "))
            }
            Message::Event(Event::RoutesForgotten(routes)) => format!("forgotten {}", routes.len()),
            _ => panic!("nothing else is told"),
        };
        std::iter::from_fn(|| inbox.try_recv().ok()).map(text).collect()
    }

    #[tokio::test]
    async fn a_route_that_the_store_does_not_have_any_more_is_forgotten() {
        let (events_to, _, mut inbox) = channel([].into());
        events_to.routes_learned(vec![route("a"), route("b")]).await;
        let question = events_to.asking_for_routes().await;
        events_to.routes_read(vec![route("b"), route("c")], question).await;
        assert_eq!(events(&mut inbox), ["learned a b", "forgotten 1", "learned c"]);
        events_to.routes_learned(vec![route("a"), route("b")]).await;
        assert_eq!(events(&mut inbox), ["learned a"], "it is new again");
    }

    /// Its job was stored after the store had answered.
    #[tokio::test]
    async fn a_route_that_is_learned_while_the_store_is_asked_is_not_forgotten() {
        let (events_to, _, mut inbox) = channel([].into());
        events_to.routes_learned(vec![route("known")]).await;
        let question = events_to.asking_for_routes().await;
        events_to.routes_learned(vec![route("new"), route("known")]).await;
        events_to.routes_read(Vec::new(), question).await;
        assert_eq!(events(&mut inbox), ["learned known", "learned new"]);
        let question = events_to.asking_for_routes().await;
        events_to.routes_read(Vec::new(), question).await;
        assert_eq!(events(&mut inbox), ["forgotten 2"]);
    }
}
