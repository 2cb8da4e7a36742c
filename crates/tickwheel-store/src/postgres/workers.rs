//! The sessions of workers, what they run, and the routes of the jobs that wait for one.
//!
//! Nobody knows of a worker's process that it is dead, so its session has no lock: only its lease counts, by the
//! server's clock.

use std::collections::{BTreeMap, HashMap};

use const_format::formatcp;
use tickwheel_core::matching::Route;
use tickwheel_core::ports::{HeldAttempt, RoutesLookedAt, StoreResult, WorkerRenewal};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::{Job, JobId, RouteId, SessionId, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::error::{not_done, write_failed};
use super::pipeline::{BoundStatement, Param, run};
use super::row::{LIVE_COLUMNS, column, limit, read_sound_jobs};
use crate::codes::{PRIORITIES, RUNNING, SCHEDULED};
use crate::columns::decode_count;
use crate::error::corrupt;
use crate::worker_columns::{RouteRow, WorkerRow, encode_profile, encode_requires, encode_skill};

/// So many routes are remembered as written. Forgetting them costs a statement.
const KNOWN_ROUTES_MAX: usize = 100_000;

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const SESSION_COLUMNS: &str = "s.id, s.profile, s.opened_at, s.expires_at, s.draining";

const OPEN: &str = formatcp!(
    "\
INSERT INTO sessions AS s (id, node, instance, profile, lease_ms, opened_at, expires_at)
VALUES ($1::uuid, $2::text, $3::uuid, $4::text, $5::bigint, {NOW}, {NOW} + $5::bigint)
ON CONFLICT (instance) WHERE instance IS NOT NULL
DO UPDATE SET node = excluded.node, profile = excluded.profile, lease_ms = excluded.lease_ms,
    expires_at = excluded.expires_at
RETURNING {SESSION_COLUMNS}"
);

const RENEW: &str = formatcp!(
    "\
UPDATE sessions AS s SET expires_at = {NOW} + s.lease_ms
WHERE s.id = $1::uuid AND s.profile IS NOT NULL
RETURNING {SESSION_COLUMNS}"
);

const GET: &str =
    formatcp!("SELECT {SESSION_COLUMNS} FROM sessions AS s WHERE s.id = $1::uuid AND s.profile IS NOT NULL");

const LIST: &str = formatcp!(
    "\
SELECT {SESSION_COLUMNS} FROM sessions AS s
WHERE s.profile IS NOT NULL AND ($1::uuid IS NULL OR uuid_send(s.id) > uuid_send($1::uuid))
ORDER BY uuid_send(s.id) LIMIT $2::bigint"
);

const SET_DRAINING: &str = "\
UPDATE sessions SET draining = $2::boolean WHERE id = $1::uuid AND profile IS NOT NULL";

const END: &str = "\
DELETE FROM sessions WHERE id = $1::uuid AND profile IS NOT NULL";

const EXTEND: &str = formatcp!(
    "\
UPDATE sessions SET expires_at = {NOW} + lease_ms
WHERE profile IS NOT NULL AND expires_at < {NOW} + lease_ms"
);

/// The jobs that really run under a worker's session.
const RUNS_UNDER: &str = formatcp!("j.id = w.job_id AND j.state = {RUNNING} AND j.session = w.session");

const HELD: &str = formatcp!(
    "\
SELECT j.id, j.attempt, j.type, j.started_at, j.deadline, j.cancel_requested
FROM worker_attempts AS w JOIN jobs AS j ON {RUNS_UNDER}
WHERE w.session = $1::uuid
ORDER BY uuid_send(j.id) LIMIT $2::bigint"
);

const CLAIMED_BY: &str = formatcp!(
    "\
SELECT {LIVE_COLUMNS} FROM worker_attempts AS w JOIN jobs AS j ON {RUNS_UNDER}
WHERE w.job_id = ANY ($2::uuid[]) AND w.claimed_by = $1::uuid"
);

const CANCELLED: &str = formatcp!(
    "\
SELECT j.id, j.attempt FROM worker_attempts AS w JOIN jobs AS j ON {RUNS_UNDER}
WHERE w.session = $1::uuid AND j.cancel_requested"
);

const COUNT_HELD: &str = formatcp!(
    "\
SELECT w.session, count(*) FROM worker_attempts AS w JOIN jobs AS j ON {RUNS_UNDER}
WHERE w.session = ANY ($1::uuid[]) GROUP BY w.session"
);

const COUNT_DUE: &str = formatcp!(
    "\
SELECT count(*) FROM (
    SELECT 1 FROM unnest($1::uuid[]) AS r (id)
    JOIN jobs AS j ON j.route = r.id AND j.priority = ANY (ARRAY[{PRIORITIES}]::smallint[])
      AND j.due_at <= $2::bigint AND j.due_at < 9223372036854775807
    WHERE j.state = {SCHEDULED}
    LIMIT $3::bigint) AS due"
);

