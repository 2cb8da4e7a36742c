//! Submission: all that is new of a batch, or nothing.
//!
//! The common batch (no idempotency keys, no tags, no parents, queues that were seen before) is one statement in one
//! round trip. Tags and new queues make it a pipelined transaction; parents have to be locked and keys to be read
//! first.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use deadpool_postgres::{Client, ClientWrapper, Transaction};
use tickwheel_core::Job;
use tickwheel_core::JobId;
use tickwheel_core::matching::Route;
use tickwheel_core::ports::{Creation, Idempotency, NewJob, StoreResult, UnknownParent};
use tickwheel_core::workflow::FanOut;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::dependencies::{EdgeRows, ParentLookup, resolve_parents};
use super::error::{not_done, write_failed};
use super::jobs::GET_JOBS;
use super::pipeline::{BEGIN, BoundStatement, Param, Step, run, transact};
use super::row::{column, count, read_jobs};
use super::workers::{RouteRows, write_routes};
use crate::columns::{encode_spec, encode_tags, encode_timeout};
use crate::error::corrupt;
use crate::job_columns::{Selection, Table};

/// Inserts the jobs `n`; a join may follow that leaves some out. An id that is in history already becomes NULL here,
/// which the table refuses: nothing that ended is run again because somebody repeats its submission.
macro_rules! insert_jobs {
    ($columns:expr) => {
        const_format::concatcp!(
            "INSERT INTO jobs (",
            $crate::sql_text::sql!($columns.names()),
            ")\nSELECT ",
            $crate::sql_text::sql!($columns.values(
                "n.",
                &[],
                &[("id", "CASE WHEN ended.id IS NULL THEN n.id END")]
            )),
            "\nFROM unnest(",
            $crate::sql_text::sql!($columns.arrays()),
            ")\n  AS n (",
            $crate::sql_text::sql!($columns.names()),
            ")\nLEFT JOIN finished_jobs AS ended ON ended.id = n.id"
        )
    };
}

pub(super) use insert_jobs;

/// What a new job has where some wait for others or for a worker, or are tasks of a workflow. It has had no attempt: the columns that
/// tell of attempts have defaults.
const NEW_WAITING_JOB: Selection = Selection::without(
    Table::Live,
    &[
        "attempt",
        "retries",
        "lost",
        "burst_started_at",
        "burst_failures",
        "session",
        "started_at",
        "deadline",
        "cancel_requested",
        "error_code",
        "error_message",
    ],
);

/// The same where nobody waits.
const NEW_JOB: Selection =
    NEW_WAITING_JOB.and_without(&["open_parents", "failed_parents", "release", "fan_out", "route"]);

/// The same where nobody waits for anything but a worker.
pub(super) const NEW_JOB_OF_SCHEDULE: Selection =
    NEW_WAITING_JOB.and_without(&["open_parents", "failed_parents", "release", "fan_out"]);

const INSERT_JOBS: &str = insert_jobs!(NEW_JOB);

const INSERT_WAITING: &str = insert_jobs!(NEW_WAITING_JOB);

const INSERT_QUEUES: &str = "\
INSERT INTO queues (name) SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING";

pub(super) const INSERT_TAGS: &str = "\
INSERT INTO job_tags (tag, job_id) SELECT * FROM unnest($1::text[], $2::uuid[]) ON CONFLICT DO NOTHING";

// A key that somebody else is writing right now is waited for.
const INSERT_KEYS: &str = "\
INSERT INTO idempotency_keys (tenant, key, fingerprint, job_id, created_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::uuid[], $5::bigint[])
ON CONFLICT DO NOTHING
RETURNING job_id";

const GET_KEYS: &str = "\
SELECT k.tenant, k.key, k.fingerprint, k.job_id
FROM unnest($1::text[], $2::text[]) AS s (tenant, key)
JOIN idempotency_keys AS k ON k.tenant = s.tenant AND k.key = s.key";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[INSERT_JOBS, INSERT_WAITING, INSERT_QUEUES, INSERT_TAGS, INSERT_KEYS, GET_KEYS];

type Submitted = Creation<Job, UnknownParent>;

