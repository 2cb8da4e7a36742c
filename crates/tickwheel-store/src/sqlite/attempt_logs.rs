//! The logs of attempts, in chunks of lines.

use rusqlite::{Connection, OptionalExtension, Row};
use tickwheel_core::log::{ChunkSize, LogAppend, LogHead, LogPage, LogReading};
use tickwheel_core::ports::LogQuery;
use tickwheel_core::token::AttemptRef;

use super::fault::Verb;
use crate::note_columns::{
    OLDEST_LEN, decode_chunk, decode_head, decode_u64, encode_head, encode_lines, encode_u64,
};

/// See [`tickwheel_core::ports::AttemptLogStore::append_logs`].
pub(super) fn append_logs(connection: &Connection, appends: Vec<LogAppend>) -> Verb<Vec<bool>> {
    appends.into_iter().map(|append| append_one(connection, append)).collect()
}

fn append_one(connection: &Connection, append: LogAppend) -> Verb<bool> {
    let attempt = append.attempt;
    let Some(mut head) = find_head(connection, attempt)? else { return Ok(false) };
    let appended = head.append(append.first, append.lines);
    if appended.must_drop {
        drop_oldest(connection, attempt, &mut head)?;
    }
    for chunk in &appended.chunks {
        let size = chunk.size();
        connection
            .prepare_cached(
                "INSERT INTO log_chunks (job_id, attempt, first_line, lines, bytes, content)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute((
                attempt.job_id.as_uuid(),
                attempt.attempt,
                encode_u64(size.first),
                encode_u64(size.lines),
                encode_u64(size.bytes),
                encode_lines(&chunk.lines)?,
            ))?;
    }
    if !appended.chunks.is_empty() {
        write_head(connection, attempt, &head)?;
    }
    Ok(true)
}

/// What is known about the log of an attempt; a log that nobody wrote to is empty. `None`: there is no such job.
fn find_head(connection: &Connection, attempt: AttemptRef) -> Verb<Option<LogHead>> {
    let head = connection
        .prepare_cached(
            "SELECT next_line, first_line, lines, bytes, dropped FROM attempt_logs
             WHERE job_id = ?1 AND attempt = ?2",
        )?
        .query_row((attempt.job_id.as_uuid(), attempt.attempt), |row| read_head(row, 0))
        .optional()?;
    if let Some(columns) = head {
        return Ok(Some(decode_head(columns)?));
    }
    let exists: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1) OR EXISTS (SELECT 1 FROM finished_jobs WHERE id = ?1)",
        )?
        .query_row([attempt.job_id.as_uuid()], |row| row.get(0))?;
    Ok(exists.then(LogHead::default))
}

fn read_head(row: &Row<'_>, first: usize) -> rusqlite::Result<[i64; 5]> {
    Ok([row.get(first)?, row.get(first + 1)?, row.get(first + 2)?, row.get(first + 3)?, row.get(first + 4)?])
}

fn write_head(connection: &Connection, attempt: AttemptRef, head: &LogHead) -> Verb<()> {
    let [next, first, lines, bytes, dropped] = encode_head(head);
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO attempt_logs (job_id, attempt, next_line, first_line, lines, bytes, dropped)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((attempt.job_id.as_uuid(), attempt.attempt, next, first, lines, bytes, dropped))?;
    Ok(())
}

fn drop_oldest(connection: &Connection, attempt: AttemptRef, head: &mut LogHead) -> Verb<()> {
    loop {
        let oldest = oldest_chunks(connection, attempt)?;
        let dropped = head.drop_oldest(&oldest);
        // Only what was counted: the head may already begin after chunks that were not looked at yet.
        if let Some(last) = dropped.last() {
            connection
                .prepare_cached(
                    "DELETE FROM log_chunks WHERE job_id = ?1 AND attempt = ?2 AND first_line <= ?3",
                )?
                .execute((attempt.job_id.as_uuid(), attempt.attempt, encode_u64(last.first)))?;
        }
        if dropped.len() < oldest.len() || oldest.is_empty() {
            return Ok(());
        }
    }
}

fn oldest_chunks(connection: &Connection, attempt: AttemptRef) -> Verb<Vec<ChunkSize>> {
    let mut statement = connection.prepare_cached(
        "SELECT first_line, lines, bytes FROM log_chunks WHERE job_id = ?1 AND attempt = ?2
         ORDER BY first_line LIMIT ?3",
    )?;
    let mut rows = statement.query((attempt.job_id.as_uuid(), attempt.attempt, OLDEST_LEN))?;
    let mut sizes = Vec::new();
    while let Some(row) = rows.next()? {
        let number = |column| -> Verb<u64> { Ok(decode_u64(row.get(column)?)?) };
        sizes.push(ChunkSize { first: number(0)?, lines: number(1)?, bytes: number(2)? });
    }
    Ok(sizes)
}

/// See [`tickwheel_core::ports::AttemptLogStore::read_logs`].
pub(super) fn read_logs(connection: &Connection, query: &LogQuery) -> Verb<LogPage> {
    let mut statement = connection.prepare_cached(
        "SELECT c.attempt, c.first_line, c.content, h.next_line, h.first_line, h.lines, h.bytes, h.dropped
         FROM log_chunks AS c CROSS JOIN attempt_logs AS h ON h.job_id = c.job_id AND h.attempt = c.attempt
         WHERE c.job_id = ?1 AND c.attempt <= ?4 AND (c.attempt, c.first_line) >= (?2,
             coalesce((SELECT max(o.first_line) FROM log_chunks AS o
                       WHERE o.job_id = ?1 AND o.attempt = ?2 AND o.first_line <= ?3), 0))
         ORDER BY c.attempt, c.first_line",
    )?;
    let from = query
        .attempt
        .map_or(query.from, |attempt| query.from.max(tickwheel_core::log::LogPlace { attempt, line: 0 }));
    let last = query.attempt.unwrap_or(u32::MAX);
    let mut rows = statement.query((query.job_id.as_uuid(), from.attempt, encode_u64(from.line), last))?;
    let mut reading = LogReading::new(from, query.lines_max, query.bytes_max);
    while let Some(row) = rows.next()? {
        let head = decode_head(read_head(row, 3)?)?;
        reading.add(row.get(0)?, &head, decode_chunk(row.get(1)?, row.get_ref(2)?.as_str()?)?);
        if reading.is_full() {
            return Ok(reading.finish(false));
        }
    }
    Ok(reading.finish(true))
}
