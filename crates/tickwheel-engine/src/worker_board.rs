//! The workers of this node: who has a session here, what each of them has, and who waits for work.
//!
//! ```text
//!  poll ──begin──▶ [ waiting ] ──deliver──▶ answer, kept until the next poll says that it arrived
//!                      │ cancel, lost, drain: the poll is answered at once, without a job
//!                      ▼ time is over, the client is gone: nobody waits, and what comes goes back in line
//! ```
//! Everything here follows from the store and may be rebuilt from it: a session that this node does not know is read when
//! its worker is heard of. What the board believes makes things prompt; whether an attempt may be reported, the store
//! decides.
//!
//! Kept true: the machine knows the same sessions as the board, and a session has demand in it only while its poll waits.

mod seat;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_core::id::{IdMap, IdSet};
use tickwheel_core::matching::Demand;
use tickwheel_core::ports::{AttemptContext, HeldAttempt, WorkerActivity};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::WorkerSession;
use tickwheel_core::{Job, JobId, SessionId, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::loops::planner::PlannerHandle;
use seat::{Answer, Held, Seat, WaitingPoll};

/// Jobs in the answer to a poll.
pub const POLL_LEN_MAX: usize = 1_000;
/// Bytes of all answers that are kept in case they were lost. Beyond that an answer is given once, and what was lost of
/// it is found by comparing what both sides have.
const KEPT_BYTES_MAX: usize = 256 << 20;
/// Attempts of a session that were taken from it and that it was not told of yet.
const LOST_LEN_MAX: usize = 10_000;

/// See the module. Clones are the same.
#[derive(Clone)]
pub struct WorkerBoard {
    state: Arc<Mutex<State>>,
    planner: PlannerHandle,
}

#[derive(Default)]
struct State {
    seats: IdMap<SessionId, Seat>,
    /// Who has an attempt of which job.
    holders: IdMap<JobId, SessionId>,
    kept_bytes: usize,
    /// The server is about to stop: no poll waits.
    stopping: bool,
}

/// How a poll begins.
pub enum PollStart {
    /// It was answered before: with the same jobs again.
    Again(Vec<AttemptContext>),
    /// It waits for this, under this number.
    Waits { number: u64, demand: Demand, news: Arc<Notify> },
}

/// What a poll that waits finds.
#[derive(Debug)]
pub enum Found {
    /// Nothing yet.
    Nothing,
    /// Jobs.
    Jobs(Vec<AttemptContext>),
    /// News about what it has.
    News,
    /// Another poll took its place.
    Replaced,
    /// The session has ended.
    Gone,
}

/// What a worker has to hear of.
#[derive(Debug, Default)]
pub struct News {
    pub cancel: Vec<AttemptRef>,
    pub lost: Vec<AttemptRef>,
    pub drain: bool,
}

impl WorkerBoard {
    pub fn new(planner: PlannerHandle) -> Self {
        Self { state: Arc::default(), planner }
    }

    /// How many sessions are known here.
    pub fn len(&self) -> usize {
        self.lock().seats.len()
    }

    /// Whether the session is known here.
    pub fn knows(&self, id: SessionId) -> bool {
        self.lock().seats.contains_key(&id)
    }

    /// A session is here from now on, with what it has according to the store.
    pub async fn open(&self, session: WorkerSession, held: Vec<HeldAttempt>) {
        let (id, offer) = (session.id, session.profile.offer());
        {
            let mut state = self.lock();
            match state.seats.get_mut(&id) {
                Some(seat) => seat.session = session,
                None => drop(state.seats.insert(id, Seat::new(session))),
            }
            state.replace_held(id, held);
        }
        self.planner.session_opened(id, offer).await;
    }

    /// A session has ended.
    pub async fn close(&self, id: SessionId) {
        let was_here = self.lock().close(id);
        if was_here {
            self.planner.session_closed(id).await;
        }
    }

    /// The worker was heard of.
    pub fn heard(&self, session: &WorkerSession, at: Timestamp) {
        if let Some(seat) = self.lock().seats.get_mut(&session.id) {
            seat.renewed_at = Instant::now();
            seat.activity.last_seen = Some(at);
            seat.change_draining(session.draining);
            seat.session.clone_from(session);
        }
    }

    /// What the worker says of itself.
    pub fn note(&self, id: SessionId, draining: bool, stuck: u64) {
        if let Some(seat) = self.lock().seats.get_mut(&id) {
            (seat.activity.draining, seat.activity.stuck) = (draining, stuck);
        }
    }

    /// What is known of a worker.
    pub fn activity(&self, id: SessionId) -> WorkerActivity {
        self.lock().seats.get(&id).map_or_else(WorkerActivity::default, |seat| seat.activity)
    }

    /// Whether the lease of a session should be renewed because the worker was heard of.
    pub fn wants_renewal(&self, id: SessionId) -> bool {
        let state = self.lock();
        state
            .seats
            .get(&id)
            .is_none_or(|seat| seat.renewed_at.elapsed() >= seat.session.profile.heartbeat_interval())
    }

    /// A poll begins, and ends the one that waits. `None`: the session is not here.
    pub fn begin_poll(
        &self,
        id: SessionId,
        seq: Option<u64>,
        mut demand: Demand,
        at: Timestamp,
    ) -> Option<PollStart> {
        let mut state = self.lock();
        let state = &mut *state;
        let seat = state.seats.get_mut(&id)?;
        seat.activity.last_poll = Some(at);
        if let Some(answer) = &mut seat.answered
            && seq.is_some()
            && answer.seq == seq
        {
            answer.given_at = Instant::now();
            let is_held = |job: &&AttemptContext| seat.held.contains_key(&job.job.id);
            return Some(PollStart::Again(answer.jobs.iter().filter(is_held).cloned().collect()));
        }
        let kept = seat.answered.take().map_or(0, |answer| answer.bytes);
        if let Some(before) = seat.waiting.take() {
            before.news.notify_one();
        }
        seat.polls += 1;
        let (number, news) = (seat.polls, Arc::new(Notify::new()));
        demand.jobs_max = if seat.session.draining { 0 } else { demand.jobs_max.min(seat.fits) };
        seat.waiting = Some(WaitingPoll { number, seq, demand: demand.clone(), news: news.clone() });
        if state.stopping || seat.has_news() {
            news.notify_one();
        }
        state.kept_bytes = state.kept_bytes.saturating_sub(kept);
        Some(PollStart::Waits { number, demand, news })
    }

    /// What there is for a poll that waits.
    pub fn look(&self, id: SessionId, number: u64) -> Found {
        let mut state = self.lock();
        let stopping = state.stopping;
        let Some(seat) = state.seats.get_mut(&id) else { return Found::Gone };
        match (&mut seat.answered, &seat.waiting) {
            (Some(answer), _) if answer.number == number => {
                let jobs = answer.jobs.clone();
                if answer.seq.is_none() {
                    // Nobody can ask for it again.
                    answer.jobs = Vec::new();
                }
                Found::Jobs(jobs)
            }
            (_, Some(waiting)) if waiting.number == number => {
                if stopping || seat.has_news() {
                    Found::News
                } else {
                    Found::Nothing
                }
            }
            _ => Found::Replaced,
        }
    }

    /// A poll waits no more. `true`: it was waiting until now, so the machine has to know.
    pub fn end_poll(&self, id: SessionId, number: u64) -> bool {
        let mut state = self.lock();
        let Some(seat) = state.seats.get_mut(&id) else { return false };
        let is_it = seat.waiting.as_ref().is_some_and(|waiting| waiting.number == number);
        if is_it {
            seat.waiting = None;
        }
        is_it
    }

    /// Hands attempts to the poll that waits. Whatever nobody waits for, or does not fit, comes back.
    pub fn deliver(&self, id: SessionId, jobs: Vec<AttemptContext>, bytes_max: usize) -> Vec<AttemptContext> {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(seat) = state.seats.get_mut(&id) else { return jobs };
        // A poll that took the place of another may have less room than that had when the jobs were claimed.
        let has_room = |waiting: &mut WaitingPoll| !jobs.is_empty() && waiting.demand.jobs_max > 0;
        let Some(waiting) = seat.waiting.take_if(has_room) else { return jobs };
        let (jobs, refused, bytes) = cut(jobs, waiting.demand.jobs_max, bytes_max);
        seat.fits = if refused.is_empty() { (seat.fits * 2).min(POLL_LEN_MAX) } else { jobs.len().max(1) };
        for context in &jobs {
            state.holders.insert(context.job.id, id);
            seat.held.insert(context.job.id, Held::handed_out(&context.job));
        }
        // What cannot be kept is given once.
        let seq = waiting.seq.filter(|_| state.kept_bytes + bytes <= KEPT_BYTES_MAX);
        let bytes = seq.map_or(0, |_| bytes);
        state.kept_bytes += bytes;
        let (number, given_at) = (waiting.number, Instant::now());
        seat.answered = Some(Answer { number, seq, jobs, bytes, given_at, arrived: seq.is_none() });
        waiting.news.notify_one();
        refused
    }

    /// Whether a poll of the session waits.
    pub fn is_waiting(&self, id: SessionId) -> bool {
        self.lock().seats.get(&id).is_some_and(|seat| seat.waiting.is_some())
    }

    /// A claim for the session came to nothing: if its poll still waits, the machine hears of it again.
    pub async fn nothing_for(&self, id: SessionId) {
        let demand = self.lock().seats.get(&id).and_then(|seat| Some(seat.waiting.as_ref()?.demand.clone()));
        if let Some(demand) = demand {
            self.planner.demand_changed(id, demand).await;
        }
    }

    /// What the worker has to hear of now.
    pub fn take_news(&self, id: SessionId) -> News {
        self.lock().seats.get_mut(&id).map_or_else(News::default, Seat::take_news)
    }

    /// Somebody wants a worker to take nothing new, or no longer so.
    pub async fn set_draining(&self, id: SessionId, draining: bool) {
        if let Some(seat) = self.lock().seats.get_mut(&id) {
            seat.change_draining(draining);
        }
        if draining {
            self.planner.demand_changed(id, Demand::default()).await;
        }
    }

    /// Asks an attempt to stop, if it is with a worker of this node.
    pub fn stop(&self, job: JobId) {
        let mut state = self.lock();
        let Some(holder) = state.holders.get(&job).copied() else { return };
        let Some(seat) = state.seats.get_mut(&holder) else { return };
        if let Some(held) = seat.held.get_mut(&job) {
            held.cancel_requested = true;
            seat.tell();
        }
    }

    /// Whether an attempt of the job is with a worker of this node.
    pub fn has(&self, job: JobId) -> bool {
        self.lock().holders.contains_key(&job)
    }

    /// The attempts of these jobs that are with workers of this node.
    pub fn attempts_of(&self, jobs: &[JobId]) -> IdMap<JobId, u32> {
        let state = self.lock();
        jobs.iter().filter_map(|id| Some((*id, state.held(*id)?.attempt))).collect()
    }

    /// The job of an attempt, as it was claimed, if this node remembers it.
    pub fn job_of(&self, attempt: AttemptRef) -> Option<Box<Job>> {
        let state = self.lock();
        let held = state.held(attempt.job_id).filter(|held| held.attempt == attempt.attempt)?;
        let mut job = held.job.clone()?;
        job.cancel_requested |= held.cancel_requested;
        Some(job)
    }

    /// The worker says how an attempt ended.
    pub fn reported(&self, attempt: AttemptRef) {
        let mut state = self.lock();
        let Some(holder) = state.holders.get(&attempt.job_id).copied() else { return };
        let held = state.seats.get_mut(&holder).and_then(|seat| seat.held.get_mut(&attempt.job_id));
        if let Some(held) = held.filter(|held| held.attempt == attempt.attempt) {
            held.reported = true;
        }
    }

    /// The ends of attempts are written: their workers have them no more. One that did not say so itself is told.
    pub fn settled(&self, attempts: impl Iterator<Item = AttemptRef>) {
        let mut attempts = attempts.peekable();
        if attempts.peek().is_none() {
            return;
        }
        let mut state = self.lock();
        attempts.for_each(|attempt| state.forget(attempt));
    }

    /// What the session has, as the board knows it.
    pub fn held(&self, id: SessionId) -> Vec<AttemptRef> {
        let state = self.lock();
        let seat = state.seats.get(&id);
        let held = seat.into_iter().flat_map(|seat| &seat.held);
        held.map(|(job_id, held)| AttemptRef { job_id: *job_id, attempt: held.attempt }).collect()
    }

    /// How many attempts the session has.
    pub fn count_held(&self, id: SessionId) -> usize {
        self.lock().seats.get(&id).map_or(0, |seat| seat.held.len())
    }

    /// What the session has according to the store replaces what the board believed.
    pub fn replace_held(&self, id: SessionId, held: Vec<HeldAttempt>) {
        self.lock().replace_held(id, held);
    }

    /// Those of the attempts that were handed out a heartbeat ago or longer, or nobody remembers when.
    pub fn handed_out_long_ago(&self, id: SessionId, attempts: &[AttemptRef]) -> Vec<AttemptRef> {
        let state = self.lock();
        let Some(seat) = state.seats.get(&id) else { return attempts.to_vec() };
        let interval = seat.session.profile.heartbeat_interval();
        let is_old = |attempt: &&AttemptRef| {
            seat.held.get(&attempt.job_id).is_none_or(|held| held.handed_out_at.elapsed() >= interval)
        };
        attempts.iter().filter(is_old).copied().collect()
    }

    /// The attempts of answers that never arrived, of workers that live.
    pub fn take_never_arrived(&self) -> Vec<AttemptRef> {
        self.lock().seats.values_mut().flat_map(Seat::take_never_arrived).collect()
    }

    /// The worker has mentioned these attempts: the answer with them has arrived.
    pub fn mentioned<'a>(&self, id: SessionId, attempts: impl Iterator<Item = &'a AttemptRef>) {
        let mut state = self.lock();
        let Some(answer) = state.seats.get_mut(&id).and_then(|seat| seat.answered.as_mut()) else { return };
        let named: IdSet<JobId> = attempts.map(|attempt| attempt.job_id).collect();
        answer.arrived |= answer.jobs.iter().any(|context| named.contains(&context.job.id));
    }

    /// Attempts with workers of this node, by queue.
    pub fn by_queue(&self) -> HashMap<Arc<str>, u64> {
        let mut counts = HashMap::new();
        for held in self.lock().seats.values().flat_map(|seat| seat.held.values()) {
            *counts.entry(held.queue.clone()).or_default() += 1;
        }
        counts
    }

    /// Ends the wait of every poll: the server is about to stop.
    pub fn wake_all(&self) {
        let mut state = self.lock();
        state.stopping = true;
        state.seats.values().for_each(Seat::tell);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn held(&self, job: JobId) -> Option<&Held> {
        self.seats.get(self.holders.get(&job)?)?.held.get(&job)
    }

    fn close(&mut self, id: SessionId) -> bool {
        let Some(seat) = self.seats.remove(&id) else { return false };
        for job in seat.held.keys() {
            self.holders.remove(job);
        }
        self.kept_bytes =
            self.kept_bytes.saturating_sub(seat.answered.as_ref().map_or(0, |answer| answer.bytes));
        seat.tell();
        true
    }

    fn forget(&mut self, attempt: AttemptRef) {
        let Some(holder) = self.holders.get(&attempt.job_id).copied() else { return };
        let Some(seat) = self.seats.get_mut(&holder) else { return };
        let Some(held) = seat.held.get(&attempt.job_id).filter(|held| held.attempt == attempt.attempt) else {
            return;
        };
        let reported = held.reported;
        seat.held.remove(&attempt.job_id);
        self.holders.remove(&attempt.job_id);
        if !reported && seat.lost.len() < LOST_LEN_MAX {
            seat.lost.push(attempt);
            seat.tell();
        }
    }

    fn replace_held(&mut self, id: SessionId, held: Vec<HeldAttempt>) {
        let Some(seat) = self.seats.get_mut(&id) else { return };
        let mut before = std::mem::take(&mut seat.held);
        for job in before.keys() {
            self.holders.remove(job);
        }
        for attempt in held {
            let AttemptRef { job_id, attempt: number } = attempt.attempt;
            let known = before.remove(&job_id).filter(|known| known.attempt == number);
            let mut now = known.unwrap_or_else(|| Held::of_store(number));
            now.cancel_requested |= attempt.cancel_requested;
            self.holders.insert(job_id, id);
            seat.held.insert(job_id, now);
        }
    }
}

fn attempt_of(job: &Job) -> AttemptRef {
    AttemptRef { job_id: job.id, attempt: job.attempt }
}

/// The first of them, so many and with this many bytes together, but at least one; the others; and the bytes.
fn cut(
    mut jobs: Vec<AttemptContext>,
    len_max: usize,
    bytes_max: usize,
) -> (Vec<AttemptContext>, Vec<AttemptContext>, usize) {
    let (mut bytes, mut fitting) = (0, 0);
    for context in &jobs {
        let more = bytes + context.payload.len();
        if fitting > 0 && (more > bytes_max || fitting == len_max) {
            break;
        }
        (bytes, fitting) = (more, fitting + 1);
    }
    let refused = jobs.split_off(fitting);
    (jobs, refused, bytes)
}
