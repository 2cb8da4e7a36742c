//! What this worker has and knows, shared by its handlers and by the thread that talks to the server.
//!
//! Every lock is held for a few instructions and never while somebody waits, so handlers cannot hold up heartbeats.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tickwheel_protocol::{AttemptProgress, AttemptReport, WorkerLimits};
use tokio::sync::{Notify, oneshot, watch};

use crate::attempt::{Attempt, CancelReason};
use crate::log_buffer::{Lines, LogBudget};

/// Waiting reports: at the bound the worker takes no more jobs. None is ever dropped.
const REPORTS_MAX: usize = 10_000;
const REPORTS_BYTES_MAX: usize = 64 << 20;

/// What the server said when it accepted this worker.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub worker_id: String,
    pub lease: Duration,
    pub heartbeat_interval: Duration,
    pub poll_wait: Duration,
    pub limits: WorkerLimits,
    pub has_logs: bool,
    pub has_once: bool,
}

/// How far the end of the worker has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Drain {
    /// It takes jobs.
    No,
    /// It finishes what it has.
    Draining,
    /// Handlers were told to stop.
    Cancelling,
}

/// The end of an attempt that the server has not accepted yet.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub report: AttemptReport,
    pub lines: Lines,
    pub attempt: Arc<Attempt>,
    pub bytes: usize,
}

/// What a poll asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub max: u32,
    /// Of types whose handlers have a capacity of their own.
    pub slots: BTreeMap<String, u32>,
}

impl Wanted {
    /// Whether a waiting poll that asks for this should be replaced by one that asks for `now`.
    pub fn differs_in_kind(&self, now: &Self) -> bool {
        let is_zero =
            |slots: &BTreeMap<String, u32>| slots.values().map(|slots| *slots == 0).collect::<Vec<_>>();
        (self.max == 0) != (now.max == 0) || is_zero(&self.slots) != is_zero(&now.slots)
    }
}

/// The numbers of a worker, for its own metrics and its health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Handlers that run.
    pub running: usize,
    /// Slots whose handlers were told to stop and did not.
    pub stuck: usize,
    /// Attempts whose end the server has not accepted yet, running ones included.
    pub held: usize,
    /// Ends that wait to be reported.
    pub reports_waiting: usize,
    /// Attempts that were started.
    pub started: u64,
    /// Lines of logs that were dropped.
    pub log_lines_dropped: u64,
    /// Whether the worker has a session.
    pub registered: bool,
    /// Whether it takes nothing new.
    pub draining: bool,
    /// How long ago a heartbeat was accepted.
    pub heartbeat_age: Option<Duration>,
}

#[derive(Default)]
struct State {
    /// Every attempt whose report was not accepted yet, by token.
    held: HashMap<String, Arc<Attempt>>,
    /// Slots in use, and those of each type.
    busy: u32,
    busy_by_type: HashMap<String, u32>,
    stuck: u32,
    reports: VecDeque<Report>,
    /// Reports under way: still held, no longer in `reports`.
    reporting: usize,
    reports_bytes: usize,
    /// Attempts with progress that the server does not have.
    progressed: Vec<Arc<Attempt>>,
    /// Attempts with lines that the server does not have.
    logged: Vec<Arc<Attempt>>,
    /// Handlers that wait for an accepted heartbeat.
    confirmations: Vec<oneshot::Sender<()>>,
    started: u64,
    log_lines_dropped: u64,
    heartbeat_accepted: Option<Instant>,
    poll_turned: Option<Instant>,
}

/// The session.
pub(crate) struct Session {
    state: Mutex<State>,
    capacity: u32,
    /// The capacities of types that have one of their own.
    capacities: BTreeMap<String, u32>,
    pub registration: watch::Sender<Option<Arc<Registration>>>,
    pub drain: watch::Sender<Drain>,
    /// The server wants it to take nothing new.
    told_to_drain: AtomicBool,
    /// The handlers' runtime does not answer.
    pub runtime_is_blocked: AtomicBool,
    pub budget: LogBudget,
    pub wake_poll: Notify,
    pub wake_heartbeat: Notify,
    pub wake_report: Notify,
    pub wake_logs: Notify,
    pub hurry_logs: Notify,
    /// Something ended.
    pub ended: Notify,
}

