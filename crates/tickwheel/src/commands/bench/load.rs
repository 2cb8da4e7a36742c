//! An engine with a target that does nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::machine::MachineOptions;
use tickwheel_core::ports::{
    AttemptContext, Callback, CallbackSender, Clock, Creation, Executor, NewJob, Scheduler, StartRun, Store,
    Undelivered, Workflows,
};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::TokenKey;
use tickwheel_core::workflow::{ReconcileRequest, RunStatus, Workflow};
use tickwheel_core::{Job, JsonText, RunId, TargetKind, Timestamp};
use tickwheel_engine::{Engine, EngineOptions, EngineParts, SystemClock};
use uuid::Uuid;

use super::graphs::Shape;
use super::jobs::{RESULT, WITH_RESULT, new_job, of_tenant};
use crate::serve::OpenStore;

const SUBMIT_LEN: usize = 500;
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The start of one job.
#[derive(Clone, Debug)]
pub struct Start {
    /// The moment.
    pub at: Instant,
    /// How long after its time that was.
    pub lag: Duration,
    /// Whose job it was.
    pub tenant: Arc<str>,
    /// Whether it is a task of a run.
    pub in_run: bool,
}

/// The system's clock, put ahead.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShiftedClock {
    ahead: Duration,
}

impl ShiftedClock {
    /// One that shows this moment, or later: never less than the system's.
    pub fn showing(moment: Timestamp) -> Self {
        Self { ahead: moment.since(SystemClock.now()) }
    }

    /// How long ago that moment was, to the nanosecond.
    fn since(&self, moment: Timestamp) -> Duration {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let moment = Duration::from_millis(u64::try_from(moment.as_millis()).unwrap_or(0));
        (since_epoch + self.ahead).saturating_sub(moment)
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        SystemClock.now() + self.ahead
    }

    fn until(&self, at: Timestamp) -> Duration {
        SystemClock.until(at - self.ahead)
    }
}

/// Does nothing, and remembers when it was asked to.
pub struct NoOp {
    clock: ShiftedClock,
    runs: AtomicUsize,
    starts: Mutex<Vec<Start>>,
}

#[async_trait]
impl Executor for NoOp {
    async fn run(&self, attempt: &AttemptContext) -> Outcome {
        // Of a firing its nominal time, which the job's due time cannot be before.
        let lag = self.clock.since(attempt.job.execute_at);
        let (tenant, in_run) = (attempt.job.tenant.clone(), attempt.job.spec.position.is_some());
        let start = Start { at: Instant::now(), lag, tenant, in_run };
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).push(start);
        self.runs.fetch_add(1, Ordering::Release);
        let result = (&*attempt.job.job_type == WITH_RESULT).then(|| JsonText::from_checked(RESULT));
        Outcome::Completed { result }
    }
}

/// Bench jobs have no callbacks.
struct NoCallbacks;

#[async_trait]
impl CallbackSender for NoCallbacks {
    async fn send(&self, _: &Callback, _: Option<&Job>, _: Timestamp) -> Result<String, Undelivered> {
        Ok(String::new())
    }
}

/// A running engine to measure.
pub struct Bench {
    engine: Engine,
    pub scheduler: Arc<dyn Scheduler>,
    workflows: Arc<dyn Workflows>,
    target: Arc<NoOp>,
    opened: OpenStore,
    temporary: Option<std::path::PathBuf>,
}

impl Bench {
    /// Starts an engine on a store. At the end, the directory `temporary` is removed.
    pub async fn start(
        opened: OpenStore,
        slots: usize,
        temporary: Option<std::path::PathBuf>,
        clock: ShiftedClock,
    ) -> anyhow::Result<Self> {
        let target = Arc::new(NoOp { clock, runs: AtomicUsize::new(0), starts: Mutex::default() });
        let executor: Arc<dyn Executor> = target.clone();
        let parts = EngineParts {
            store: opened.store.clone(),
            clock: Arc::new(clock),
            executors: HashMap::from([(TargetKind::Http, executor)]),
            callback_sender: Arc::new(NoCallbacks),
            tokens: TokenKey::new(rand::random()),
        };
        let machine = MachineOptions { slots, ..MachineOptions::default() };
        let engine = Engine::start(parts, EngineOptions { machine, ..EngineOptions::default() }).await?;
        let (scheduler, workflows) = (engine.scheduler(), engine.workflows());
        Ok(Self { scheduler, workflows, engine, target, opened, temporary })
    }

    /// Submits `count` jobs, number `n` for the moment `due(n)`.
    pub async fn submit(&self, count: usize, due: impl Fn(usize) -> Timestamp) -> anyhow::Result<()> {
        self.submit_for(DEFAULT_TENANT, count, due).await
    }

