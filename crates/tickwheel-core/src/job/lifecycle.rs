//! Where a job stands, and how that changes.
//!
//! Kept true: a job's state changes by an event that [`transition`] allows, and by nothing else. Whoever lets something
//! happen to a job says so with a function that has a name ([`Job::claimed`], [`Job::settled`],
//! [`change::apply`](crate::change::apply) …); those end up here, in [`Job::undergo`]. `scripts/tidy.sh` sees to it.

use super::Job;
use crate::parents::{NOT_UNTIL_RELEASED, Parents, WaitingJob};
use crate::settle::Burst;
use crate::state::{IllegalTransition, JobEvent, State, transition};
use crate::time::Timestamp;

impl Job {
    /// Where it stands. Outside of the core nobody sets it:
    ///
    /// ```compile_fail,E0616
    /// # use tickwheel_core::{Job, State};
    /// fn end(job: &mut Job) {
    ///     job.state = State::Completed;
    /// }
    /// ```
    pub const fn state(&self) -> State {
        self.state
    }

    /// The job in the state in which a store has it. Only for a store that reads what it has written, and for tests that
    /// need a job in the middle of its life: this asks nobody whether the job can get there.
    #[must_use]
    pub fn in_stored_state(self, state: State) -> Self {
        Self { state, ..self }
    }

    /// Something happens to it. Every change of a job's state goes through here.
    pub(crate) fn undergo(&mut self, event: JobEvent) -> Result<(), IllegalTransition> {
        self.state = transition(self.state, event)?;
        Ok(())
    }

    /// The job as it is when its parents stand like this, before anything else has happened to it.
    #[must_use]
    pub fn waiting_for(self, parents: Parents) -> Self {
        let mut job = Self { parents, state: State::Scheduled, ..self };
        job.hold_for_parents().expect("a scheduled job may wait for parents");
        job
    }

    /// The scheduled job waits for its parents, or is blocked by them, unless they are done.
    pub(crate) fn hold_for_parents(&mut self) -> Result<(), IllegalTransition> {
        if self.parents.are_done() {
            return Ok(());
        }
        self.hold()?;
        if self.parents.failed > 0 {
            self.undergo(JobEvent::ParentFailed)?;
        }
        Ok(())
    }

    /// The scheduled job waits until it is released.
    pub(crate) fn hold(&mut self) -> Result<(), IllegalTransition> {
        self.undergo(JobEvent::AwaitingParents)?;
        self.due_at = NOT_UNTIL_RELEASED;
        Ok(())
    }

    /// The waiting job, or one that is blocked, is released: it starts at its time, but not before `at`.
    pub(crate) fn release_at(&mut self, at: Timestamp) -> Result<(), IllegalTransition> {
        if self.state == State::Blocked {
            self.undergo(JobEvent::Unblocked)?;
        }
        self.undergo(JobEvent::ParentsDone)?;
        self.due_at = self.execute_at.max(at);
        Ok(())
    }

    /// The waiting job as these parents make it. The last of those that have just ended did so then.
    #[must_use]
    pub fn recounted(self, parents: Parents, latest_end: Option<Timestamp>) -> Self {
        let (state, release, execute_at) = (self.state, self.release(), self.execute_at);
        let now = WaitingJob { state, parents, release, execute_at }.recounted(parents, latest_end);
        Self { parents, state: now.job.state, due_at: now.due_at.unwrap_or(self.due_at), ..self }
    }

    /// The ended job as history keeps it: without what only a live job has.
    #[must_use]
    pub fn archived(self) -> Self {
        debug_assert!(self.state.is_terminal(), "only an ended job goes to history");
        Self { session: None, deadline: None, cancel_requested: false, burst: Burst::default(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::id::{JobId, SessionId};
    use crate::job::{JobSpec, Target};

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn job_in(state: State) -> Job {
        let id = JobId::from_uuid(Uuid::from_u128(1));
        Job::new(id, "t", JobSpec::new(Target::Worker), NOW).in_stored_state(state)
    }

    #[test]
    fn what_cannot_happen_leaves_a_job_as_it_was() {
        for state in State::ALL {
            let mut job = job_in(state);
            let done = job.undergo(JobEvent::Claimed).is_ok();
            assert_eq!(done, matches!(state, State::Scheduled | State::Dispatched), "{state}");
            assert_eq!(job.state(), if done { State::Running } else { state });
        }
    }

    #[test]
    fn a_job_is_released_from_waiting_and_from_being_blocked() {
        for state in State::ALL {
            let mut job = job_in(state);
            let released = job.release_at(NOW).is_ok();
            assert_eq!(released, matches!(state, State::Pending | State::Blocked), "{state}");
        }
        let mut job = job_in(State::Blocked);
        job.release_at(Timestamp::from_millis(2_000)).unwrap();
        assert_eq!((job.state(), job.due_at), (State::Scheduled, Timestamp::from_millis(2_000)));
    }

    #[test]
    fn a_held_job_has_no_time() {
        let mut job = job_in(State::Scheduled);
        job.hold().unwrap();
        assert_eq!((job.state(), job.due_at), (State::Pending, NOT_UNTIL_RELEASED));
        assert!(job.hold().is_err(), "it is held already");
    }

    #[test]
    #[should_panic(expected = "only a scheduled job is claimed")]
    fn a_job_that_has_ended_is_not_claimed() {
        let _ = job_in(State::Completed).claimed(SessionId::from_uuid(Uuid::nil()), NOW);
    }
}
