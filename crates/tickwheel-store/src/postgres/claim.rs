//! From waiting to running: which jobs are due, and who takes them.

use const_format::formatcp;
use tickwheel_core::id::IdMap;
use tickwheel_core::matching::Class;
use tickwheel_core::ports::{Claim, DueJob, FairShareGroup, LoadDue, StoreResult};
use tickwheel_core::{Job, JobId, RouteId, ScheduleId, TargetKind, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::error::write_failed;
use super::locks::BEGIN_CLAIM;
use super::pipeline::{Param, Step, transact};
use super::row::{LIVE_COLUMNS, column, limit, read_sound_jobs};
use crate::codes::{COUNTED, RUN_PAUSED, RUNNING, SCHEDULED};
use crate::columns::{decode_partition, decode_priority, decode_release};

/// Whether a job belongs to no run that is paused: the nearest paused run before it is not its own. The jobs of a run
/// have all but the last digits of its id.
const RUN_GOES_ON: &str = formatcp!(
    "(j.release = {COUNTED} OR coalesce(
      (SELECT left(r.id::text, 31) FROM workflow_runs AS r
       WHERE r.status = {RUN_PAUSED} AND uuid_send(r.id) <= uuid_send(j.id)
       ORDER BY uuid_send(r.id) DESC LIMIT 1) <> left(j.id::text, 31), true))"
);

/// Whether a job is scheduled and neither its queue nor its run is paused.
const MAY_START: &str = formatcp!(
    "j.state = {SCHEDULED} AND j.queue NOT IN (SELECT name FROM queues WHERE paused) AND {RUN_GOES_ON}"
);

/// What [`read_due_job`] reads.
pub(super) const DUE_COLUMNS: &str =
    "j.id, j.partition, j.due_at, j.priority, j.tenant, j.queue, j.release, j.schedule_id, j.route";

macro_rules! load_due {
    ($class:literal) => {
        formatcp!(
            "\
SELECT {DUE_COLUMNS}
FROM jobs AS j
WHERE j.priority = $1::smallint
  AND (j.due_at, uuid_send(j.id)) > ($2::bigint, uuid_send($3::uuid))
  AND j.due_at <= $4::bigint AND j.due_at < 9223372036854775807
  AND ($5::bigint >> j.partition::integer) & 1 = 1
  AND {}
  AND {MAY_START}
ORDER BY j.due_at, uuid_send(j.id)
LIMIT $6::bigint",
            $class
        )
    };
}

const LOAD_BUILT_IN: &str = load_due!("j.route IS NULL AND j.target = ANY($7::smallint[])");

const LOAD_ROUTE: &str = load_due!("j.route = $7::uuid");

// The rule is that of `tickwheel_core::claim::StartConditions`, checked where the rows are: asking the core would take
// a round trip with the rows locked. A test compares the two for every combination. The ids come sorted and an index
// scan over an array of keys visits them in order, so two nodes that want the same jobs queue up behind each other
// instead of locking crosswise. `+ 0` keeps the planner from walking the index of due times instead, which it would do
// where it takes the table for empty. The timeout is cut off so that the sum stays a number.
const CLAIM: &str = formatcp!(
    "\
UPDATE jobs AS j
SET state = {RUNNING},
    attempt = j.attempt + 1,
    session = $2::uuid,
    started_at = $3::bigint,
    deadline = $3::bigint + LEAST(j.timeout_ms, $4::bigint)
WHERE j.id = ANY($1::uuid[])
  AND j.due_at + 0 <= $3::bigint
  AND NOT (SELECT halted FROM installation WHERE single)
  AND EXISTS (SELECT 1 FROM sessions WHERE id = $2::uuid)
  AND {MAY_START}
RETURNING {}",
    LIVE_COLUMNS
);

/// The same for a worker, with a note of what it runs.
const CLAIM_FOR_WORKER: &str = formatcp!(
    "\
WITH claimed AS ({CLAIM}
), noted AS (
    INSERT INTO worker_attempts (job_id, session, claimed_by, deadline)
    SELECT id, session, $5::uuid, deadline FROM claimed
    ON CONFLICT (job_id) DO UPDATE
    SET session = excluded.session, claimed_by = excluded.claimed_by, deadline = excluded.deadline
)
SELECT * FROM claimed"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LOAD_BUILT_IN, LOAD_ROUTE, CLAIM, CLAIM_FOR_WORKER];

