//! The worker: its handlers, its options, and the way it runs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_client::{Client, JobType};
use tickwheel_protocol::worker::Label;
use tickwheel_protocol::{ExecutorKind, Labels};
use tokio::sync::watch;

use crate::ctx::Ctx;
use crate::error::{Error, JobError};
use crate::handler::{BatchOptions, HandlerOptions, Handlers, Registered};
use crate::io::{Away, Dispatcher, Functions, Io, Stop, StopHandle};
use crate::middleware::{Middleware, Next, Output};
use crate::options::{Given, complete};
use crate::outcome::Outcome;
use crate::session::{Session, Stats};
use crate::supervise::Program;

/// A process that runs jobs. See the [crate's documentation](crate) for an example.
#[must_use = "it does nothing until it runs"]
pub struct Worker<S = ()> {
    client: Result<Client, tickwheel_client::Error>,
    given: Given,
    state: Arc<S>,
    handlers: Handlers<S>,
    executors: Handlers<S>,
    middleware: Vec<Middleware<S>>,
    mistakes: Vec<String>,
    stats: watch::Sender<Option<Arc<Session>>>,
}

impl Worker<()> {
    /// A worker of this client's server. What is not said here comes from the environment: `TICKWHEEL_WORKER_NAME`,
    /// `_QUEUES`, `_LABELS`, `_CAPACITY`, `_LEASE`, `_DRAIN_TIMEOUT`, `_HEALTH_PORT`.
    pub fn new(client: Client) -> Self {
        Self::with_client(Ok(client))
    }

    /// A worker whose client comes from the environment too: `TICKWHEEL_SERVER`, `_API_KEY` or `_API_KEY_FILE`,
    /// `_CA_FILE`. All mistakes are reported together, by [`Worker::run`].
    pub fn from_env() -> Self {
        Self::with_client(Client::from_env())
    }

    fn with_client(client: Result<Client, tickwheel_client::Error>) -> Self {
        Self {
            client,
            given: Given::default(),
            state: Arc::new(()),
            handlers: BTreeMap::new(),
            executors: BTreeMap::new(),
            middleware: Vec::new(),
            mistakes: Vec::new(),
            stats: watch::Sender::new(None),
        }
    }

    /// What handlers find in [`Ctx::state`]: connections, settings. Say it before the first handler.
    pub fn state<S: Send + Sync + 'static>(self, state: S) -> Worker<S> {
        let Self { client, given, handlers, executors, middleware, mut mistakes, stats, .. } = self;
        if !handlers.is_empty() || !executors.is_empty() || !middleware.is_empty() {
            mistakes.push("state: say it before the first handler and middleware".into());
        }
        let (handlers, executors, middleware) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Worker { client, given, state: Arc::new(state), handlers, executors, middleware, mistakes, stats }
    }
}

/// Options.
impl<S: Send + Sync + 'static> Worker<S> {
    /// A name for people. Several workers may share it. Default: the name of the machine.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.given.name = Some(name.into());
        self
    }

    /// Adds a queue that it serves. Without any it serves `default`.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.given.queues.push(queue.into());
        self
    }

    /// How many jobs it runs at once. Default 10.
    pub fn capacity(mut self, jobs: u32) -> Self {
        self.given.capacity = Some(jobs);
        self
    }

    /// Adds something that it has to offer to jobs with `requires`.
    pub fn label(mut self, name: impl Into<String>, value: Label) -> Self {
        self.given.labels.insert(name.into(), value);
        self
    }

    /// The same for several.
    pub fn labels(mut self, labels: Labels) -> Self {
        self.given.labels.extend(labels);
        self
    }

    /// How long its jobs stay its own when it falls silent: 5 s to 10 min. A longer one rides out longer outages, and
    /// makes others wait longer when this worker dies. Default: as the server is configured.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.given.lease = Some(lease);
        self
    }

    /// How long running jobs may go on when the worker is asked to stop. Default 25 s. Then they are cancelled.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.given.drain_timeout = Some(timeout);
        self
    }

    /// Serves `/healthz` and `/readyz` on this port. Default: not.
    pub fn health_port(mut self, port: u16) -> Self {
        self.given.health_port = Some(port);
        self
    }
}

