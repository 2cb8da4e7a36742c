//! The end of attempts: done, given up, cancelled, or once more.
//!
//! Every statement that touches the job compares state and attempt first; nothing else is written unless it took
//! effect. The children of all that ended, and the runs that they were tasks of, are dealt with last, together.

use const_format::concatcp;
use rusqlite::{CachedStatement, Connection, named_params};
use tickwheel_core::ports::{CallbackSubject, Settled, SettledBatch};
use tickwheel_core::settle::{Burst, Next, Settlement};
use tickwheel_core::{AttemptRecord, JobId, State, TargetKind, Timestamp};

use super::callbacks::{NewCallback, insert_callback};
use super::dependencies::{Propagation, release_children};
use super::fault::Verb;
use super::jobs::insert_attempt;
use super::lists::insert_dead_letter;
use super::workflows::reconcile_requests::count_ends;
use crate::columns::encode_failure;
use crate::dependency_edges::Ended;
use crate::job_columns::{Selection, Table};
use crate::sql_text::sql;

/// See [`tickwheel_core::ports::JobStore::settle`].
pub(super) fn settle(connection: &Connection, settlements: &[Settlement]) -> Verb<SettledBatch> {
    let settled = write_ends(connection, settlements)?;
    let ended = ended(settlements, &settled);
    let Propagation { released, reconcile_requested } = release_children(connection, &ended)?;
    let reconcile_requested = count_ends(connection, &ended)? || reconcile_requested;
    Ok(SettledBatch { settled, released, reconcile_requested })
}

/// The jobs that these settlements have ended.
fn ended<'s>(settlements: &'s [Settlement], settled: &[Settled]) -> Vec<Ended<'s>> {
    let applied = settlements.iter().zip(settled).filter(|(_, settled)| **settled == Settled::Applied);
    applied.filter_map(|(settlement, _)| Ended::by(settlement)).collect()
}

fn write_ends(connection: &Connection, settlements: &[Settlement]) -> Verb<Vec<Settled>> {
    let mut finish = Finish::prepare(connection)?;
    let settle_one = |settlement: &Settlement| match settlement.next {
        Next::Again { due_at, retries, lost, burst } => {
            go_again(connection, settlement, &Again { due_at, retries, lost, burst })
        }
        Next::ReturnToQueue { due_at } => return_to_queue(connection, settlement, due_at),
        Next::Complete { .. } | Next::Fail { .. } | Next::Cancel => finish.run(settlement),
    };
    settlements.iter().map(settle_one).collect()
}

/// The move to history, its statements looked up once a batch: most attempts end this way.
struct Finish<'c> {
    connection: &'c Connection,
    copy: CachedStatement<'c>,
    delete: CachedStatement<'c>,
}

impl<'c> Finish<'c> {
    fn prepare(connection: &'c Connection) -> Verb<Self> {
        let copy = connection.prepare_cached(COPY_TO_HISTORY)?;
        let delete = connection.prepare_cached("DELETE FROM jobs WHERE id = ?1")?;
        Ok(Self { connection, copy, delete })
    }

    fn run(&mut self, settlement: &Settlement) -> Verb<Settled> {
        if !self.copy_to_history(settlement)? {
            return Ok(Settled::Stale);
        }
        self.delete.execute([settlement.job_id.as_uuid()])?;
        if let Next::Fail { reason } = settlement.next {
            insert_dead_letter(self.connection, settlement.job_id, settlement.ended_at, reason)?;
        }
        if let Some(url) = settlement.callback_url() {
            insert_callback(self.connection, &callback_of(settlement, url))?;
        }
        Ok(Settled::Applied)
    }

    /// Whether the job was running that attempt and is in history now.
    fn copy_to_history(&mut self, settlement: &Settlement) -> Verb<bool> {
        let (error_code, error_message) = encode_failure(final_error(settlement));
        let copied = self.copy.execute((
            settlement.job_id.as_uuid(),
            State::Running.code(),
            settlement.attempt,
            settlement.next.state().code(),
            settlement.started_at.as_millis(),
            settlement.ended_at.as_millis(),
            settlement.outcome.code(),
            error_code,
            error_message,
            result_text(settlement),
        ))?;
        Ok(copied == 1)
    }
}

/// `OR FAIL` spares SQLite a journal for undoing the single statement: when it fails, all of the batch is undone. A job
/// that ran waits for no parents and is no fan-out: the columns that tell of those have their defaults.
const COPY_TO_HISTORY: &str = concatcp!(
    "INSERT OR FAIL INTO finished_jobs (",
    sql!(ENDED_JOB.names()),
    ") SELECT ",
    sql!(ENDED_JOB.values(
        "",
        &[],
        &[
            ("state", "?4"),
            ("started_at", "?5"),
            ("completed_at", "?6"),
            ("last_outcome", "?7"),
            ("error_code", "?8"),
            ("error_message", "?9"),
            ("result", "?10"),
        ]
    )),
    " FROM jobs WHERE id = ?1 AND state = ?2 AND attempt = ?3"
);

