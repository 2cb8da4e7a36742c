//! What the conductor is to look at, and the counts of open jobs from which that follows.

use rusqlite::{Connection, OptionalExtension};
use tickwheel_core::workflow::{Look, RunCounts, TaskEnds};
use tickwheel_core::{JobId, RunId};

use super::runs::{find_run, write_run};
use crate::links::{Ended, ends_by_run};
use crate::schedule_columns::encode_number;
use crate::sqlite::fault::Verb;
use crate::workflow_columns::decode_look;

/// Puts it on the list. It gets a number that was never given before: what is on the list already is asked for again.
pub(in crate::sqlite) fn ask_for_look(connection: &Connection, at: JobId) -> Verb<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO workflow_looks (id) VALUES (?1)")?
        .execute([at.as_uuid()])?;
    Ok(())
}

/// See [`tickwheel_core::ports::RunStore::looks`].
pub(super) fn looks(connection: &Connection, after: Option<JobId>, limit: usize) -> Verb<Vec<Look>> {
    let mut statement = connection
        .prepare_cached("SELECT id, times FROM workflow_looks WHERE id > ?1 ORDER BY id LIMIT ?2")?;
    let after = after.unwrap_or(JobId::FIRST).as_uuid();
    let mut rows = statement.query((after, i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut looks = Vec::new();
    while let Some(row) = rows.next()? {
        looks.push(decode_look(row.get(0)?, row.get(1)?)?);
    }
    Ok(looks)
}

/// Takes off the list what was not asked for again.
pub(super) fn have_looked(connection: &Connection, looked: &[Look]) -> Verb<()> {
    let mut statement =
        connection.prepare_cached("DELETE FROM workflow_looks WHERE times = ?1 AND id = ?2")?;
    for look in looked {
        statement.execute((encode_number(look.times), look.at.as_uuid()))?;
    }
    Ok(())
}

/// Takes jobs that have ended off the open ones of their runs. Whether a run is to be looked at.
pub(in crate::sqlite) fn count_ends(connection: &Connection, ended: &[Ended<'_>]) -> Verb<bool> {
    let mut looks = false;
    for (run, ends) in ends_by_run(ended) {
        looks |= count_ends_of(connection, run, ends)?;
    }
    Ok(looks)
}

fn count_ends_of(connection: &Connection, run: RunId, ends: TaskEnds) -> Verb<bool> {
    let before = connection
        .prepare_cached("SELECT open, blocked, spoiled FROM workflow_runs WHERE id = ?1")?
        .query_row([run.as_uuid()], |row| {
            Ok(RunCounts { open: row.get(0)?, blocked: row.get(1)?, spoiled: row.get(2)? })
        })
        .optional()?;
    let Some(after) = before.map(|counts| counts.after(ends)) else { return Ok(false) };
    connection
        .prepare_cached("UPDATE workflow_runs SET open = ?2, spoiled = ?3 WHERE id = ?1")?
        .execute((run.as_uuid(), after.open, after.spoiled))?;
    let wanted = after.want_a_look_after(ends);
    if wanted {
        ask_for_look(connection, Look::place_of(run))?;
    }
    Ok(wanted)
}

/// One of its jobs, that had ended, was brought back by somebody: the run goes on.
pub(in crate::sqlite) fn go_on(connection: &Connection, id: RunId) -> Verb<()> {
    let Some(mut run) = find_run(connection, id)? else { return Ok(()) };
    run.open += 1;
    run.revision += 1;
    run.progress = run.progress.revived();
    write_run(connection, &run)?;
    ask_for_look(connection, Look::place_of(id))
}
