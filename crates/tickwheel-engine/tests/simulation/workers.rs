//! Workers: processes that ask the nodes for jobs, as a library would, over a network that loses what they say and hear.
//!
//! Each repeats what was not answered: a registration with its instance, a poll with its number, a report until it is
//! recorded or stale. It starts nothing unless it can prove its lease, and says with every heartbeat how much it has.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::RngExt;
use tickwheel_core::matching::{Demand, Labels};
use tickwheel_core::ports::{
    AttemptContext, BeatAnswer, Leaving, Poll, PollAnswer, SchedulerError, WorkerBeat, WorkerReport, Workers,
};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::{NewWorker, WorkerProfile};
use tickwheel_core::{JobId, SessionId};
use tickwheel_testkit::fixtures::job_id;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
// sleep: in simulated time, which passes when nobody has anything to do
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::client::{DEADLY, QUEUES, WORK};
use crate::cluster::{Cluster, Happening, SharedCluster};
use crate::injected::FaultKind;
use crate::node::Process;
use crate::tasks::Tasks;
use crate::world::World;
use crate::{LEASE, WORKERS};

/// So many jobs a worker runs at once.
const CAPACITY: usize = 4;
/// How long a poll waits for a job.
const POLL_WAIT: Duration = Duration::from_millis(700);
/// How long a full worker waits for news before it counts its places again.
const FULL_WAIT: Duration = Duration::from_millis(100);
/// After this time nobody waits for an answer any longer.
const PATIENCE: Duration = Duration::from_millis(1_200);
/// How long a worker waits before it repeats a call.
const PAUSE: Duration = Duration::from_millis(50);
/// In so many of a hundred calls the request is lost, and in as many the answer.
const LOSS_PERCENT: u32 = 6;

/// A worker, and the process that is it now.
pub struct RemoteWorker {
    number: usize,
    cluster: SharedCluster,
    /// Grows with every start.
    life: u32,
    /// None: it is gone.
    program: Option<Arc<Program>>,
}

impl RemoteWorker {
    pub fn new(number: usize, cluster: SharedCluster) -> Self {
        Self { number, cluster, life: 0, program: None }
    }

    /// A process starts with empty hands.
    pub fn start(&mut self) {
        if self.program.is_some() {
            return;
        }
        self.life += 1;
        let program = Arc::new(Program {
            number: self.number,
            life: self.life,
            instance: self.cluster.lock().some_uuid(),
            tasks: Tasks::new(self.cluster.clone()),
            cluster: self.cluster.clone(),
            hands: Mutex::new(Hands { held: BTreeMap::new(), provable_until: Instant::now(), session: None }),
        });
        program.tasks.spawn(Box::pin(program.clone().run()));
        self.program = Some(program);
    }

    pub fn thaw(&self, life: u32) {
        if let Some(program) = self.program.as_ref().filter(|program| program.life == life) {
            program.tasks.thaw();
        }
    }

    /// From now on nothing happens to it.
    pub fn recover(&mut self) {
        self.thaw(self.life);
        self.start();
    }

    /// Its process is gone.
    fn end(&mut self) -> Option<Arc<Program>> {
        let program = self.program.take()?;
        program.tasks.end();
        let back_in = self.cluster.lock().rng.random_range(10..3_000);
        self.cluster.lock().at(back_in, Happening::WorkerRestart(self.number));
        Some(program)
    }
}

impl World {
    /// Something happens to a worker.
    pub fn worker_fault_strikes(&mut self) {
        let (worker, which) = {
            let mut cluster = self.cluster.lock();
            (cluster.rng.random_range(0..WORKERS), cluster.rng.random_range(0..3))
        };
        let worker = &mut self.workers[worker];
        if worker.program.is_none() {
            return;
        }
        match which {
            0 => worker.crash(FaultKind::WorkerCrash),
            1 => worker.freeze(),
            _ => worker.leave(),
        }
    }

    pub fn worker_dies_of_job(&mut self, worker: usize, life: u32) {
        if self.workers[worker].life == life && !self.cluster.lock().faults_are_over() {
            self.workers[worker].crash(FaultKind::WorkerKilledByJob);
        }
    }
}

impl RemoteWorker {
    /// It is gone, and nobody is told.
    fn crash(&mut self, fault: FaultKind) {
        if self.end().is_some() {
            self.cluster.lock().injected.count(fault);
        }
    }

    fn freeze(&self) {
        let Some(program) = &self.program else { return };
        program.tasks.freeze();
        let mut cluster = self.cluster.lock();
        cluster.injected.count(FaultKind::WorkerFreeze);
        let for_ms = cluster.rng.random_range(10..LEASE.as_millis() as u64 * 3);
        cluster.at(for_ms, Happening::WorkerThaw { worker: self.number, life: program.life });
    }

