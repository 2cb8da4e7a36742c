//! From waiting to running: which jobs become due, and taking them.

use const_format::formatcp;
use rusqlite::{CachedStatement, Connection, Row, ToSql, named_params};
use tickwheel_core::claim::StartConditions;
use tickwheel_core::matching::Class;
use tickwheel_core::ports::{Claim, DueJob, FairShareGroup, LoadDue};
use tickwheel_core::{Job, JobId, RouteId, ScheduleId, SessionId, State, Timestamp};
use uuid::Uuid;

use super::controls::is_halted;
use super::fault::Verb;
use super::row::{LIVE_COLUMNS, job_from_row};
use super::sessions::is_open;
use crate::codes::{COUNTED, RUN_PAUSED};
use crate::columns::{decode_partition, decode_release, decode_state};
use crate::job_columns::{READ_LEN, at};

/// Whether a job belongs to no run that is paused: the nearest paused run before it is not its own. The jobs of a run
/// have all but the last five digits of its id.
const RUN_GOES_ON: &str = formatcp!(
    "(release = {COUNTED} OR coalesce(
         (SELECT substr(hex(r.id), 1, 27) FROM workflow_runs AS r INDEXED BY workflow_runs_paused
          WHERE r.status = {RUN_PAUSED} AND r.id <= jobs.id
          ORDER BY r.id DESC LIMIT 1) <> substr(hex(jobs.id), 1, 27), 1))"
);

/// Whether its queue is paused.
const QUEUE_PAUSED: &str = "EXISTS (SELECT 1 FROM queues WHERE name = jobs.queue AND paused)";

/// The class of a row with its route in this column.
pub(super) fn read_class(row: &Row<'_>, route: usize) -> Verb<Class> {
    Ok(Class::of_route(row.get::<_, Option<Uuid>>(route)?.map(RouteId::from_uuid)))
}

macro_rules! load_due {
    ($index:literal, $class:literal) => {
        formatcp!(
            "SELECT id, partition, due_at, tenant, queue, release, schedule_id, route
             FROM jobs INDEXED BY {}
             WHERE {} AND priority = :priority AND (due_at, id) > (:after_due_at, :after_id)
               AND due_at <= :until AND due_at < 9223372036854775807
               AND state = :scheduled AND (:partitions >> partition) & 1
               AND NOT {QUEUE_PAUSED} AND {RUN_GOES_ON}
             ORDER BY due_at, id LIMIT :limit",
            $index,
            $class
        )
    };
}

const LOAD_BUILT_IN: &str = load_due!("jobs_due", "route IS NULL AND (:class >> target) & 1");

const LOAD_ROUTE: &str = load_due!("jobs_route", "route = :class");

/// See [`tickwheel_core::ports::JobStore::load_due`]. The kinds are one bit each.
pub(super) fn load_due(connection: &Connection, load: &LoadDue, kinds: i64) -> Verb<Vec<DueJob>> {
    let (sql, class): (_, &dyn ToSql) = match &load.class {
        Class::BuiltIn => (LOAD_BUILT_IN, &kinds),
        Class::Worker(route) => (LOAD_ROUTE, &route.as_uuid()),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(named_params! {
        ":priority": load.priority.code(),
        ":after_due_at": load.after.due_at.as_millis(),
        ":after_id": load.after.id.as_uuid(),
        ":until": load.until.as_millis(),
        ":scheduled": State::Scheduled.code(),
        ":class": class,
        ":partitions": load.partitions.bits(),
        ":limit": i64::try_from(load.limit).unwrap_or(i64::MAX),
    })?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        let id = JobId::from_uuid(row.get::<_, Uuid>(0)?);
        let schedule = row.get::<_, Option<Uuid>>(6)?.map(ScheduleId::from_uuid);
        due.push(DueJob {
            id,
            partition: decode_partition(row.get(1)?)?,
            due_at: Timestamp::from_millis(row.get(2)?),
            priority: load.priority,
            tenant: row.get_ref(3)?.as_str()?.into(),
            queue: row.get_ref(4)?.as_str()?.into(),
            group: FairShareGroup::of(id, decode_release(row.get(5)?)?, schedule),
            class: read_class(row, 7)?,
        });
    }
    Ok(due)
}

/// See [`tickwheel_core::ports::JobStore::claim`].
pub(super) fn claim(connection: &Connection, claim: &Claim) -> Verb<Vec<Job>> {
    let is_halted = is_halted(connection)?;
    let session_is_open = is_open(connection, claim.session)?;
    let mut find = connection.prepare_cached(FIND)?;
    let mut start = connection.prepare_cached(START)?;
    let mut claimed = Vec::with_capacity(claim.jobs.len());
    for id in &claim.jobs {
        let mut rows = find.query([id.as_uuid()])?;
        let Some(row) = rows.next()? else { continue };
        let conditions = StartConditions {
            state: decode_state(row.get(at!("state"))?)?,
            due_at: Timestamp::from_millis(row.get(at!("due_at"))?),
            now: claim.now,
            is_halted,
            queue_is_paused: row.get(READ_LEN)?,
            run_is_paused: !row.get::<_, bool>(READ_LEN + 1)?,
            session_is_open,
        };
        if !conditions.are_met() {
            continue;
        }
        let job = job_from_row(row)?.claimed(claim.session, claim.now);
        drop(rows);
        write_start(&mut start, &job)?;
        if let Some(node) = claim.claimed_by {
            connection.prepare_cached(NOTE_CLAIMANT)?.execute((id.as_uuid(), node.as_uuid()))?;
        }
        claimed.push(job);
    }
    Ok(claimed)
}

/// Reading first and updating then is faster than an update that returns rows, for which SQLite keeps a journal of its
/// own; nobody can come in between, for there is one writer.
const FIND: &str = formatcp!("SELECT {LIVE_COLUMNS}, {QUEUE_PAUSED}, {RUN_GOES_ON} FROM jobs WHERE id = ?1");

const START: &str =
    "UPDATE jobs SET state = ?2, attempt = ?3, session = ?4, started_at = ?5, deadline = ?6 WHERE id = ?1";

const NOTE_CLAIMANT: &str = "UPDATE jobs SET claimed_by = ?2 WHERE id = ?1";

fn write_start(start: &mut CachedStatement<'_>, job: &Job) -> Verb<()> {
    start.execute((
        job.id.as_uuid(),
        job.state().code(),
        job.attempt,
        job.session.map(SessionId::as_uuid),
        job.started_at.map(Timestamp::as_millis),
        job.deadline.map(Timestamp::as_millis),
    ))?;
    Ok(())
}
