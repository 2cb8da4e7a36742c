//! The logs of attempts, in chunks of lines.
//!
//! Whoever writes to logs locks their heads first, in order, so that two who write to the same log add each line once.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::Transaction;
use tickwheel_core::log::{
    CHUNK_BYTES_MAX, ChunkSize, LogAppend, LogChunk, LogHead, LogPage, LogPlace, LogReading,
};
use tickwheel_core::ports::{LogQuery, StoreResult};
use tickwheel_core::token::AttemptRef;
use tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::error::{not_done, write_failed};
use super::pipeline::{Param, run};
use super::row::{column, count, limit};
use crate::note_columns::{
    OLDEST_LEN, decode_attempt, decode_chunk, decode_head, decode_u64, encode_head, encode_lines, encode_u64,
};

const OPEN_HEADS: &str = "\
INSERT INTO attempt_logs (job_id, attempt)
SELECT a.job_id, a.attempt FROM unnest($1::uuid[], $2::integer[]) AS a (job_id, attempt)
WHERE EXISTS (SELECT 1 FROM jobs AS j WHERE j.id = a.job_id)
   OR EXISTS (SELECT 1 FROM finished_jobs AS f WHERE f.id = a.job_id)
ORDER BY a.job_id, a.attempt
ON CONFLICT DO NOTHING";

const LOCK_HEADS: &str = "\
SELECT h.job_id, h.attempt, h.next_line, h.first_line, h.lines, h.bytes, h.dropped
FROM unnest($1::uuid[], $2::integer[]) AS a (job_id, attempt)
JOIN attempt_logs AS h ON h.job_id = a.job_id AND h.attempt = a.attempt
ORDER BY h.job_id, h.attempt FOR UPDATE OF h";

const OLDEST: &str = "\
SELECT first_line, lines, bytes FROM log_chunks
WHERE job_id = $1::uuid AND attempt = $2::integer AND first_line >= $3::bigint
ORDER BY first_line LIMIT $4::bigint";

const DROP_OLDEST: &str = "\
DELETE FROM log_chunks WHERE job_id = $1::uuid AND attempt = $2::integer AND first_line < $3::bigint";

const ADD_CHUNKS: &str = "\
INSERT INTO log_chunks (job_id, attempt, first_line, lines, bytes, content)
SELECT * FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[])";

const WRITE_HEADS: &str = "\
UPDATE attempt_logs AS h
SET next_line = a.next_line, first_line = a.first_line, lines = a.lines, bytes = a.bytes, dropped = a.dropped
FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS a (job_id, attempt, next_line, first_line, lines, bytes, dropped)
WHERE h.job_id = a.job_id AND h.attempt = a.attempt";

// The sum is of what comes before a chunk, so that there is always one.
const READ: &str = "\
SELECT c.attempt, c.first_line, c.content, h.next_line, h.first_line, h.lines, h.bytes, h.dropped
FROM (
    SELECT o.attempt, o.first_line, o.content,
           sum(o.bytes) OVER (ORDER BY o.attempt, o.first_line) - o.bytes AS before
    FROM (
        SELECT attempt, first_line, bytes, content FROM log_chunks
        WHERE job_id = $1::uuid AND attempt <= $4::integer AND (attempt, first_line) >= ($2::integer,
            coalesce((SELECT max(m.first_line) FROM log_chunks AS m
                      WHERE m.job_id = $1::uuid AND m.attempt = $2::integer AND m.first_line <= $3::bigint), 0))
        ORDER BY attempt, first_line LIMIT $5::bigint
    ) AS o
) AS c
JOIN attempt_logs AS h ON h.job_id = $1::uuid AND h.attempt = c.attempt
WHERE c.before <= $6::bigint
ORDER BY c.attempt, c.first_line";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[OPEN_HEADS, LOCK_HEADS, OLDEST, DROP_OLDEST, ADD_CHUNKS, WRITE_HEADS, READ];

pub(super) async fn append_logs(store: &PostgresStore, appends: Vec<LogAppend>) -> StoreResult<Vec<bool>> {
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    let attempts: HashSet<AttemptRef> = appends.iter().map(|append| append.attempt).collect();
    let (ids, numbers): (Vec<Uuid>, Vec<i32>) =
        attempts.iter().map(|attempt| (attempt.job_id.as_uuid(), count(attempt.attempt))).unzip();
    run(&transaction, OPEN_HEADS, &[&ids, &numbers]).await?;
    let rows = run(&transaction, LOCK_HEADS, &[&ids, &numbers]).await?;
    let mut heads = rows.iter().map(read_locked).collect::<StoreResult<HashMap<_, _>>>()?;
    let answers = appends.iter().map(|append| heads.contains_key(&append.attempt)).collect();
    let mut waiting = appends;
    while !waiting.is_empty() {
        // An attempt that is there twice has its second turn when its first lines are stored.
        let mut seen = HashSet::new();
        let (now, later): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|append| seen.insert(append.attempt));
        append_each(&transaction, now, &mut heads).await?;
        waiting = later;
    }
    write_heads(&transaction, &heads).await?;
    transaction.commit().await.map_err(write_failed)?;
    Ok(answers)
}

