//! Between rows and what attempts say beside how they ended (log lines, progress, keys of effects), for both stores.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tickwheel_core::log::{LogChunk, LogHead, LogLevel, LogLine};
use tickwheel_core::once::{OnceKey, OnceScope};
use tickwheel_core::ports::StoreResult;
use tickwheel_core::progress::{Percent, Progress};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{JobId, JsonText, Timestamp};
use uuid::Uuid;

use crate::columns::decode_count;
use crate::error::corrupt;

/// Chunks of a log that are looked at together when the oldest have to go.
pub(crate) const OLDEST_LEN: i64 = 64;

/// A number that is never negative, as the databases keep it.
pub(crate) fn encode_u64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that is never negative.
pub(crate) fn decode_u64(number: i64) -> StoreResult<u64> {
    u64::try_from(number).map_err(|_| corrupt("a number that is never negative", number))
}

/// An attempt that a row names.
pub(crate) fn decode_attempt(job: Uuid, attempt: i64) -> StoreResult<AttemptRef> {
    Ok(AttemptRef { job_id: JobId::from_uuid(job), attempt: decode_count("attempt", attempt)? })
}

/// A line in the text of a chunk.
#[derive(Serialize, Deserialize)]
struct StoredLine {
    #[serde(rename = "t")]
    at: i64,
    #[serde(rename = "l")]
    level: i16,
    #[serde(rename = "m")]
    message: String,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    fields: Option<Box<RawValue>>,
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// The lines of a chunk as text. Whatever is in them is escaped, so every database can keep it.
pub(crate) fn encode_lines(lines: &[LogLine]) -> StoreResult<String> {
    let stored = |line: &LogLine| {
        let fields = line.fields.as_ref().map(|fields| RawValue::from_string(fields.as_str().to_owned()));
        Ok(StoredLine {
            at: line.at.as_millis(),
            level: line.level.code(),
            message: line.message.clone(),
            fields: fields.transpose().map_err(|error| corrupt("fields of a line", error))?,
            truncated: line.truncated,
        })
    };
    let stored = lines.iter().map(stored).collect::<StoreResult<Vec<_>>>()?;
    serde_json::to_string(&stored).map_err(|error| corrupt("lines of a log", error))
}

/// The chunk in a row.
pub(crate) fn decode_chunk(first: i64, content: &str) -> StoreResult<LogChunk> {
    let stored: Vec<StoredLine> =
        serde_json::from_str(content).map_err(|error| corrupt("lines of a log", error))?;
    let line = |line: StoredLine| {
        Ok(LogLine {
            at: Timestamp::from_millis(line.at),
            level: LogLevel::from_code(line.level).ok_or_else(|| corrupt("level of a line", line.level))?,
            message: line.message,
            fields: line.fields.map(|fields| JsonText::from_checked(fields.get())),
            truncated: line.truncated,
        })
    };
    Ok(LogChunk {
        first: decode_u64(first)?,
        lines: stored.into_iter().map(line).collect::<StoreResult<_>>()?,
    })
}

/// The columns `next_line, first_line, lines, bytes, dropped`.
pub(crate) fn decode_head(columns: [i64; 5]) -> StoreResult<LogHead> {
    let [next, first, lines, bytes, dropped] = columns;
    Ok(LogHead {
        next: decode_u64(next)?,
        first: decode_u64(first)?,
        lines: decode_u64(lines)?,
        bytes: decode_u64(bytes)?,
        dropped: decode_u64(dropped)?,
    })
}

/// The same columns.
pub(crate) fn encode_head(head: &LogHead) -> [i64; 5] {
    [head.next, head.first, head.lines, head.bytes, head.dropped].map(encode_u64)
}

/// The columns of a note of progress.
pub(crate) struct ProgressRow {
    pub job_id: Uuid,
    pub attempt: i64,
    pub percent: Option<i16>,
    pub message: Option<String>,
    pub noted_at: i64,
}

impl ProgressRow {
    pub fn decode(self) -> StoreResult<Progress> {
        let percent = |hundredths: i16| {
            let percent = u16::try_from(hundredths).ok().and_then(Percent::from_hundredths);
            percent.ok_or_else(|| corrupt("percent", hundredths))
        };
        Ok(Progress {
            attempt: decode_attempt(self.job_id, self.attempt)?,
            percent: self.percent.map(percent).transpose()?,
            message: self.message,
            at: Timestamp::from_millis(self.noted_at),
        })
    }
}

/// As the databases keep it.
pub(crate) fn encode_percent(percent: Option<Percent>) -> Option<i16> {
    percent.and_then(|percent| i16::try_from(percent.hundredths()).ok())
}

/// The job in the address of a key: none where the key is the same for all jobs.
pub(crate) fn once_job(scope: OnceScope, job: JobId) -> Uuid {
    match scope {
        OnceScope::Job => job.as_uuid(),
        OnceScope::Tenant => Uuid::nil(),
    }
}

/// The columns of a key.
pub(crate) struct OnceRow {
    pub holder_job: Uuid,
    pub holder_attempt: i64,
    pub in_doubt: bool,
    pub result: Option<String>,
    pub ttl_ms: i64,
    pub expires_at: i64,
}

impl OnceRow {
    pub fn decode(self) -> StoreResult<OnceKey> {
        Ok(OnceKey {
            holder: decode_attempt(self.holder_job, self.holder_attempt)?,
            in_doubt: self.in_doubt,
            result: self.result.map(JsonText::from_checked),
            ttl: Duration::from_millis(decode_u64(self.ttl_ms)?),
            expires_at: Timestamp::from_millis(self.expires_at),
        })
    }
}

/// As the databases keep it.
pub(crate) fn encode_ttl(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_back_as_they_were_written() {
        let line = |level, message: &str, fields: Option<&str>| {
            let fields = fields.map(JsonText::from_checked);
            LogLine {
                truncated: fields.is_none(),
                ..LogLine::cut(Timestamp::from_millis(7), level, message.into(), fields)
            }
        };
        let lines = vec![
            line(LogLevel::Debug, "\0 it's \"quoted\" \u{1b}[31m 🕰️ \\", Some(r#"{"a":[1.50,"\u0000"]}"#)),
            line(LogLevel::Error, "", None),
        ];
        let text = encode_lines(&lines).expect("text");
        assert!(!text.contains('\0'));
        assert_eq!(decode_chunk(5, &text).expect("lines"), LogChunk { first: 5, lines });
        assert!(decode_chunk(0, "[{\"t\":1,\"l\":9,\"m\":\"\"}]").is_err());
        assert!(decode_chunk(-1, "[]").is_err());
    }
}
