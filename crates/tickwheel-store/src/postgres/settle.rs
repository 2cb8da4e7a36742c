//! The end of an attempt: the job goes to history, or back to waiting.
//!
//! Every write is a compare-and-set on (running, attempt). A batch is one pipelined transaction: the ends and the retries first, then,
//! in a statement of its own that sees what was committed while the first ones waited, the children of what has ended. If there are tasks of
//! workflows among them, their runs are locked before all that, and in a second round trip those hear of it that wait for what has really
//! ended, and the runs. A job that is named twice is dealt with in rounds, so that the later one finds what the
//! earlier one left, and its children in a second round trip too.

mod batch;

use std::collections::{BTreeSet, HashSet};

use tickwheel_core::ports::{Settled, SettledBatch, StoreResult};
use tickwheel_core::settle::{Next, Settlement};
use tickwheel_core::{JobId, RunId, TargetKind};
use tokio_postgres::Row;
use uuid::Uuid;

use self::batch::{Again, Finish, GiveBack};
use super::PostgresStore;
use super::dependencies::{EndRows, RELEASE, RELEASE_AND_ASK, TallyRows, Told, read_told};
use super::error::{not_done, write_failed};
use super::pipeline::{BEGIN_PLANNED, Halfway, Step, transact};
use super::row::{column, count};
use super::workflows::locks::HOLD_RUNS;
use crate::links::Ended;

// `= ANY (ARRAY[…])` and not `=`: with that, the planner can also walk the whole index and look each row up in the batch, and does so
// when it takes the table for empty. A table whose dead rows cannot be removed looks like that, and is anything but quick to walk.
// A job that ran waits for no parents: the columns that count them have their defaults.
// Answers the ids of those that ended, and after them, when all of them have, one that is none if there are edges.
macro_rules! finish {
    (from $from:literal, end $end:literal, also $also:literal) => {
        concat!(
            "\
WITH ended AS (
    DELETE FROM jobs AS j
    USING ",
            $from,
            "
    WHERE j.id = ANY (ARRAY[s.id]) AND j.attempt = s.attempt AND j.state = 3
    RETURNING j.id, j.execute_at, j.due_at, j.created_at, j.timeout_ms, s.ended_at, j.attempt, j.retries, j.lost,
              j.partition, j.priority, j.target, j.tenant, j.type, j.queue, j.spec, j.payload, j.tags,
              s.started_at, s.result, j.schedule_id, ",
            $end,
            "
), filed AS (
    INSERT INTO finished_jobs (id, execute_at, due_at, created_at, timeout_ms, completed_at, attempt, retries, lost,
                               partition, priority, state, target, last_outcome, tenant, type, queue, spec, payload, tags,
                               started_at, result, error_code, error_message, schedule_id)
    SELECT id, execute_at, due_at, created_at, timeout_ms, ended_at, attempt, retries, lost,
           partition, priority, state, target, outcome, tenant, type, queue, spec, payload, tags,
           started_at, result, error_code, error_message, schedule_id
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

/// Jobs that completed and of which nobody is told: most. Columns that say nothing and tables that are only opened cost too.
const FINISH_QUIETLY: &str = finish!(
    from "unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5::text[])
       AS s (id, attempt, started_at, ended_at, result)",
    end "$6::smallint AS state, $7::smallint AS outcome, NULL::text AS error_code, NULL::text AS error_message",
    also ""
);

/// Any ends.
const FINISH: &str = finish!(
    from "unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5::text[], $6::smallint[], $7::smallint[],
                 $8::text[], $9::text[], $10::smallint[], $11::text[])
       AS s (id, attempt, started_at, ended_at, result, state, outcome, error_code, error_message, reason, callback_url)",
    end "s.state, s.outcome, s.error_code, s.error_message, s.reason, s.callback_url",
    also ", given_up AS (
    INSERT INTO dead_letters (job_id, failed_at, reason, type, queue)
    SELECT id, ended_at, reason, type, queue FROM ended WHERE reason IS NOT NULL
), to_tell AS (
    INSERT INTO callbacks (job_id, completed_at, due_at, attempt, state, url, result, error_code, error_message, receiver)
    SELECT id, ended_at, ended_at, attempt, state, callback_url, result, error_code, error_message, r.receiver
    FROM ended JOIN unnest($1::uuid[], $12::text[]) AS r (id, receiver) USING (id) WHERE callback_url IS NOT NULL
)"
);

const AGAIN: &str = "\
WITH again AS (
    UPDATE jobs AS j
    SET state = 1, session = NULL, deadline = NULL, started_at = s.started_at, due_at = s.due_at, retries = s.retries,
        lost = s.lost, burst_started_at = s.burst_started_at, burst_failures = s.burst_failures,
        error_code = s.error_code, error_message = s.error_message
    FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5::smallint[], $6::text[], $7::text[],
                $8::bigint[], $9::integer[], $10::integer[], $11::bigint[], $12::integer[])
      AS s (id, attempt, started_at, ended_at, outcome, error_code, error_message, due_at, retries, lost,
            burst_started_at, burst_failures)
    WHERE j.id = ANY (ARRAY[s.id]) AND j.attempt = s.attempt AND j.state = 3 AND NOT j.cancel_requested
    RETURNING s.id, s.attempt, s.outcome, s.started_at, s.ended_at, s.error_code, s.error_message
)
INSERT INTO attempts (job_id, number, outcome, started_at, ended_at, error_code, error_message)
SELECT * FROM again
RETURNING job_id";