const ROUTES: &str = "\
SELECT id, queue, type, executor, requires FROM routes";

const INSERT_ROUTES: &str = "\
INSERT INTO routes (id, queue, type, executor, requires)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::smallint[], $5::text[]) ON CONFLICT DO NOTHING";

/// Until the transaction ends nobody removes these routes. Those that somebody removed a moment ago are written again;
/// one that somebody else writes again at this moment is waited for, and locked too.
const HOLD_ROUTES: &str = "\
WITH held AS MATERIALIZED (SELECT id FROM routes WHERE id = ANY ($1::uuid[]) FOR KEY SHARE)
INSERT INTO routes (id, queue, type, executor, requires)
SELECT n.* FROM unnest($1::uuid[], $2::text[], $3::text[], $4::smallint[], $5::text[])
    AS n (id, queue, type, executor, requires)
WHERE n.id NOT IN (SELECT id FROM held)
ON CONFLICT (id) DO UPDATE SET requires = excluded.requires";

/// Whether a live job has the route `r`. Those that wait for nothing but their time are in one index, those that cannot be
/// due yet in the other.
const IS_USED: &str = "\
(EXISTS (SELECT 1 FROM jobs AS j WHERE j.route = r.id AND j.due_at < 9223372036854775807)
 OR EXISTS (SELECT 1 FROM jobs AS j WHERE j.route = r.id AND j.due_at = 9223372036854775807))";

const LOOK_AT_ROUTES: &str = formatcp!(
    "\
SELECT r.id, {IS_USED}
FROM (SELECT id FROM routes WHERE $1::uuid IS NULL OR id > $1::uuid ORDER BY id LIMIT $2::bigint) AS r
ORDER BY r.id"
);

/// What a submission holds is in use.
const LOCK_ROUTES: &str = "\
SELECT id FROM routes WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED";

/// On its own, after the lock: it sees every job whose submission held the route before.
const REMOVE_ROUTES: &str =
    formatcp!("DELETE FROM routes AS r WHERE r.id = ANY ($1::uuid[]) AND NOT {IS_USED} RETURNING r.id");

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    OPEN,
    RENEW,
    GET,
    LIST,
    SET_DRAINING,
    END,
    EXTEND,
    HELD,
    CLAIMED_BY,
    CANCELLED,
    COUNT_HELD,
    COUNT_DUE,
    ROUTES,
    INSERT_ROUTES,
    HOLD_ROUTES,
    LOOK_AT_ROUTES,
    LOCK_ROUTES,
    REMOVE_ROUTES,
];

fn read_session(row: &Row) -> StoreResult<WorkerSession> {
    WorkerRow {
        id: column(row, 0)?,
        profile: column(row, 1)?,
        opened_at: column(row, 2)?,
        expires_at: column(row, 3)?,
        draining: column(row, 4)?,
    }
    .decode()
}

fn read_attempt(row: &Row) -> StoreResult<AttemptRef> {
    let attempt = decode_count("attempt", column::<i32>(row, 1)?.into())?;
    Ok(AttemptRef { job_id: JobId::from_uuid(column(row, 0)?), attempt })
}

