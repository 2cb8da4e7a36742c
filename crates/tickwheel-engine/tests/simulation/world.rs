//! A world: what happens in it and when, until everything has come to its end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tokio::time::sleep_until;

use crate::cluster::{Happening, SharedCluster};
use crate::commits::is_held_up;
use crate::dependencies::everybody_waits_rightly;
use crate::injected::Injected;
use crate::node::{Node, Process};
use crate::workers::RemoteWorker;
use crate::{CLIENTS_STOP_MS, END_MS, FAULTS_STOP_MS, NODES, Violation, WORKERS};

/// How long a cluster without faults may take to answer what clients asked for before, in milliseconds.
const LET_GO_AFTER_MS: u64 = 500;
/// How often somebody looks at the whole, in milliseconds.
const INSPECTION_MS: u64 = 100;

/// What a run was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Jobs that were stored.
    pub jobs: usize,
    /// Attempts that were sent.
    pub attempts: usize,
    /// Backfills that were completed.
    pub backfills: usize,
    /// Runs of workflows.
    pub runs: usize,
    /// Steps of runs that were written.
    pub run_steps: usize,
    /// How often one of them was paused.
    pub run_pauses: usize,
    /// What went wrong, by kind.
    pub injected: Injected,
    /// How long it took, in milliseconds of its own time.
    pub age_ms: u128,
}

impl Report {
    /// All of another world.
    pub fn add(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.attempts += other.attempts;
        self.backfills += other.backfills;
        self.runs += other.runs;
        self.run_steps += other.run_steps;
        self.run_pauses += other.run_pauses;
        self.injected.add(&other.injected);
        self.age_ms += other.age_ms;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { jobs, attempts, backfills, runs, run_steps, run_pauses, .. } = self;
        write!(f, "{jobs} jobs, {attempts} attempts, {backfills} backfills, ")?;
        write!(f, "{runs} runs in {run_steps} steps, {run_pauses} paused, {} s of time", self.age_ms / 1_000)
    }
}

