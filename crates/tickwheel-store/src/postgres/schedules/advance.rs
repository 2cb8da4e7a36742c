//! Schedules on their way: which are to be woken, and carrying out what was decided.
//!
//! A batch is one round trip: lock the rows, move those whose revision is the expected one, then write the records and
//! the jobs of those that moved. The later statements know them by their row version, which is this transaction's own.

use std::collections::HashSet;

use const_format::concatcp;
use tickwheel_core::ports::{Advanced, DueSchedule, LoadSchedules, ScheduleStep, StoreResult};
use tickwheel_core::{JobId, ScheduleId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fires::{FireRows, RECORD, with_second_job};
use super::locks::{LOCK_SCHEDULES, join_moved_schedule, uuids};
use crate::columns::{decode_partition, decode_priority};
use crate::postgres::PostgresStore;
use crate::postgres::error::write_failed;
use crate::postgres::pipeline::{BEGIN, Param, Step, transact};
use crate::postgres::row::{column, limit};
use crate::postgres::submit::{NEW_JOB_OF_SCHEDULE, Rows, insert_jobs};
use crate::postgres::workers::write_routes;
use crate::schedule_columns::{ProgressColumns, encode_number};

const LOAD: &str = "\
SELECT id, partition, wake_at, priority FROM schedules
WHERE wake_at IS NOT NULL
  AND (wake_at, id) > ($1::bigint, $2::uuid)
  AND wake_at <= $3::bigint
  AND ($4::bigint >> partition::integer) & 1 = 1
ORDER BY wake_at, id
LIMIT $5::bigint";

const ADVANCE: &str = concatcp!(
    "\
UPDATE schedules AS s
SET revision = s.revision + 1, cursor_at = n.cursor_at, next_at = n.next_at, rolled_at = n.rolled_at, held_at = n.held_at,
    wake_at = n.wake_at, backfill = n.backfill
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[])
  AS n (id, revision, cursor_at, next_at, rolled_at, held_at, wake_at, backfill)
WHERE s.id = ANY (ARRAY[n.id]) AND s.revision = n.revision
  AND s.id NOT IN (",
    with_second_job!("$9", "$10"),
    ")
RETURNING s.id"
);

const INSERT_JOBS: &str = concatcp!(insert_jobs!(NEW_JOB_OF_SCHEDULE), "\n", join_moved_schedule!());

// A job of a step that was stale is not there.
const INSERT_TAGS: &str = "\
INSERT INTO job_tags (tag, job_id)
SELECT n.tag, n.job_id FROM unnest($1::text[], $2::uuid[]) AS n (tag, job_id) JOIN jobs AS j ON j.id = ANY (ARRAY[n.job_id])
ON CONFLICT DO NOTHING";

const INSERT_QUEUES: &str = "\
INSERT INTO queues (name)
SELECT DISTINCT j.queue FROM unnest($1::uuid[]) AS n (id) JOIN jobs AS j ON j.id = ANY (ARRAY[n.id])
WHERE j.queue = ANY ($2::text[]) ORDER BY j.queue
ON CONFLICT DO NOTHING";

const ACTIVE_JOBS: &str = "\
SELECT j.schedule_id, j.id FROM unnest($1::uuid[]) AS n (id)
JOIN jobs AS j ON j.schedule_id = ANY (ARRAY[n.id]) AND j.schedule_id IS NOT NULL";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LOAD, ADVANCE, INSERT_JOBS, INSERT_TAGS, INSERT_QUEUES, ACTIVE_JOBS];

/// Schedules that are to be woken, in the order of their cursor.
pub(super) async fn load_schedules(
    store: &PostgresStore,
    load: LoadSchedules,
) -> StoreResult<Vec<DueSchedule>> {
    let params: [Param<'_>; 5] = [
        &load.after.wake_at.as_millis(),
        &load.after.id.as_uuid(),
        &load.until.as_millis(),
        &load.partitions.bits(),
        &limit(load.limit),
    ];
    store.read(LOAD, &params).await?.iter().map(read_due_schedule).collect()
}

fn read_due_schedule(row: &Row) -> StoreResult<DueSchedule> {
    Ok(DueSchedule {
        id: ScheduleId::from_uuid(column(row, 0)?),
        partition: decode_partition(column::<i16>(row, 1)?.into())?,
        wake_at: Timestamp::from_millis(column(row, 2)?),
        priority: decode_priority(column::<i16>(row, 3)?.into())?,
    })
}

/// The jobs of these schedules that are not over: a job that is over is not in the live table.
pub(super) async fn active_jobs(
    store: &PostgresStore,
    ids: &[ScheduleId],
) -> StoreResult<Vec<(ScheduleId, JobId)>> {
    let rows = store.read(ACTIVE_JOBS, &[&uuids(ids)]).await?;
    let read = |row: &Row| Ok((ScheduleId::from_uuid(column(row, 0)?), JobId::from_uuid(column(row, 1)?)));
    rows.iter().map(read).collect()
}

/// Carries decisions out, one round trip a batch.
pub(super) async fn advance_schedules(
    store: &PostgresStore,
    steps: Vec<ScheduleStep>,
) -> StoreResult<Vec<Advanced>> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let firsts = first_of_each(&steps);
    let moves = Moves::of(&firsts);
    let fires = FireRows::of(firsts.iter().flat_map(|step| &step.fires));
    write_routes(store, firsts.iter().flat_map(|step| &step.jobs)).await?;
    let jobs = Rows::of(firsts.iter().flat_map(|step| &step.jobs), store);
    let client = store.client().await?;
    let mut pipeline = Vec::new();
    for (sql, params) in statements(&moves, &fires, &jobs) {
        pipeline.push(Step::prepare(&client, sql, params).await?);
    }
    let answers = transact(&client, BEGIN, &pipeline).await.map_err(write_failed)?;
    let moved = answers.get(ADVANCE_POSITION).into_iter().flatten().map(|row| column(row, 0));
    let mut moved: HashSet<Uuid> = moved.collect::<StoreResult<_>>()?;
    let made = firsts.iter().filter(|step| moved.contains(&step.id.as_uuid())).flat_map(|step| &step.jobs);
    store.remember_queues(&store.unknown_queues(made.map(|job| &*job.queue).collect()));
    // Taken out by the first one of each, the one that was carried out.
    let answer =
        |step: &ScheduleStep| if moved.remove(&step.id.as_uuid()) { Advanced::Done } else { Advanced::Stale };
    Ok(steps.iter().map(answer).collect())
}