    /// It ends its handlers, says so, and is gone. What it says may be lost.
    fn leave(&mut self) {
        let Some(program) = self.end() else { return };
        self.cluster.lock().injected.count(FaultKind::WorkerLeaves);
        let leaving = if self.cluster.lock().chance(50) { Leaving::Drained } else { Leaving::Crashed };
        let session = lock(&program.hands).session;
        tokio::spawn(async move {
            if let Some(id) = session {
                let _ = program.call(async move |workers| workers.leave(id, leaving).await).await;
            }
        });
    }
}

/// One process, from its start to its end.
struct Program {
    number: usize,
    life: u32,
    instance: Uuid,
    cluster: SharedCluster,
    tasks: Tasks,
    hands: Mutex<Hands>,
}

/// What it has.
struct Hands {
    session: Option<SessionId>,
    held: BTreeMap<(JobId, u32), Attempt>,
    /// Until then nobody can have taken its jobs away.
    provable_until: Instant,
}

struct Attempt {
    is_cancelled: bool,
    handler: Option<JoinHandle<()>>,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(handler) = &self.handler {
            handler.abort();
        }
    }
}

/// Ends a request whose client is gone.
struct HangUp(JoinHandle<()>);

impl Drop for HangUp {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn lock(hands: &Mutex<Hands>) -> MutexGuard<'_, Hands> {
    hands.lock().unwrap_or_else(PoisonError::into_inner)
}

const fn key(attempt: AttemptRef) -> (JobId, u32) {
    (attempt.job_id, attempt.attempt)
}

impl Program {
    async fn run(self: Arc<Self>) {
        loop {
            let asked_at = Instant::now();
            let Some(id) = self.register().await else {
                sleep(PAUSE).await;
                continue;
            };
            {
                let mut hands = lock(&self.hands);
                hands.session = Some(id);
                hands.provable_until = asked_at + LEASE;
            }
            // Both end when the session has.
            tokio::select! {
                biased;
                () = self.beat(id) => {}
                () = self.poll(id) => {}
            }
            // All of it is lost: nothing is reported.
            let held = std::mem::take(&mut lock(&self.hands).held);
            drop(held);
        }
    }

    async fn register(&self) -> Option<SessionId> {
        let profile = Arc::new(WorkerProfile {
            name: format!("worker-{}", self.number),
            // The second one serves less.
            queues: QUEUES[self.number..].iter().map(|queue| (*queue).into()).collect(),
            types: vec![WORK.into(), format!("{WORK}{DEADLY}").into()],
            labels: Labels::new(),
            capacity: CAPACITY as u32,
            lease_ms: LEASE.as_millis() as u64,
            executors: Vec::new(),
            library: None,
            host: None,
            pid: None,
        });
        let id = SessionId::from_uuid(self.cluster.lock().some_uuid());
        let worker = NewWorker { id, instance: Some(self.instance), profile };
        let session = self.call(async move |workers| workers.register(worker).await).await?;
        session.ok().map(|session| session.id)
    }

    /// Keeps the lease, until the session has ended.
    async fn beat(&self, id: SessionId) {
        let mut lists_all = false;
        loop {
            sleep(LEASE / 3).await;
            let beat = self.some_beat(lists_all);
            let asked_at = Instant::now();
            let answer: Option<Result<Option<BeatAnswer>, SchedulerError>> =
                self.call(async move |workers| workers.beat(id, beat).await).await;
            match answer {
                Some(Ok(None)) => return,
                Some(Ok(Some(answer))) => {
                    lock(&self.hands).provable_until = asked_at + LEASE;
                    lists_all = answer.resync;
                    self.hears(&answer.cancel, &answer.lost);
                }
                Some(Err(_)) | None => {}
            }
        }
    }

    fn some_beat(&self, lists_all: bool) -> WorkerBeat {
        let hands = lock(&self.hands);
        let all =
            || hands.held.keys().map(|(job_id, attempt)| AttemptRef { job_id: *job_id, attempt: *attempt });
        WorkerBeat {
            held: Some(hands.held.len() as u64),
            all: lists_all.then(|| all().collect()),
            ..WorkerBeat::default()
        }
    }

    /// Asks for jobs, until the session has ended.
    async fn poll(self: &Arc<Self>, id: SessionId) {
        let mut seq = 1;
        loop {
            let free = CAPACITY.saturating_sub(lock(&self.hands).held.len());
            let wait = if free == 0 { FULL_WAIT } else { POLL_WAIT };
            let demand = Demand { jobs_max: free, ..Demand::default() };
            let poll = Poll { demand, seq: Some(seq), wait };
            let answer: Option<Result<Option<PollAnswer>, SchedulerError>> =
                self.call(async move |workers| workers.poll(id, poll).await).await;
            match answer {
                Some(Ok(None)) => return,
                Some(Ok(Some(answer))) => {
                    seq += 1;
                    self.hears(&answer.cancel, &answer.lost);
                    answer.jobs.into_iter().for_each(|given| self.receive(given));
                    sleep(Duration::from_millis(1)).await;
                }
                Some(Err(_)) | None => sleep(PAUSE).await,
            }
        }
    }

