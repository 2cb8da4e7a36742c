//! The states of a job and the one function through which they change.
//!
//! ```text
//!             released            claimed                 reported
//!  pending ───────────▶ scheduled ───────────▶ running ───────────▶ completed
//!     │                  ▲  │ ▲ ▲                │ │ │
//!     │ parent failed    │  │ │ └─ retry, lost ──┘ │ └────────────▶ failed ───┐ retried
//!     ▼                  │  │ │                    └──────────────▶ cancelled ┤ (back to scheduled)
//!  blocked ──────────────┘  │ └── resumed ── paused
//!           unblocked       └──── paused ─────▶
//! ```
//! Tasks of a workflow can also end without having run: `skipped`, completed by hand, or failed because what they need
//! is not there. A bus that hands jobs to other processes goes through `dispatched` between `scheduled` and `running`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// Where a job stands.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum State {
        /// Waits for parents.
        Pending = "pending",
        /// Waits for its time, or is due and waits for its turn.
        Scheduled = "scheduled",
        /// Handed to a bus, not yet taken by a worker.
        Dispatched = "dispatched",
        /// An attempt is under way.
        Running = "running",
        /// Ended well.
        Completed = "completed",
        /// Ended badly: out of retries, or not to be retried. A dead letter.
        Failed = "failed",
        /// Ended because somebody asked for it.
        Cancelled = "cancelled",
        /// Held by hand until resumed.
        Paused = "paused",
        /// A parent failed.
        Blocked = "blocked",
        /// Ended without running: its condition did not hold, or somebody passed over it. Only a task of a workflow.
        Skipped = "skipped",
    }
}

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobEvent {
    /// It has parents that are not done.
    AwaitingParents,
    /// Its last parent completed.
    ParentsDone,
    /// A parent failed for good.
    ParentFailed,
    /// The failed parent was given another chance.
    Unblocked,
    /// Handed to a bus.
    Dispatched,
    /// A worker took it.
    Claimed,
    /// The attempt succeeded.
    Succeeded,
    /// The attempt failed and there will be no other.
    GaveUp,
    /// The attempt failed, and the job's policy plans another one.
    RetryPlanned,
    /// The attempt ended without a verdict: its worker died, or gave it back.
    Returned,
    /// Somebody cancelled it (for a running job: its attempt has stopped).
    Cancelled,
    /// Somebody paused it.
    Paused,
    /// Somebody resumed it.
    Resumed,
    /// Somebody wants it to run now instead of later.
    RunNow,
    /// Somebody changed its time, priority, payload or tags.
    Edited,
    /// Somebody retries an ended job by hand. A retry by the job's policy is `RetryPlanned`.
    Retried,
    /// It ends without having run.
    Skipped,
    /// It counts as completed without having run: somebody said so, or its items are done.
    MarkedDone,
    /// It cannot be run as requested: what it needs of others is not there.
    Refused,
}

/// The event cannot happen in that state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {state} job cannot be {event}")]
pub struct IllegalTransition {
    /// The state the job is in.
    pub state: State,
    /// What was to happen to it.
    pub event: JobEvent,
}

/// The state after `event`, or why it cannot happen. Nothing else decides about states.
pub fn transition(state: State, event: JobEvent) -> Result<State, IllegalTransition> {
    use JobEvent as E;
    use State as S;
    match (state, event) {
        (S::Scheduled, E::AwaitingParents) => Ok(S::Pending),
        (S::Pending, E::ParentsDone) => Ok(S::Scheduled),
        (S::Pending, E::ParentFailed) => Ok(S::Blocked),
        (S::Blocked, E::Unblocked) => Ok(S::Pending),
        (S::Scheduled, E::Dispatched) => Ok(S::Dispatched),
        (S::Scheduled | S::Dispatched, E::Claimed) => Ok(S::Running),
        (S::Running, E::Succeeded) => Ok(S::Completed),
        (S::Running, E::GaveUp) => Ok(S::Failed),
        (S::Running, E::RetryPlanned) => Ok(S::Scheduled),
        (S::Running | S::Dispatched, E::Returned) => Ok(S::Scheduled),
        (S::Pending | S::Scheduled | S::Dispatched | S::Running | S::Paused | S::Blocked, E::Cancelled) => {
            Ok(S::Cancelled)
        }
        (S::Scheduled, E::Paused) => Ok(S::Paused),
        (S::Paused, E::Resumed) => Ok(S::Scheduled),
        (S::Scheduled | S::Paused, E::RunNow) => Ok(S::Scheduled),
        (S::Scheduled | S::Paused | S::Pending | S::Blocked, E::Edited) => Ok(state),
        (S::Failed | S::Cancelled | S::Skipped, E::Retried) => Ok(S::Scheduled),
        (S::Pending | S::Blocked | S::Scheduled | S::Paused, E::Skipped) => Ok(S::Skipped),
        (S::Pending | S::Blocked | S::Scheduled | S::Paused, E::MarkedDone) => Ok(S::Completed),
        (S::Pending | S::Blocked, E::Refused) => Ok(S::Failed),
        (state, event) => Err(IllegalTransition { state, event }),
    }
}

