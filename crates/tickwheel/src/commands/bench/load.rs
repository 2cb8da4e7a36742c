//! An engine with a target that does nothing, and jobs for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use async_trait::async_trait;
use tickwheel_core::job::{DEFAULT_TENANT, HttpTarget};
use tickwheel_core::machine::MachineOptions;
use tickwheel_core::ports::{
    AttemptContext, Callback, CallbackSender, Clock, Executor, NewJob, Scheduler, Store,
};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::TokenKey;
use tickwheel_core::{Job, JobId, JobSpec, JsonText, Target, TargetKind, Timestamp};
use tickwheel_engine::{Engine, EngineOptions, EngineParts, SystemClock};
use uuid::Uuid;

use crate::serve::OpenStore;

const SUBMIT_LEN: usize = 500;
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const END_WAIT_MAX: Duration = Duration::from_secs(30);
/// A hundred bytes, as small jobs have.
pub const PAYLOAD: &str =
    r#"{"to":"somebody@example.org","template":"welcome","language":"en","number":1234567890,"n":12345678}"#;

/// The start of one job.
#[derive(Clone, Debug)]
pub struct Start {
    /// The moment.
    pub at: Instant,
    /// How long after its time that was.
    pub lag: Duration,
    /// Whose job it was.
    pub tenant: Arc<str>,
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
        let start = Start { at: Instant::now(), lag, tenant: attempt.job.tenant.clone() };
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).push(start);
        self.runs.fetch_add(1, Ordering::Release);
        Outcome::Completed { result: None }
    }
}

/// Bench jobs have no callbacks.
struct NoCallbacks;

#[async_trait]
impl CallbackSender for NoCallbacks {
    async fn send(&self, _: &Callback, _: Option<&Job>, _: Timestamp) -> Result<(), String> {
        Ok(())
    }
}

/// A running engine to measure.
pub struct Bench {
    engine: Engine,
    pub scheduler: Arc<dyn Scheduler>,
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
        Ok(Self { scheduler: engine.scheduler(), engine, target, opened, temporary })
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
        for first in (0..count).step_by(SUBMIT_LEN) {
            let numbers = first..count.min(first + SUBMIT_LEN);
            let jobs = numbers.map(|number| of_tenant(&tenant, new_job(due(number)))).collect();
            self.scheduler.submit(jobs).await?;
        }
        Ok(())
    }

    /// Submits one job that is due at once, and answers when its end was written.
    pub async fn run_one(&self) -> anyhow::Result<Instant> {
        let new = new_job(SystemClock.now());
        // Listening comes first: the end may be there before the answer to the submission.
        let ended = self.scheduler.wait_for_end(new.job.id, END_WAIT_MAX);
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
        drop(self.scheduler);
        self.engine.shutdown().await;
        drop(self.opened);
        if let Some(directory) = self.temporary {
            std::fs::remove_dir_all(&directory)
                .with_context(|| format!("cannot remove {}", directory.display()))?;
        }
        Ok(())
    }
}

/// A job for that moment, with a payload of a hundred bytes.
pub fn new_job(due_at: Timestamp) -> NewJob {
    let id = JobId::from_uuid(Uuid::now_v7());
    let target = HttpTarget { url: "http://127.0.0.1:9/".into(), method: "POST".into(), headers: Vec::new() };
    let job = Job {
        execute_at: due_at,
        due_at,
        payload: JsonText::from_checked(PAYLOAD),
        ..Job::ordered(id, "bench", JobSpec::new(Target::Http(target)), SystemClock.now())
    };
    NewJob { job, idempotency: None }
}

fn of_tenant(tenant: &Arc<str>, new: NewJob) -> NewJob {
    NewJob { job: Job { tenant: tenant.clone(), ..new.job }, ..new }
}
