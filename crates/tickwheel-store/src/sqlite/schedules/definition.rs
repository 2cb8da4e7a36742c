//! The definitions: schedules are created, found, changed and removed.

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use tickwheel_core::ScheduleId;
use tickwheel_core::ports::{Advanced, Page, ScheduleCreated, ScheduleQuery, StoreError};
use tickwheel_core::schedule::{Fire, Schedule};
use tracing::error;
use uuid::Uuid;

use super::fires::{makes_second_job, record};
use crate::schedule_columns::{ProgressColumns, ScheduleColumns, encode_number, encode_schedule_spec};
use crate::sqlite::fault::Verb;
use crate::sqlite::walk::EXAMINED_MAX;

/// What [`schedule_from_row`] reads.
macro_rules! schedule_columns {
    () => {
        "id, partition, tenant, name, spec, paused, pause_note, revision, created_at, updated_at,
         cursor_at, next_at, rolled_at, held_at, wake_at, backfill"
    };
}

fn schedule_from_row(row: &Row<'_>) -> Verb<Schedule> {
    let columns = ScheduleColumns {
        id: row.get(0)?,
        partition: row.get(1)?,
        tenant: row.get_ref(2)?.as_str()?,
        name: row.get_ref(3)?.as_str()?,
        spec: row.get_ref(4)?.as_str()?,
        paused: row.get(5)?,
        pause_note: row.get_ref(6)?.as_str_or_null()?,
        revision: row.get(7)?,
        created_at: row.get(8)?,
        updated_at: row.get(9)?,
        progress: ProgressColumns {
            cursor_at: row.get(10)?,
            next_at: row.get(11)?,
            rolled_at: row.get(12)?,
            held_at: row.get(13)?,
            wake_at: row.get(14)?,
            backfill: row.get(15)?,
        },
    };
    Ok(columns.decode()?)
}

/// See [`tickwheel_core::ports::ScheduleStore::create_schedule`].
pub(super) fn create_schedule(connection: &Connection, schedule: &Schedule) -> Verb<ScheduleCreated> {
    let taken = connection
        .prepare_cached("SELECT id FROM schedules WHERE tenant = ?1 AND name = ?2")?
        .query_row((&*schedule.tenant, &*schedule.name), |row| row.get::<_, Uuid>(0))
        .optional()?;
    if let Some(id) = taken {
        return Ok(ScheduleCreated::NameTaken(ScheduleId::from_uuid(id)));
    }
    let progress = ProgressColumns::from(&schedule.progress);
    connection
        .prepare_cached(
            "INSERT INTO schedules (id, tenant, name, partition, priority, paused, revision, cursor_at, next_at, rolled_at,
                 held_at, wake_at, created_at, updated_at, pause_note, spec, backfill)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?
        .execute(params![
            schedule.id.as_uuid(),
            &*schedule.tenant,
            &*schedule.name,
            schedule.partition.0,
            schedule.spec.job.priority.code(),
            schedule.paused,
            encode_number(schedule.revision),
            progress.cursor_at,
            progress.next_at,
            progress.rolled_at,
            progress.held_at,
            progress.wake_at,
            schedule.created_at.as_millis(),
            schedule.updated_at.as_millis(),
            schedule.pause_note,
            encode_schedule_spec(&schedule.spec),
            progress.backfill,
        ])?;
    Ok(ScheduleCreated::Created)
}

/// See [`tickwheel_core::ports::ScheduleStore::get_schedules`]. Without those that make no sense: one bad row must not
/// keep all others from firing.
pub(super) fn get_schedules(connection: &Connection, ids: &[ScheduleId]) -> Verb<Vec<Schedule>> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        schedule_columns!(),
        " FROM schedules WHERE id = ?1"
    ))?;
    let mut sound = Vec::with_capacity(ids.len());
    for id in ids {
        match statement.query_row([id.as_uuid()], |row| Ok(schedule_from_row(row))).optional()? {
            Some(Ok(schedule)) => sound.push(schedule),
            Some(Err(fault)) => {
                let cause = StoreError::from(fault);
                error!(schedule_id = %id, %cause, "a schedule cannot be read and is left alone");
            }
            None => {}
        }
    }
    Ok(sound)
}

/// See [`tickwheel_core::ports::ScheduleStore::find_schedule`].
pub(super) fn find_schedule(connection: &Connection, tenant: &str, name: &str) -> Verb<Option<Schedule>> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        schedule_columns!(),
        " FROM schedules WHERE tenant = ?1 AND name = ?2"
    ))?;
    statement.query_row((tenant, name), |row| Ok(schedule_from_row(row))).optional()?.transpose()
}