const ENDED_JOB: Selection =
    Selection::without(Table::Finished, &["open_parents", "failed_parents", "fan_out"]);

/// What a retry changes in the job.
struct Again {
    due_at: Timestamp,
    retries: u32,
    lost: u32,
    burst: Burst,
}

fn go_again(connection: &Connection, settlement: &Settlement, again: &Again) -> Verb<Settled> {
    let mut statement = connection.prepare_cached(
        "UPDATE jobs SET state = :scheduled, session = NULL, deadline = NULL, started_at = :started_at, due_at = :due_at,
             retries = :retries, lost = :lost, burst_started_at = :burst_started_at, burst_failures = :burst_failures,
             error_code = :error_code, error_message = :error_message
         WHERE id = :id AND state = :running AND attempt = :attempt AND NOT cancel_requested",
    )?;
    let (error_code, error_message) = encode_failure(settlement.error.as_ref());
    let changed = statement.execute(named_params! {
        ":scheduled": settlement.next.state().code(),
        ":started_at": settlement.started_at.as_millis(),
        ":due_at": again.due_at.as_millis(),
        ":retries": again.retries,
        ":lost": again.lost,
        ":burst_started_at": again.burst.started_at.map(|at| at.as_millis()),
        ":burst_failures": again.burst.failures,
        ":error_code": error_code,
        ":error_message": error_message,
        ":id": settlement.job_id.as_uuid(),
        ":running": State::Running.code(),
        ":attempt": settlement.attempt,
    })?;
    if changed == 0 {
        return why_refused(connection, settlement);
    }
    insert_attempt(connection, settlement.job_id, &record_of(settlement))?;
    Ok(Settled::Applied)
}

/// The attempt was never sent: the job is as before it.
fn return_to_queue(connection: &Connection, settlement: &Settlement, due_at: Timestamp) -> Verb<Settled> {
    let mut statement = connection.prepare_cached(
        "UPDATE jobs SET state = ?4, session = NULL, deadline = NULL, due_at = ?5,
             started_at = (SELECT started_at FROM attempts WHERE job_id = jobs.id ORDER BY number DESC LIMIT 1)
         WHERE id = ?1 AND state = ?2 AND attempt = ?3 AND NOT cancel_requested",
    )?;
    let changed = statement.execute((
        settlement.job_id.as_uuid(),
        State::Running.code(),
        settlement.attempt,
        settlement.next.state().code(),
        due_at.as_millis(),
    ))?;
    if changed == 0 { why_refused(connection, settlement) } else { Ok(Settled::Applied) }
}

/// A job that was to wait again does not: somebody wants it cancelled, or it is not running that attempt.
fn why_refused(connection: &Connection, settlement: &Settlement) -> Verb<Settled> {
    let current = is_running(connection, settlement.job_id, settlement.attempt)?;
    Ok(if current { Settled::CancelRequested } else { Settled::Stale })
}

fn is_running(connection: &Connection, id: JobId, attempt: u32) -> Verb<bool> {
    let mut statement =
        connection.prepare_cached("SELECT 1 FROM jobs WHERE id = ?1 AND state = ?2 AND attempt = ?3")?;
    Ok(statement.exists((id.as_uuid(), State::Running.code(), attempt))?)
}

/// See [`tickwheel_core::ports::JobStore::await_report`].
pub(super) fn await_report(connection: &Connection, id: JobId, attempt: u32) -> Verb<Settled> {
    let changed = connection
        .prepare_cached(
            "UPDATE jobs SET session = NULL WHERE id = ?1 AND state = ?2 AND attempt = ?3
             AND (NOT cancel_requested OR target = ?4)",
        )?
        .execute((id.as_uuid(), State::Running.code(), attempt, TargetKind::Workflow.code()))?;
    Ok(match changed {
        1 => Settled::Applied,
        _ if is_running(connection, id, attempt)? => Settled::CancelRequested,
        _ => Settled::Stale,
    })
}

fn record_of(settlement: &Settlement) -> AttemptRecord {
    AttemptRecord {
        number: settlement.attempt,
        started_at: settlement.started_at,
        ended_at: Some(settlement.ended_at),
        outcome: Some(settlement.outcome),
        error: settlement.error.clone(),
    }
}

fn callback_of<'a>(settlement: &'a Settlement, url: &'a str) -> NewCallback<'a> {
    NewCallback {
        subject: CallbackSubject::Job(settlement.job_id),
        url,
        state: settlement.next.state(),
        attempt: settlement.attempt,
        completed_at: settlement.ended_at,
        result: result_text(settlement),
        error: final_error(settlement),
    }
}

fn result_text(settlement: &Settlement) -> Option<&str> {
    match &settlement.next {
        Next::Complete { result } => result.as_ref().map(|result| result.as_str()),
        _ => None,
    }
}

/// A completed job has no error, even if an earlier attempt had one.
fn final_error(settlement: &Settlement) -> Option<&tickwheel_core::Failure> {
    match settlement.next {
        Next::Complete { .. } => None,
        _ => settlement.error.as_ref(),
    }
}
