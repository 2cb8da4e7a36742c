//! The ledger: what became of every firing.

use const_format::{concatcp, formatcp};
use rusqlite::{CachedStatement, Connection, Row};
use tickwheel_core::ports::{FireQuery, Page};
use tickwheel_core::schedule::Fire;
use tickwheel_core::{ScheduleId, Timestamp};

use crate::codes::{COALESCED, QUEUED};
use crate::schedule_columns::{FireColumns, encode_number};
use crate::sqlite::fault::Verb;
use crate::sqlite::walk::EXAMINED_MAX;

/// The same as [`Fire::has_own_job`]: a coalesced firing names the job of another.
const HAS_OWN_JOB: &str = formatcp!("(job_id IS NOT NULL AND outcome <> {COALESCED})");

/// The same as [`Fire::is_queued`], and as the index over those firings has it.
const IS_QUEUED: &str = formatcp!("reason = {QUEUED}");

/// Whether one of these firings brings a job to a nominal time that has its own.
pub(super) fn makes_second_job(connection: &Connection, fires: &[Fire]) -> Verb<bool> {
    let mut has_job = connection.prepare_cached(concatcp!(
        "SELECT 1 FROM fires WHERE schedule_id = ?1 AND nominal_at = ?2 AND ",
        HAS_OWN_JOB
    ))?;
    for fire in fires.iter().filter(|fire| fire.job_id.is_some()) {
        if has_job.exists((fire.schedule_id.as_uuid(), fire.nominal_at.as_millis()))? {
            return Ok(true);
        }
    }
    Ok(false)
}

macro_rules! insert_fire {
    ($on_conflict:expr) => {
        concatcp!(
            "INSERT INTO fires (schedule_id, nominal_at, last_at, count, outcome, reason, job_id, recorded_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (schedule_id, nominal_at) ",
            $on_conflict
        )
    };
}

/// Writes records; one that has a job of its own already stays as it is.
pub(super) fn record(connection: &Connection, fires: &[Fire]) -> Verb<()> {
    let mut upsert = connection.prepare_cached(insert_fire!(concatcp!(
        "DO UPDATE SET last_at = ?3, count = ?4, outcome = ?5, reason = ?6, job_id = ?7, recorded_at = ?8
         WHERE NOT ",
        HAS_OWN_JOB
    )))?;
    fires.iter().try_for_each(|fire| insert(&mut upsert, fire).map(drop))
}

/// Writes a record at its time, or at the first moment after it that has none.
pub(super) fn record_at_free_time(connection: &Connection, fire: &Fire) -> Verb<()> {
    let mut insert_new = connection.prepare_cached(insert_fire!("DO NOTHING"))?;
    let mut fire = fire.clone();
    while !insert(&mut insert_new, &fire)? {
        fire.nominal_at = Fire::by_request_after(fire.nominal_at);
        fire.last_at = fire.nominal_at;
    }
    Ok(())
}

/// Whether it was written.
fn insert(statement: &mut CachedStatement<'_>, fire: &Fire) -> Verb<bool> {
    let written = statement.execute((
        fire.schedule_id.as_uuid(),
        fire.nominal_at.as_millis(),
        fire.last_at.as_millis(),
        encode_number(fire.count),
        fire.outcome.code(),
        fire.reason.code(),
        fire.job_id.map(|job| job.as_uuid()),
        fire.recorded_at.as_millis(),
    ))?;
    Ok(written == 1)
}

/// What [`fire_from_row`] reads.
macro_rules! fire_columns {
    () => {
        "schedule_id, nominal_at, last_at, count, outcome, reason, job_id, recorded_at"
    };
}

fn fire_from_row(row: &Row<'_>) -> Verb<Fire> {
    let columns = FireColumns {
        schedule_id: row.get(0)?,
        nominal_at: row.get(1)?,
        last_at: row.get(2)?,
        count: row.get(3)?,
        outcome: row.get(4)?,
        reason: row.get(5)?,
        job_id: row.get(6)?,
        recorded_at: row.get(7)?,
    };
    Ok(columns.decode()?)
}

