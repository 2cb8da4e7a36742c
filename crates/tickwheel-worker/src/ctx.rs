//! The context of a handler: who it is, how long it may, and what it can say meanwhile.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tickwheel_client::Client;
use tickwheel_protocol::worker::LogLevel;
use tickwheel_protocol::{Job, Time};
use uuid::Uuid;

use crate::attempt::{Attempt, CancelReason};
use crate::error::{JobError, cut};
use crate::log_buffer::{Line, LogBudget, Pushed};
use crate::once::OnceRecords;

/// Characters of a progress message.
const MESSAGE_CHARS_MAX: usize = 255;

/// What the context needs of the worker. A test has another one than a session.
pub(crate) trait Link: Send + Sync {
    /// The attempt has new progress.
    fn progressed(&self, attempt: &Arc<Attempt>);
    /// The attempt has lines in its log, and had none that waited before; or it has so many that they should go at once.
    fn logged(&self, attempt: &Arc<Attempt>, at_once: bool);
    fn budget(&self) -> &LogBudget;
    fn is_draining(&self) -> bool;
    /// Waits for a heartbeat that the server accepts. Whether there was one.
    fn confirm(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
    /// Where `once` keeps its results.
    fn once_records(&self) -> OnceRecords;
}

/// The context of a handler: the second argument. Cheap to clone.
///
/// In a batch it stands for all jobs of the batch: [`Ctx::job`] is the first of them, progress and log lines go to all,
/// and it is cancelled when all of them are.
pub struct Ctx<S = ()> {
    pub(crate) current: Arc<Current>,
    state: Arc<S>,
    client: Client,
}

/// The attempts of a call, without the types of the program.
pub(crate) struct Current {
    pub attempts: Vec<Arc<Attempt>>,
    pub link: Arc<dyn Link>,
}

impl<S> Clone for Ctx<S> {
    fn clone(&self) -> Self {
        Self { current: self.current.clone(), state: self.state.clone(), client: self.client.clone() }
    }
}

impl<S> Ctx<S> {
    pub(crate) fn new(
        attempts: Vec<Arc<Attempt>>,
        state: Arc<S>,
        client: Client,
        link: Arc<dyn Link>,
    ) -> Self {
        assert!(!attempts.is_empty(), "a call is about at least one attempt");
        Self { current: Arc::new(Current { attempts, link }), state, client }
    }

    fn first(&self) -> &Attempt {
        &self.current.attempts[0]
    }

    /// The job.
    pub fn job(&self) -> JobInfo<'_> {
        JobInfo(&self.first().job)
    }

