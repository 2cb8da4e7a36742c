//! One attempt that this worker has: what the server said about it, and what its handler has said since.
//!
//! Shared by the handler, its supervisor and the thread that talks to the server. Nothing here waits for anybody.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tickwheel_protocol::{Assignment, AttemptProgress, ExecutorKind, Job, Target, Time};
use tokio::sync::watch;

use crate::log_buffer::LogBuffer;

/// Why an attempt is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Somebody asked for it.
    Requested,
    /// Its time is up.
    Deadline,
    /// The worker shuts down.
    Shutdown,
    /// The worker can no longer be sure that the attempt is its own.
    LeaseLost,
}

impl CancelReason {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Deadline => "deadline",
            Self::Shutdown => "shutdown",
            Self::LeaseLost => "lease_lost",
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const WAITING: u8 = 0;
const STARTED: u8 = 1;
const GIVEN_BACK: u8 = 2;

/// An attempt.
pub(crate) struct Attempt {
    pub token: String,
    pub job: Job,
    pub number: u32,
    pub fencing_token: u32,
    pub traceparent: Option<String>,
    /// When it must have ended, by the server's clock.
    pub deadline_at: Time,
    /// When it must have ended, by our own monotonic clock.
    pub deadline: Instant,
    cancel: watch::Sender<Option<CancelReason>>,
    phase: AtomicU8,
    /// When it was handed to the handlers' runtime, while it waits there: milliseconds since `ORIGIN`, plus one.
    handed_over: AtomicU64,
    /// Since when its handler has not returned from a poll, likewise.
    polled_since: AtomicU64,
    /// It is not ours any more: whatever comes of it is not reported.
    abandoned: AtomicBool,
    said: Mutex<Said>,
}

/// What its handler has said.
#[derive(Default)]
pub(crate) struct Said {
    /// The latest progress that the server does not have.
    pub progress: Option<(Option<f64>, Option<String>)>,
    pub log: LogBuffer,
}

impl Attempt {
    /// `answered_at` is when the server's answer arrived: its durations count from there.
    pub fn new(assignment: Assignment, answered_at: Instant) -> Self {
        let Assignment { job, attempt, token, fencing_token, deadline, deadline_in, traceparent } =
            assignment;
        Self {
            token,
            job,
            number: attempt,
            fencing_token,
            traceparent,
            deadline_at: deadline,
            deadline: answered_at.checked_add(deadline_in.as_duration()).unwrap_or_else(|| answered_at + FAR),
            cancel: watch::Sender::new(None),
            phase: AtomicU8::new(WAITING),
            handed_over: AtomicU64::new(0),
            polled_since: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
            said: Mutex::default(),
        }
    }

    pub fn job_type(&self) -> &str {
        &self.job.job_type
    }

    /// The executor that it needs, if its job has a target; else it needs a handler.
    pub const fn executor(&self) -> Option<ExecutorKind> {
        match self.job.target {
            Target::Http(_) => Some(ExecutorKind::Http),
            Target::Process(_) => Some(ExecutorKind::Process),
            _ => None,
        }
    }

    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A deadline that never comes.
const FAR: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// Who may run it, and whether it counts.
impl Attempt {
    /// The handler starts, unless the attempt was given back meanwhile.
    pub fn start(&self) -> bool {
        self.handed_over.store(0, Ordering::Relaxed);
        self.phase.compare_exchange(WAITING, STARTED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The attempt goes back, unless its handler has started.
    pub fn give_back(&self) -> bool {
        self.phase.compare_exchange(WAITING, GIVEN_BACK, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    pub fn hand_over(&self) {
        self.handed_over.store(stamp(), Ordering::Relaxed);
    }

    /// How long it has waited for the handlers' runtime.
    pub fn waiting_for_runtime(&self) -> Option<Duration> {
        since(self.handed_over.load(Ordering::Relaxed))
    }

    pub fn poll_begins(&self) {
        self.polled_since.store(stamp(), Ordering::Relaxed);
    }

    pub fn poll_ends(&self) {
        self.polled_since.store(0, Ordering::Relaxed);
    }

    /// How long its handler has kept a thread of the runtime without a pause.
    pub fn blocking_for(&self) -> Option<Duration> {
        since(self.polled_since.load(Ordering::Relaxed))
    }
}

/// Being cancelled.
impl Attempt {
    /// Asks it to stop. The first reason stays.
    pub fn cancel(&self, reason: CancelReason) -> bool {
        self.cancel.send_if_modified(|known| {
            let is_new = known.is_none();
            known.get_or_insert(reason);
            is_new
        })
    }

    pub fn cancel_reason(&self) -> Option<CancelReason> {
        let reason = *self.cancel.borrow();
        // A handler that asks must not believe that it has time when it has none, however late our timers are.
        reason.or_else(|| (self.time_left() == Duration::ZERO).then_some(CancelReason::Deadline))
    }

    /// Waits until it is to stop.
    pub async fn cancelled(&self) -> CancelReason {
        let mut cancel = self.cancel.subscribe();
        let reason = cancel.wait_for(Option::is_some).await.ok().and_then(|reason| *reason);
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}

/// Progress.
impl Attempt {
    /// The latest progress, once.
    pub fn take_progress(&self) -> Option<AttemptProgress> {
        let (progress, message) = self.said().progress.take()?;
        Some(AttemptProgress { token: self.token.clone(), progress, message })
    }

    /// The server did not get it after all. Whether it is still the latest.
    pub fn put_progress_back(&self, progress: AttemptProgress) -> bool {
        let mut said = self.said();
        let is_latest = said.progress.is_none();
        if is_latest {
            said.progress = Some((progress.progress, progress.message));
        }
        is_latest
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {} of job {} ({})", self.number, self.job.id, self.job.job_type)
    }
}

/// Milliseconds since this was first called, plus one.
fn stamp() -> u64 {
    u64::try_from(origin().elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
}

fn since(stamped: u64) -> Option<Duration> {
    (stamped > 0).then(|| Duration::from_millis(stamp().saturating_sub(stamped)))
}

fn origin() -> Instant {
    static ORIGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}