    /// Submits `count` jobs of `tenant`, number `n` for the moment `due(n)`.
    pub async fn submit_for(
        &self,
        tenant: &str,
        count: usize,
        due: impl Fn(usize) -> Timestamp,
    ) -> anyhow::Result<()> {
        let tenant: Arc<str> = tenant.into();
        self.submit_all((0..count).map(|number| of_tenant(&tenant, new_job(due(number))))).await
    }

    /// Submits jobs in batches, one after the other.
    pub async fn submit_all(&self, mut jobs: impl Iterator<Item = NewJob>) -> anyhow::Result<()> {
        loop {
            let batch: Vec<NewJob> = jobs.by_ref().take(SUBMIT_LEN).collect();
            if batch.is_empty() {
                return Ok(());
            }
            self.scheduler.submit(batch).await?;
        }
    }

    /// Stores a workflow of that shape, and answers its name.
    pub async fn store_workflow(&self, shape: Shape, tasks: usize) -> anyhow::Result<String> {
        let name = format!("bench-{tasks}-{shape:?}").to_lowercase();
        let workflow = Workflow {
            tenant: DEFAULT_TENANT.into(),
            name: name.as_str().into(),
            version: 1,
            created_at: self.now(),
            spec: Arc::new(shape.workflow(tasks)?),
        };
        self.store().put_workflow(workflow).await?;
        Ok(name)
    }

    /// Starts a run of a stored workflow; it is durable when this answers.
    pub async fn start_run(&self, workflow: &str) -> anyhow::Result<RunId> {
        let id = RunId::fresh(Uuid::now_v7());
        let start = StartRun {
            tenant: DEFAULT_TENANT.into(),
            workflow: workflow.to_owned(),
            id,
            input: JsonText::from_checked("null"),
            job_id: None,
            idempotency: None,
        };
        match self.workflows.start(start).await? {
            Creation::Created(_) => Ok(id),
            other => bail!("the run was not started: {other:?}"),
        }
    }

    /// Waits until a run has completed, and answers when that was.
    pub async fn run_ended(&self, id: RunId) -> anyhow::Result<Instant> {
        let mut told_at = None;
        loop {
            // Listening comes first: it may end while it is looked at.
            let mut end = self.scheduler.end_of(ReconcileRequest::id_of_run(id));
            let status = tokio::select! {
                biased;
                () = &mut end => None,
                status = self.status_of(id) => Some(status?),
            };
            match status {
                Some(RunStatus::Completed) => return Ok(told_at.unwrap_or_else(Instant::now)),
                Some(RunStatus::Running) => end.await,
                Some(status) => bail!("the run has {status}"),
                None => {}
            }
            told_at = Some(Instant::now());
        }
    }

    async fn status_of(&self, id: RunId) -> anyhow::Result<RunStatus> {
        let run = self.store().get_runs(vec![id]).await?.pop().context("the run is gone")?;
        Ok(run.progress.status)
    }

    /// Submits one job that is due at once, and answers when its end was written.
    pub async fn run_one(&self) -> anyhow::Result<Instant> {
        let new = new_job(SystemClock.now());
        // Listening comes first: the end may be there before the answer to the submission.
        let ended = self.scheduler.end_of(new.job.id);
        let ended = async {
            ended.await;
            Instant::now()
        };
        let (ended, submitted) = tokio::join!(ended, self.scheduler.submit(vec![new]));
        submitted?;
        Ok(ended)
    }

    /// Waits until `count` jobs have run and their ends are written, and gives their starts.
    pub async fn finished(&self, count: usize) -> Vec<Start> {
        while self.target.runs.load(Ordering::Acquire) < count || self.has_unwritten().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.take_starts()
    }

    /// Waits until `count` jobs have been started, and gives the starts so far. Others may go on.
    pub async fn started(&self, count: usize) -> Vec<Start> {
        while self.target.runs.load(Ordering::Acquire) < count {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.take_starts()
    }

    /// The time by its clock.
    pub fn now(&self) -> Timestamp {
        self.target.clock.now()
    }

    /// The store it runs on.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.opened.store
    }

    fn take_starts(&self) -> Vec<Start> {
        self.target.runs.store(0, Ordering::Release);
        std::mem::take(&mut *self.target.starts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn has_unwritten(&self) -> bool {
        self.scheduler.snapshot().await.queues.iter().any(|queue| queue.running + queue.waiting > 0)
    }

    /// Stops the engine and removes the temporary store.
    pub async fn stop(self) -> anyhow::Result<()> {
        drop((self.scheduler, self.workflows));
        self.engine.shutdown().await;
        drop(self.opened);
        if let Some(directory) = self.temporary {
            std::fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot remove {}", directory.display()))?;
        }
        Ok(())
    }
}
