//! A running engine whose target follows a script, and a way to wait for what it does.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tickwheel_core::ports::{
    AttemptContext, Callback, CallbackSender, Clock, Executor, JobStore, NewJob, Scheduler, Undelivered,
};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::TokenKey;
use tickwheel_core::{Failure, Job, JobId, State, TargetKind, Timestamp};
use tickwheel_engine::{Engine, EngineOptions, EngineParts, SystemClock};
use tickwheel_testkit::{JobBuilder, ModelStore, job};
use tokio::sync::Semaphore;

/// What the target does with an attempt.
#[derive(Clone, Debug)]
pub enum Act {
    Complete,
    Fail,
    Accept,
    Never,
    Panic,
    /// Holds the attempt until the gate opens, then completes.
    Hold,
}

/// The type of jobs whose first attempt fails.
pub const FIRST_FAILS: &str = "first-fails";
/// The type of jobs that the target accepts, to report later.
pub const ACCEPTS: &str = "accepts";
/// The type of jobs that are held until the gate opens.
pub const HOLDS: &str = "holds";
/// The type of jobs that do not end by themselves.
pub const NEVER_ENDS: &str = "never-ends";

/// A target with a script: one act an attempt, then it completes everything.
pub struct Target {
    script: Mutex<VecDeque<Act>>,
    pub calls: Mutex<Vec<(JobId, u32)>>,
    pub gate: Semaphore,
    pub dropped: Mutex<Vec<JobId>>,
}

impl Target {
    /// Some types of jobs have a fate of their own; for the others there is the script.
    fn act_on(&self, job: &Job) -> Act {
        match &*job.job_type {
            FIRST_FAILS if job.attempt == 1 => Act::Fail,
            ACCEPTS => Act::Accept,
            HOLDS => Act::Hold,
            NEVER_ENDS => Act::Never,
            _ => self.script.lock().unwrap().pop_front().unwrap_or(Act::Complete),
        }
    }
}

struct DropNote<'a>(&'a Target, JobId, bool);

impl Drop for DropNote<'_> {
    fn drop(&mut self) {
        if !self.2 {
            self.0.dropped.lock().unwrap().push(self.1);
        }
    }
}

#[async_trait]
impl Executor for Target {
    async fn run(&self, attempt: &AttemptContext) -> Outcome {
        self.calls.lock().unwrap().push((attempt.job.id, attempt.job.attempt));
        match self.act_on(&attempt.job) {
            Act::Complete => Outcome::Completed { result: None },
            Act::Fail => Outcome::Failed {
                failure: Failure::new("http_status", "500"),
                retryable: true,
                retry_after: None,
            },
            Act::Accept => Outcome::Accepted,
            Act::Never => std::future::pending().await,
            Act::Panic => panic!("on purpose"),
            Act::Hold => {
                let mut note = DropNote(self, attempt.job.id, false);
                self.gate.acquire().await.unwrap().forget();
                note.2 = true;
                Outcome::Completed { result: None }
            }
        }
    }
}

/// Refuses a number of callbacks, then takes them.
pub struct Receiver {
    pub refusals: Mutex<u32>,
    pub seen: Mutex<Vec<(JobId, State)>>,
}

#[async_trait]
impl CallbackSender for Receiver {
    async fn send(&self, callback: &Callback, _: Option<&Job>, _: Timestamp) -> Result<String, Undelivered> {
        self.seen.lock().unwrap().push((JobId::from_uuid(callback.subject.id()), callback.state));
        let mut refusals = self.refusals.lock().unwrap();
        if *refusals == 0 {
            return Ok("taken".into());
        }
        *refusals -= 1;
        Err(Undelivered::Failed("not today".into()))
    }
}

pub struct Bench {
    pub store: ModelStore,
    pub target: Arc<Target>,
    pub receiver: Arc<Receiver>,
    pub engine: Engine,
    pub scheduler: Arc<dyn Scheduler>,
}

pub fn options() -> EngineOptions {
    EngineOptions {
        lease: Duration::from_millis(300),
        reap_interval: Duration::from_millis(20),
        drain_timeout: Duration::from_millis(200),
        callback_delay: Duration::from_millis(5),
        ..EngineOptions::default()
    }
}

pub const HOUR: Duration = Duration::from_secs(3_600);

/// The loops know what they are told, and find nothing by themselves.
pub fn without_sweeps() -> EngineOptions {
    let mut options = options();
    options.machine.sweep_interval = HOUR;
    options.machine.whole_sweep_interval = HOUR;
    options.machine.near_window = HOUR;
    options.schedule_timer.sweep_interval = HOUR;
    options.schedule_timer.near_window = HOUR;
    options
}

impl Bench {
    pub async fn start(script: impl IntoIterator<Item = Act>) -> Self {
        Self::start_on(ModelStore::default(), script, options()).await
    }

    pub async fn start_on(
        store: ModelStore,
        script: impl IntoIterator<Item = Act>,
        options: EngineOptions,
    ) -> Self {
        let target = Arc::new(Target {
            script: Mutex::new(script.into_iter().collect()),
            calls: Mutex::default(),
            gate: Semaphore::new(0),
            dropped: Mutex::default(),
        });
        let receiver = Arc::new(Receiver { refusals: Mutex::new(0), seen: Mutex::default() });
        let executor: Arc<dyn Executor> = target.clone();
        let parts = EngineParts {
            store: Arc::new(store.clone()),
            clock: Arc::new(SystemClock),
            executors: HashMap::from([(TargetKind::Http, executor)]),
            callback_sender: receiver.clone(),
            tokens: TokenKey::new([7; 32]),
        };
        let engine = Engine::start(parts, options).await.unwrap();
        Self { store, target, receiver, scheduler: engine.scheduler(), engine }
    }

    /// Submits a job that is due now.
    pub async fn submit(&self, builder: JobBuilder) -> JobId {
        let new = NewJob { job: due_now(builder), idempotency: None };
        let id = new.job.id;
        assert!(self.scheduler.submit(vec![new]).await.unwrap()[0].as_new().is_some());
        id
    }

    pub async fn get(&self, id: JobId) -> Job {
        self.store.get_job(id).await.unwrap().unwrap()
    }

    pub async fn reaches(&self, id: JobId, state: State) -> Job {
        let what = format!("{id} becomes {state}");
        eventually(&what, || async { Some(self.get(id).await).filter(|job| job.state() == state) }).await
    }

    pub fn calls(&self) -> Vec<(JobId, u32)> {
        self.target.calls.lock().unwrap().clone()
    }
}

pub fn due_now(builder: JobBuilder) -> Job {
    builder.created_at(SystemClock.now()).due_at(SystemClock.now()).build()
}

pub fn quick_retries() -> JobBuilder {
    job().with(|job| {
        std::sync::Arc::make_mut(&mut job.spec).retry.initial_delay_ms = 1;
        std::sync::Arc::make_mut(&mut job.spec).retry.max_delay_ms = 5;
    })
}

/// Polls until there is an answer; a test that waits in vain fails.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await; // sleep: the pause between two looks
    }
}
