//! The end of an attempt: the job goes to history, or back to waiting.
//!
//! Every write is a compare-and-set on (running, attempt). A batch is one transaction of two round trips: the first
//! ends attempts and reads the tasks that may be waiting for them, under the locks of their runs; the second writes
//! what the core decided about those that wait and about the runs, and commits. Where jobs wait for others at stored
//! edges, a round trip between the two finds them. A job that is named twice is dealt with in rounds, so that the later
//! settlement finds what the earlier one left.

mod batch;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use const_format::{concatcp, formatcp};
use tickwheel_core::ports::{Settled, SettledBatch, StoreResult};
use tickwheel_core::settle::{Next, Settlement};
use tickwheel_core::{JobId, RunId, TargetKind};
use tokio_postgres::Row;
use uuid::Uuid;

use self::batch::{Again, Finish, ReturnToQueue};
use super::PostgresStore;
use super::dependencies::{Children, Lookup, Moved, Propagation, READ_TASKS};
use super::error::{not_done, write_failed};
use super::pipeline::{BEGIN_PLANNED, BoundStatement, OpenTransaction, Step};
use super::row::{column, count};
use super::workflows::counts::{CountRows, LOCK_COUNTS, read_counts};
use super::workflows::reconcile_requests::REQUEST_RECONCILE;
use crate::codes::{RUNNING, SCHEDULED};
use crate::dependency_edges::Ended;
use crate::job_columns::{Selection, Table, arrays, list};
use crate::sql_text::sql;

// `= ANY (ARRAY[…])` and not `=`: with that, the planner can also walk the whole index and look each row up in the
// batch, and does so when it takes the table for empty. A table whose dead rows cannot be removed looks like that, and
// is anything but quick to walk. A job that ran waits for no parents and is no fan-out: the columns that tell of those have their defaults.
// Answers the ids of those that ended, and after them, when all of them have, one that is none if there are edges.
macro_rules! finish {
    (from $from:expr, given $given:expr, set $set:expr, more $more:literal, also $also:literal) => {
        concatcp!(
            "\
WITH ended AS (
    DELETE FROM jobs AS j
    USING ",
            $from,
            "
    WHERE j.id = ANY (ARRAY[s.id]) AND j.attempt = s.attempt AND j.state = ",
            RUNNING,
            "
    RETURNING ",
            sql!(ENDED_JOB.values("j.", $given, $set)),
            $more,
            "
), filed AS (
    INSERT INTO finished_jobs (",
            sql!(ENDED_JOB.names()),
            ")
    SELECT ",
            sql!(ENDED_JOB.names()),
            "
    FROM ended
)",
            $also,
            "
SELECT id FROM ended
UNION ALL
SELECT NULL WHERE pg_relation_size('dependencies') > 0"
        )
    };
}

const ENDED_JOB: Selection =
    Selection::without(Table::Finished, &["open_parents", "failed_parents", "fan_out"]);

/// What is known of the end of every attempt.
const OF_ANY_END: &[&str] = &["id", "attempt", "started_at", "completed_at", "result"];

/// Jobs that completed and of which nobody is told: most. Columns that say nothing and tables that are only opened cost
/// too.
const FINISH_QUIETLY: &str = finish!(
    from concatcp!("unnest(", sql!(arrays(OF_ANY_END)), ")\n       AS s (", sql!(list(OF_ANY_END)), ")"),
    given OF_ANY_END,
    set &[
        ("state", "$6::smallint"),
        ("last_outcome", "$7::smallint"),
        ("error_code", "NULL::text"),
        ("error_message", "NULL::text"),
    ],
    more "",
    also ""
);

/// And what is known of other ends than these.
const OF_AN_END: &[&str] = &[
    "id",
    "attempt",
    "started_at",
    "completed_at",
    "result",
    "state",
    "last_outcome",
    "error_code",
    "error_message",
];