/// Stores jobs.
pub(super) async fn submit_jobs(store: &PostgresStore, mut jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    write_routes(store, jobs.iter().map(|new| &new.job)).await?;
    let client = store.client().await?;
    if jobs.iter().any(|new| new.idempotency.is_some() || !new.job.spec.depends_on.is_empty()) {
        return submit_step_by_step(store, client, &mut jobs).await;
    }
    let rows = Rows::of(jobs.iter().map(|new| &new.job), store);
    let steps = rows.steps(&client).await?;
    match steps.as_slice() {
        [only] => drop(client.query(&only.statement, &only.params).await.map_err(write_failed)?),
        several => drop(transact(&client, BEGIN, several).await.map_err(write_failed)?),
    }
    store.remember_queues(&rows.new_queues);
    drop(steps);
    drop(rows);
    Ok(jobs.into_iter().map(|new| Creation::created(new.job)).collect())
}

async fn submit_step_by_step(
    store: &PostgresStore,
    mut client: Client,
    jobs: &mut [NewJob],
) -> StoreResult<Vec<Submitted>> {
    let transaction = client.transaction().await.map_err(not_done)?;
    let submission = Submission::write(store, &transaction, jobs).await?;
    transaction.commit().await.map_err(write_failed)?;
    store.remember_queues(&submission.new_queues);
    Ok(submission.answers)
}

/// What a transaction that is still to be committed has stored.
pub(super) struct Submission<'a> {
    /// What became of each job.
    pub answers: Vec<Submitted>,
    /// Queues to be remembered once it is committed.
    pub new_queues: Vec<&'a str>,
}

impl<'a> Submission<'a> {
    /// Writes the jobs whose keys were not seen before and whose parents are there, as their parents make them.
    pub async fn write(
        store: &PostgresStore,
        transaction: &Transaction<'_>,
        jobs: &'a mut [NewJob],
    ) -> StoreResult<Self> {
        let lookups = resolve_parents(transaction, jobs).await?;
        let jobs: &'a [NewJob] = jobs;
        let sound = jobs.iter().zip(&lookups).filter(|(_, lookup)| lookup.is_sound());
        let fresh = Keyed::of(sound.clone().map(|(new, _)| new)).insert(transaction).await?;
        let stored = sound.filter(|(new, _)| new.idempotency.is_none() || fresh.contains(&new.job.id));
        let stored: Vec<(&NewJob, &ParentLookup)> = stored.collect();

        let rows = Rows::of(stored.iter().map(|(new, _)| &new.job), store);
        for (sql, params) in rows.statements() {
            run(transaction, sql, &params).await?;
        }
        let edges = EdgeRows::of(stored.iter().flat_map(|(_, lookup)| lookup.edges()).copied());
        if let Some((sql, params)) = edges.statement() {
            run(transaction, sql, &params).await?;
        }

        let keyed = Keyed::of(jobs);
        let all_fresh = fresh.len() == keyed.ids.len();
        let seen = if all_fresh { SeenKeys::default() } else { read_seen(transaction, &keyed).await? };
        let answer = |(position, lookup)| answer(jobs, position, lookup, &fresh, &seen);
        let answers = lookups.iter().enumerate().map(answer).collect::<StoreResult<_>>()?;
        Ok(Self { answers, new_queues: rows.new_queues })
    }
}

/// What became of the job at this index of the batch. `fresh` are the jobs whose keys were not seen before.
fn answer(
    jobs: &[NewJob],
    position: usize,
    lookup: &ParentLookup,
    fresh: &HashSet<JobId>,
    seen: &SeenKeys,
) -> StoreResult<Submitted> {
    let new = &jobs[position];
    match (lookup, &new.idempotency) {
        (ParentLookup::Unknown(parent), idempotency) => {
            // A key that came later in the batch had not been seen when it was this one's turn.
            let is_later =
                |id| fresh.contains(&id) && jobs[position..].iter().any(|later| later.job.id == id);
            let key = idempotency.as_ref().filter(|idempotency| {
                seen.get(&key_of(new, idempotency)).is_some_and(|key| !is_later(key.job_id))
            });
            key.map_or(Ok(Creation::Refused(UnknownParent(*parent))), |idempotency| {
                answer_seen(seen, new, idempotency)
            })
        }
        (_, Some(idempotency)) if !fresh.contains(&new.job.id) => answer_seen(seen, new, idempotency),
        (ParentLookup::Alone | ParentLookup::To(_), _) => Ok(Creation::created(new.job.clone())),
    }
}

/// What a key stands for: the digest of its request, its job's id, and the job.
struct Seen {
    fingerprint: Vec<u8>,
    job_id: JobId,
    job: Option<Job>,
}

/// By tenant and key.
type SeenKeys = HashMap<(String, String), Seen>;

fn key_of(new: &NewJob, idempotency: &Idempotency) -> (String, String) {
    (new.job.tenant.to_string(), idempotency.key.clone())
}