/// See the module.
pub struct World {
    pub cluster: SharedCluster,
    pub nodes: Vec<Node>,
    pub workers: Vec<RemoteWorker>,
    /// Nobody is held by clients any more.
    let_go: bool,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let cluster = SharedCluster::new(seed);
        let mut nodes: Vec<Node> = (0..NODES).map(|number| Node::new(number, cluster.clone())).collect();
        nodes.iter_mut().for_each(Node::start);
        let mut workers: Vec<RemoteWorker> =
            (0..WORKERS).map(|number| RemoteWorker::new(number, cluster.clone())).collect();
        workers.iter_mut().for_each(RemoteWorker::start);
        {
            let mut cluster = cluster.lock();
            for _ in 0..cluster.rng.random_range(22..64) {
                let at = cluster.rng.random_range(0..CLIENTS_STOP_MS);
                cluster.at(at, Happening::Client);
            }
            for _ in 0..cluster.rng.random_range(0..12) {
                let at = cluster.rng.random_range(0..FAULTS_STOP_MS);
                cluster.at(at, Happening::Fault);
            }
            for _ in 0..cluster.rng.random_range(0..6) {
                let at = cluster.rng.random_range(0..FAULTS_STOP_MS);
                cluster.at(at, Happening::WorkerFault);
            }
            cluster.at(FAULTS_STOP_MS, Happening::FaultsOver);
            cluster.at(0, Happening::Inspection);
        }
        Self { cluster, nodes, workers, let_go: false }
    }

    pub async fn run(mut self) -> Result<Report, Violation> {
        let changed = self.cluster.lock().changed.clone();
        loop {
            let found = self.cluster.lock().violation.take();
            if let Some(found) = found {
                return Err(found);
            }
            let frozen = std::mem::take(&mut self.cluster.lock().freezes_wanted);
            frozen.into_iter().for_each(|node| self.freeze(node));
            let happening = self.cluster.lock().next_happening();
            if let Some(happening) = happening {
                self.happens(happening).await;
                continue;
            }
            let age = self.cluster.lock().age();
            if age >= Duration::from_millis(END_MS) || (self.let_go && self.is_over().await) {
                return self.finish().await;
            }
            let next_at = self.cluster.lock().next_at();
            tokio::select! {
                biased;
                () = changed.notified() => {}
                () = sleep_until(next_at.expect("somebody always looks at the whole")) => {}
            }
        }
    }

    async fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Client => self.client_acts(),
            Happening::Fault => self.fault_strikes(),
            Happening::KilledByJob { node, life } => self.die_of_job(node, life),
            Happening::WorkerFault => self.worker_fault_strikes(),
            Happening::WorkerKilledByJob { worker, life } => self.worker_dies_of_job(worker, life),
            Happening::WorkerThaw { worker, life } => self.workers[worker].thaw(life),
            Happening::WorkerRestart(worker) => self.workers[worker].start(),
            Happening::Thaw { node, life } if self.nodes[node].life == life => self.nodes[node].thaw(),
            Happening::Thaw { .. } => {}
            Happening::Restart(node) if self.nodes[node].is_up() => {}
            Happening::Restart(node) => self.nodes[node].start(),
            Happening::Reconnect(node) => self.cluster.lock().cut_off[node] = false,
            Happening::Report(attempt, outcome) => self.report(attempt, outcome),
            Happening::LateWrite(write) => {
                let mut cluster = self.cluster.lock();
                cluster.is_late = true;
                write(&mut cluster);
                cluster.is_late = false;
            }
            Happening::Inspection => {
                self.inspect();
                self.cluster.lock().at(INSPECTION_MS, Happening::Inspection);
            }
            Happening::FaultsOver => {
                self.faults_are_over();
                self.cluster.lock().at(LET_GO_AFTER_MS, Happening::LetGo);
            }
            Happening::LetGo if self.everybody_was_answered() => {
                self.let_everything_go().await;
                self.let_go = true;
            }
            Happening::LetGo => self.cluster.lock().at(LET_GO_AFTER_MS, Happening::LetGo),
        }
    }

    /// One of the processes, if there is any.
    pub fn some_process(&self) -> Option<Arc<Process>> {
        let running: Vec<Arc<Process>> = self.nodes.iter().filter_map(Node::running).collect();
        let which = self.cluster.lock().rng.random_range(0..running.len().max(1));
        running.get(which).cloned()
    }

    fn report(&mut self, attempt: AttemptRef, outcome: Outcome) {
        if let Some((process, scheduler)) =
            self.some_process().and_then(|p| Some((p.clone(), p.with_engine(|engine| engine.scheduler())?)))
        {
            process.serve(async move { drop(scheduler.report(attempt, outcome).await) });
        }
    }

    fn inspect(&mut self) {
        let healthy: Vec<bool> = self.nodes.iter().map(Node::is_healthy).collect();
        let mut cluster = self.cluster.lock();
        let cluster = &mut *cluster;
        let (model, now) = (cluster.model.clone(), cluster.real());
        let executing = &cluster.executing;
        let found = model.with_model(|model| {
            let is_executing = |job: &tickwheel_core::Job| executing.contains_key(&(job.id, job.attempt));
            cluster.checks.orphans(model, healthy.contains(&true), is_executing, now)?;
            cluster.checks.unstarted(model, &healthy, now)?;
            everybody_waits_rightly(model, now)?;
            cluster.workflow_checks.inspect(model, now)
        });
        cluster.check(found);
    }

    fn everybody_was_answered(&self) -> bool {
        self.cluster.lock().open_requests == 0 && self.nodes.iter().all(|node| node.running().is_some())
    }

    /// Nothing is left to do, and nobody does anything.
    async fn is_over(&self) -> bool {
        let is_somebody_busy = {
            let cluster = self.cluster.lock();
            !cluster.executing.is_empty() || cluster.open_requests > 0
        };
        if is_somebody_busy || self.something_is_left() {
            return false;
        }
        self.slots().await.iter().all(|(free, all)| free == all)
    }

    fn something_is_left(&self) -> bool {
        let cluster = self.cluster.lock();
        let schedules = cluster.schedule_checks.known();
        cluster.model.with_model(|model| {
            let can_go_on = model.live().values().any(|job| !is_held_up(job));
            let can_fire = model.get_schedules(&schedules).iter().any(|s| s.progress.wake_at.is_some());
            can_go_on || can_fire || !cluster.workflow_checks.all_over(model)
        })
    }

    /// The free slots of each node, and all of them.
    async fn slots(&self) -> Vec<(u64, u64)> {
        let mut slots = Vec::new();
        for process in self.nodes.iter().filter_map(Node::running) {
            if let Some(scheduler) = process.with_engine(|engine| engine.scheduler()) {
                let snapshot = scheduler.snapshot().await;
                slots.push((snapshot.slots_free, snapshot.slots));
            }
        }
        slots
    }

    async fn finish(&mut self) -> Result<Report, Violation> {
        let slots = self.slots().await;
        let mut cluster = self.cluster.lock();
        let cluster = &mut *cluster;
        let (model, now) = (cluster.model.clone(), cluster.now_of(0));
        model.with_model(|model| {
            cluster.checks.finished(model, now)?;
            everybody_waits_rightly(model, now)?;
            cluster.schedule_checks.finished(model, now)?;
            cluster.workflow_checks.finished(model, now)
        })?;
        if cluster.open_requests > 0 {
            cluster.violated("I5", format!("{} requests were never answered", cluster.open_requests));
        }
        if slots.iter().any(|(free, all)| free != all) {
            cluster.violated("I5", format!("free slots, and all of them: {slots:?}"));
        }
        if let Some(found) = cluster.violation.take() {
            return Err(found);
        }
        let (jobs, attempts) = cluster.checks.counts();
        Ok(Report {
            jobs,
            attempts,
            backfills: cluster.schedule_checks.backfills_completed(),
            runs: cluster.workflow_checks.runs.len(),
            run_steps: cluster.workflow_checks.steps,
            run_pauses: cluster.workflow_checks.pauses,
            injected: cluster.injected.clone(),
            age_ms: cluster.age().as_millis(),
        })
    }
}