macro_rules! list_sql {
    ($from:literal) => {
        concat!("SELECT ", schedule_columns!(), " FROM schedules ", $from, " ORDER BY name, tenant")
    };
}

const LIST_OF_TENANT: &str =
    list_sql!("INDEXED BY schedules_name WHERE name >= ?1 AND (name > ?1 OR NOT ?2) AND tenant = ?3");
const LIST: &str = list_sql!("INDEXED BY schedules_by_name WHERE name >= ?1 AND (name > ?1 OR NOT ?2)");

/// See [`tickwheel_core::ports::ScheduleStore::list_schedules`].
pub(super) fn list_schedules(connection: &Connection, query: &ScheduleQuery) -> Verb<Page<Schedule, String>> {
    // Without a place to go on after, everything from the empty name on.
    let (from, is_after) = (query.after.as_deref().unwrap_or_default(), query.after.is_some());
    let mut statement =
        connection.prepare_cached(if query.tenant.is_some() { LIST_OF_TENANT } else { LIST })?;
    let mut rows = match &query.tenant {
        Some(tenant) => statement.query((from, is_after, tenant))?,
        None => statement.query((from, is_after))?,
    };
    let mut items: Vec<Schedule> = Vec::new();
    let mut examined = 0;
    while let Some(row) = rows.next()? {
        let paused: bool = row.get(5)?;
        let is_wanted = query.paused.is_none_or(|wanted| wanted == paused);
        if is_wanted && items.len() >= query.limit {
            let next = items.last().map(|last| last.name.to_string());
            return Ok(Page { items, next });
        }
        if is_wanted {
            items.push(schedule_from_row(row)?);
        }
        examined += 1;
        if examined >= EXAMINED_MAX {
            return Ok(Page { items, next: Some(row.get(3)?) });
        }
    }
    Ok(Page { items, next: None })
}

/// See [`tickwheel_core::ports::ScheduleStore::change_schedule`].
pub(super) fn change_schedule(
    connection: &Connection,
    schedule: &Schedule,
    fires: &[Fire],
) -> Verb<Advanced> {
    if makes_second_job(connection, fires)? || !change(connection, schedule)? {
        return Ok(Advanced::Stale);
    }
    record(connection, fires)?;
    Ok(Advanced::Done)
}

/// Whether the schedule had that revision and is changed now.
fn change(connection: &Connection, schedule: &Schedule) -> Verb<bool> {
    let mut statement = connection.prepare_cached(
        "UPDATE schedules SET revision = revision + 1, spec = :spec, priority = :priority, paused = :paused,
             pause_note = :pause_note, updated_at = :updated_at, cursor_at = :cursor_at, next_at = :next_at,
             rolled_at = :rolled_at, held_at = :held_at, wake_at = :wake_at, backfill = :backfill
         WHERE id = :id AND revision = :revision",
    )?;
    let progress = ProgressColumns::from(&schedule.progress);
    let changed = statement.execute(named_params! {
        ":spec": encode_schedule_spec(&schedule.spec),
        ":priority": schedule.spec.job.priority.code(),
        ":paused": schedule.paused,
        ":pause_note": schedule.pause_note,
        ":updated_at": schedule.updated_at.as_millis(),
        ":cursor_at": progress.cursor_at,
        ":next_at": progress.next_at,
        ":rolled_at": progress.rolled_at,
        ":held_at": progress.held_at,
        ":wake_at": progress.wake_at,
        ":backfill": progress.backfill,
        ":id": schedule.id.as_uuid(),
        ":revision": encode_number(schedule.revision),
    })?;
    Ok(changed == 1)
}

/// See [`tickwheel_core::ports::ScheduleStore::delete_schedule`].
pub(super) fn delete_schedule(connection: &Connection, id: ScheduleId) -> Verb<bool> {
    let deleted =
        connection.prepare_cached("DELETE FROM schedules WHERE id = ?1")?.execute([id.as_uuid()])?;
    connection.prepare_cached("DELETE FROM fires WHERE schedule_id = ?1")?.execute([id.as_uuid()])?;
    Ok(deleted == 1)
}

/// Whether there is such a schedule.
pub(super) fn exists(connection: &Connection, id: ScheduleId) -> Verb<bool> {
    Ok(connection.prepare_cached("SELECT 1 FROM schedules WHERE id = ?1")?.exists([id.as_uuid()])?)
}
