//! Jobs that wait for other jobs.
//!
//! ```text
//!                 all completed
//!   pending ─────────────────────▶ scheduled
//!     │  ▲
//!     │  │ the parent runs again
//!     ▼  │
//!   blocked      a parent failed or was cancelled
//! ```
//! A child counts its parents: those that have not ended, and those that ended badly. The store changes the counts in the transaction that
//! ends a parent, so that two parents that end at the same instant release their child once; this module says what the counts mean.
//!
//! Kept true: no job starts before all its parents completed (I8); a child whose parent failed for good does not wait in silence, it is
//! blocked; and when the parent is run again the child waits for it again.

use crate::state::{Event, IllegalTransition, State, transition};
use crate::time::Timestamp;

/// When a job that waits for parents is due: not at all, until they are done. So nobody who looks for due jobs meets it.
pub const NOT_UNTIL_RELEASED: Timestamp = Timestamp::MAX;

/// How a job's parents stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Parents {
    /// So many have not ended.
    pub open: u32,
    /// So many ended other than well.
    pub failed: u32,
}

impl Parents {
    /// Those of a job whose parents are in these states.
    pub fn of(states: impl IntoIterator<Item = State>) -> Self {
        let mut parents = Self::default();
        for state in states {
            match state {
                State::Completed => {}
                state if state.is_terminal() => parents.failed += 1,
                _ => parents.open += 1,
            }
        }
        parents
    }

    /// Whether all of them completed.
    pub const fn are_done(self) -> bool {
        self.open == 0 && self.failed == 0
    }

    /// After so many more completed and so many more ended badly.
    #[must_use]
    pub const fn after(self, completed: u32, failed: u32) -> Self {
        Self { open: self.open.saturating_sub(completed + failed), failed: self.failed + failed }
    }

    /// After a failed one was given another chance.
    #[must_use]
    pub const fn after_revival(self) -> Self {
        Self { open: self.open + 1, failed: self.failed.saturating_sub(1) }
    }

    /// The state of a job that has just been ordered or revived and would otherwise be scheduled.
    pub fn first_state(self) -> State {
        if self.are_done() {
            return State::Scheduled;
        }
        let pending = transition(State::Scheduled, Event::Linked).expect("a scheduled job may be linked");
        self.next_state(pending).expect("pending")
    }

    /// The state of a job that waits for them.
    pub fn next_state(self, state: State) -> Result<State, IllegalTransition> {
        match (state, self.failed > 0) {
            (State::Pending, true) => transition(state, Event::ParentFailed),
            (State::Blocked, false) => self.next_state(transition(state, Event::Unblocked)?),
            (State::Pending, false) if self.open == 0 => transition(state, Event::ParentsDone),
            _ => Ok(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_waits_for_open_parents_and_is_blocked_by_failed_ones() {
        let state = |states: &[State]| Parents::of(states.iter().copied()).first_state();
        assert_eq!(state(&[]), State::Scheduled);
        assert_eq!(state(&[State::Completed, State::Completed]), State::Scheduled);
        assert_eq!(state(&[State::Completed, State::Paused]), State::Pending);
        assert_eq!(state(&[State::Running, State::Failed]), State::Blocked);
        assert_eq!(state(&[State::Cancelled]), State::Blocked);
        assert_eq!(state(&[State::Blocked]), State::Pending, "it may still come");
    }

    #[test]
    fn the_last_parent_releases_and_a_failed_one_blocks_until_it_is_revived() {
        let two = Parents { open: 2, failed: 0 };
        let one = two.after(1, 0);
        assert_eq!(one.next_state(State::Pending), Ok(State::Pending));
        assert_eq!(one.after(1, 0).next_state(State::Pending), Ok(State::Scheduled));
        let failed = one.after(0, 1);
        assert_eq!(failed.next_state(State::Pending), Ok(State::Blocked));
        assert_eq!(failed.after_revival().next_state(State::Blocked), Ok(State::Pending));
        let both_failed = two.after(0, 2);
        assert_eq!(both_failed.after_revival().next_state(State::Blocked), Ok(State::Blocked));
    }
}