/// Handlers.
impl<S: Send + Sync + 'static> Worker<S> {
    /// Runs jobs of type `J` with an async function. It should await whatever takes long; a function that computes or
    /// blocks belongs to [`Worker::handle_blocking`].
    pub fn handle<J, F, Fut>(self, handler: F) -> Self
    where
        J: JobType,
        F: Fn(J, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<J::Output, JobError>> + Send + 'static,
    {
        self.handle_with(HandlerOptions::default(), handler)
    }

    /// The same with options.
    pub fn handle_with<J, F, Fut>(self, options: HandlerOptions, handler: F) -> Self
    where
        J: JobType,
        F: Fn(J, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<J::Output, JobError>> + Send + 'static,
    {
        self.register(Registered::of_async(options, handler))
    }

    /// Runs jobs of type `J` with a function that blocks, each on a thread of its own. It hears of a cancel from
    /// [`Ctx::check`]; one that never asks keeps its slot until it ends.
    pub fn handle_blocking<J, F>(self, handler: F) -> Self
    where
        J: JobType,
        F: Fn(J, Ctx<S>) -> Result<J::Output, JobError> + Send + Sync + 'static,
    {
        self.handle_blocking_with(HandlerOptions::default(), handler)
    }

    /// The same with options.
    pub fn handle_blocking_with<J, F>(self, options: HandlerOptions, handler: F) -> Self
    where
        J: JobType,
        F: Fn(J, Ctx<S>) -> Result<J::Output, JobError> + Send + Sync + 'static,
    {
        self.register(Registered::of_blocking(options, handler))
    }

    /// Runs jobs of type `J` together. The function returns one entry per job, in order; an error in place of the list
    /// fails all of them.
    pub fn handle_batch<J, F, Fut>(self, batch: BatchOptions, handler: F) -> Self
    where
        J: JobType,
        F: Fn(Vec<J>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Result<J::Output, JobError>>, JobError>> + Send + 'static,
    {
        self.handle_batch_with(HandlerOptions::default(), batch, handler)
    }

    /// The same with options.
    pub fn handle_batch_with<J, F, Fut>(
        self,
        options: HandlerOptions,
        batch: BatchOptions,
        handler: F,
    ) -> Self
    where
        J: JobType,
        F: Fn(Vec<J>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Result<J::Output, JobError>>, JobError>> + Send + 'static,
    {
        self.register(Registered::of_batch(options, batch, handler))
    }

    /// Runs jobs with a target of this kind that require labels which this worker has, whatever their type. For programs
    /// that call HTTP targets or run commands themselves, such as `tickwheel worker`; others need no executor.
    pub fn execute<F, Fut>(mut self, kind: ExecutorKind, executor: F) -> Self
    where
        F: Fn(Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        let executor = Registered::of_executor(kind, executor);
        if self.executors.insert(executor.name, Arc::new(executor)).is_some() {
            self.mistakes.push(format!("executor {kind}: there are two"));
        }
        self
    }

    fn register(mut self, handler: Registered<S>) -> Self {
        let name = handler.name;
        if handler.options.capacity == Some(0) {
            self.mistakes.push(format!("handler {name}: a capacity of 0 runs nothing"));
        }
        if self.handlers.insert(name, Arc::new(handler)).is_some() {
            self.mistakes.push(format!("handler {name}: there are two"));
        }
        self
    }

    /// Adds a function around every attempt. The first one is the outermost. It calls [`Next::run`] for the rest of the
    /// chain; once the handler has returned, what the handler returned counts.
    pub fn middleware<F, Fut>(mut self, middleware: F) -> Self
    where
        F: Fn(Ctx<S>, Next<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, JobError>> + Send + 'static,
    {
        self.middleware.push(Arc::new(move |ctx, next| Box::pin(middleware(ctx, next))));
        self
    }

    pub(crate) fn for_tests(&self) -> ForTests<'_, S> {
        ForTests {
            handlers: &self.handlers,
            middleware: self.middleware.clone().into(),
            state: self.state.clone(),
        }
    }
}

/// What a test needs of a worker to run one handler.
pub(crate) struct ForTests<'w, S> {
    pub handlers: &'w Handlers<S>,
    pub middleware: Arc<[Middleware<S>]>,
    pub state: Arc<S>,
}

/// Running.
impl<S: Send + Sync + 'static> Worker<S> {
    /// The numbers of the worker, while it runs.
    pub fn stats(&self) -> StatsHandle {
        StatsHandle(self.stats.subscribe())
    }

    /// Runs jobs until SIGTERM or SIGINT, then drains. A second signal cancels what still runs, a third ends the process
    /// with exit code 130.
    pub async fn run(self) -> Result<(), Error> {
        let (stop, requests) = Stop::new();
        self.run_with(stop.clone(), requests, Some(stop), std::future::pending()).await
    }

    /// Runs jobs until `shutdown` completes, then drains. Signals are left to the program.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let (stop, requests) = Stop::new();
        self.run_with(stop, requests, None, shutdown).await
    }

    async fn run_with(
        mut self,
        stop: StopHandle,
        requests: Stop,
        signals: Option<StopHandle>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        if self.handlers.is_empty() && self.executors.is_empty() {
            self.mistakes.push("the worker has no handler".into());
        }
        let (client, options) = complete(self.client, self.given, self.mistakes)?;
        let capacities = self.handlers.values().filter_map(|handler| {
            handler.options.capacity.map(|capacity| (handler.name.to_owned(), capacity))
        });
        let session = Arc::new(Session::new(options.capacity, capacities.collect()));
        self.stats.send_replace(Some(session.clone()));
        let types = self.handlers.keys().map(|name| (*name).to_owned()).collect();
        let kinds = ExecutorKind::ALL.iter().copied();
        let executors = kinds.filter(|kind| self.executors.contains_key(kind.as_str())).collect();
        let program =
            Program { state: self.state, client: client.clone(), middleware: self.middleware.into() };
        let runtime = tokio::runtime::Handle::current();
        let functions = Functions { handlers: self.handlers, executors: self.executors };
        let dispatch = Dispatcher::new(Arc::new(program), functions, session.clone(), runtime);
        let io = Io {
            options,
            types,
            executors,
            session,
            client: client.with_own_connections(),
            heartbeat_client: client.with_own_connections(),
            dispatch: Arc::new(dispatch),
            provable_until: watch::Sender::new(None),
            away: Away::default(),
            stop: requests,
            signals,
            started: Instant::now(),
        };
        // Whoever drops this future wants the worker gone.
        let _gone = StopOnDrop(stop.clone());
        let mut ended = io.spawn()?;
        let vanished = |_| Err(Error::System("the worker's thread has vanished".into()));
        tokio::select! {
            biased;
            ended = &mut ended => return ended.unwrap_or_else(vanished),
            () = shutdown => stop.request(),
        }
        ended.await.unwrap_or_else(vanished)
    }
}

struct StopOnDrop(StopHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request_at_once();
    }
}

/// The numbers of a worker, wherever they are needed.
#[derive(Clone)]
pub struct StatsHandle(watch::Receiver<Option<Arc<Session>>>);

impl StatsHandle {
    /// The numbers now. All zero before the worker runs.
    pub fn get(&self) -> Stats {
        self.0.borrow().as_ref().map(|session| session.stats()).unwrap_or_default()
    }
}

impl fmt::Debug for StatsHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

impl<S> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("types", &self.handlers.keys()).finish_non_exhaustive()
    }
}
