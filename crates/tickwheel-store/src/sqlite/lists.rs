//! Lists: jobs newest first, dead letters latest first. Bounded work a page, whatever is asked for.

use rusqlite::{Connection, OptionalExtension, Row};
use tickwheel_core::ports::{DeadLetter, DeadLetterCursor, DeadLetterQuery, JobQuery, Page, StoreError};
use tickwheel_core::settle::DeadReason;
use tickwheel_core::{Job, JobId, Timestamp};
use uuid::Uuid;

use super::fault::Verb;
use super::row::{find_finished, find_listed, is_text};
use super::walk::{EXAMINED_MAX, Path, Walk, WalkPosition};
use crate::columns::decode_dead_reason;
use crate::error::corrupt;

/// See [`tickwheel_core::ports::QueryStore::list_jobs`].
pub(super) fn list_jobs(connection: &Connection, query: &JobQuery) -> Verb<Page<Job, JobId>> {
    let paths = Path::choose(query);
    let mut statements = paths.iter().map(|path| path.prepare(connection)).collect::<Verb<Vec<_>>>()?;
    let mut walks = paths
        .iter()
        .zip(&mut statements)
        .map(|(path, statement)| Walk::start(path, statement, query))
        .collect::<Verb<Vec<_>>>()?;
    merge(connection, query, &mut walks)
}

