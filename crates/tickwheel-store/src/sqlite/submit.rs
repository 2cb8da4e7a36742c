//! Submission: jobs come in, and a key that was seen before brings none.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension};
use tickwheel_core::ports::{Idempotency, NewJob, Submitted};
use tickwheel_core::{Job, JobId};
use uuid::Uuid;

use super::fault::Verb;
use super::row::{find_job, insert_live, insert_tags};
use crate::error::corrupt;

/// See [`tickwheel_core::ports::Store::submit_jobs`].
pub(super) fn submit_jobs(connection: &Connection, jobs: &[NewJob]) -> Verb<Vec<Submitted>> {
    let mut queues = HashSet::new();
    let mut answers = Vec::with_capacity(jobs.len());
    for new in jobs {
        let answer = submit(connection, new)?;
        if answer == Submitted::Created && queues.insert(&*new.job.queue) {
            make_queue_known(connection, &new.job.queue)?;
        }
        answers.push(answer);
    }
    Ok(answers)
}

fn submit(connection: &Connection, new: &NewJob) -> Verb<Submitted> {
    if let Some(idempotency) = &new.idempotency {
        if let Some(seen) = find_key(connection, &new.job, idempotency)? {
            return Ok(seen);
        }
        insert_key(connection, &new.job, idempotency)?;
    }
    insert_live(connection, &new.job)?;
    insert_tags(connection, new.job.id, &new.job.tags)?;
    Ok(Submitted::Created)
}

fn find_key(connection: &Connection, job: &Job, wanted: &Idempotency) -> Verb<Option<Submitted>> {
    let seen = connection
        .prepare_cached("SELECT fingerprint, job_id FROM idempotency_keys WHERE tenant = ?1 AND key = ?2")?
        .query_row((&*job.tenant, &wanted.key), |row| {
            Ok((row.get_ref(0)?.as_blob()? == wanted.fingerprint, row.get::<_, Uuid>(1)?))
        })
        .optional()?;
    let Some((same, id)) = seen else { return Ok(None) };
    let id = JobId::from_uuid(id);
    if !same {
        return Ok(Some(Submitted::Conflict(id)));
    }
    let job = find_job(connection, id)?.ok_or_else(|| corrupt("idempotency key without its job", id))?;
    Ok(Some(Submitted::Existing(Box::new(job))))
}

fn insert_key(connection: &Connection, job: &Job, idempotency: &Idempotency) -> Verb<()> {
    connection
        .prepare_cached(
            "INSERT INTO idempotency_keys (tenant, key, fingerprint, job_id, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((
            &*job.tenant,
            &idempotency.key,
            idempotency.fingerprint,
            job.id.as_uuid(),
            job.created_at.as_millis(),
        ))?;
    Ok(())
}

/// A name that is known already costs a lookup in a small table, no write.
fn make_queue_known(connection: &Connection, queue: &str) -> Verb<()> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO queues (name, paused) VALUES (?1, 0)")?
        .execute([queue])?;
    Ok(())
}