/// Any ends.
const FINISH: &str = finish!(
    from concatcp!(
        "unnest(",
        sql!(arrays(OF_AN_END)),
        ", $10::smallint[], $11::text[])\n       AS s (",
        sql!(list(OF_AN_END)),
        ", reason, callback_url)"
    ),
    given OF_AN_END,
    set &[],
    more ", s.reason, s.callback_url",
    also ", given_up AS (
    INSERT INTO dead_letters (job_id, failed_at, reason, type, queue)
    SELECT id, completed_at, reason, type, queue FROM ended WHERE reason IS NOT NULL
), callbacks_to_send AS (
    INSERT INTO callbacks (subject_id, completed_at, due_at, attempt, state, url, result, error_code, error_message, receiver)
    SELECT id, completed_at, completed_at, attempt, state, callback_url, result, error_code, error_message, r.receiver
    FROM ended JOIN unnest($1::uuid[], $12::text[]) AS r (id, receiver) USING (id) WHERE callback_url IS NOT NULL
)"
);

const AGAIN: &str = formatcp!(
    "\
WITH again AS (
    UPDATE jobs AS j
    SET state = {SCHEDULED}, session = NULL, deadline = NULL, started_at = s.started_at, due_at = s.due_at, retries = s.retries,
        lost = s.lost, burst_started_at = s.burst_started_at, burst_failures = s.burst_failures,
        error_code = s.error_code, error_message = s.error_message
    FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[], $7::text[],
                $8::bigint[], $9::integer[], $10::integer[], $11::bigint[], $12::integer[])
      AS s (id, attempt, started_at, ended_at, outcome, error_code, error_message, due_at, retries, lost,
            burst_started_at, burst_failures)
    WHERE j.id = ANY (ARRAY[s.id]) AND j.attempt = s.attempt AND j.state = {RUNNING} AND NOT j.cancel_requested
    RETURNING s.id, s.attempt, s.outcome, s.started_at, s.ended_at, s.error_code, s.error_message
)
INSERT INTO attempts (job_id, number, outcome, started_at, ended_at, error_code, error_message)
SELECT * FROM again
RETURNING job_id"
);

// The attempt was never sent: the job is as before it.
const RETURN_TO_QUEUE: &str = formatcp!(
    "\
UPDATE jobs AS j
SET state = {SCHEDULED}, session = NULL, deadline = NULL, due_at = s.due_at,
    started_at = (SELECT a.started_at FROM attempts AS a WHERE a.job_id = j.id ORDER BY a.number DESC LIMIT 1)
FROM unnest($1::uuid[], $2::integer[], $3::bigint[]) AS s (id, attempt, due_at)
WHERE j.id = ANY (ARRAY[s.id]) AND j.attempt = s.attempt AND j.state = {RUNNING} AND NOT j.cancel_requested
RETURNING j.id"
);

// A statement of its own after the update: its snapshot is newer, so it sees the request that made the update refuse.
const CANCEL_REQUESTED: &str = formatcp!(
    "\
SELECT j.id
FROM unnest($1::uuid[], $2::integer[]) AS s (id, attempt)
JOIN jobs AS j ON j.id = ANY (ARRAY[s.id]) AND j.attempt = s.attempt
WHERE j.state = {RUNNING} AND j.cancel_requested"
);

const AWAIT_REPORT: &str = formatcp!(
    "\
WITH found AS (
    SELECT id, NOT cancel_requested OR target = $3::smallint AS goes_on
    FROM jobs WHERE id = $1::uuid AND attempt = $2::integer AND state = {RUNNING} FOR UPDATE
), gone_on AS (
    UPDATE jobs AS j SET session = NULL FROM found WHERE j.id = ANY (ARRAY[found.id]) AND found.goes_on
)
SELECT goes_on FROM found"
);

// What workers ran and run no more. A stale end says nothing about the attempt that runs now.
const DELETE_NOTES: &str = formatcp!(
    "\
DELETE FROM worker_attempts AS w
WHERE w.job_id = ANY ($1::uuid[])
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.id = w.job_id AND j.state = {RUNNING})"
);

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[FINISH, FINISH_QUIETLY, AGAIN, RETURN_TO_QUEUE, CANCEL_REQUESTED, AWAIT_REPORT, DELETE_NOTES];