async fn read_seen(transaction: &Transaction<'_>, keyed: &Keyed<'_>) -> StoreResult<SeenKeys> {
    let keys = run(transaction, GET_KEYS, &[&keyed.tenants, &keyed.keys]).await?;
    let mut seen: SeenKeys = keys.iter().map(read_seen_key).collect::<StoreResult<_>>()?;
    let ids: Vec<Uuid> = seen.values().map(|key| key.job_id.as_uuid()).collect();
    let jobs = read_jobs(&run(transaction, GET_JOBS, &[&ids]).await?)?;
    let mut by_id: HashMap<JobId, Job> = jobs.into_iter().map(|job| (job.id, job)).collect();
    for key in seen.values_mut() {
        key.job = by_id.remove(&key.job_id);
    }
    Ok(seen)
}

fn read_seen_key(row: &Row) -> StoreResult<((String, String), Seen)> {
    let seen = Seen { fingerprint: column(row, 2)?, job_id: JobId::from_uuid(column(row, 3)?), job: None };
    Ok(((column(row, 0)?, column(row, 1)?), seen))
}

fn answer_seen(seen: &SeenKeys, new: &NewJob, idempotency: &Idempotency) -> StoreResult<Submitted> {
    let key = seen
        .get(&key_of(new, idempotency))
        .ok_or_else(|| corrupt("idempotency key", "it conflicts and does not exist"))?;
    if key.fingerprint != idempotency.fingerprint {
        return Ok(Creation::Conflict(key.job_id));
    }
    let job = key.job.clone().ok_or_else(|| corrupt("job of an idempotency key", key.job_id))?;
    Ok(Creation::existing(job))
}

/// The keys of a batch as columns.
#[derive(Default)]
struct Keyed<'a> {
    tenants: Vec<&'a str>,
    keys: Vec<&'a str>,
    fingerprints: Vec<&'a [u8]>,
    ids: Vec<Uuid>,
    created_at: Vec<i64>,
}

impl<'a> Keyed<'a> {
    fn of(jobs: impl IntoIterator<Item = &'a NewJob>) -> Self {
        let keyed = jobs.into_iter().filter_map(|new| Some((&new.job, new.idempotency.as_ref()?)));
        let mut keyed: Vec<(&Job, &Idempotency)> = keyed.collect();
        // The same order for everybody, so that two batches cannot wait for each other; stable, so that the first of a
        // batch wins.
        keyed.sort_by_key(|(job, key)| (&*job.tenant, &*key.key));
        let mut columns = Self::default();
        for (job, key) in keyed {
            columns.tenants.push(&job.tenant);
            columns.keys.push(&key.key);
            columns.fingerprints.push(&key.fingerprint);
            columns.ids.push(job.id.as_uuid());
            columns.created_at.push(job.created_at.as_millis());
        }
        columns
    }

    /// Writes those that were not seen before; answers their jobs.
    async fn insert(&self, transaction: &Transaction<'_>) -> StoreResult<HashSet<JobId>> {
        if self.ids.is_empty() {
            return Ok(HashSet::new());
        }
        let params: [Param<'_>; 5] =
            [&self.tenants, &self.keys, &self.fingerprints, &self.ids, &self.created_at];
        let fresh = run(transaction, INSERT_KEYS, &params).await?;
        fresh.iter().map(|row| column(row, 0).map(JobId::from_uuid)).collect()
    }
}

/// New jobs as columns, with their tags and the queues nobody has seen yet.
#[derive(Default)]
pub(super) struct Rows<'a> {
    ids: Vec<Uuid>,
    execute_at: Vec<i64>,
    due_at: Vec<i64>,
    created_at: Vec<i64>,
    timeouts: Vec<i64>,
    partitions: Vec<i16>,
    priorities: Vec<i16>,
    states: Vec<i16>,
    targets: Vec<i16>,
    tenants: Vec<&'a str>,
    types: Vec<&'a str>,
    queues: Vec<&'a str>,
    specs: Vec<String>,
    payloads: Vec<&'a str>,
    fan_outs: Vec<Option<String>>,
    tags: Vec<String>,
    schedule_ids: Vec<Option<Uuid>>,
    open_parents: Vec<i32>,
    failed_parents: Vec<i32>,
    releases: Vec<i16>,
    routes: Vec<Option<Uuid>>,
    /// Some of them wait for others or for a worker, or are tasks of a workflow.
    some_wait: bool,
    tag_names: Vec<&'a str>,
    tag_ids: Vec<Uuid>,
    /// The routes of those for workers.
    held_routes: RouteRows,
    /// Queues without a row.
    pub new_queues: Vec<&'a str>,
}

