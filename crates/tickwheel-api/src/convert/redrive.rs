//! Dead letters that are run again by the many.

use std::time::Duration;

use tickwheel_core::Timestamp;
use tickwheel_core::ports::{self, RedriveStatus, RedriveStopped};
use tickwheel_protocol as wire;

use super::answer::time;
use super::timestamp;
use crate::error::detail_of;

/// Which are meant. Those of this very millisecond are among them, unless the request says something else.
pub fn redrive(filter: wire::RedriveFilter, now: Timestamp) -> ports::Redrive {
    ports::Redrive {
        failed_before: filter.failed_before.map_or(now + Duration::from_millis(1), timestamp),
        job_type: filter.job_type,
        queue: filter.queue,
        limit: filter.limit,
    }
}

/// How far it is.
pub fn redrive_progress(progress: &ports::RedriveProgress) -> wire::RedriveProgress {
    let (status, error) = match &progress.status {
        RedriveStatus::Running => (wire::RedriveStatus::Running, None),
        RedriveStatus::Completed => (wire::RedriveStatus::Completed, None),
        RedriveStatus::Stopped(RedriveStopped::Failing(error)) => {
            (wire::RedriveStatus::Stopped, Some(detail_of(error)))
        }
        RedriveStatus::Stopped(RedriveStopped::Broken) => {
            (wire::RedriveStatus::Stopped, Some("the server has a fault"))
        }
    };
    wire::RedriveProgress {
        id: progress.id,
        status,
        failed_before: time(progress.failed_before),
        redriven: progress.redriven,
        remaining: progress.remaining,
        error: error.map(str::to_owned),
    }
}
