//! The definitions: schedules are created, found, changed and removed.

use const_format::concatcp;
use tickwheel_core::ScheduleId;
use tickwheel_core::ports::{Advanced, Page, ScheduleCreated, ScheduleQuery, StoreResult};
use tickwheel_core::schedule::{Fire, Schedule};
use tokio_postgres::Row;
use tracing::error;

use super::fires::{FireRows, RECORD, with_second_job};
use super::locks::{LOCK_SCHEDULES, uuids};
use crate::postgres::PostgresStore;
use crate::postgres::error::write_failed;
use crate::postgres::lists::snapshot;
use crate::postgres::pipeline::{BEGIN, Param, Step, run, transact};
use crate::postgres::row::{column, limit, read_sound};
use crate::schedule_columns::{ProgressColumns, ScheduleColumns, encode_number, encode_schedule_spec};

macro_rules! schedule_columns {
    () => {
        "s.id, s.partition, s.tenant, s.name, s.spec, s.paused, s.pause_note, s.revision, s.created_at, s.updated_at, \
         s.cursor_at, s.next_at, s.rolled_at, s.held_at, s.wake_at, s.backfill"
    };
}

const CREATE: &str = "\
INSERT INTO schedules (id, revision, cursor_at, created_at, updated_at, partition, priority, paused, tenant, name, spec,
                       next_at, rolled_at, held_at, wake_at, pause_note, backfill)
VALUES ($1::uuid, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::smallint, $7::smallint, $8::boolean, $9::text,
        $10::text, $11::text, $12::bigint, $13::bigint, $14::bigint, $15::bigint, $16::text, $17::text)
ON CONFLICT (tenant, name) DO NOTHING
RETURNING id";

const FIND_ID: &str = "\
SELECT id FROM schedules WHERE tenant = $1::text AND name = $2::text";

const GET: &str = concat!(
    "SELECT ",
    schedule_columns!(),
    " FROM unnest($1::uuid[]) AS w (id) JOIN schedules AS s ON s.id = ANY (ARRAY[w.id])"
);

const FIND: &str = concat!(
    "SELECT ",
    schedule_columns!(),
    " FROM schedules AS s WHERE s.tenant = $1::text AND s.name = $2::text"
);

const LIST: &str = concat!(
    "SELECT ",
    schedule_columns!(),
    "
FROM (SELECT * FROM schedules WHERE ($1::text IS NULL OR name > $1) AND ($2::text IS NULL OR tenant = $2)
      ORDER BY name, tenant LIMIT $5::bigint) AS s
WHERE $3::boolean IS NULL OR s.paused = $3
ORDER BY s.name, s.tenant LIMIT $4::bigint"
);

const BOUND: &str = "\
SELECT name FROM schedules WHERE ($1::text IS NULL OR name > $1) AND ($2::text IS NULL OR tenant = $2)
ORDER BY name, tenant OFFSET $3::bigint - 1 LIMIT 1";