impl State {
    /// Whether nothing more will happen by itself.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Skipped)
    }
}

impl fmt::Display for JobEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AwaitingParents => "made to wait for other jobs",
            Self::ParentsDone => "released",
            Self::ParentFailed => "blocked",
            Self::Unblocked => "unblocked",
            Self::Dispatched => "dispatched",
            Self::Claimed => "claimed",
            Self::Succeeded => "completed",
            Self::GaveUp => "failed",
            Self::RetryPlanned => "retried automatically",
            Self::Returned => "returned",
            Self::Cancelled => "cancelled",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::RunNow => "run now",
            Self::Edited => "changed",
            Self::Retried => "run again",
            Self::Skipped => "skipped",
            Self::MarkedDone => "completed by hand",
            Self::Refused => "refused",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVENTS: [JobEvent; 19] = [
        JobEvent::AwaitingParents,
        JobEvent::ParentsDone,
        JobEvent::ParentFailed,
        JobEvent::Unblocked,
        JobEvent::Dispatched,
        JobEvent::Claimed,
        JobEvent::Succeeded,
        JobEvent::GaveUp,
        JobEvent::RetryPlanned,
        JobEvent::Returned,
        JobEvent::Cancelled,
        JobEvent::Paused,
        JobEvent::Resumed,
        JobEvent::RunNow,
        JobEvent::Edited,
        JobEvent::Retried,
        JobEvent::Skipped,
        JobEvent::MarkedDone,
        JobEvent::Refused,
    ];

    #[test]
    fn codes_are_stable_and_reversible() {
        for (number, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state.code(), number as i16);
            assert_eq!(State::from_code(state.code()), Some(state));
        }
        assert_eq!(State::from_code(-1), None);
        assert_eq!(State::from_code(10), None);
    }

    #[test]
    fn a_completed_job_stays_completed_whatever_happens() {
        for event in EVENTS {
            assert!(transition(State::Completed, event).is_err(), "{event:?}");
        }
    }

    #[test]
    fn only_a_running_job_can_get_a_verdict() {
        for state in State::ALL.into_iter().filter(|s| *s != State::Running) {
            for event in [JobEvent::Succeeded, JobEvent::GaveUp, JobEvent::RetryPlanned] {
                assert!(transition(state, event).is_err(), "{state} {event:?}");
            }
        }
    }

    proptest! {
        /// Random walks: a job only ever runs out of `scheduled` or `dispatched`, and only `failed`, `cancelled` and
        /// `skipped` have a way back.
        #[test]
        fn no_illegal_transition_is_reachable(steps in prop::collection::vec(0..EVENTS.len(), 0..60)) {
            let mut state = State::Pending;
            for step in steps {
                let event = EVENTS[step];
                let Ok(next) = transition(state, event) else { continue };
                if next == State::Running {
                    prop_assert!(matches!(state, State::Scheduled | State::Dispatched));
                }
                if state.is_terminal() {
                    prop_assert_eq!(event, JobEvent::Retried);
                    prop_assert_ne!(state, State::Completed);
                }
                if matches!(state, State::Paused | State::Blocked) {
                    prop_assert!(!matches!(next, State::Running | State::Dispatched));
                }
                state = next;
            }
        }
    }
}
