//! The way from this thread to the handlers: starts them on the caller's runtime, gathers batches.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::attempt::Attempt;
use crate::ctx::Link;
use crate::handler::{Handlers, OnLeaseLost, Registered};
use crate::log_buffer::LogBudget;
use crate::once::OnceRecords;
use crate::outcome::Outcome;
use crate::session::Session;
use crate::supervise::{Ends, Program, supervise};

/// How long a handler has to end when the worker shuts down.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);
const RESULT_BYTES_MAX_DEFAULT: usize = 256 << 10;

/// What the loops need of the program. It hides the types of its handlers.
pub(crate) trait Dispatch: Send + Sync {
    /// Starts the attempt's handler on the caller's runtime.
    fn start(&self, attempt: Arc<Attempt>);
    /// Whether the attempt runs on when its lease is lost.
    fn continues(&self, attempt: &Attempt) -> bool;
    /// The attempt was taken away. If its handler has not started, its slot is free.
    fn lost(&self, attempt: &Arc<Attempt>);
    /// Runs something short on the caller's runtime, to see whether it answers.
    fn ping(&self, pong: Box<dyn FnOnce() + Send>);
    /// The answer to a poll may be lost.
    fn poll_again(&self);
    fn told_to_poll_again(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What runs jobs: those for workers by their type, those with a target by its kind.
pub(crate) struct Functions<S> {
    pub handlers: Handlers<S>,
    pub executors: Handlers<S>,
}

impl<S> Functions<S> {
    fn of(&self, attempt: &Attempt) -> Option<&Arc<Registered<S>>> {
        match attempt.executor() {
            Some(kind) => self.executors.get(kind.as_str()),
            None => self.handlers.get(attempt.job_type()),
        }
    }
}

/// The handlers of a program.
pub(crate) struct Dispatcher<S> {
    pub program: Arc<Program<S>>,
    functions: Functions<S>,
    pub session: Arc<Session>,
    pub runtime: Handle,
    batches: HashMap<&'static str, mpsc::UnboundedSender<Arc<Attempt>>>,
    poll_again: Notify,
}

impl<S: Send + Sync + 'static> Dispatcher<S> {
    /// Also starts what gathers batches, on the caller's runtime.
    pub fn new(
        program: Arc<Program<S>>,
        functions: Functions<S>,
        session: Arc<Session>,
        runtime: Handle,
    ) -> Self {
        let mut batches = HashMap::new();
        for handler in functions.handlers.values().filter(|handler| handler.batch.is_some()) {
            let (sender, receiver) = mpsc::unbounded_channel();
            batches.insert(handler.name, sender);
            runtime.spawn(gather(receiver, program.clone(), handler.clone(), session.clone()));
        }
        Self { program, functions, session, runtime, batches, poll_again: Notify::new() }
    }
}

impl<S: Send + Sync + 'static> Dispatch for Dispatcher<S> {
    fn start(&self, attempt: Arc<Attempt>) {
        let Some(handler) = self.functions.of(&attempt) else {
            // The server gave us what we did not register for.
            tracing::error!(job_id = %attempt.job.id, "type" = attempt.job_type(), "there is nothing to run it with");
            if attempt.give_back() {
                self.session
                    .finish(&attempt, Some(Outcome::released().into_report(attempt.token.clone(), None)));
            }
            return;
        };
        attempt.hand_over();
        if let Some(batch) = self.batches.get(handler.name).filter(|_| attempt.executor().is_none()) {
            // It is closed only when the runtime is gone, and we with it.
            let _ = batch.send(attempt);
            return;
        }
        let ends = self.session.clone();
        let call = supervise(self.program.clone(), handler.clone(), vec![attempt], ends.clone(), ends);
        self.runtime.spawn(call);
    }

    fn continues(&self, attempt: &Attempt) -> bool {
        let handler = self.functions.of(attempt);
        handler.is_some_and(|handler| handler.options.on_lease_lost == OnLeaseLost::Continue)
    }

    fn lost(&self, attempt: &Arc<Attempt>) {
        if attempt.give_back() {
            self.session.finish(attempt, None);
        }
    }

    fn ping(&self, pong: Box<dyn FnOnce() + Send>) {
        self.runtime.spawn(async move { pong() });
    }

    fn poll_again(&self) {
        self.poll_again.notify_one();
    }

    fn told_to_poll_again(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.poll_again.notified())
    }
}

/// Gathers the jobs of one type into batches.
async fn gather<S: Send + Sync + 'static>(
    mut jobs: mpsc::UnboundedReceiver<Arc<Attempt>>,
    program: Arc<Program<S>>,
    handler: Arc<Registered<S>>,
    session: Arc<Session>,
) {
    let Some(options) = handler.batch else { return };
    while let Some(first) = jobs.recv().await {
        let full_at = Instant::now() + options.wait_max;
        let mut batch = vec![first];
        while batch.len() < options.jobs_max.max(1) {
            match tokio::time::timeout_at(full_at, jobs.recv()).await {
                Ok(Some(job)) => batch.push(job),
                Ok(None) | Err(_) => break,
            }
        }
        let ends = session.clone();
        tokio::spawn(supervise(program.clone(), handler.clone(), batch, ends.clone(), ends));
    }
}

impl Link for Session {
    fn progressed(&self, attempt: &Arc<Attempt>) {
        self.progressed(attempt);
    }

    fn logged(&self, attempt: &Arc<Attempt>, at_once: bool) {
        self.logged(attempt, at_once);
    }

    fn budget(&self) -> &LogBudget {
        &self.budget
    }

    fn is_draining(&self) -> bool {
        self.is_draining()
    }

    fn confirm(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(self.confirm())
    }

    fn once_records(&self) -> OnceRecords {
        match &*self.registration.borrow() {
            Some(registration) if !registration.has_once => OnceRecords::Unavailable,
            _ => OnceRecords::Server,
        }
    }
}

impl Ends for Session {
    fn finish(&self, attempt: &Arc<Attempt>, outcome: Option<Outcome>, ran: Duration) {
        let report = outcome.map(|outcome| outcome.into_report(attempt.token.clone(), Some(ran)));
        self.finish(attempt, report);
    }

    fn add_stuck(&self) {
        self.add_stuck();
    }

    fn remove_stuck(&self) {
        self.remove_stuck();
    }

    fn result_bytes_max(&self) -> usize {
        let known = self.registration.borrow();
        let limit = known.as_ref().map(|known| known.limits.result_bytes);
        limit.map_or(RESULT_BYTES_MAX_DEFAULT, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }

    fn shutdown_grace(&self) -> Duration {
        SHUTDOWN_GRACE
    }
}