const CHANGE: &str = concatcp!(
    "\
UPDATE schedules AS s
SET revision = s.revision + 1, spec = $3::text, priority = $4::smallint, paused = $5::boolean, pause_note = $6::text,
    updated_at = $7::bigint, cursor_at = $8::bigint, next_at = $9::bigint, rolled_at = $10::bigint, held_at = $11::bigint,
    wake_at = $12::bigint, backfill = $13::text
WHERE s.id = $1::uuid AND s.revision = $2::bigint
  AND s.id NOT IN (",
    with_second_job!("$14", "$15"),
    ")
RETURNING s.id"
);

const DELETE: &str = "\
DELETE FROM schedules WHERE id = $1::uuid RETURNING id";

const DELETE_FIRES: &str = "\
DELETE FROM fires WHERE schedule_id = $1::uuid";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[CREATE, FIND_ID, GET, FIND, LIST, BOUND, CHANGE, DELETE, DELETE_FIRES];

/// Stores a schedule unless its tenant has one of that name.
pub(super) async fn create_schedule(
    store: &PostgresStore,
    schedule: &Schedule,
) -> StoreResult<ScheduleCreated> {
    let client = store.client().await?;
    let progress = ProgressColumns::from(&schedule.progress);
    let (tenant, name): (&str, &str) = (&schedule.tenant, &schedule.name);
    let values: [Param<'_>; 17] = [
        &schedule.id.as_uuid(),
        &encode_number(schedule.revision),
        &progress.cursor_at,
        &schedule.created_at.as_millis(),
        &schedule.updated_at.as_millis(),
        &schedule.partition.0.cast_signed(),
        &schedule.spec.job.priority.code(),
        &schedule.paused,
        &tenant,
        &name,
        &encode_schedule_spec(&schedule.spec),
        &progress.next_at,
        &progress.rolled_at,
        &progress.held_at,
        &progress.wake_at,
        &schedule.pause_note,
        &progress.backfill,
    ];
    let steps = [
        Step::prepare(&client, CREATE, values.to_vec()).await?,
        Step::prepare(&client, FIND_ID, vec![&tenant, &name]).await?,
    ];
    loop {
        let answers = transact(&client, BEGIN, &steps).await.map_err(write_failed)?;
        if answers.first().is_some_and(|created| !created.is_empty()) {
            return Ok(ScheduleCreated::Created);
        }
        // Whoever had the name may have gone between the two statements.
        if let Some(other) = answers.get(1).and_then(|found| found.first()) {
            return Ok(ScheduleCreated::NameTaken(ScheduleId::from_uuid(column(other, 0)?)));
        }
    }
}

/// The schedules that exist, without those that make no sense: one bad row must not keep all others from firing.
pub(super) async fn get_schedules(store: &PostgresStore, ids: &[ScheduleId]) -> StoreResult<Vec<Schedule>> {
    let rows = store.read(GET, &[&uuids(ids)]).await?;
    Ok(read_sound(&rows, read_schedule, |schedule_id, cause| {
        error!(?schedule_id, %cause, "a schedule cannot be read and is left alone");
    }))
}

/// The schedule of that name.
pub(super) async fn find_schedule(
    store: &PostgresStore,
    tenant: &str,
    name: &str,
) -> StoreResult<Option<Schedule>> {
    store.read(FIND, &[&tenant, &name]).await?.first().map(read_schedule).transpose()
}

/// Schedules by name.
pub(in crate::postgres) async fn list_schedules(
    store: &PostgresStore,
    query: &ScheduleQuery,
    examined_max: usize,
) -> StoreResult<Page<Schedule, String>> {
    let (found_max, examined_max) = (limit(query.limit.saturating_add(1)), limit(examined_max));
    let mut client = store.client().await?;
    let snapshot = snapshot(&mut client).await?;
    let params: [Param<'_>; 5] = [&query.after, &query.tenant, &query.paused, &found_max, &examined_max];
    let rows = run(&snapshot, LIST, &params).await?;
    let mut items = rows.iter().map(read_schedule).collect::<StoreResult<Vec<_>>>()?;
    if items.len() > query.limit {
        items.truncate(query.limit);
        let next = items.last().map(|last| last.name.to_string());
        return Ok(Page { items, next });
    }
    let bound = run(&snapshot, BOUND, &[&query.after, &query.tenant, &examined_max]).await?;
    Ok(Page { items, next: bound.first().map(|row| column(row, 0)).transpose()? })
}

fn read_schedule(row: &Row) -> StoreResult<Schedule> {
    ScheduleColumns {
        id: column(row, 0)?,
        partition: column::<i16>(row, 1)?.into(),
        tenant: column(row, 2)?,
        name: column(row, 3)?,
        spec: column(row, 4)?,
        paused: column(row, 5)?,
        pause_note: column(row, 6)?,
        revision: column(row, 7)?,
        created_at: column(row, 8)?,
        updated_at: column(row, 9)?,
        progress: ProgressColumns {
            cursor_at: column(row, 10)?,
            next_at: column(row, 11)?,
            rolled_at: column(row, 12)?,
            held_at: column(row, 13)?,
            wake_at: column(row, 14)?,
            backfill: column(row, 15)?,
        },
    }
    .decode()
}

/// Writes the spec, whether it is paused, the progress, and what became of firings meanwhile.
pub(super) async fn change_schedule(
    store: &PostgresStore,
    schedule: &Schedule,
    fires: &[Fire],
) -> StoreResult<Advanced> {
    let client = store.client().await?;
    let fires = FireRows::of(fires);
    let progress = ProgressColumns::from(&schedule.progress);
    let values: [Param<'_>; 13] = [
        &schedule.id.as_uuid(),
        &encode_number(schedule.revision),
        &encode_schedule_spec(&schedule.spec),
        &schedule.spec.job.priority.code(),
        &schedule.paused,
        &schedule.pause_note,
        &schedule.updated_at.as_millis(),
        &progress.cursor_at,
        &progress.next_at,
        &progress.rolled_at,
        &progress.held_at,
        &progress.wake_at,
        &progress.backfill,
    ];
    let ids = uuids(&[schedule.id]);
    let mut steps = vec![
        Step::prepare(&client, LOCK_SCHEDULES, vec![&ids]).await?,
        Step::prepare(&client, CHANGE, values.into_iter().chain(fires.params_with_job()).collect()).await?,
    ];
    if !fires.is_empty() {
        steps.push(Step::prepare(&client, RECORD, fires.params()).await?);
    }
    let answers = transact(&client, BEGIN, &steps).await.map_err(write_failed)?;
    let changed = answers.get(1).is_some_and(|rows| !rows.is_empty());
    Ok(if changed { Advanced::Done } else { Advanced::Stale })
}

/// Removes a schedule and its ledger. Two statements: the second one sees what was recorded while the first one waited.
pub(super) async fn delete_schedule(store: &PostgresStore, id: ScheduleId) -> StoreResult<bool> {
    let client = store.client().await?;
    let id = id.as_uuid();
    let steps = [
        Step::prepare(&client, DELETE, vec![&id]).await?,
        Step::prepare(&client, DELETE_FIRES, vec![&id]).await?,
    ];
    let answers = transact(&client, BEGIN, &steps).await.map_err(write_failed)?;
    Ok(answers.first().is_some_and(|rows| !rows.is_empty()))
}
