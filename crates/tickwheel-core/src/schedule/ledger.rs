//! The ledger: what became of every expected firing. "Nothing happened" is never the only trace.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{JobId, ScheduleId};
use crate::time::Timestamp;
use crate::words::words;

words! {
    /// What became of a firing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FireOutcome {
        /// It made its job.
        Fired = "fired",
        /// It made none, as its schedule wants it, or none yet.
        Skipped = "skipped",
        /// Its time passed while nobody could act on it, and it was not made up for.
        Missed = "missed",
        /// It was missed, and the job of another firing stands for it.
        Coalesced = "coalesced",
        /// Somebody fired it by hand.
        Triggered = "triggered",
        /// It made its job long after its time.
        Backfilled = "backfilled",
    }
}

words! {
    /// Why a firing came to its outcome.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FireReason {
        /// Its time had come.
        OnTime = "on_time",
        /// It was missed and is made up for.
        CaughtUp = "caught_up",
        /// The schedule was paused.
        Paused = "paused",
        /// The day is excluded.
        ExcludedDay = "excluded_day",
        /// A job of an earlier firing was not over: it was skipped, or it had to wait.
        Overlap = "overlap",
        /// A later firing took its place.
        Replaced = "replaced",
        /// The schedule does not make up for missed firings.
        MissedPolicy = "missed_policy",
        /// It was too long ago to be made up for.
        OutsideWindow = "outside_window",
        /// More firings were missed than are made up for.
        OverCap = "over_cap",
        /// Somebody asked for it.
        ByRequest = "by_request",
        /// It waits until the job of an earlier firing is over.
        Queued = "queued",
    }
}

/// The record of a firing, or of a span of firings that all came to the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// Of which schedule.
    pub schedule_id: ScheduleId,
    /// The nominal time; of a span, the first one.
    pub nominal_at: Timestamp,
    /// The last nominal time of a span; otherwise the same.
    pub last_at: Timestamp,
    /// How many firings this stands for.
    pub count: u64,
    /// What became of it.
    pub outcome: FireOutcome,
    /// Why.
    pub reason: FireReason,
    /// The job it made, or that stands for it.
    pub job_id: Option<JobId>,
    /// When this was written.
    pub recorded_at: Timestamp,
}

impl Fire {
    /// Whether it made a job of its own, so that its nominal time must not get another.
    pub fn has_own_job(&self) -> bool {
        self.job_id.is_some() && self.outcome != FireOutcome::Coalesced
    }

    /// Whether it is going to make a job of its own, when its turn comes.
    pub fn is_queued(&self) -> bool {
        self.reason == FireReason::Queued
    }

    /// The first moment after `at` that a firing by request may have for its nominal time: any millisecond but a whole
    /// second, for those are the timetable's, and a nominal time has one job.
    pub fn by_request_after(at: Timestamp) -> Timestamp {
        let next = at + Duration::from_millis(1);
        if next.as_millis() % 1_000 == 0 { next + Duration::from_millis(1) } else { next }
    }
}
