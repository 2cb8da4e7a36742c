//! A job that somebody wants now.

use rusqlite::Connection;
use tickwheel_core::Job;
use tickwheel_core::ports::{Creation, NewJob, NoSuchSchedule, UnknownParent};
use tickwheel_core::schedule::Fire;

use super::definition::exists;
use super::fires::record_at_free_time;
use crate::sqlite::fault::Verb;
use crate::sqlite::submit::submit_job;

/// See [`tickwheel_core::ports::ScheduleStore::trigger_schedule`].
pub(super) fn trigger_schedule(
    connection: &Connection,
    new: NewJob,
    fire: &Fire,
) -> Verb<Creation<Job, NoSuchSchedule>> {
    if !exists(connection, fire.schedule_id)? {
        return Ok(Creation::Refused(NoSuchSchedule));
    }
    let submitted = submit_job(connection, new)?;
    if submitted.as_new().is_some() {
        record_at_free_time(connection, fire)?;
    }
    Ok(submitted.map_refused(|UnknownParent(_)| unreachable!("the job of a schedule depends on nothing")))
}
