//! Calendars that schedules share.

use rusqlite::{Connection, Row};
use tickwheel_core::schedule::Calendar;

use crate::schedule_columns::{CalendarColumns, encode_list};
use crate::sqlite::fault::Verb;

/// See [`tickwheel_core::ports::CalendarStore::put_calendar`].
pub(super) fn put_calendar(connection: &Connection, calendar: &Calendar) -> Verb<()> {
    connection
        .prepare_cached(
            "INSERT INTO calendars (tenant, name, updated_at, weekdays, days) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (tenant, name) DO UPDATE SET updated_at = ?3, weekdays = ?4, days = ?5",
        )?
        .execute((
            &*calendar.tenant,
            &*calendar.name,
            calendar.updated_at.as_millis(),
            encode_list(&calendar.weekdays),
            encode_list(&calendar.days),
        ))?;
    Ok(())
}

/// See [`tickwheel_core::ports::CalendarStore::list_calendars`].
pub(super) fn list_calendars(connection: &Connection, tenant: &str) -> Verb<Vec<Calendar>> {
    let mut statement = connection.prepare_cached(
        "SELECT tenant, name, days, weekdays, updated_at FROM calendars WHERE tenant = ?1 ORDER BY name",
    )?;
    let mut rows = statement.query([tenant])?;
    let mut calendars = Vec::new();
    while let Some(row) = rows.next()? {
        calendars.push(calendar_from_row(row)?);
    }
    Ok(calendars)
}

fn calendar_from_row(row: &Row<'_>) -> Verb<Calendar> {
    let columns = CalendarColumns {
        tenant: row.get_ref(0)?.as_str()?,
        name: row.get_ref(1)?.as_str()?,
        days: row.get_ref(2)?.as_str()?,
        weekdays: row.get_ref(3)?.as_str()?,
        updated_at: row.get(4)?,
    };
    Ok(columns.decode()?)
}

/// See [`tickwheel_core::ports::CalendarStore::delete_calendar`].
pub(super) fn delete_calendar(connection: &Connection, tenant: &str, name: &str) -> Verb<bool> {
    let deleted = connection
        .prepare_cached("DELETE FROM calendars WHERE tenant = ?1 AND name = ?2")?
        .execute((tenant, name))?;
    Ok(deleted == 1)
}
