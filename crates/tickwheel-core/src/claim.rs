//! Which jobs may start, and what a claim makes of them.
//!
//! A store checks this in the transaction that claims a job, so that nobody starts it twice and no pause is overlooked.
//! It leaves out, silently, whatever may not start: the caller's knowledge was old.

use crate::id::SessionId;
use crate::job::Job;
use crate::state::{JobEvent, State};
use crate::time::Timestamp;

/// All that decides whether a job may start, except its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartConditions {
    /// Where it stands.
    pub state: State,
    /// Its time.
    pub due_at: Timestamp,
    /// The time.
    pub now: Timestamp,
    /// The stop switch is on.
    pub is_halted: bool,
    /// Its queue is paused.
    pub queue_is_paused: bool,
    /// It is a task, and its run is paused.
    pub run_is_paused: bool,
    /// The session that is to run it has not ended.
    pub session_is_open: bool,
}

impl StartConditions {
    /// Whether it may.
    pub fn are_met(&self) -> bool {
        let is_due = self.state == State::Scheduled && self.due_at <= self.now;
        let is_held = self.is_halted || self.queue_is_paused || self.run_is_paused;
        is_due && !is_held && self.session_is_open
    }
}

impl Job {
    /// The scheduled job with its next attempt under way.
    #[must_use]
    pub fn claimed(self, session: SessionId, now: Timestamp) -> Self {
        let deadline = Some(now + self.spec.timeout());
        let (session, started_at) = (Some(session), Some(now));
        let mut job = Self { attempt: self.attempt + 1, session, started_at, deadline, ..self };
        job.undergo(JobEvent::Claimed).expect("only a scheduled job is claimed");
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MET: StartConditions = StartConditions {
        state: State::Scheduled,
        due_at: Timestamp::from_millis(10),
        now: Timestamp::from_millis(10),
        is_halted: false,
        queue_is_paused: false,
        run_is_paused: false,
        session_is_open: true,
    };

    #[test]
    fn a_scheduled_job_may_start_at_its_time() {
        assert!(MET.are_met());
        assert!(!StartConditions { now: Timestamp::from_millis(9), ..MET }.are_met());
        for state in State::ALL {
            assert_eq!(StartConditions { state, ..MET }.are_met(), state == State::Scheduled, "{state}");
        }
    }

    #[test]
    fn nothing_starts_that_is_held_or_that_nobody_would_run() {
        assert!(!StartConditions { is_halted: true, ..MET }.are_met());
        assert!(!StartConditions { queue_is_paused: true, ..MET }.are_met());
        assert!(!StartConditions { run_is_paused: true, ..MET }.are_met());
        assert!(!StartConditions { session_is_open: false, ..MET }.are_met());
    }
}
