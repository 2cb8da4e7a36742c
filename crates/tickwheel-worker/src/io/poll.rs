//! Polls: one under way that counts, as many jobs as there are free slots, no prefetch.
//!
//! A poll that waits is replaced when there is room again after there was none, or none after there was. The new one
//! has a higher number, which makes the server end the old one, so that its connection stays usable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_client::{Backoff, Error};
use tickwheel_protocol::{Code, PollWorker, PolledJobs};
use tokio::task::JoinHandle;

use super::{Io, REFUSED_DELAY};
use crate::attempt::Attempt;
use crate::session::{Registration, Wanted};

/// How much longer than asked for a poll may take.
const OVERTIME: Duration = Duration::from_secs(10);
/// An empty answer that comes sooner than this is followed by a pause of the same length.
const PAUSE: Duration = Duration::from_millis(50);

/// A poll under way.
struct Poll {
    wanted: Wanted,
    answer: JoinHandle<(Duration, Result<PolledJobs, Error>)>,
}

/// Why a wait for an answer is over.
enum Turn {
    Answered(Duration, Result<PolledJobs, Error>),
    /// Something else is wanted now.
    Replace,
    /// The answer may be lost.
    Repeat,
}

impl Io {
    /// Polls for ever.
    pub async fn poll_loop(self: &Arc<Self>) {
        let mut backoff = Backoff::default();
        let mut seq = 0;
        let mut session = String::new();
        loop {
            let registration = self.registered().await;
            if registration.worker_id != session {
                (session, seq) = (registration.worker_id.clone(), 1);
            }
            self.session.poll_turned();
            let poll = self.begin(&registration, seq);
            match self.turn(poll, &registration).await {
                Turn::Replace => seq += 1,
                Turn::Repeat => {}
                Turn::Answered(took, Ok(answer)) => {
                    seq += 1;
                    let was_retrying = backoff.tries() > 0;
                    backoff = Backoff::default();
                    self.away.is_back();
                    let is_empty = answer.jobs.is_empty();
                    self.accept(answer, took, &registration).await;
                    if is_empty && took < PAUSE && !was_retrying {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                Turn::Answered(_, Err(error)) => self.poll_failed(&error, &registration, &mut backoff).await,
            }
        }
    }

    fn begin(self: &Arc<Self>, registration: &Arc<Registration>, seq: u64) -> Poll {
        let wanted = self.session.wanted();
        let (io, registration) = (self.clone(), registration.clone());
        let request = PollWorker {
            max: Some(wanted.max),
            wait: None,
            seq: Some(seq),
            slots: Some(wanted.slots.clone()).filter(|slots| !slots.is_empty()),
        };
        let answer = tokio::spawn(async move {
            let sent_at = Instant::now();
            let answer = io.poll(&registration, &request).await;
            (sent_at.elapsed(), answer)
        });
        Poll { wanted, answer }
    }

    async fn poll(&self, registration: &Registration, request: &PollWorker) -> Result<PolledJobs, Error> {
        let call = self.client.post(&["workers", &registration.worker_id, "poll"]).json(request)?;
        call.within(registration.poll_wait + OVERTIME).send().await?.read()
    }

    /// Waits for the answer, or for a reason not to.
    async fn turn(self: &Arc<Self>, mut poll: Poll, registration: &Arc<Registration>) -> Turn {
        let began = Instant::now();
        loop {
            tokio::select! {
                biased;
                answer = &mut poll.answer => {
                    return match answer {
                        Ok((took, answer)) => Turn::Answered(took, answer),
                        Err(_) => Turn::Repeat,
                    };
                }
                () = self.session.wake_poll.notified() => {
                    if poll.wanted.differs_in_kind(&self.session.wanted()) {
                        self.let_go(poll, registration);
                        return Turn::Replace;
                    }
                }
                () = self.dispatch.told_to_poll_again() => {
                    // A poll that began just now is answered, or waits; an older one may have lost its answer.
                    if began.elapsed() >= registration.heartbeat_interval {
                        poll.answer.abort();
                        return Turn::Repeat;
                    }
                }
            }
        }
    }

    /// The server ends the poll when it sees the next one. What it says is heard; jobs that it still brings go back.
    fn let_go(self: &Arc<Self>, poll: Poll, registration: &Arc<Registration>) {
        let (io, registration) = (self.clone(), registration.clone());
        tokio::spawn(async move {
            if let Ok((took, Ok(answer))) = poll.answer.await {
                io.accept(answer, took, &registration).await;
            }
        });
    }

    async fn poll_failed(&self, error: &Error, registration: &Registration, backoff: &mut Backoff) {
        if error.code() == Some(Code::UnknownWorker) {
            self.session_is_gone(registration);
            return;
        }
        let delay = match error.status() {
            Some(401 | 403 | 422) => {
                tracing::error!(%error, "refused by the server");
                REFUSED_DELAY
            }
            _ => {
                self.away.note(error);
                let delay = backoff.next(error.retry_after());
                // A connection that was closed while nobody used it says nothing about the server.
                if backoff.tries() == 1 && error.is_in_doubt() && error.status().is_none() {
                    Duration::ZERO
                } else {
                    delay
                }
            }
        };
        tokio::time::sleep(delay).await;
    }

    /// Starts the jobs of an answer, or gives them back.
    async fn accept(&self, answer: PolledJobs, took: Duration, registration: &Arc<Registration>) {
        let answered_at = Instant::now();
        let attempts = answer.jobs.into_iter().map(|job| Arc::new(Attempt::new(job, answered_at))).collect();
        let attempts = self.session.take(attempts);
        self.hear(&answer.cancel, &answer.lost, answer.drain);
        let is_stale = took > registration.poll_wait + registration.heartbeat_interval;
        if is_stale && !attempts.is_empty() {
            // We were frozen. Ask what is still ours before anything starts.
            let heartbeat = self.heartbeat(registration, true).await;
            if let Err(error) = heartbeat {
                tracing::warn!(%error, jobs = attempts.len(), "an old answer could not be confirmed, its jobs go back");
                attempts.iter().for_each(|attempt| self.release(attempt));
                return;
            }
        }
        for attempt in attempts {
            if attempt.is_abandoned() {
                // It was lost before it began, and its slot is free already.
                continue;
            }
            if self.session.is_draining() {
                self.release(&attempt);
            } else {
                self.dispatch.start(attempt);
            }
        }
    }
}