/// Ends attempts, and releases whoever waited for nothing but a job that completed.
pub(super) async fn settle(store: &PostgresStore, settlements: Vec<Settlement>) -> StoreResult<SettledBatch> {
    if settlements.is_empty() {
        return Ok(SettledBatch::default());
    }
    let passes: Vec<Pass<'_>> = passes(&settlements).into_iter().map(Pass::new).collect();
    let runs = runs_of(&settlements);
    let tasks = Moved::ended(settlements.iter().filter_map(Ended::by)).waiting_tasks();
    let mut statements: Vec<BoundStatement<'_>> = Vec::new();
    if !runs.is_empty() {
        statements.push((LOCK_COUNTS, vec![&runs]));
        statements.push((READ_TASKS, vec![&tasks]));
    }
    statements.extend(passes.iter().flat_map(Pass::statements));
    let client = store.client().await?;
    let steps = Step::prepare_all(&client, statements).await?;
    let (transaction, answers) =
        OpenTransaction::begin(client, BEGIN_PLANNED, &steps).await.map_err(not_done)?;
    drop(steps);

    let mut answers = answers.iter();
    let (mut counts, mut children) = (BTreeMap::new(), Children::default());
    if !runs.is_empty() {
        counts = read_counts(answers.next().map_or(&[], Vec::as_slice))?;
        children.add(answers.next().map_or(&[], Vec::as_slice));
    }
    let Settlings { settled, has_edges } = read(&passes, answers, settlements.len())?;
    let applied = settlements.iter().zip(&settled).filter(|(_, settled)| **settled == Settled::Applied);
    let moved = Moved::ended(applied.filter_map(|(settlement, _)| Ended::by(settlement)));
    if has_edges {
        children.extend(find_children(&transaction, &moved).await?);
    }
    let counts = CountRows::of(&moved.ended, &counts);
    let propagation = children.follow(&moved);
    let with_workers = ids_with_workers(&settlements);
    commit(transaction, &counts, &propagation, &with_workers).await?;
    let reconcile_requested =
        !counts.reconcile_requests.is_empty() || !propagation.reconcile_requests.is_empty();
    let released = propagation.released.into_iter().map(|released| released.job).collect();
    Ok(SettledBatch { settled, released, reconcile_requested })
}

/// The runs of all tasks, by id.
fn runs_of(settlements: &[Settlement]) -> Vec<Uuid> {
    let runs: BTreeSet<RunId> = settlements.iter().filter_map(|s| Some(s.position()?.run)).collect();
    runs.into_iter().map(RunId::as_uuid).collect()
}

/// Those who wait at stored edges for what has really ended. A statement after the ends: it sees every edge that was
/// committed while they waited for their locks.
async fn find_children(transaction: &OpenTransaction, moved: &Moved<'_>) -> StoreResult<Children> {
    let lookup = Lookup::by_edges(moved);
    let steps = Step::prepare_all(transaction.client(), lookup.statements()).await?;
    let answers = transaction.run(&steps).await.map_err(not_done)?;
    Ok(lookup.read(&mut answers.iter()))
}

/// The jobs that workers ran.
fn ids_with_workers(settlements: &[Settlement]) -> Vec<Uuid> {
    let is_for_workers = |settlement: &&Settlement| settlement.spec.is_for_workers();
    settlements.iter().filter(is_for_workers).map(|settlement| settlement.job_id.as_uuid()).collect()
}

/// Writes what the ends mean to others, and commits all of it.
async fn commit(
    transaction: OpenTransaction,
    counts: &CountRows,
    propagation: &Propagation,
    with_workers: &Vec<Uuid>,
) -> StoreResult<()> {
    let mut reconcile_requests: Vec<Uuid> =
        counts.reconcile_requests.iter().chain(&propagation.reconcile_requests).copied().collect();
    reconcile_requests.sort_unstable();
    let mut statements: Vec<BoundStatement<'_>> = Vec::new();
    statements.extend(propagation.statement());
    statements.extend(counts.statement());
    if !reconcile_requests.is_empty() {
        statements.push((REQUEST_RECONCILE, vec![&reconcile_requests]));
    }
    if !with_workers.is_empty() {
        statements.push((DELETE_NOTES, vec![with_workers]));
    }
    let steps = Step::prepare_all(transaction.client(), statements).await?;
    transaction.commit(&steps).await.map_err(write_failed)?;
    Ok(())
}

/// What became of settlements.
struct Settlings {
    settled: Vec<Settled>,
    /// Some jobs may wait for others at stored edges.
    has_edges: bool,
}

fn read<'r>(
    passes: &[Pass<'_>],
    mut answers: impl Iterator<Item = &'r Vec<Row>>,
    len: usize,
) -> StoreResult<Settlings> {
    let mut settlings = Settlings { settled: vec![Settled::Stale; len], has_edges: false };
    for pass in passes {
        pass.read(&mut answers, &mut settlings)?;
    }
    Ok(settlings)
}

