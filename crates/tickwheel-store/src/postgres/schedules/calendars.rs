//! Calendars that schedules share.

use tickwheel_core::ports::StoreResult;
use tickwheel_core::schedule::Calendar;
use tokio_postgres::Row;

use crate::postgres::PostgresStore;
use crate::postgres::pipeline::Param;
use crate::postgres::row::column;
use crate::schedule_columns::{CalendarColumns, encode_list};

const PUT: &str = "\
INSERT INTO calendars (tenant, name, updated_at, weekdays, days) VALUES ($1::text, $2::text, $3::bigint, $4::text, $5::text)
ON CONFLICT (tenant, name) DO UPDATE SET updated_at = excluded.updated_at, weekdays = excluded.weekdays, days = excluded.days";

const LIST: &str = "\
SELECT tenant, name, days, weekdays, updated_at FROM calendars WHERE tenant = $1::text ORDER BY name";

const DELETE: &str = "\
DELETE FROM calendars WHERE tenant = $1::text AND name = $2::text";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[PUT, LIST, DELETE];

/// Stores a calendar, in place of one of that name.
pub(super) async fn put_calendar(store: &PostgresStore, calendar: &Calendar) -> StoreResult<()> {
    let params: [Param<'_>; 5] = [
        &&*calendar.tenant,
        &&*calendar.name,
        &calendar.updated_at.as_millis(),
        &encode_list(&calendar.weekdays),
        &encode_list(&calendar.days),
    ];
    store.write(PUT, &params).await.map(drop)
}

/// The calendars of a tenant, by name.
pub(super) async fn list_calendars(store: &PostgresStore, tenant: &str) -> StoreResult<Vec<Calendar>> {
    let rows = store.read(LIST, &[&tenant]).await?;
    rows.iter().map(read_calendar).collect()
}

fn read_calendar(row: &Row) -> StoreResult<Calendar> {
    CalendarColumns {
        tenant: column(row, 0)?,
        name: column(row, 1)?,
        days: column(row, 2)?,
        weekdays: column(row, 3)?,
        updated_at: column(row, 4)?,
    }
    .decode()
}

/// Removes a calendar.
pub(super) async fn delete_calendar(store: &PostgresStore, tenant: &str, name: &str) -> StoreResult<bool> {
    Ok(store.write(DELETE, &[&tenant, &name]).await? == 1)
}