/// See [`tickwheel_core::ports::LedgerStore::list_fires`].
pub(super) fn list_fires(connection: &Connection, query: &FireQuery) -> Verb<Page<Fire, Timestamp>> {
    let mut statement = connection.prepare_cached(concatcp!(
        "SELECT ",
        fire_columns!(),
        " FROM fires WHERE schedule_id = ?1 AND nominal_at < ?2 ORDER BY nominal_at DESC"
    ))?;
    let before = query.before.unwrap_or(Timestamp::MAX);
    let mut rows = statement.query((query.schedule_id.as_uuid(), before.as_millis()))?;
    let mut items: Vec<Fire> = Vec::new();
    let mut examined = 0;
    while let Some(row) = rows.next()? {
        let fire = fire_from_row(row)?;
        let nominal_at = fire.nominal_at;
        if query.outcome.is_none_or(|outcome| fire.outcome == outcome) {
            if items.len() >= query.limit {
                let next = items.last().map(|last| last.nominal_at);
                return Ok(Page { items, next });
            }
            items.push(fire);
        }
        examined += 1;
        if examined >= EXAMINED_MAX {
            return Ok(Page { items, next: Some(nominal_at) });
        }
    }
    Ok(Page { items, next: None })
}

/// See [`tickwheel_core::ports::LedgerStore::queued_firings`].
pub(super) fn queued_firings(
    connection: &Connection,
    id: ScheduleId,
    from: Timestamp,
    limit: usize,
) -> Verb<Vec<Timestamp>> {
    let mut statement = connection.prepare_cached(concatcp!(
        "SELECT nominal_at FROM fires INDEXED BY fires_queued WHERE schedule_id = ?1 AND nominal_at >= ?2 AND ",
        IS_QUEUED,
        " ORDER BY nominal_at LIMIT ?3"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query((id.as_uuid(), from.as_millis(), limit))?;
    let mut queued = Vec::new();
    while let Some(row) = rows.next()? {
        queued.push(Timestamp::from_millis(row.get(0)?));
    }
    Ok(queued)
}

/// See [`tickwheel_core::ports::LedgerStore::fires_within`].
pub(super) fn fires_within(
    connection: &Connection,
    id: ScheduleId,
    after: Timestamp,
    until: Timestamp,
) -> Verb<Vec<Fire>> {
    let mut statement = connection.prepare_cached(concatcp!(
        "SELECT ",
        fire_columns!(),
        " FROM fires WHERE schedule_id = ?1 AND nominal_at > ?2 AND nominal_at <= ?3
         UNION ALL SELECT ",
        fire_columns!(),
        " FROM fires INDEXED BY fires_runs WHERE schedule_id = ?1 AND nominal_at <= ?2 AND count > 1 AND last_at > ?2
         ORDER BY nominal_at"
    ))?;
    let mut rows = statement.query((id.as_uuid(), after.as_millis(), until.as_millis()))?;
    let mut within = Vec::new();
    while let Some(row) = rows.next()? {
        within.push(fire_from_row(row)?);
    }
    Ok(within)
}

/// See [`tickwheel_core::ports::LedgerStore::latest_fires`].
pub(super) fn latest_fires(connection: &Connection, ids: &[ScheduleId], count: usize) -> Verb<Vec<Fire>> {
    let mut statement = connection.prepare_cached(concatcp!(
        "SELECT ",
        fire_columns!(),
        " FROM fires WHERE schedule_id = ?1 ORDER BY nominal_at DESC LIMIT ?2"
    ))?;
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let mut latest = Vec::new();
    for id in ids {
        let mut rows = statement.query((id.as_uuid(), count))?;
        while let Some(row) = rows.next()? {
            latest.push(fire_from_row(row)?);
        }
    }
    Ok(latest)
}
