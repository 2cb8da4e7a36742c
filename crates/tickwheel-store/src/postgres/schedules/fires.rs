//! The ledger: what became of every firing.

use const_format::{concatcp, formatcp};
use deadpool_postgres::Transaction;
use tickwheel_core::ports::{FireQuery, Page, StoreResult};
use tickwheel_core::schedule::Fire;
use tickwheel_core::{ScheduleId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::locks::{join_moved_schedule, uuids};
use crate::codes;
use crate::postgres::PostgresStore;
use crate::postgres::lists::snapshot;
use crate::postgres::pipeline::{Param, run};
use crate::postgres::row::{column, limit};
use crate::schedule_columns::{FireColumns, encode_number};

/// Inserts the rows `n` of an array a column.
macro_rules! insert_fires {
    ($which:expr) => {
        const_format::concatcp!(
            "\
INSERT INTO fires (schedule_id, nominal_at, last_at, count, outcome, reason, job_id, recorded_at)
SELECT n.schedule_id, n.nominal_at, n.last_at, n.count, n.outcome, n.reason, n.job_id, n.recorded_at
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::smallint[], $7::uuid[], $8::bigint[])
  AS n (schedule_id, nominal_at, last_at, count, outcome, reason, job_id, recorded_at)
",
            $which
        )
    };
}

/// The same as [`Fire::has_own_job`]: a coalesced firing names the job of another.
const FIRES_HAVE_OWN_JOB: &str =
    formatcp!("(fires.job_id IS NOT NULL AND fires.outcome <> {})", codes::COALESCED);
/// The same of `fires AS f`.
pub(super) const F_HAS_OWN_JOB: &str =
    formatcp!("(f.job_id IS NOT NULL AND f.outcome <> {})", codes::COALESCED);

/// Writes the records of schedules that this transaction has moved; one that has a job of its own already stays as it
/// is.
pub(super) const RECORD: &str = insert_fires!(concatcp!(
    join_moved_schedule!(),
    "
ON CONFLICT (schedule_id, nominal_at) DO UPDATE
SET last_at = excluded.last_at, count = excluded.count, outcome = excluded.outcome, reason = excluded.reason,
    job_id = excluded.job_id, recorded_at = excluded.recorded_at
WHERE NOT ",
    FIRES_HAVE_OWN_JOB
));

const RECORD_AT_FREE_TIME: &str =
    insert_fires!("ON CONFLICT (schedule_id, nominal_at) DO NOTHING RETURNING nominal_at");

/// Of the schedules and nominal times in two arrays, the schedules of which one of these times has its own job already.
/// Meant for `NOT IN`, which asks once a statement.
macro_rules! with_second_job {
    ($schedule_ids:literal, $nominal_times:literal) => {
        const_format::concatcp!(
            "SELECT f.schedule_id FROM unnest(",
            $schedule_ids,
            "::uuid[], ",
            $nominal_times,
            "::bigint[]) AS w (schedule_id, nominal_at)
    JOIN fires AS f ON f.schedule_id = ANY (ARRAY[w.schedule_id]) AND f.nominal_at = w.nominal_at
    WHERE ",
            $crate::postgres::schedules::fires::F_HAS_OWN_JOB
        )
    };
}

pub(super) use with_second_job;

macro_rules! fire_columns {
    () => {
        "f.schedule_id, f.nominal_at, f.last_at, f.count, f.outcome, f.reason, f.job_id, f.recorded_at"
    };
}

const LIST: &str = concatcp!(
    "SELECT ",
    fire_columns!(),
    "
FROM (SELECT * FROM fires WHERE schedule_id = $1::uuid AND nominal_at < $2::bigint
      ORDER BY nominal_at DESC LIMIT $5::bigint) AS f
WHERE $3::smallint IS NULL OR f.outcome = $3
ORDER BY f.nominal_at DESC LIMIT $4::bigint"
);

const BOUND: &str = "\
SELECT nominal_at FROM fires WHERE schedule_id = $1::uuid AND nominal_at < $2::bigint
ORDER BY nominal_at DESC OFFSET $3::bigint - 1 LIMIT 1";

pub(in crate::postgres) const WITHIN: &str = concatcp!(
    "SELECT ",
    fire_columns!(),
    "
FROM fires AS f WHERE f.schedule_id = $1::uuid AND f.nominal_at > $2::bigint AND f.nominal_at <= $3::bigint
UNION ALL
SELECT ",
    fire_columns!(),
    "
FROM fires AS f WHERE f.schedule_id = $1::uuid AND f.nominal_at <= $2::bigint AND f.count > 1 AND f.last_at > $2::bigint
ORDER BY nominal_at"
);

/// The same as [`Fire::is_queued`], and as the index over those firings has it.
const QUEUED: &str = formatcp!(
    "\
SELECT nominal_at FROM fires WHERE schedule_id = $1::uuid AND nominal_at >= $2::bigint AND reason = {}
ORDER BY nominal_at LIMIT $3::bigint",
    codes::QUEUED
);