/// Waiting jobs, in the order of their cursor.
pub(super) async fn load_due(
    store: &PostgresStore,
    load: LoadDue,
    kinds: &[TargetKind],
) -> StoreResult<Vec<DueJob>> {
    let kinds: Vec<i16> = kinds.iter().map(|kind| kind.code()).collect();
    let route = match load.class {
        Class::BuiltIn => None,
        Class::Worker(route) => Some(route.as_uuid()),
    };
    let (sql, class): (_, Param<'_>) = match &route {
        None => (LOAD_BUILT_IN, &kinds),
        Some(route) => (LOAD_ROUTE, route),
    };
    let params: [Param<'_>; 7] = [
        &load.priority.code(),
        &load.after.due_at.as_millis(),
        &load.after.id.as_uuid(),
        &load.until.as_millis(),
        &load.partitions.bits(),
        &limit(load.limit),
        class,
    ];
    let rows = store.read(sql, &params).await?;
    rows.iter().map(read_due_job).collect()
}

/// The job of a row that starts with [`DUE_COLUMNS`].
pub(super) fn read_due_job(row: &Row) -> StoreResult<DueJob> {
    let id = JobId::from_uuid(column(row, 0)?);
    let release = decode_release(column::<i16>(row, 6)?.into())?;
    let schedule = column::<Option<Uuid>>(row, 7)?.map(ScheduleId::from_uuid);
    Ok(DueJob {
        id,
        partition: decode_partition(column::<i16>(row, 1)?.into())?,
        due_at: Timestamp::from_millis(column(row, 2)?),
        priority: decode_priority(column::<i16>(row, 3)?.into())?,
        tenant: column::<&str>(row, 4)?.into(),
        queue: column::<&str>(row, 5)?.into(),
        group: FairShareGroup::of(id, release, schedule),
        class: Class::of_route(column::<Option<Uuid>>(row, 8)?.map(RouteId::from_uuid)),
    })
}

/// Moves due jobs to `running`, one round trip a batch; the answer keeps the order of the request.
pub(super) async fn claim(store: &PostgresStore, claim: Claim) -> StoreResult<Vec<Job>> {
    if claim.jobs.is_empty() {
        return Ok(Vec::new());
    }
    let client = store.client().await?;
    let mut ids: Vec<Uuid> = claim.jobs.iter().map(|id| id.as_uuid()).collect();
    ids.sort_unstable();
    let (session, now) = (claim.session.as_uuid(), claim.now.as_millis());
    let timeout_max = timeout_max(now);
    let node = claim.claimed_by.map(|node| node.as_uuid());
    let mut params: Vec<Param<'_>> = vec![&ids, &session, &now, &timeout_max];
    let sql = if node.is_some() { CLAIM_FOR_WORKER } else { CLAIM };
    params.extend(node.as_ref().map(|node| -> Param<'_> { node }));
    let step = Step::prepare(&client, sql, params).await?;
    let answers = transact(&client, BEGIN_CLAIM, &[step]).await.map_err(write_failed)?;
    Ok(read_sound_jobs(in_order(&claim.jobs, answers.iter().flatten())))
}

/// The longest timeout that has an end.
const fn timeout_max(now: i64) -> i64 {
    if now > 0 { i64::MAX - now } else { i64::MAX }
}

/// The rows in the order of the request. Rows, not jobs: a job is large, and this way it is moved once.
fn in_order<'r>(ids: &[JobId], rows: impl Iterator<Item = &'r Row>) -> impl Iterator<Item = &'r Row> {
    let mut by_id: IdMap<JobId, &Row> =
        rows.filter_map(|row| Some((JobId::from_uuid(row.try_get(0).ok()?), row))).collect();
    ids.iter().filter_map(move |id| by_id.remove(id))
}