/// No attempt is there twice.
async fn append_each(
    transaction: &Transaction<'_>,
    appends: Vec<LogAppend>,
    heads: &mut HashMap<AttemptRef, LogHead>,
) -> StoreResult<()> {
    let mut new: Vec<(AttemptRef, LogChunk)> = Vec::new();
    for append in appends {
        let Some(head) = heads.get_mut(&append.attempt) else { continue };
        let appended = head.append(append.first, append.lines);
        if appended.must_drop {
            drop_oldest(transaction, append.attempt, head).await?;
        }
        new.extend(appended.chunks.into_iter().map(|chunk| (append.attempt, chunk)));
    }
    if new.is_empty() {
        return Ok(());
    }
    let (ids, numbers): (Vec<Uuid>, Vec<i32>) =
        new.iter().map(|(attempt, _)| (attempt.job_id.as_uuid(), count(attempt.attempt))).unzip();
    let sizes = new.iter().map(|(_, chunk)| chunk.size());
    let firsts: Vec<i64> = sizes.clone().map(|size| encode_u64(size.first)).collect();
    let lines: Vec<i64> = sizes.clone().map(|size| encode_u64(size.lines)).collect();
    let bytes: Vec<i64> = sizes.map(|size| encode_u64(size.bytes)).collect();
    let contents =
        new.iter().map(|(_, chunk)| encode_lines(&chunk.lines)).collect::<StoreResult<Vec<String>>>()?;
    let params: [Param<'_>; 6] = [&ids, &numbers, &firsts, &lines, &bytes, &contents];
    run(transaction, ADD_CHUNKS, &params).await.map(drop)
}

async fn drop_oldest(
    transaction: &Transaction<'_>,
    attempt: AttemptRef,
    head: &mut LogHead,
) -> StoreResult<()> {
    let (id, number) = (attempt.job_id.as_uuid(), count(attempt.attempt));
    let mut from = 0_i64;
    loop {
        let rows = run(transaction, OLDEST, &[&id, &number, &from, &OLDEST_LEN]).await?;
        let oldest = rows.iter().map(read_size).collect::<StoreResult<Vec<_>>>()?;
        let dropped = head.drop_oldest(&oldest);
        // Counted one by one: the head may already begin after chunks that were not looked at yet.
        if let Some(last) = dropped.last() {
            from = encode_u64(last.first + last.lines);
        }
        if dropped.len() < oldest.len() || oldest.is_empty() {
            return run(transaction, DROP_OLDEST, &[&id, &number, &from]).await.map(drop);
        }
    }
}

async fn write_heads(transaction: &Transaction<'_>, heads: &HashMap<AttemptRef, LogHead>) -> StoreResult<()> {
    let (ids, numbers): (Vec<Uuid>, Vec<i32>) =
        heads.keys().map(|attempt| (attempt.job_id.as_uuid(), count(attempt.attempt))).unzip();
    let columns: Vec<[i64; 5]> = heads.values().map(encode_head).collect();
    let each: [Vec<i64>; 5] =
        std::array::from_fn(|index| columns.iter().map(|columns| columns[index]).collect());
    let [next, first, lines, bytes, dropped] = &each;
    let params: [Param<'_>; 7] = [&ids, &numbers, next, first, lines, bytes, dropped];
    run(transaction, WRITE_HEADS, &params).await.map(drop)
}

fn read_locked(row: &Row) -> StoreResult<(AttemptRef, LogHead)> {
    let attempt = decode_attempt(column(row, 0)?, column::<i32>(row, 1)?.into())?;
    Ok((attempt, read_head(row, 2)?))
}

fn read_head(row: &Row, first: usize) -> StoreResult<LogHead> {
    decode_head([
        column(row, first)?,
        column(row, first + 1)?,
        column(row, first + 2)?,
        column(row, first + 3)?,
        column(row, first + 4)?,
    ])
}

fn read_size(row: &Row) -> StoreResult<ChunkSize> {
    Ok(ChunkSize {
        first: decode_u64(column(row, 0)?)?,
        lines: decode_u64(column(row, 1)?)?,
        bytes: decode_u64(column(row, 2)?)?,
    })
}

pub(super) async fn read_logs(store: &PostgresStore, query: &LogQuery) -> StoreResult<LogPage> {
    let only = query.attempt.map(|attempt| LogPlace { attempt, line: 0 });
    let from = only.map_or(query.from, |start| query.from.max(start));
    let last = query.attempt.map_or(i32::MAX, count);
    // Each chunk has a line at least, and those before the place are of one chunk.
    let chunks_max = limit(query.lines_max.saturating_add(1));
    // A little more than fits, so that the reading notices if there is more: lines of the first chunk may be left out.
    let bytes_max = limit(query.bytes_max.saturating_add(2 * CHUNK_BYTES_MAX));
    let params: [Param<'_>; 6] = [
        &query.job_id.as_uuid(),
        &count(from.attempt),
        &encode_u64(from.line),
        &last,
        &chunks_max,
        &bytes_max,
    ];
    let rows = store.read(READ, &params).await?;
    let mut reading = LogReading::new(from, query.lines_max, query.bytes_max);
    for row in &rows {
        let chunk = decode_chunk(column(row, 1)?, column(row, 2)?)?;
        let attempt = decode_attempt(query.job_id.as_uuid(), column::<i32>(row, 0)?.into())?.attempt;
        reading.add(attempt, &read_head(row, 3)?, chunk);
    }
    let is_all = rows.len() < usize::try_from(chunks_max).unwrap_or(usize::MAX);
    Ok(reading.finish(is_all))
}
