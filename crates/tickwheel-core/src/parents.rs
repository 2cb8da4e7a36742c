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
//! A child counts its parents: those that have not ended, and those that ended badly. The store reads the counts under
//! a lock in the transaction that ends a parent, so that two parents that end at the same instant release their child
//! once. It asks this module what becomes of the child ([`WaitingJob`]) and writes that down.
//!
//! The counts release a task of a workflow only where they say enough ([`Release`]). Whatever else it takes to start
//! it, or to block it, the workflow reconciler decides; the same transaction requests that.
//!
//! Kept true: no job starts before all its parents completed (I8); a child whose parent failed for good does not wait
//! in silence, it is blocked; and when the parent is run again the child waits for it again.

use serde::{Deserialize, Serialize};

use crate::state::{IllegalTransition, JobEvent, State, transition};
use crate::time::Timestamp;
use crate::words::words;

/// When a job that waits for parents is due: not at all, until they are done. So nobody who looks for due jobs meets
/// it.
pub const NOT_UNTIL_RELEASED: Timestamp = Timestamp::MAX;

words! {
    /// Who releases a job when its parents are done. The numbers are stored.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Release {
        /// The counts, and they block it too: a job outside of a workflow.
        #[default]
        Counted = "counted",
        /// The counts if all parents completed, else the reconciler: a task of a workflow.
        Task = "task",
        /// The reconciler, once none of its parents is open.
        #[serde(rename = "conducted")]
        Reconciled = "reconciled",
        /// The reconciler, which is woken whenever one of its parents has ended.
        Watched = "watched",
        /// The reconciler, once none of its items is open: a fan-out, which waits for nothing else any more.
        Joined = "joined",
        /// The reconciler, which is woken whenever one of its items has ended: a fan-out of which only so many may run
        /// at once.
        Paced = "paced",
    }
}

impl Release {
    /// Whether a job of this kind needs a reconcile after some of its parents have ended and the counts have left it in
    /// `state`.
    pub const fn wants_reconcile(self, parents: Parents, state: State) -> bool {
        matches!(state, State::Pending | State::Blocked)
            && match self {
                Self::Counted => false,
                Self::Task | Self::Reconciled | Self::Joined => parents.open == 0,
                Self::Watched | Self::Paced => true,
            }
    }

    /// Whether such a job waits for its items, and not for those that it depends on.
    pub const fn waits_for_items(self) -> bool {
        matches!(self, Self::Joined | Self::Paced)
    }
}

/// How it is known that a job waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    /// A stored edge: the job was submitted with it.
    Stored,
    /// The position of the other one in their run: the job depends on it.
    Task,
    /// The position of the other one in their run: it is one of the items that the job fans out to.
    FanOut,
}

impl EdgeKind {
    /// Whether a job that is released like this waits at such an edge. A fan-out waits for those it depends on until it
    /// has items, and for those from then on.
    pub const fn holds(self, release: Release) -> bool {
        match self {
            Self::Stored => true,
            Self::Task => !release.waits_for_items(),
            Self::FanOut => release.waits_for_items(),
        }
    }
}

/// Parents of one job that ended in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ParentEnds {
    /// So many completed.
    pub completed: u32,
    /// So many ended other than well.
    pub failed: u32,
    /// When the last of them ended.
    pub latest: Option<Timestamp>,
}

impl ParentEnds {
    /// One more has ended in this state.
    pub fn count(&mut self, state: State, at: Timestamp) {
        match state {
            State::Completed => self.completed += 1,
            _ => self.failed += 1,
        }
        self.latest = self.latest.max(Some(at));
    }
}

/// A job that may be waiting for parents: all that decides what their ends mean to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingJob {
    /// Where it stands.
    pub state: State,
    /// How many parents it waits for, and how many failed.
    pub parents: Parents,
    /// Who releases it.
    pub release: Release,
    /// When it was to run.
    pub execute_at: Timestamp,
}

/// What the ends of parents made of a job that waited for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Propagated {
    /// The job as it is now.
    pub job: WaitingJob,
    /// When it is due, if it waits for nobody any more.
    pub due_at: Option<Timestamp>,
    /// The reconciler has to decide about it.
    pub wants_reconcile: bool,
}