    /// All jobs of the batch, in the order of the payloads.
    pub fn jobs(&self) -> impl Iterator<Item = JobInfo<'_>> {
        self.current.attempts.iter().map(|attempt| JobInfo(&attempt.job))
    }

    /// The number of this attempt, beginning with 1.
    pub fn attempt(&self) -> u32 {
        self.first().number
    }

    /// Names this attempt. Whoever has it may report on the attempt, and on nothing else.
    pub fn token(&self) -> &str {
        &self.first().token
    }

    /// When the attempt must have ended, by the server's clock.
    pub fn deadline(&self) -> Time {
        self.first().deadline_at
    }

    /// What the worker was given as its state: connections, settings.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// A client of the same server, to submit further jobs.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How far it has come, in percent, and what it is doing. Returns at once; the latest one is sent within a second.
    pub fn progress(&self, percent: impl Into<f64>, message: impl AsRef<str>) {
        let percent = percent.into();
        let percent = percent.is_finite().then(|| percent.clamp(0.0, 100.0));
        let message: String =
            message.as_ref().chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect();
        let message = Some(message).filter(|message| !message.is_empty());
        for attempt in &self.current.attempts {
            let is_first = attempt.said().progress.replace((percent, message.clone())).is_none();
            if is_first {
                self.current.link.progressed(attempt);
            }
        }
    }

    /// Writes a line into the job's log. Returns at once. With [`log_layer`](crate::log_layer) installed, events of
    /// `tracing` inside a handler get there as well.
    pub fn log(&self, level: LogLevel, message: impl AsRef<str>) {
        self.current.log(level, message.as_ref(), Map::new());
    }

    /// The same with facts beside the text.
    pub fn log_with(&self, level: LogLevel, message: impl AsRef<str>, fields: Map<String, Value>) {
        self.current.log(level, message.as_ref(), fields);
    }

    /// Asks the server whether the attempt is still ours. For the moment before what cannot be undone; otherwise nobody
    /// has to call it.
    pub async fn heartbeat(&self) -> Result<(), JobError> {
        self.check()?;
        tokio::select! {
            biased;
            reason = self.current.cancelled() => Err(JobError::stopped(reason)),
            accepted = self.current.link.confirm() => {
                self.check()?;
                if accepted { Ok(()) } else { Err(JobError::stopped(CancelReason::LeaseLost)) }
            }
        }
    }

    /// Sleeps. Ends early, with an error, when the attempt is cancelled.
    pub async fn sleep(&self, duration: Duration) -> Result<(), JobError> {
        tokio::select! {
            biased;
            reason = self.current.cancelled() => Err(JobError::stopped(reason)),
            () = tokio::time::sleep(duration) => self.check(),
        }
    }

    /// Fails if the attempt is cancelled. For handlers that block or compute.
    pub fn check(&self) -> Result<(), JobError> {
        match self.cancel_reason() {
            Some(reason) => Err(JobError::stopped(reason)),
            None => Ok(()),
        }
    }

    /// Waits until the attempt is cancelled. What it returns is the reason; [`Ctx::check`] makes an error of it.
    pub async fn cancelled(&self) -> CancelReason {
        self.current.cancelled().await
    }

    /// Why the attempt is to stop, if it is.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.current.cancel_reason()
    }

    /// How long it may still take, by a clock that nobody sets.
    pub fn time_left(&self) -> Duration {
        self.current.attempts.iter().map(|attempt| attempt.time_left()).min().unwrap_or_default()
    }

    /// Whether the worker takes no new jobs and waits for this one to end.
    pub fn draining(&self) -> bool {
        self.current.link.is_draining()
    }

    /// A number that grows with every attempt of the job, for systems that can refuse an older one.
    pub fn fencing_token(&self) -> u32 {
        self.first().fencing_token
    }

    /// A key that is the same in every attempt of the job: its id.
    pub fn idempotency_key(&self) -> String {
        self.first().job.id.to_string()
    }

    /// The trace that the job belongs to (W3C trace context).
    pub fn traceparent(&self) -> Option<&str> {
        self.first().traceparent.as_deref()
    }
}

impl Current {
    /// Waits until all attempts are cancelled.
    pub async fn cancelled(&self) -> CancelReason {
        let mut first = None;
        for attempt in &self.attempts {
            let reason = attempt.cancelled().await;
            first.get_or_insert(reason);
        }
        first.unwrap_or(CancelReason::Requested)
    }

    pub fn cancel_reason(&self) -> Option<CancelReason> {
        let mut reasons = self.attempts.iter().map(|attempt| attempt.cancel_reason());
        let first = reasons.next().flatten()?;
        reasons.all(|reason| reason.is_some()).then_some(first)
    }

    pub fn log(&self, level: LogLevel, message: &str, fields: Map<String, Value>) {
        for attempt in &self.attempts {
            let line = Line::new(level, message, fields.clone());
            let pushed = attempt.said().log.push(line, self.link.budget());
            if pushed != Pushed::Another {
                self.link.logged(attempt, pushed == Pushed::Many);
            }
        }
    }
}

impl<S> fmt::Debug for Ctx<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("attempts", &self.current.attempts).finish_non_exhaustive()
    }
}

/// A job, as its handler sees it.
#[derive(Clone, Copy)]
pub struct JobInfo<'a>(&'a Job);

impl<'a> JobInfo<'a> {
    /// Its id.
    pub fn id(self) -> Uuid {
        self.0.id
    }

    /// Its type.
    pub fn job_type(self) -> &'a str {
        &self.0.job_type
    }

    /// The queue it waited in.
    pub fn queue(self) -> &'a str {
        &self.0.queue
    }

    /// Labels for finding it.
    pub fn tags(self) -> &'a [String] {
        &self.0.tags
    }

    /// Everything else about it.
    pub fn details(self) -> &'a Job {
        self.0
    }
}

impl fmt::Debug for JobInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} ({})", self.0.id, cut(&self.0.job_type, 100))
    }
}
