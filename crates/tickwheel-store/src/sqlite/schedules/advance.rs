//! Schedules on their way: which are to be woken, and carrying out what was decided.

use rusqlite::{CachedStatement, Connection, named_params};
use tickwheel_core::ports::{Advanced, DueSchedule, LoadSchedules, ScheduleStep};
use tickwheel_core::{JobId, ScheduleId, Timestamp};
use uuid::Uuid;

use super::fires::{makes_second_job, record};
use crate::columns::{decode_partition, decode_priority};
use crate::schedule_columns::{ProgressColumns, encode_number};
use crate::sqlite::fault::Verb;
use crate::sqlite::submit::insert_jobs;

/// See [`tickwheel_core::ports::ScheduleStore::load_schedules`].
pub(super) fn load_schedules(connection: &Connection, load: &LoadSchedules) -> Verb<Vec<DueSchedule>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, partition, wake_at, priority FROM schedules INDEXED BY schedules_wake
         WHERE wake_at IS NOT NULL AND (wake_at, id) > (:after_wake_at, :after_id) AND wake_at <= :until
           AND (:partitions >> partition) & 1
         ORDER BY wake_at, id LIMIT :limit",
    )?;
    let mut rows = statement.query(named_params! {
        ":after_wake_at": load.after.wake_at.as_millis(),
        ":after_id": load.after.id.as_uuid(),
        ":until": load.until.as_millis(),
        ":partitions": load.partitions.bits(),
        ":limit": i64::try_from(load.limit).unwrap_or(i64::MAX),
    })?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        due.push(DueSchedule {
            id: ScheduleId::from_uuid(row.get::<_, Uuid>(0)?),
            partition: decode_partition(row.get(1)?)?,
            wake_at: Timestamp::from_millis(row.get(2)?),
            priority: decode_priority(row.get(3)?)?,
        });
    }
    Ok(due)
}

/// See [`tickwheel_core::ports::ScheduleStore::advance_schedules`].
pub(super) fn advance_schedules(connection: &Connection, steps: &[ScheduleStep]) -> Verb<Vec<Advanced>> {
    let mut advance = connection.prepare_cached(
        "UPDATE schedules SET revision = revision + 1, cursor_at = ?3, next_at = ?4, rolled_at = ?5, held_at = ?6,
             wake_at = ?7, backfill = ?8
         WHERE id = ?1 AND revision = ?2",
    )?;
    let mut answers = Vec::with_capacity(steps.len());
    let mut moved = Vec::with_capacity(steps.len());
    for step in steps {
        if makes_second_job(connection, &step.fires)? || !move_on(&mut advance, step)? {
            answers.push(Advanced::Stale);
            continue;
        }
        record(connection, &step.fires)?;
        moved.extend(&step.jobs);
        answers.push(Advanced::Done);
    }
    insert_jobs(connection, moved)?;
    Ok(answers)
}

/// Whether the schedule had that revision and has moved now.
fn move_on(advance: &mut CachedStatement<'_>, step: &ScheduleStep) -> Verb<bool> {
    let progress = ProgressColumns::from(&step.progress);
    let moved = advance.execute((
        step.id.as_uuid(),
        encode_number(step.revision),
        progress.cursor_at,
        progress.next_at,
        progress.rolled_at,
        progress.held_at,
        progress.wake_at,
        progress.backfill,
    ))?;
    Ok(moved == 1)
}

/// See [`tickwheel_core::ports::ScheduleStore::active_jobs`]. A job that is over is not in the live table.
pub(super) fn active_jobs(connection: &Connection, ids: &[ScheduleId]) -> Verb<Vec<(ScheduleId, JobId)>> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM jobs INDEXED BY jobs_schedule WHERE schedule_id = ?1")?;
    let mut active = Vec::new();
    for schedule in ids {
        let jobs = statement.query_map([schedule.as_uuid()], |row| row.get::<_, Uuid>(0))?;
        for job in jobs {
            active.push((*schedule, JobId::from_uuid(job?)));
        }
    }
    Ok(active)
}