const LATEST: &str = concatcp!(
    "SELECT ",
    fire_columns!(),
    "
FROM unnest($1::uuid[]) WITH ORDINALITY AS w (id, place)
CROSS JOIN LATERAL (SELECT * FROM fires WHERE schedule_id = w.id ORDER BY nominal_at DESC LIMIT $2::bigint) AS f
ORDER BY w.place, f.nominal_at DESC"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[RECORD, RECORD_AT_FREE_TIME, LIST, BOUND, WITHIN, QUEUED, LATEST];

/// Records as columns.
#[derive(Default)]
pub(super) struct FireRows {
    schedule_ids: Vec<Uuid>,
    nominal_at: Vec<i64>,
    last_at: Vec<i64>,
    counts: Vec<i64>,
    outcomes: Vec<i16>,
    reasons: Vec<i16>,
    job_ids: Vec<Option<Uuid>>,
    recorded_at: Vec<i64>,
    /// Those that bring a job: the schedule and the nominal time.
    with_job: (Vec<Uuid>, Vec<i64>),
}

impl FireRows {
    pub fn of<'a>(fires: impl IntoIterator<Item = &'a Fire>) -> Self {
        let mut rows = Self::default();
        fires.into_iter().for_each(|fire| rows.push(fire));
        rows
    }

    fn push(&mut self, fire: &Fire) {
        let (schedule_id, nominal_at) = (fire.schedule_id.as_uuid(), fire.nominal_at.as_millis());
        self.schedule_ids.push(schedule_id);
        self.nominal_at.push(nominal_at);
        self.last_at.push(fire.last_at.as_millis());
        self.counts.push(encode_number(fire.count));
        self.outcomes.push(fire.outcome.code());
        self.reasons.push(fire.reason.code());
        self.job_ids.push(fire.job_id.map(|job| job.as_uuid()));
        self.recorded_at.push(fire.recorded_at.as_millis());
        if fire.job_id.is_some() {
            self.with_job.0.push(schedule_id);
            self.with_job.1.push(nominal_at);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.schedule_ids.is_empty()
    }

    pub fn params(&self) -> Vec<Param<'_>> {
        vec![
            &self.schedule_ids,
            &self.nominal_at,
            &self.last_at,
            &self.counts,
            &self.outcomes,
            &self.reasons,
            &self.job_ids,
            &self.recorded_at,
        ]
    }

    /// The parameters of [`with_second_job`].
    pub fn params_with_job(&self) -> [Param<'_>; 2] {
        [&self.with_job.0, &self.with_job.1]
    }
}

/// Writes a record at its time, or at the first moment after it that has none. The schedule is locked.
pub(super) async fn record_at_free_time(transaction: &Transaction<'_>, mut fire: Fire) -> StoreResult<()> {
    while run(transaction, RECORD_AT_FREE_TIME, &FireRows::of([&fire]).params()).await?.is_empty() {
        fire.nominal_at = Fire::by_request_after(fire.nominal_at);
        fire.last_at = fire.nominal_at;
    }
    Ok(())
}

/// What became of a schedule's firings, the latest first.
pub(in crate::postgres) async fn list_fires(
    store: &PostgresStore,
    query: &FireQuery,
    examined_max: usize,
) -> StoreResult<Page<Fire, Timestamp>> {
    let (id, before) = (query.schedule_id.as_uuid(), query.before.unwrap_or(Timestamp::MAX).as_millis());
    let (outcome, examined_max) = (query.outcome.map(|outcome| outcome.code()), limit(examined_max));
    let found_max = limit(query.limit.saturating_add(1));
    let mut client = store.client().await?;
    let snapshot = snapshot(&mut client).await?;
    let params: [Param<'_>; 5] = [&id, &before, &outcome, &found_max, &examined_max];
    let mut items = read_fires(&run(&snapshot, LIST, &params).await?)?;
    if items.len() > query.limit {
        items.truncate(query.limit);
        let next = items.last().map(|last| last.nominal_at);
        return Ok(Page { items, next });
    }
    let bound = run(&snapshot, BOUND, &[&id, &before, &examined_max]).await?;
    let next = bound.first().map(|row| column(row, 0).map(Timestamp::from_millis)).transpose()?;
    Ok(Page { items, next })
}

/// The records of a range, the oldest first, and a run of firings that reaches into it.
pub(super) async fn fires_within(
    store: &PostgresStore,
    id: ScheduleId,
    after: Timestamp,
    until: Timestamp,
) -> StoreResult<Vec<Fire>> {
    let params: [Param<'_>; 3] = [&id.as_uuid(), &after.as_millis(), &until.as_millis()];
    read_fires(&store.read(WITHIN, &params).await?)
}

/// Firings that wait for their turn, the oldest first.
pub(super) async fn queued_firings(
    store: &PostgresStore,
    id: ScheduleId,
    from: Timestamp,
    count: usize,
) -> StoreResult<Vec<Timestamp>> {
    let params: [Param<'_>; 3] = [&id.as_uuid(), &from.as_millis(), &limit(count)];
    let rows = store.read(QUEUED, &params).await?;
    rows.iter().map(|row| column(row, 0).map(Timestamp::from_millis)).collect()
}

/// The latest records of each of these schedules, the latest first.
pub(super) async fn latest_fires(
    store: &PostgresStore,
    ids: &[ScheduleId],
    count: usize,
) -> StoreResult<Vec<Fire>> {
    read_fires(&store.read(LATEST, &[&uuids(ids), &limit(count)]).await?)
}

fn read_fires(rows: &[Row]) -> StoreResult<Vec<Fire>> {
    rows.iter().map(read_fire).collect()
}

fn read_fire(row: &Row) -> StoreResult<Fire> {
    FireColumns {
        schedule_id: column(row, 0)?,
        nominal_at: column(row, 1)?,
        last_at: column(row, 2)?,
        count: column(row, 3)?,
        outcome: column::<i16>(row, 4)?.into(),
        reason: column::<i16>(row, 5)?.into(),
        job_id: column(row, 6)?,
        recorded_at: column(row, 7)?,
    }
    .decode()
}