/// Always goes on with the walk that is at the newest job. Where one got tired, the page ends: what the others would
/// find below may be newer or older than what it has not seen.
fn merge(connection: &Connection, query: &JobQuery, walks: &mut [Walk<'_>]) -> Verb<Page<Job, JobId>> {
    let mut items = Vec::new();
    let (mut last, mut missed) = (query.after, 0);
    let mut bytes_left = query.projection.bytes_max;
    while let Some(walk) = walks.iter_mut().max_by_key(|walk| walk.position().job_id()) {
        match walk.position() {
            WalkPosition::End => return Ok(Page { items, next: None }),
            WalkPosition::Tired(id) => return Ok(Page { items, next: Some(id) }),
            WalkPosition::Match(_) if items.len() >= query.limit || bytes_left == 0 => break,
            WalkPosition::Match(id) if !has_other_tags(connection, id, query)? => {
                last = Some(id);
                missed += 1;
                // The walk takes each of them for a match, and would never get tired of them.
                if missed >= EXAMINED_MAX {
                    break;
                }
                walk.go_on(query)?;
            }
            WalkPosition::Match(id) => {
                let found = find_listed(connection, id, query.projection)?;
                let (job, bytes) = found.ok_or_else(|| corrupt("tag of no job", id))?;
                items.push(job);
                bytes_left = bytes_left.saturating_sub(bytes);
                last = Some(id);
                walk.go_on(query)?;
            }
        }
    }
    Ok(Page { items, next: last })
}

/// Whether a job that was found by the first tag has the others too.
fn has_other_tags(connection: &Connection, id: JobId, query: &JobQuery) -> Verb<bool> {
    for tag in query.tags.iter().skip(1) {
        let mut statement =
            connection.prepare_cached("SELECT 1 FROM job_tags WHERE tag = ?1 AND job_id = ?2")?;
        if !statement.exists((tag, id.as_uuid()))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// See [`tickwheel_core::ports::QueryStore::list_dead_letters`].
pub(super) fn list_dead_letters(
    connection: &Connection,
    query: &DeadLetterQuery,
) -> Verb<Page<DeadLetter, DeadLetterCursor>> {
    let mut statement = connection.prepare_cached(
        "SELECT job_id, failed_at, reason, type, queue FROM dead_letters
         WHERE (failed_at, job_id) < (?1, ?2) ORDER BY failed_at DESC, job_id DESC",
    )?;
    let start = query.after.unwrap_or(DeadLetterCursor { failed_at: Timestamp::MAX, id: JobId::LAST });
    let mut rows = statement.query((start.failed_at.as_millis(), start.id.as_uuid()))?;
    let mut items = Vec::new();
    let mut examined = 0;
    let mut last = start;
    let mut bytes_left = query.projection.bytes_max;
    while let Some(row) = rows.next()? {
        if items.len() >= query.limit || examined >= EXAMINED_MAX || bytes_left == 0 {
            return Ok(Page { items, next: Some(last) });
        }
        examined += 1;
        let note = Note::from_row(row)?;
        last = DeadLetterCursor { failed_at: note.failed_at, id: note.job_id };
        if is_text(row, 3, query.job_type.as_deref())? && is_text(row, 4, query.queue.as_deref())? {
            let found = find_listed(connection, note.job_id, query.projection)?;
            let (job, bytes) = found.ok_or_else(|| note.without_job())?;
            items.push(note.about(job));
            bytes_left = bytes_left.saturating_sub(bytes);
        }
    }
    Ok(Page { items, next: None })
}

/// A row of `dead_letters`: everything but the job.
struct Note {
    job_id: JobId,
    failed_at: Timestamp,
    reason: DeadReason,
}

impl Note {
    fn from_row(row: &Row<'_>) -> Verb<Self> {
        Ok(Self {
            job_id: JobId::from_uuid(row.get::<_, Uuid>(0)?),
            failed_at: Timestamp::from_millis(row.get(1)?),
            reason: decode_dead_reason(row.get(2)?)?,
        })
    }

    fn with_job(self, connection: &Connection) -> Verb<DeadLetter> {
        let job = find_finished(connection, self.job_id)?.ok_or_else(|| self.without_job())?;
        Ok(self.about(job))
    }

    fn about(self, job: Job) -> DeadLetter {
        DeadLetter { job, failed_at: self.failed_at, reason: self.reason }
    }

    fn without_job(&self) -> StoreError {
        corrupt("dead letter without its job", self.job_id)
    }
}

/// See [`tickwheel_core::ports::QueryStore::get_dead_letter`].
pub(super) fn get_dead_letter(connection: &Connection, id: JobId) -> Verb<Option<DeadLetter>> {
    let note = connection
        .prepare_cached("SELECT job_id, failed_at, reason FROM dead_letters WHERE job_id = ?1")?
        .query_row([id.as_uuid()], |row| Ok(Note::from_row(row)))
        .optional()?
        .transpose()?;
    note.map(|note| note.with_job(connection)).transpose()
}

/// Puts a job of history on the list.
pub(super) fn insert_dead_letter(
    connection: &Connection,
    id: JobId,
    failed_at: Timestamp,
    reason: DeadReason,
) -> Verb<()> {
    connection
        .prepare_cached(
            "INSERT INTO dead_letters (job_id, failed_at, reason, type, queue)
             SELECT id, ?2, ?3, type, queue FROM finished_jobs WHERE id = ?1",
        )?
        .execute((id.as_uuid(), failed_at.as_millis(), reason.code()))?;
    Ok(())
}

/// Takes a job off the list; `false`: it was not on it.
pub(super) fn delete_dead_letter(connection: &Connection, id: JobId) -> Verb<bool> {
    let deleted =
        connection.prepare_cached("DELETE FROM dead_letters WHERE job_id = ?1")?.execute([id.as_uuid()])?;
    Ok(deleted == 1)
}

/// See [`tickwheel_core::ports::QueryStore::count_dead_letters_like`].
pub(super) fn count_dead_letters_like(connection: &Connection, query: &DeadLetterQuery) -> Verb<u64> {
    let mut statement = connection.prepare_cached(
        "SELECT count(*) FROM dead_letters
         WHERE (failed_at, job_id) < (?1, ?2) AND (?3 IS NULL OR type = ?3) AND (?4 IS NULL OR queue = ?4)",
    )?;
    let start = query.after.unwrap_or(DeadLetterCursor { failed_at: Timestamp::MAX, id: JobId::LAST });
    let (failed_at, id) = (start.failed_at.as_millis(), start.id.as_uuid());
    let count: i64 = statement.query_row((failed_at, id, &query.job_type, &query.queue), |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// See [`tickwheel_core::ports::QueryStore::count_dead_letters`].
pub(super) fn count_dead_letters(connection: &Connection) -> Verb<u64> {
    let count: i64 =
        connection.prepare_cached("SELECT count(*) FROM dead_letters")?.query_row([], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}