impl WaitingJob {
    /// Whether it waits for parents.
    pub const fn is_waiting(self) -> bool {
        matches!(self.state, State::Pending | State::Blocked)
    }

    /// After parents have ended; `None` if it does not wait for them. One that was cancelled does not, for example:
    /// should it come back, its parents are counted anew.
    pub fn after_ends(self, edge: EdgeKind, ends: ParentEnds) -> Option<Propagated> {
        self.follow(edge, self.parents.after(ends.completed, ends.failed), ends.latest)
    }

    /// After so many failed parents were given another chance; `None` if it does not wait for them.
    pub fn after_retries(self, edge: EdgeKind, retried: u32) -> Option<Propagated> {
        self.follow(edge, self.parents.after_retries(retried), None)
    }

    fn follow(self, edge: EdgeKind, parents: Parents, latest_end: Option<Timestamp>) -> Option<Propagated> {
        (self.is_waiting() && edge.holds(self.release)).then(|| self.recounted(parents, latest_end))
    }

    /// The waiting job as these parents make it. The last of those that have just ended did so then.
    pub(crate) fn recounted(self, parents: Parents, latest_end: Option<Timestamp>) -> Propagated {
        let state = parents.next_state(self.state, self.release);
        let job = Self { parents, state: state.expect("whoever waits for parents follows them"), ..self };
        let is_released = job.state == State::Scheduled;
        Propagated {
            job,
            due_at: is_released.then(|| latest_end.map_or(job.execute_at, |at| job.execute_at.max(at))),
            wants_reconcile: job.release.wants_reconcile(job.parents, job.state),
        }
    }
}

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

    /// After so many failed ones were given another chance.
    #[must_use]
    pub const fn after_retries(self, retried: u32) -> Self {
        Self { open: self.open + retried, failed: self.failed.saturating_sub(retried) }
    }

    /// The state of a job that waits for them.
    pub fn next_state(self, state: State, release: Release) -> Result<State, IllegalTransition> {
        match (state, self.failed > 0, release) {
            (_, _, Release::Reconciled | Release::Watched | Release::Joined | Release::Paced) => Ok(state),
            (State::Pending | State::Blocked, _, Release::Task) if !self.are_done() => Ok(state),
            (State::Pending, true, _) => transition(state, JobEvent::ParentFailed),
            (State::Blocked, false, _) => self.next_state(transition(state, JobEvent::Unblocked)?, release),
            (State::Pending, false, _) if self.open == 0 => transition(state, JobEvent::ParentsDone),
            _ => Ok(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::id::JobId;
    use crate::job::{Job, JobSpec, Target};

    #[test]
    fn a_job_waits_for_open_parents_and_is_blocked_by_failed_ones() {
        let id = JobId::from_uuid(Uuid::from_u128(1));
        let new = Job::new(id, "t", JobSpec::new(Target::Worker), Timestamp::EPOCH);
        let state = |states: &[State]| new.clone().waiting_for(Parents::of(states.iter().copied())).state();
        assert_eq!(state(&[]), State::Scheduled);
        assert_eq!(state(&[State::Completed, State::Completed]), State::Scheduled);
        assert_eq!(state(&[State::Completed, State::Paused]), State::Pending);
        assert_eq!(state(&[State::Running, State::Failed]), State::Blocked);
        assert_eq!(state(&[State::Cancelled]), State::Blocked);
        assert_eq!(state(&[State::Blocked]), State::Pending, "it may still come");
    }

    #[test]
    fn the_last_parent_releases_and_a_failed_one_blocks_until_it_is_retried() {
        let two = Parents { open: 2, failed: 0 };
        let one = two.after(1, 0);
        assert_eq!(one.next_state(State::Pending, Release::Counted), Ok(State::Pending));
        assert_eq!(one.after(1, 0).next_state(State::Pending, Release::Counted), Ok(State::Scheduled));
        let failed = one.after(0, 1);
        assert_eq!(failed.next_state(State::Pending, Release::Counted), Ok(State::Blocked));
        assert_eq!(failed.after_retries(1).next_state(State::Blocked, Release::Counted), Ok(State::Pending));
        let both_failed = two.after(0, 2);
        assert_eq!(
            both_failed.after_retries(1).next_state(State::Blocked, Release::Counted),
            Ok(State::Blocked)
        );
    }

    #[test]
    fn a_task_is_released_by_its_counts_only_if_all_went_well() {
        let state = |open, failed, release| Parents { open, failed }.next_state(State::Pending, release);
        assert_eq!(state(0, 0, Release::Task), Ok(State::Scheduled));
        assert_eq!(state(0, 1, Release::Task), Ok(State::Pending), "the reconciler decides");
        assert_eq!(state(1, 1, Release::Task), Ok(State::Pending));
        assert_eq!(state(0, 0, Release::Reconciled), Ok(State::Pending));
        let healed = Parents { open: 0, failed: 0 }.next_state(State::Blocked, Release::Task);
        assert_eq!(healed, Ok(State::Scheduled), "blocked by an ancestor that was run again");
        let wants = |open, failed, release: Release| {
            release.wants_reconcile(Parents { open, failed }, State::Pending)
        };
        assert!(
            wants(0, 1, Release::Task) && wants(0, 0, Release::Reconciled) && wants(3, 0, Release::Watched)
        );
        assert!(
            !wants(1, 1, Release::Task)
                && !wants(1, 0, Release::Reconciled)
                && !wants(0, 1, Release::Counted)
        );
        assert!(!Release::Task.wants_reconcile(Parents::default(), State::Scheduled), "it is on its way");
    }

    fn waiting(state: State, release: Release, open: u32, failed: u32) -> WaitingJob {
        WaitingJob {
            state,
            parents: Parents { open, failed },
            release,
            execute_at: Timestamp::from_millis(50),
        }
    }

    fn ends(completed: u32, failed: u32, latest_ms: i64) -> ParentEnds {
        ParentEnds { completed, failed, latest: Some(Timestamp::from_millis(latest_ms)) }
    }

    #[test]
    fn a_released_job_is_due_when_its_last_parent_ended_but_not_before_its_time() {
        let job = waiting(State::Pending, Release::Counted, 2, 0);
        let due_at = |latest_ms| job.after_ends(EdgeKind::Stored, ends(2, 0, latest_ms)).unwrap().due_at;
        assert_eq!(due_at(70), Some(Timestamp::from_millis(70)));
        assert_eq!(due_at(20), Some(Timestamp::from_millis(50)));
        let still_waiting = job.after_ends(EdgeKind::Stored, ends(1, 0, 70)).unwrap();
        assert_eq!((still_waiting.due_at, still_waiting.job.parents.open), (None, 1));
    }

    #[test]
    fn who_does_not_wait_at_an_edge_is_left_alone() {
        for state in State::ALL {
            let job = waiting(state, Release::Counted, 1, 0);
            let waits = matches!(state, State::Pending | State::Blocked);
            assert_eq!(job.after_ends(EdgeKind::Stored, ends(1, 0, 0)).is_some(), waits, "{state}");
        }
        for release in Release::ALL {
            let held =
                |edge| waiting(State::Pending, release, 1, 0).after_ends(edge, ends(1, 0, 0)).is_some();
            let has_items = matches!(release, Release::Joined | Release::Paced);
            assert_eq!((held(EdgeKind::Task), held(EdgeKind::FanOut)), (!has_items, has_items), "{release}");
            assert!(held(EdgeKind::Stored), "{release}");
        }
    }

    #[test]
    fn a_parent_that_is_tried_again_holds_its_children_again() {
        let blocked = waiting(State::Blocked, Release::Counted, 1, 2);
        let once = blocked.after_retries(EdgeKind::Stored, 1).unwrap().job;
        assert_eq!((once.state, once.parents), (State::Blocked, Parents { open: 2, failed: 1 }));
        let twice = blocked.after_retries(EdgeKind::Stored, 2).unwrap().job;
        assert_eq!((twice.state, twice.parents), (State::Pending, Parents { open: 3, failed: 0 }));
        let watched =
            waiting(State::Pending, Release::Watched, 1, 1).after_retries(EdgeKind::Task, 1).unwrap();
        assert!(watched.wants_reconcile);
    }
}