// The attempt was never sent: the job is as before it.
const GIVE_BACK: &str = "\
UPDATE jobs AS j
SET state = 1, session = NULL, deadline = NULL, due_at = s.due_at,
    started_at = (SELECT a.started_at FROM attempts AS a WHERE a.job_id = j.id ORDER BY a.number DESC LIMIT 1)
FROM unnest($1::uuid[], $2::integer[], $3::bigint[]) AS s (id, attempt, due_at)
WHERE j.id = ANY (ARRAY[s.id]) AND j.attempt = s.attempt AND j.state = 3 AND NOT j.cancel_requested
RETURNING j.id";

// A statement of its own after the update: its snapshot is newer, so it sees the request that made the update refuse.
const CANCEL_REQUESTED: &str = "\
SELECT j.id
FROM unnest($1::uuid[], $2::integer[]) AS s (id, attempt)
JOIN jobs AS j ON j.id = ANY (ARRAY[s.id]) AND j.attempt = s.attempt
WHERE j.state = 3 AND j.cancel_requested";

const AWAIT_REPORT: &str = "\
WITH found AS (
    SELECT id, NOT cancel_requested OR target = $3::smallint AS goes_on
    FROM jobs WHERE id = $1::uuid AND attempt = $2::integer AND state = 3 FOR UPDATE
), gone_on AS (
    UPDATE jobs AS j SET session = NULL FROM found WHERE j.id = ANY (ARRAY[found.id]) AND found.goes_on
)
SELECT goes_on FROM found";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[FINISH, FINISH_QUIETLY, AGAIN, GIVE_BACK, CANCEL_REQUESTED, AWAIT_REPORT];

/// Ends attempts, and lets go whoever waited for nothing but a job that completed.
pub(super) async fn settle(store: &PostgresStore, settlements: Vec<Settlement>) -> StoreResult<SettledBatch> {
    if settlements.is_empty() {
        return Ok(SettledBatch::default());
    }
    let rounds: Vec<Round<'_>> = rounds(&settlements).into_iter().map(Round::new).collect();
    let runs = runs_of(&settlements);
    let client = store.client().await?;
    let mut steps = Vec::new();
    if !runs.is_empty() {
        steps.push(Step::prepare(&client, HOLD_RUNS, vec![&runs]).await?);
    }
    for round in &rounds {
        if !round.finish.is_empty() {
            steps.push(Step::prepare(&client, round.finish.statement(), round.finish.params()).await?);
        }
        if !round.again.is_empty() {
            steps.push(Step::prepare(&client, AGAIN, round.again.params()).await?);
            steps.push(Step::prepare(&client, CANCEL_REQUESTED, round.again.params_to_identify()).await?);
        }
        if !round.give_back.is_empty() {
            steps.push(Step::prepare(&client, GIVE_BACK, round.give_back.params()).await?);
            steps.push(Step::prepare(&client, CANCEL_REQUESTED, round.give_back.params_to_identify()).await?);
        }
    }
    if runs.is_empty() && rounds.len() == 1 {
        let ended: Vec<Ended<'_>> = settlements.iter().filter_map(Ended::by).collect();
        let ends = EndRows::of(&ended);
        if !ended.is_empty() {
            steps.push(Step::prepare(&client, RELEASE, ends.params()).await?);
        }
        let answers = transact(&client, BEGIN_PLANNED, &steps).await.map_err(write_failed)?;
        return read(&rounds, &answers, settlements.len());
    }
    let (halfway, answers) = Halfway::begin(client, BEGIN_PLANNED, &steps).await.map_err(not_done)?;
    let answers = &answers[usize::from(!runs.is_empty())..];
    let SettledBatch { settled, .. } = read(&rounds, answers, settlements.len())?;
    let has_edges = answers.iter().flatten().any(|row| matches!(row.try_get::<_, Option<Uuid>>(0), Ok(None)));
    let applied = settlements.iter().zip(&settled).filter(|(_, settled)| **settled == Settled::Applied);
    let ended: Vec<Ended<'_>> = applied.filter_map(|(settlement, _)| Ended::by(settlement)).collect();
    Ok(tell(halfway, &ended, has_edges).await?.in_batch(settled))
}

