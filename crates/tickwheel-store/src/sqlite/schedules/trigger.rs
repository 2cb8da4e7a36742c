//! A job that somebody wants now.

use rusqlite::Connection;
use tickwheel_core::ports::{NewJob, Submitted};
use tickwheel_core::schedule::Fire;

use super::definition::exists;
use super::fires::record_at_free_time;
use crate::sqlite::fault::Verb;
use crate::sqlite::submit::submit_jobs;

/// See [`tickwheel_core::ports::ScheduleStore::trigger_schedule`].
pub(super) fn trigger_schedule(
    connection: &Connection,
    new: &NewJob,
    fire: &Fire,
) -> Verb<Option<Submitted>> {
    if !exists(connection, fire.schedule_id)? {
        return Ok(None);
    }
    let submitted = submit_jobs(connection, std::slice::from_ref(new))?.pop();
    if submitted == Some(Submitted::Created) {
        record_at_free_time(connection, fire)?;
    }
    Ok(submitted)
}