/// The attempt goes on without a session.
pub(super) async fn await_report(store: &PostgresStore, job_id: JobId, attempt: u32) -> StoreResult<Settled> {
    let workflow = TargetKind::Workflow.code();
    let found = store.write_returning(AWAIT_REPORT, &[&job_id.as_uuid(), &count(attempt), &workflow]).await?;
    let goes_on = found.first().map(|row| column::<bool>(row, 0)).transpose()?;
    Ok(match goes_on {
        Some(true) => Settled::Applied,
        Some(false) => Settled::CancelRequested,
        None => Settled::Stale,
    })
}

/// A settlement and its index in the batch.
type Indexed<'a> = (usize, &'a Settlement);

/// Settlements that can be written together: no job twice.
struct Pass<'a> {
    members: Vec<Indexed<'a>>,
    finish: Finish<'a>,
    again: Again<'a>,
    return_to_queue: ReturnToQueue,
}

fn passes(settlements: &[Settlement]) -> Vec<Vec<Indexed<'_>>> {
    let mut passes: Vec<Vec<Indexed<'_>>> = Vec::new();
    let mut left: Vec<Indexed<'_>> = settlements.iter().enumerate().collect();
    while !left.is_empty() {
        let mut seen = HashSet::with_capacity(left.len());
        let (pass, later) = left.into_iter().partition(|(_, settlement)| seen.insert(settlement.job_id));
        passes.push(pass);
        left = later;
    }
    passes
}

impl<'a> Pass<'a> {
    fn new(mut members: Vec<Indexed<'a>>) -> Self {
        // Rows are locked in the order of their ids, by everybody.
        members.sort_unstable_by_key(|(_, settlement)| settlement.job_id);
        let (mut finish, mut again, mut return_to_queue) =
            (Finish::default(), Again::default(), ReturnToQueue::default());
        for (_, settlement) in &members {
            match &settlement.next {
                Next::Again { due_at, retries, lost, burst } => {
                    again.push(settlement, *due_at, *retries, *lost, *burst);
                }
                Next::ReturnToQueue { due_at } => return_to_queue.push(settlement, *due_at),
                Next::Complete { .. } | Next::Fail { .. } | Next::Cancel => finish.push(settlement),
            }
        }
        Self { members, finish, again, return_to_queue }
    }

    fn statements(&self) -> Vec<BoundStatement<'_>> {
        let mut statements = Vec::new();
        if !self.finish.is_empty() {
            statements.push((self.finish.statement(), self.finish.params()));
        }
        if !self.again.is_empty() {
            statements.push((AGAIN, self.again.params()));
            statements.push((CANCEL_REQUESTED, self.again.params_to_identify()));
        }
        if !self.return_to_queue.is_empty() {
            statements.push((RETURN_TO_QUEUE, self.return_to_queue.params()));
            statements.push((CANCEL_REQUESTED, self.return_to_queue.params_to_identify()));
        }
        statements
    }

    fn read<'r>(
        &self,
        answers: &mut impl Iterator<Item = &'r Vec<Row>>,
        settlings: &mut Settlings,
    ) -> StoreResult<()> {
        let mut ids = |asked: bool| -> StoreResult<HashSet<Uuid>> {
            let mut found = HashSet::new();
            for row in asked.then(|| answers.next()).flatten().into_iter().flatten() {
                match column::<Option<Uuid>>(row, 0)? {
                    Some(id) => drop(found.insert(id)),
                    None => settlings.has_edges = true,
                }
            }
            Ok(found)
        };
        let mut applied = ids(!self.finish.is_empty())?;
        let mut cancel_requested = HashSet::new();
        for waits_again in [!self.again.is_empty(), !self.return_to_queue.is_empty()] {
            applied.extend(ids(waits_again)?);
            cancel_requested.extend(ids(waits_again)?);
        }
        for (position, settlement) in &self.members {
            let id = settlement.job_id.as_uuid();
            if applied.contains(&id) {
                settlings.settled[*position] = Settled::Applied;
            } else if cancel_requested.contains(&id) {
                settlings.settled[*position] = Settled::CancelRequested;
            }
        }
        Ok(())
    }
}
