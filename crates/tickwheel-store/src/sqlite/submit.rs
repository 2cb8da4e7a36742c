//! Submission: jobs come in, and a key that was seen before brings none. One that depends on others gets an edge to
//! each of them.

use std::collections::HashSet;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use tickwheel_core::ports::{Creation, Idempotency, NewJob, UnknownParent};
use tickwheel_core::{Job, JobId};
use uuid::Uuid;

use super::dependencies::{find_parents, insert_edges};
use super::fault::Verb;
use super::row::{find_job, insert, insert_tags};
use crate::error::corrupt;

type Submitted = Creation<Job, UnknownParent>;

/// See [`tickwheel_core::ports::JobStore::submit_jobs`].
pub(super) fn submit_jobs(connection: &Connection, jobs: Vec<NewJob>) -> Verb<Vec<Submitted>> {
    let mut created = NewJobs::new(connection);
    jobs.into_iter().map(|new| submit_one(&mut created, new)).collect()
}

/// One of them.
pub(super) fn submit_job(connection: &Connection, new: NewJob) -> Verb<Submitted> {
    submit_one(&mut NewJobs::new(connection), new)
}

fn submit_one(created: &mut NewJobs<'_>, new: NewJob) -> Verb<Submitted> {
    let connection = created.connection;
    if let Some(key) = &new.idempotency
        && let Some(seen) = find_key(connection, &new.job, key)?
    {
        return Ok(seen);
    }
    let submitted = created.insert_with_parents(new.job)?;
    if let (Some(key), Some(job)) = (&new.idempotency, submitted.as_new()) {
        insert_key(connection, job, key)?;
    }
    Ok(submitted)
}

/// Writes jobs that nobody has asked for before, as they are.
pub(super) fn insert_jobs<'a>(connection: &Connection, jobs: impl IntoIterator<Item = &'a Job>) -> Verb<()> {
    let mut created = NewJobs::new(connection);
    jobs.into_iter().try_for_each(|job| created.insert(job))
}

/// New jobs on their way into the file, and the queues that have been made known for them.
struct NewJobs<'c> {
    connection: &'c Connection,
    queues: HashSet<Arc<str>>,
}

impl<'c> NewJobs<'c> {
    fn new(connection: &'c Connection) -> Self {
        Self { connection, queues: HashSet::new() }
    }

    /// The job as its parents make it, unless one of them is not there.
    fn insert_with_parents(&mut self, job: Job) -> Verb<Submitted> {
        if job.spec.depends_on.is_empty() {
            self.insert(&job)?;
            return Ok(Creation::created(job));
        }
        let edges = match find_parents(self.connection, &job.spec.depends_on)?.edges_to(&job) {
            Ok(edges) => edges,
            Err(unknown) => return Ok(Creation::Refused(UnknownParent(unknown))),
        };
        let dependent = job.waiting_for(edges.parents);
        self.insert(&dependent)?;
        insert_edges(self.connection, &edges.edges)?;
        Ok(Creation::created(dependent))
    }

    fn insert(&mut self, job: &Job) -> Verb<()> {
        insert(self.connection, job)?;
        insert_tags(self.connection, job.id, &job.tags)?;
        if !self.queues.contains(&*job.queue) {
            make_queue_known(self.connection, &job.queue)?;
            self.queues.insert(job.queue.clone());
        }
        Ok(())
    }
}

/// What the key stands for, if it was seen before.
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
        return Ok(Some(Creation::Conflict(id)));
    }
    let job = find_job(connection, id)?.ok_or_else(|| corrupt("idempotency key without its job", id))?;
    Ok(Some(Creation::existing(job)))
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