/// The runs of all tasks, by id.
fn runs_of(settlements: &[Settlement]) -> Vec<Uuid> {
    let runs: BTreeSet<RunId> = settlements.iter().filter_map(|s| Some(s.place()?.run)).collect();
    runs.into_iter().map(RunId::as_uuid).collect()
}

/// What became of the settlements, and of those that wait for what has ended by edges.
fn read(rounds: &[Round<'_>], answers: &[Vec<Row>], len: usize) -> StoreResult<SettledBatch> {
    let mut settled = vec![Settled::Stale; len];
    let mut answers = answers.iter();
    for round in rounds {
        round.read(&mut answers, &mut settled)?;
    }
    Ok(read_told(answers.next().into_iter().flatten()).in_batch(settled))
}

/// The second half: whoever waits for what has ended hears of it, by edges or in the same run, and the runs; then all of it is committed.
async fn tell(halfway: Halfway, ended: &[Ended<'_>], has_edges: bool) -> StoreResult<Told> {
    let (rows, ends) = (TallyRows::of(ended).with_runs(ended), EndRows::of(ended));
    let by_edges = has_edges.then(|| (RELEASE_AND_ASK, ends.params()));
    let mut steps = Vec::new();
    for (sql, params) in rows.release().into_iter().chain(by_edges) {
        steps.push(Step::prepare(halfway.client(), sql, params).await?);
    }
    let answers = halfway.commit(&steps).await.map_err(write_failed)?;
    Ok(read_told(answers.iter().flatten()))
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

/// A settlement and its place in the batch.
type Placed<'a> = (usize, &'a Settlement);

/// Settlements that can be written together: no job twice.
struct Round<'a> {
    members: Vec<Placed<'a>>,
    finish: Finish<'a>,
    again: Again<'a>,
    give_back: GiveBack,
}

fn rounds(settlements: &[Settlement]) -> Vec<Vec<Placed<'_>>> {
    let mut rounds: Vec<Vec<Placed<'_>>> = Vec::new();
    let mut left: Vec<Placed<'_>> = settlements.iter().enumerate().collect();
    while !left.is_empty() {
        let mut seen = HashSet::with_capacity(left.len());
        let (round, later) = left.into_iter().partition(|(_, settlement)| seen.insert(settlement.job_id));
        rounds.push(round);
        left = later;
    }
    rounds
}

impl<'a> Round<'a> {
    fn new(mut members: Vec<Placed<'a>>) -> Self {
        // Rows are locked in the order of their ids, by everybody.
        members.sort_unstable_by_key(|(_, settlement)| settlement.job_id);
        let (mut finish, mut again, mut give_back) =
            (Finish::default(), Again::default(), GiveBack::default());
        for (_, settlement) in &members {
            match &settlement.next {
                Next::Again { due_at, retries, lost, burst } => {
                    again.push(settlement, *due_at, *retries, *lost, *burst);
                }
                Next::GiveBack { due_at } => give_back.push(settlement, *due_at),
                Next::Complete { .. } | Next::Fail { .. } | Next::Cancel => finish.push(settlement),
            }
        }
        Self { members, finish, again, give_back }
    }

    fn read<'r>(
        &self,
        answers: &mut impl Iterator<Item = &'r Vec<Row>>,
        settled: &mut [Settled],
    ) -> StoreResult<()> {
        let mut ids = |asked: bool| match asked.then(|| answers.next()).flatten() {
            Some(rows) => rows.iter().filter_map(|row| column(row, 0).transpose()).collect(),
            None => Ok(HashSet::<Uuid>::new()),
        };
        let mut applied = ids(!self.finish.is_empty())?;
        let mut cancel_requested = HashSet::new();
        for waits_again in [!self.again.is_empty(), !self.give_back.is_empty()] {
            applied.extend(ids(waits_again)?);
            cancel_requested.extend(ids(waits_again)?);
        }
        for (place, settlement) in &self.members {
            let id = settlement.job_id.as_uuid();
            if applied.contains(&id) {
                settled[*place] = Settled::Applied;
            } else if cancel_requested.contains(&id) {
                settled[*place] = Settled::CancelRequested;
            }
        }
        Ok(())
    }
}