impl Session {
    pub fn new(capacity: u32, capacities: BTreeMap<String, u32>) -> Self {
        Self {
            state: Mutex::default(),
            capacity,
            capacities,
            registration: watch::Sender::new(None),
            drain: watch::Sender::new(Drain::No),
            told_to_drain: AtomicBool::new(false),
            runtime_is_blocked: AtomicBool::new(false),
            budget: LogBudget::default(),
            wake_poll: Notify::new(),
            wake_heartbeat: Notify::new(),
            wake_report: Notify::new(),
            wake_logs: Notify::new(),
            hurry_logs: Notify::new(),
            ended: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Taking jobs.
impl Session {
    pub fn is_draining(&self) -> bool {
        *self.drain.borrow() > Drain::No || self.told_to_drain.load(Ordering::Acquire)
    }

    /// The server's wish. Whether it is news.
    pub fn set_told_to_drain(&self, drain: bool) -> bool {
        let is_news = self.told_to_drain.swap(drain, Ordering::AcqRel) != drain;
        if is_news {
            self.wake_poll.notify_one();
        }
        is_news
    }

    /// How many jobs there is room for.
    pub fn wanted(&self) -> Wanted {
        let state = self.state();
        let too_many_reports = state.reports.len() >= REPORTS_MAX || state.reports_bytes >= REPORTS_BYTES_MAX;
        let closed =
            self.is_draining() || too_many_reports || self.runtime_is_blocked.load(Ordering::Acquire);
        let max = if closed { 0 } else { self.capacity.saturating_sub(state.busy) };
        let left = |(name, capacity): (&String, &u32)| {
            let busy = state.busy_by_type.get(name).copied().unwrap_or_default();
            (name.clone(), capacity.saturating_sub(busy))
        };
        Wanted { max, slots: self.capacities.iter().map(left).collect() }
    }

    /// These attempts are ours now. They are counted before any handler starts. Returns those that are new: the server
    /// may say the same twice.
    pub fn take(&self, attempts: Vec<Arc<Attempt>>) -> Vec<Arc<Attempt>> {
        let mut state = self.state();
        let mut new = Vec::with_capacity(attempts.len());
        for attempt in attempts {
            if state.held.contains_key(&attempt.token) {
                continue;
            }
            state.held.insert(attempt.token.clone(), attempt.clone());
            state.busy += 1;
            state.started += 1;
            *state.busy_by_type.entry(attempt.job_type().to_owned()).or_default() += 1;
            new.push(attempt);
        }
        new
    }

    /// The handler of an attempt has ended: its slot is free, and its end is to be reported.
    pub fn finish(&self, attempt: &Arc<Attempt>, report: Option<AttemptReport>) {
        let lines = {
            let mut said = attempt.said();
            let lines = said.log.take(&self.budget);
            self.state().log_lines_dropped += said.log.dropped_total();
            lines
        };
        {
            let mut state = self.state();
            state.busy = state.busy.saturating_sub(1);
            if let Some(busy) = state.busy_by_type.get_mut(attempt.job_type()) {
                *busy = busy.saturating_sub(1);
            }
            match report.filter(|_| !attempt.is_abandoned()) {
                Some(report) => {
                    let result = report.result.as_ref().map_or(0, |result| result.get().len());
                    let bytes = result + lines.bytes() + 1024;
                    state.reports_bytes += bytes;
                    state.reports.push_back(Report { report, lines, attempt: attempt.clone(), bytes });
                }
                None => {
                    state.held.remove(&attempt.token);
                }
            }
        }
        self.wake_poll.notify_one();
        self.wake_report.notify_one();
        self.ended.notify_one();
    }

    pub fn add_stuck(&self) {
        self.state().stuck += 1;
        self.wake_heartbeat.notify_one();
    }

    pub fn remove_stuck(&self) {
        let mut state = self.state();
        state.stuck = state.stuck.saturating_sub(1);
    }
}

/// Cancelling and losing.
impl Session {
    /// Somebody wants these stopped.
    pub fn cancel(&self, tokens: &[String], reason: CancelReason) {
        let state = self.state();
        for attempt in tokens.iter().filter_map(|token| state.held.get(token)) {
            attempt.cancel(reason);
        }
    }

    /// All attempts, for the loops that look at each of them.
    pub fn attempts(&self) -> Vec<Arc<Attempt>> {
        self.state().held.values().cloned().collect()
    }

    /// These are not ours any more. `stays` says which of them run on and are offered all the same. Returns those that
    /// were lost.
    pub fn lose(&self, tokens: &[String], stays: impl Fn(&Attempt) -> bool) -> Vec<Arc<Attempt>> {
        let mut state = self.state();
        let mut lost = Vec::new();
        for token in tokens {
            let Some(attempt) = state.held.get(token).cloned() else { continue };
            if stays(&attempt) || attempt.is_abandoned() {
                continue;
            }
            attempt.abandon();
            attempt.cancel(CancelReason::LeaseLost);
            state.held.remove(token);
            lost.push(attempt);
        }
        // A report of a lost attempt is pointless. One that is under way gets its answer.
        let bytes_before: usize = state.reports.iter().map(|report| report.bytes).sum();
        state.reports.retain(|report| !report.attempt.is_abandoned());
        let bytes_after: usize = state.reports.iter().map(|report| report.bytes).sum();
        state.reports_bytes = state.reports_bytes.saturating_sub(bytes_before - bytes_after);
        self.ended.notify_one();
        lost
    }
}

/// Reports.
impl Session {
    /// The next reports to send together: the oldest, up to these bounds, at least one.
    pub fn next_reports(&self, count_max: usize, bytes_max: usize) -> Vec<Report> {
        let mut state = self.state();
        let mut reports = Vec::new();
        let mut bytes = 0;
        while let Some(next) = state.reports.front() {
            bytes += next.bytes;
            if !reports.is_empty() && (reports.len() >= count_max || bytes > bytes_max) {
                break;
            }
            reports.extend(state.reports.pop_front());
        }
        state.reporting += reports.len();
        reports
    }

    /// These did not get through: they are the next ones again, in their order.
    pub fn put_reports_back(&self, reports: Vec<Report>) {
        let mut state = self.state();
        state.reporting = state.reporting.saturating_sub(reports.len());
        for report in reports.into_iter().rev() {
            state.reports.push_front(report);
        }
    }

    /// The server has taken notice of this one, for better or worse.
    pub fn reported(&self, report: &Report) {
        {
            let mut state = self.state();
            state.reporting = state.reporting.saturating_sub(1);
            state.reports_bytes = state.reports_bytes.saturating_sub(report.bytes);
            state.held.remove(&report.report.token);
        }
        self.wake_poll.notify_one();
        self.ended.notify_one();
    }

    /// Whether nothing is held any more.
    pub fn is_idle(&self) -> bool {
        self.state().held.is_empty()
    }

    /// Waits until nothing is held any more.
    pub async fn idle(&self) {
        while !self.is_idle() {
            self.ended.notified().await;
        }
    }

    /// Waits until every end is reported.
    pub async fn all_reported(&self) {
        loop {
            {
                let state = self.state();
                if state.reports.is_empty() && state.reporting == 0 {
                    return;
                }
            }
            self.ended.notified().await;
        }
    }
}

/// What handlers say.
impl Session {
    pub fn progressed(&self, attempt: &Arc<Attempt>) {
        self.state().progressed.push(attempt.clone());
        self.wake_heartbeat.notify_one();
    }

    /// Progress that the server does not have, of up to `count_max` attempts.
    pub fn take_progress(&self, count_max: usize) -> Vec<(Arc<Attempt>, AttemptProgress)> {
        let mut state = self.state();
        let count = state.progressed.len().min(count_max);
        let attempts: Vec<_> = state.progressed.drain(..count).collect();
        drop(state);
        let taken = attempts.into_iter().filter(|attempt| !attempt.is_abandoned());
        taken.filter_map(|attempt| attempt.take_progress().map(|progress| (attempt, progress))).collect()
    }

    pub fn put_progress_back(&self, progress: Vec<(Arc<Attempt>, AttemptProgress)>) {
        for (attempt, progress) in progress {
            if attempt.put_progress_back(progress) {
                self.state().progressed.push(attempt);
            }
        }
    }

    pub fn has_progress(&self) -> bool {
        !self.state().progressed.is_empty()
    }

    pub fn logged(&self, attempt: &Arc<Attempt>, at_once: bool) {
        self.state().logged.push(attempt.clone());
        self.wake_logs.notify_one();
        if at_once {
            self.hurry_logs.notify_one();
        }
    }

    pub fn take_logged(&self) -> Vec<Arc<Attempt>> {
        let mut logged = std::mem::take(&mut self.state().logged);
        // One that has much to say may be there twice.
        let mut seen = HashSet::new();
        logged.retain(|attempt| seen.insert(Arc::as_ptr(attempt)));
        logged
    }

    /// Waits for a heartbeat that the server accepts. Whether there was one.
    pub async fn confirm(&self) -> bool {
        let (sender, receiver) = oneshot::channel();
        self.state().confirmations.push(sender);
        self.wake_heartbeat.notify_one();
        receiver.await.is_ok()
    }

    pub fn take_confirmations(&self) -> Vec<oneshot::Sender<()>> {
        let mut state = self.state();
        state.confirmations.retain(|confirmation| !confirmation.is_closed());
        std::mem::take(&mut state.confirmations)
    }

    pub fn put_confirmations_back(&self, confirmations: Vec<oneshot::Sender<()>>) {
        self.state().confirmations.extend(confirmations);
    }

    pub fn wants_confirmation(&self) -> bool {
        self.state().confirmations.iter().any(|confirmation| !confirmation.is_closed())
    }
}

/// Numbers.
impl Session {
    /// How many attempts are held, and how many slots are stuck.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state();
        (state.held.len() as u64, state.stuck.into())
    }

    pub fn tokens(&self) -> Vec<String> {
        self.state().held.keys().cloned().collect()
    }

    pub fn heartbeat_was_accepted(&self) {
        self.state().heartbeat_accepted = Some(Instant::now());
    }

    pub fn poll_turned(&self) {
        self.state().poll_turned = Some(Instant::now());
    }

    /// How long ago a heartbeat was accepted, and how long ago the poll loop turned.
    pub fn ages(&self) -> (Option<Duration>, Option<Duration>) {
        let state = self.state();
        (state.heartbeat_accepted.map(|at| at.elapsed()), state.poll_turned.map(|at| at.elapsed()))
    }

    pub fn stats(&self) -> Stats {
        let registered = self.registration.borrow().is_some();
        let draining = self.is_draining();
        let state = self.state();
        Stats {
            running: state.busy as usize,
            stuck: state.stuck as usize,
            held: state.held.len(),
            reports_waiting: state.reports.len() + state.reporting,
            started: state.started,
            log_lines_dropped: state.log_lines_dropped,
            registered,
            draining,
            heartbeat_age: state.heartbeat_accepted.map(|at| at.elapsed()),
        }
    }
}
