//! From waiting to running: which jobs become due, and taking them.

use rusqlite::{CachedStatement, Connection, OptionalExtension, named_params};
use tickwheel_core::ports::{Claim, DueJob, Group, LoadDue};
use tickwheel_core::{Job, JobId, ScheduleId, State, Timestamp};
use uuid::Uuid;

use super::controls::is_halted;
use super::fault::Verb;
use super::row::{job_from_row, live_columns};
use super::sessions::is_open;
use crate::columns::{decode_partition, decode_release};

/// Whether a job belongs to no run that is paused (4): the nearest paused run before it is not its own. The jobs of a
/// run have all but the last five digits of its id.
macro_rules! run_goes_on {
    () => {
        "(release = 0 OR coalesce(
             (SELECT substr(hex(r.id), 1, 27) FROM workflow_runs AS r INDEXED BY workflow_runs_paused
              WHERE r.status = 4 AND r.id <= jobs.id ORDER BY r.id DESC LIMIT 1) <> substr(hex(jobs.id), 1, 27), 1))"
    };
}

/// See [`tickwheel_core::ports::Store::load_due`].
pub(super) fn load_due(connection: &Connection, load: &LoadDue) -> Verb<Vec<DueJob>> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT id, partition, due_at, tenant, queue, release, schedule_id FROM jobs INDEXED BY jobs_due
         WHERE priority = :priority AND (due_at, id) > (:after_due_at, :after_id) AND due_at <= :until
           AND due_at < 9223372036854775807
           AND state = :scheduled AND (:kinds >> target) & 1 AND (:partitions >> partition) & 1
           AND NOT EXISTS (SELECT 1 FROM queues WHERE name = jobs.queue AND paused)
           AND ",
        run_goes_on!(),
        " ORDER BY due_at, id LIMIT :limit",
    ))?;
    let kinds = load.kinds.iter().fold(0_i64, |bits, kind| bits | 1 << kind.code());
    let mut rows = statement.query(named_params! {
        ":priority": load.priority.code(),
        ":after_due_at": load.after.due_at.as_millis(),
        ":after_id": load.after.id.as_uuid(),
        ":until": load.until.as_millis(),
        ":scheduled": State::Scheduled.code(),
        ":kinds": kinds,
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
            group: Group::of(id, decode_release(row.get(5)?)?, schedule),
        });
    }
    Ok(due)
}

/// See [`tickwheel_core::ports::Store::claim`].
pub(super) fn claim(connection: &Connection, claim: &Claim) -> Verb<Vec<Job>> {
    if is_halted(connection)? || !is_open(connection, claim.session)? {
        return Ok(Vec::new());
    }
    let mut find = connection.prepare_cached(FIND_STARTABLE)?;
    let mut start = connection.prepare_cached(START)?;
    let mut claimed = Vec::with_capacity(claim.jobs.len());
    for id in &claim.jobs {
        let found = find
            .query_row((id.as_uuid(), State::Scheduled.code(), claim.now.as_millis()), |row| {
                Ok(job_from_row(row))
            })
            .optional()?;
        let Some(job) = found.transpose()? else { continue };
        claimed.push(start_attempt(&mut start, job, claim)?);
    }
    Ok(claimed)
}

/// Reading first and updating then is faster than an update that returns rows, for which SQLite keeps a journal of its own;
/// nobody can come in between, for there is one writer.
const FIND_STARTABLE: &str = concat!(
    "SELECT ",
    live_columns!(),
    " FROM jobs WHERE id = ?1 AND state = ?2 AND due_at <= ?3
        AND NOT EXISTS (SELECT 1 FROM queues WHERE name = jobs.queue AND paused)
        AND ",
    run_goes_on!()
);

const START: &str =
    "UPDATE jobs SET state = ?2, attempt = ?3, session = ?4, started_at = ?5, deadline = ?6 WHERE id = ?1";

fn start_attempt(start: &mut CachedStatement<'_>, mut job: Job, claim: &Claim) -> Verb<Job> {
    job.deadline = Some(claim.now + job.spec.timeout());
    job.state = State::Running;
    job.attempt += 1;
    job.session = Some(claim.session);
    job.started_at = Some(claim.now);
    start.execute((
        job.id.as_uuid(),
        job.state.code(),
        job.attempt,
        claim.session.as_uuid(),
        claim.now.as_millis(),
        job.deadline.map(Timestamp::as_millis),
    ))?;
    Ok(job)
}