/// Of several steps of one schedule only the first is tried: whoever decided on the others knew nothing of it.
fn first_of_each(steps: &[ScheduleStep]) -> Vec<&ScheduleStep> {
    let mut seen = HashSet::with_capacity(steps.len());
    steps.iter().filter(|step| seen.insert(step.id)).collect()
}

/// Where the answer of [`ADVANCE`] is among those of [`statements`].
const ADVANCE_POSITION: usize = 1;

fn statements<'a>(
    moves: &'a Moves,
    fires: &'a FireRows,
    jobs: &'a Rows<'_>,
) -> Vec<(&'static str, Vec<Param<'a>>)> {
    let mut statements = vec![(LOCK_SCHEDULES, moves.params_to_identify()), (ADVANCE, moves.params(fires))];
    if !fires.is_empty() {
        statements.push((RECORD, fires.params()));
    }
    if !jobs.is_empty() {
        statements.push((INSERT_JOBS, jobs.params(NEW_JOB_OF_SCHEDULE)));
    }
    if let Some(tags) = jobs.tag_params() {
        statements.push((INSERT_TAGS, tags));
    }
    if !jobs.new_queues.is_empty() {
        statements.push((INSERT_QUEUES, vec![jobs.ids(), &jobs.new_queues]));
    }
    statements.extend(jobs.hold_routes());
    statements
}

/// Where the schedules are to be, as columns.
#[derive(Default)]
struct Moves {
    ids: Vec<Uuid>,
    revisions: Vec<i64>,
    cursor_at: Vec<i64>,
    next_at: Vec<Option<i64>>,
    rolled_at: Vec<Option<i64>>,
    held_at: Vec<Option<i64>>,
    wake_at: Vec<Option<i64>>,
    backfills: Vec<Option<String>>,
}

impl Moves {
    fn of(steps: &[&ScheduleStep]) -> Self {
        let mut moves = Self::default();
        for step in steps {
            let progress = ProgressColumns::from(&step.progress);
            moves.ids.push(step.id.as_uuid());
            moves.revisions.push(encode_number(step.revision));
            moves.cursor_at.push(progress.cursor_at);
            moves.next_at.push(progress.next_at);
            moves.rolled_at.push(progress.rolled_at);
            moves.held_at.push(progress.held_at);
            moves.wake_at.push(progress.wake_at);
            moves.backfills.push(progress.backfill);
        }
        moves
    }

    fn params_to_identify(&self) -> Vec<Param<'_>> {
        vec![&self.ids]
    }

    fn params<'a>(&'a self, fires: &'a FireRows) -> Vec<Param<'a>> {
        let own: [Param<'a>; 8] = [
            &self.ids,
            &self.revisions,
            &self.cursor_at,
            &self.next_at,
            &self.rolled_at,
            &self.held_at,
            &self.wake_at,
            &self.backfills,
        ];
        own.into_iter().chain(fires.params_with_job()).collect()
    }
}
