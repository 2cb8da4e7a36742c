//! The numbers of the core's enums, for statements that need them as literals: a partial index is found by the literal
//! in its condition, and a planner knows more about one than about a parameter. Nobody types such a number into a
//! statement.

use const_format::formatcp;
use tickwheel_core::State;
use tickwheel_core::job::{Priority, TargetKind};
use tickwheel_core::parents::Release;
use tickwheel_core::ports::SubjectKind;
use tickwheel_core::schedule::{FireOutcome, FireReason};
use tickwheel_core::workflow::RunStatus;

use crate::dependency_edges::EdgeState;

pub(crate) const PENDING: i16 = State::Pending.code();
pub(crate) const SCHEDULED: i16 = State::Scheduled.code();
pub(crate) const RUNNING: i16 = State::Running.code();
pub(crate) const COMPLETED: i16 = State::Completed.code();
pub(crate) const BLOCKED: i16 = State::Blocked.code();

/// Of a job that workers run.
pub(crate) const FOR_WORKERS: i16 = TargetKind::Worker.code();

/// Of a job outside of workflows.
pub(crate) const COUNTED: i16 = Release::Counted.code();

pub(crate) const RUN_RUNNING: i16 = RunStatus::Running.code();
pub(crate) const RUN_PAUSED: i16 = RunStatus::Paused.code();

pub(crate) const EDGE_OPEN: i16 = EdgeState::Open.code();
pub(crate) const EDGE_COMPLETED: i16 = EdgeState::Completed.code();
pub(crate) const EDGE_FAILED: i16 = EdgeState::Failed.code();

/// Of callbacks about jobs, and about runs.
pub(crate) const OF_JOB: i16 = SubjectKind::Job.code();
pub(crate) const OF_RUN: i16 = SubjectKind::Run.code();

/// Of firings that name the job of another.
pub(crate) const COALESCED: i16 = FireOutcome::Coalesced.code();
/// Of firings that wait for the one before.
pub(crate) const QUEUED: i16 = FireReason::Queued.code();

/// The priorities, as a list.
pub(crate) const PRIORITIES: &str = formatcp!(
    "{}, {}, {}, {}",
    Priority::ALL[0].code(),
    Priority::ALL[1].code(),
    Priority::ALL[2].code(),
    Priority::ALL[3].code()
);
