//! What the board knows of one worker: what it has, what it waits for, and what it was last answered.

use std::sync::Arc;

use tickwheel_core::id::IdMap;
use tickwheel_core::matching::Demand;
use tickwheel_core::ports::{AttemptContext, WorkerActivity};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::WorkerSession;
use tickwheel_core::{Job, JobId, JsonText};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{News, POLL_LEN_MAX, attempt_of};

/// A worker and what it has.
pub(super) struct Seat {
    pub session: WorkerSession,
    pub held: IdMap<JobId, Held>,
    pub waiting: Option<WaitingPoll>,
    pub answered: Option<Answer>,
    /// Numbers the polls, so that one which was replaced knows it.
    pub polls: u64,
    /// What was taken from it and it was not told of.
    pub lost: Vec<AttemptRef>,
    /// Whether it is to take nothing new, as it was last told.
    pub told_draining: bool,
    /// So many jobs fit into its last answer, and twice as many are tried next time.
    pub fits: usize,
    pub activity: WorkerActivity,
    /// When the store last prolonged its lease.
    pub renewed_at: Instant,
}

pub(super) struct Held {
    pub attempt: u32,
    /// As it was claimed, without its payload; not there after a restart.
    pub job: Option<Box<Job>>,
    pub queue: Arc<str>,
    pub handed_out_at: Instant,
    pub cancel_requested: bool,
    /// A poll has told the worker. Heartbeats tell it again and again.
    pub cancel_told: bool,
    /// The worker has said how it ended, and is to hear nothing more of it.
    pub reported: bool,
}

pub(super) struct WaitingPoll {
    pub number: u64,
    pub seq: Option<u64>,
    pub demand: Demand,
    pub news: Arc<Notify>,
}

pub(super) struct Answer {
    pub number: u64,
    pub seq: Option<u64>,
    pub jobs: Vec<AttemptContext>,
    pub bytes: usize,
    /// When it was last given.
    pub given_at: Instant,
    /// The worker has said that it arrived, or asked for something after it.
    pub arrived: bool,
}

impl Seat {
    pub fn new(session: WorkerSession) -> Self {
        Self {
            session,
            held: IdMap::default(),
            waiting: None,
            answered: None,
            polls: 0,
            lost: Vec::new(),
            told_draining: false,
            fits: POLL_LEN_MAX,
            activity: WorkerActivity::default(),
            renewed_at: Instant::now(),
        }
    }

    /// The attempts of an answer that did not arrive. The worker renewed its lease when the answer had been under way for
    /// a whole one: it lives and has not got it. Of one that is silent nobody knows that, and what it had is lost when
    /// its own lease is over.
    pub fn take_never_arrived(&mut self) -> Vec<AttemptRef> {
        let (lease, renewed_at) = (self.session.profile.lease(), self.renewed_at);
        let is_given_up = |answer: &&mut Answer| !answer.arrived && renewed_at >= answer.given_at + lease;
        let Some(answer) = self.answered.as_mut().filter(is_given_up) else { return Vec::new() };
        answer.arrived = true;
        answer.jobs.iter().map(|context| attempt_of(&context.job)).collect()
    }

    pub fn tell(&self) {
        if let Some(waiting) = &self.waiting {
            waiting.news.notify_one();
        }
    }

    pub fn change_draining(&mut self, draining: bool) {
        if self.session.draining != draining {
            self.session.draining = draining;
            self.tell();
        }
    }

    pub fn has_news(&self) -> bool {
        let untold = |held: &Held| held.cancel_requested && !held.cancel_told;
        !self.lost.is_empty() || self.told_draining != self.session.draining || self.held.values().any(untold)
    }

    pub fn take_news(&mut self) -> News {
        let mut cancel = Vec::new();
        for (job_id, held) in self.held.iter_mut().filter(|(_, held)| held.cancel_requested) {
            held.cancel_told = true;
            cancel.push(AttemptRef { job_id: *job_id, attempt: held.attempt });
        }
        self.told_draining = self.session.draining;
        News { cancel, lost: std::mem::take(&mut self.lost), drain: self.session.draining }
    }
}

impl Held {
    pub fn handed_out(job: &Job) -> Self {
        let mut kept = job.clone();
        kept.payload = JsonText::null().into();
        Self {
            attempt: job.attempt,
            queue: job.queue.clone(),
            job: Some(Box::new(kept)),
            handed_out_at: Instant::now(),
            cancel_requested: false,
            cancel_told: false,
            reported: false,
        }
    }

    pub fn of_store(attempt: u32) -> Self {
        Self {
            attempt,
            queue: "".into(),
            job: None,
            handed_out_at: Instant::now(),
            cancel_requested: false,
            cancel_told: false,
            reported: false,
        }
    }
}