impl<'a> Rows<'a> {
    pub fn of(jobs: impl Iterator<Item = &'a Job>, store: &PostgresStore) -> Self {
        let mut rows = Self::default();
        let mut routes = BTreeMap::new();
        for job in jobs {
            let route = Route::of(job);
            rows.push(job, route.as_ref().map(|route| route.id.as_uuid()));
            routes.extend(route.map(|route| (route.id, route)));
        }
        rows.held_routes = RouteRows::of(routes.into_values());
        let names: BTreeSet<&str> = rows.queues.iter().copied().collect();
        rows.new_queues = store.unknown_queues(names);
        rows
    }

    fn push(&mut self, job: &'a Job, route: Option<Uuid>) {
        let id = job.id.as_uuid();
        self.ids.push(id);
        self.execute_at.push(job.execute_at.as_millis());
        self.due_at.push(job.due_at.as_millis());
        self.created_at.push(job.created_at.as_millis());
        self.timeouts.push(encode_timeout(&job.spec));
        self.partitions.push(job.partition.0.cast_signed());
        self.priorities.push(job.priority.code());
        self.states.push(job.state().code());
        self.targets.push(job.spec.target.kind().code());
        self.tenants.push(&job.tenant);
        self.types.push(&job.job_type);
        self.queues.push(&job.queue);
        self.specs.push(encode_spec(&job.spec));
        self.payloads.push(job.payload.as_str());
        self.fan_outs.push(job.fan_out.map(FanOut::to_text));
        self.tags.push(encode_tags(&job.tags));
        self.schedule_ids.push(job.schedule_id.map(|schedule| schedule.as_uuid()));
        self.open_parents.push(count(job.parents.open));
        self.failed_parents.push(count(job.parents.failed));
        self.releases.push(job.release().code());
        self.some_wait |= !job.parents.are_done() || job.spec.position.is_some() || route.is_some();
        self.routes.push(route);
        for tag in &job.tags {
            self.tag_names.push(tag);
            self.tag_ids.push(id);
        }
    }

    /// What it takes to store them.
    pub fn statements(&self) -> Vec<(&'static str, Vec<Param<'_>>)> {
        let mut statements = match self.some_wait {
            true => vec![(INSERT_WAITING, self.params(NEW_WAITING_JOB))],
            false => vec![(INSERT_JOBS, self.params(NEW_JOB))],
        };
        if let Some(tags) = self.tag_params() {
            statements.push((INSERT_TAGS, tags));
        }
        if !self.new_queues.is_empty() {
            statements.push((INSERT_QUEUES, vec![&self.new_queues]));
        }
        statements.extend(self.hold_routes());
        statements
    }

    /// Keeps the routes of the jobs until they are stored.
    pub fn hold_routes(&self) -> Option<BoundStatement<'_>> {
        self.held_routes.hold()
    }

    async fn steps(&self, client: &ClientWrapper) -> StoreResult<Vec<Step<'_>>> {
        let mut steps = Vec::new();
        for (sql, params) in self.statements() {
            steps.push(Step::prepare(client, sql, params).await?);
        }
        Ok(steps)
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn ids(&self) -> Param<'_> {
        &self.ids
    }

    /// The tags and whose they are, if there are any.
    pub fn tag_params(&self) -> Option<Vec<Param<'_>>> {
        (!self.tag_names.is_empty()).then(|| -> Vec<Param<'_>> { vec![&self.tag_names, &self.tag_ids] })
    }

    /// The parameters of [`insert_jobs`] for these columns.
    pub fn params(&self, columns: Selection) -> Vec<Param<'_>> {
        columns.columns().map(|column| self.param(column.name)).collect()
    }

    fn param(&self, column: &str) -> Param<'_> {
        match column {
            "id" => &self.ids,
            "execute_at" => &self.execute_at,
            "due_at" => &self.due_at,
            "created_at" => &self.created_at,
            "timeout_ms" => &self.timeouts,
            "partition" => &self.partitions,
            "priority" => &self.priorities,
            "state" => &self.states,
            "target" => &self.targets,
            "tenant" => &self.tenants,
            "type" => &self.types,
            "queue" => &self.queues,
            "spec" => &self.specs,
            "payload" => &self.payloads,
            "fan_out" => &self.fan_outs,
            "tags" => &self.tags,
            "schedule_id" => &self.schedule_ids,
            "open_parents" => &self.open_parents,
            "failed_parents" => &self.failed_parents,
            "release" => &self.releases,
            "route" => &self.routes,
            _ => unreachable!("a new job has no {column}"),
        }
    }
}