pub(super) async fn open_worker(store: &PostgresStore, worker: NewWorker) -> StoreResult<WorkerSession> {
    let lease_ms = i64::try_from(worker.profile.lease_ms).unwrap_or(i64::MAX);
    let profile = encode_profile(&worker.profile);
    let params: [Param<'_>; 5] =
        [&worker.id.as_uuid(), &worker.profile.name, &worker.instance, &profile, &lease_ms];
    let rows = store.write_returning(OPEN, &params).await?;
    read_session(rows.first().ok_or_else(|| corrupt("sessions", "an opened session has no row"))?)
}

pub(super) async fn renew_worker(store: &PostgresStore, id: SessionId) -> StoreResult<Option<WorkerRenewal>> {
    let rows = store.write_returning(RENEW, &[&id.as_uuid()]).await?;
    let Some(session) = rows.first().map(read_session).transpose()? else { return Ok(None) };
    let cancelled = store.read(CANCELLED, &[&id.as_uuid()]).await?;
    let cancel = cancelled.iter().map(read_attempt).collect::<StoreResult<_>>()?;
    Ok(Some(WorkerRenewal { session, cancel }))
}

pub(super) async fn get_worker(store: &PostgresStore, id: SessionId) -> StoreResult<Option<WorkerSession>> {
    store.read(GET, &[&id.as_uuid()]).await?.first().map(read_session).transpose()
}

pub(super) async fn list_workers(
    store: &PostgresStore,
    after: Option<SessionId>,
    len_max: usize,
) -> StoreResult<Vec<WorkerSession>> {
    let after = after.map(SessionId::as_uuid);
    store.read(LIST, &[&after, &limit(len_max)]).await?.iter().map(read_session).collect()
}

pub(super) async fn set_worker_draining(
    store: &PostgresStore,
    id: SessionId,
    draining: bool,
) -> StoreResult<bool> {
    Ok(store.write(SET_DRAINING, &[&id.as_uuid(), &draining]).await? == 1)
}

pub(super) async fn end_worker(store: &PostgresStore, id: SessionId) -> StoreResult<bool> {
    Ok(store.write(END, &[&id.as_uuid()]).await? == 1)
}

pub(super) async fn extend_workers(store: &PostgresStore) -> StoreResult<()> {
    store.write(EXTEND, &[]).await.map(drop)
}

pub(super) async fn claimed_by(
    store: &PostgresStore,
    node: SessionId,
    jobs: &[JobId],
) -> StoreResult<Vec<Job>> {
    let ids: Vec<Uuid> = jobs.iter().map(|id| id.as_uuid()).collect();
    Ok(read_sound_jobs(&store.read(CLAIMED_BY, &[&node.as_uuid(), &ids]).await?))
}

pub(super) async fn held_by(
    store: &PostgresStore,
    id: SessionId,
    len_max: usize,
) -> StoreResult<Vec<HeldAttempt>> {
    let rows = store.read(HELD, &[&id.as_uuid(), &limit(len_max)]).await?;
    let held = |row: &Row| {
        Ok(HeldAttempt {
            attempt: read_attempt(row)?,
            job_type: column(row, 2)?,
            started_at: column::<Option<i64>>(row, 3)?.map(Timestamp::from_millis),
            deadline: column::<Option<i64>>(row, 4)?.map(Timestamp::from_millis),
            cancel_requested: column(row, 5)?,
        })
    };
    rows.iter().map(held).collect()
}

pub(super) async fn count_held(store: &PostgresStore, ids: Vec<SessionId>) -> StoreResult<Vec<u64>> {
    let uuids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
    let mut counts: HashMap<Uuid, i64> = HashMap::new();
    for row in &store.read(COUNT_HELD, &[&uuids]).await? {
        counts.insert(column(row, 0)?, column(row, 1)?);
    }
    let count = |id| counts.get(&id).copied().and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    Ok(uuids.into_iter().map(count).collect())
}

pub(super) async fn count_due_routes(
    store: &PostgresStore,
    routes: Vec<RouteId>,
    now: Timestamp,
    len_max: usize,
) -> StoreResult<u64> {
    let ids: Vec<Uuid> = routes.iter().map(|route| route.as_uuid()).collect();
    let rows = store.read(COUNT_DUE, &[&ids, &now.as_millis(), &limit(len_max)]).await?;
    let counted = rows.first().map_or(Ok(0), |row| column::<i64>(row, 0))?;
    Ok(u64::try_from(counted).unwrap_or(0))
}

pub(super) async fn routes(store: &PostgresStore) -> StoreResult<Vec<Route>> {
    let rows = store.read(ROUTES, &[]).await?;
    let route = |row: &Row| {
        let (id, queue, job_type) = (column(row, 0)?, column(row, 1)?, column(row, 2)?);
        RouteRow { id, queue, job_type, executor: column(row, 3)?, requires: column(row, 4)? }.decode()
    };
    rows.iter().map(route).collect()
}

/// Removes those of some routes that no live job has.
pub(super) async fn remove_unused_routes(
    store: &PostgresStore,
    after: Option<RouteId>,
    len_max: usize,
) -> StoreResult<RoutesLookedAt> {
    let after = after.map(RouteId::as_uuid);
    let rows = store.read(LOOK_AT_ROUTES, &[&after, &limit(len_max)]).await?;
    let mut unused: Vec<Uuid> = Vec::new();
    for row in &rows {
        if !column::<bool>(row, 1)? {
            unused.push(column(row, 0)?);
        }
    }
    let last = rows.last().filter(|_| rows.len() == len_max);
    let next = last.map(|row| column(row, 0).map(RouteId::from_uuid)).transpose()?;
    let removed = if unused.is_empty() { 0 } else { remove_routes(store, unused).await? };
    Ok(RoutesLookedAt { removed, next })
}

async fn remove_routes(store: &PostgresStore, unused: Vec<Uuid>) -> StoreResult<usize> {
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    let ids = |rows: Vec<Row>| rows.iter().map(|row| column(row, 0)).collect::<StoreResult<Vec<Uuid>>>();
    let locked = ids(run(&transaction, LOCK_ROUTES, &[&unused]).await?)?;
    let removed = ids(run(&transaction, REMOVE_ROUTES, &[&locked]).await?)?;
    transaction.commit().await.map_err(write_failed)?;
    let mut known = store.known_routes();
    for id in &removed {
        known.remove(&RouteId::from_uuid(*id));
    }
    Ok(removed.len())
}

/// Routes as columns, in the order of their ids, so that two that write them cannot wait for each other.
#[derive(Default)]
pub(super) struct RouteRows {
    ids: Vec<Uuid>,
    queues: Vec<String>,
    types: Vec<String>,
    executors: Vec<Option<i16>>,
    requires: Vec<String>,
}

impl RouteRows {
    pub fn of(routes: impl IntoIterator<Item = Route>) -> Self {
        let by_id: BTreeMap<RouteId, Route> = routes.into_iter().map(|route| (route.id, route)).collect();
        let mut rows = Self::default();
        for route in by_id.into_values() {
            rows.ids.push(route.id.as_uuid());
            rows.requires.push(encode_requires(&route));
            rows.queues.push(route.queue.to_string());
            let (job_type, executor) = encode_skill(&route);
            rows.types.push(job_type.to_owned());
            rows.executors.push(executor);
        }
        rows
    }

    /// What a transaction that stores jobs of these routes has to run, if there are any.
    pub fn hold(&self) -> Option<BoundStatement<'_>> {
        (!self.ids.is_empty()).then(|| (HOLD_ROUTES, self.params()))
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![&self.ids, &self.queues, &self.types, &self.executors, &self.requires]
    }
}

/// Writes the routes of these jobs, unless that was done before. On their own and first, so that transactions with a new
/// route do not wait for each other; the transaction that stores the jobs holds them ([`RouteRows::hold`]).
pub(super) async fn write_routes<'j>(
    store: &PostgresStore,
    jobs: impl Iterator<Item = &'j Job>,
) -> StoreResult<()> {
    let routes: Vec<Route> = jobs.filter_map(Route::of).collect();
    let rows = {
        let known = store.known_routes();
        RouteRows::of(routes.into_iter().filter(|route| !known.contains(&route.id)))
    };
    if rows.ids.is_empty() {
        return Ok(());
    }
    store.write(INSERT_ROUTES, &rows.params()).await?;
    let mut known = store.known_routes();
    if known.len() + rows.ids.len() > KNOWN_ROUTES_MAX {
        known.clear();
    }
    known.extend(rows.ids.iter().copied().map(RouteId::from_uuid));
    Ok(())
}