    fn hears(&self, cancel: &[AttemptRef], lost: &[AttemptRef]) {
        let mut hands = lock(&self.hands);
        for attempt in cancel {
            if let Some(held) = hands.held.get_mut(&key(*attempt)) {
                held.is_cancelled = true;
            }
        }
        let gone: Vec<Attempt> =
            lost.iter().filter_map(|attempt| hands.held.remove(&key(*attempt))).collect();
        drop(hands);
        drop(gone);
    }

    fn receive(self: &Arc<Self>, given: AttemptContext) {
        let attempt = (given.job.id, given.job.attempt);
        {
            let mut hands = lock(&self.hands);
            if hands.held.contains_key(&attempt) {
                return;
            }
            if Instant::now() >= hands.provable_until {
                self.cluster.lock().injected.count(FaultKind::WorkerTooLate);
                return;
            }
            hands.held.insert(attempt, Attempt { is_cancelled: false, handler: None });
        }
        let (this, of_whom) = (self.clone(), attempt);
        let handler = self.tasks.spawn(Box::pin(async move { this.handle(&given, of_whom).await }));
        if let Some(held) = lock(&self.hands).held.get_mut(&attempt) {
            held.handler = Some(handler);
        }
    }

    async fn handle(self: Arc<Self>, given: &AttemptContext, attempt: (JobId, u32)) {
        let (takes, outcome) = {
            let mut cluster = self.cluster.lock();
            let now = cluster.real();
            let found = cluster.checks.started_by_worker(&given.job, now);
            cluster.check(found);
            cluster.some_outcome()
        };
        sleep(takes / 2).await;
        if given.job.job_type.ends_with(DEADLY) {
            let (worker, life) = (self.number, self.life);
            self.cluster.lock().at(0, Happening::WorkerKilledByJob { worker, life });
        }
        sleep(takes / 2).await;
        let is_cancelled = lock(&self.hands).held.get(&attempt).is_some_and(|held| held.is_cancelled);
        match outcome {
            _ if is_cancelled => self.report(attempt, Outcome::Cancelled).await,
            // It hangs: the server ends it at its deadline, and says so.
            Outcome::TimedOut => std::future::pending().await,
            Outcome::Accepted => self.report(attempt, Outcome::Released).await,
            outcome => self.report(attempt, outcome).await,
        }
        // Ends this task, which has nothing left to do.
        let done = lock(&self.hands).held.remove(&attempt);
        drop(done);
    }

    /// Reports until somebody has heard of it.
    async fn report(&self, (job_id, attempt): (JobId, u32), outcome: Outcome) {
        let report = vec![(AttemptRef { job_id, attempt }, outcome)];
        loop {
            let again = report.clone();
            let answer: Option<Result<Vec<WorkerReport>, SchedulerError>> =
                self.call(async move |workers| workers.report(again).await).await;
            if let Some(Ok(answers)) = answer {
                if answers[0] == WorkerReport::NotFound {
                    self.cluster.lock().violated("I1", format!("{job_id} ran, and is not known"));
                }
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks some node. `None`: nobody knows whether it was done.
    async fn call<T: Send + 'static, F: Future<Output = T> + Send>(
        &self,
        ask: impl FnOnce(Arc<dyn Workers>) -> F + Send + 'static,
    ) -> Option<T> {
        let (delay, process, is_lost, hangs_up) = {
            let mut cluster = self.cluster.lock();
            let delay = cluster.some_delay();
            let is_lost = cluster.goes_wrong(FaultKind::WorkerCallLost, LOSS_PERCENT);
            (delay, cluster.some_node(), is_lost, cluster.chance(50))
        };
        sleep(delay).await;
        let workers =
            process.as_ref().filter(|_| !is_lost).and_then(|node| node.with_engine(|it| it.workers()));
        let (Some(process), Some(workers)) = (process, workers) else {
            sleep(PAUSE).await;
            return None;
        };
        let (answer, heard) = oneshot::channel();
        let request = process.accept(async move { drop(answer.send(ask(workers).await)) });
        let hang_up = hangs_up.then(|| HangUp(request));
        let answer = timeout(PATIENCE, heard).await;
        drop(hang_up);
        let is_lost = self.cluster.lock().goes_wrong(FaultKind::WorkerAnswerLost, LOSS_PERCENT);
        answer.ok()?.ok().filter(|_| !is_lost)
    }
}

impl Cluster {
    /// One of the nodes, if it works.
    fn some_node(&mut self) -> Option<Arc<Process>> {
        let working: Vec<Arc<Process>> = self.processes.iter().filter_map(std::sync::Weak::upgrade).collect();
        let which = self.rng.random_range(0..working.len().max(1));
        working.get(which).cloned()
    }

    fn some_uuid(&mut self) -> Uuid {
        let (now, number) = (self.real(), self.next_number());
        job_id(now, number).as_uuid()
    }
}
