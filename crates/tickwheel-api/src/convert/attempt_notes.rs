//! What attempts say beside how they ended, into terms of the core and back.

use std::time::Duration;

use tickwheel_core::log::{self, LogAppend, NumberedLine};
use tickwheel_core::once::{OnceAnswer, OnceScope, RETRY_IN};
use tickwheel_core::progress::{Percent, Progress};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{JsonText, Timestamp};
use tickwheel_protocol::worker::{LogLevel, ReportedLine};
use tickwheel_protocol::{self as wire, Span, Time};

use super::answer::json;
use super::worker::span;
use crate::error::ApiResult;

/// A line is not older than this, whatever its writer says.
const AGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Characters of what an attempt says about its progress.
const MESSAGE_CHARS_MAX: usize = 255;

/// Lines of an attempt that came now.
pub fn log_append(attempt: AttemptRef, first: u64, lines: Vec<ReportedLine>, now: Timestamp) -> LogAppend {
    let line = |line: ReportedLine| {
        let at = now - line.age.map_or(Duration::ZERO, Span::as_duration).min(AGE_MAX);
        let fields = line.fields.filter(|fields| !fields.is_empty());
        let fields =
            fields.map(|fields| JsonText::from_checked(serde_json::Value::Object(fields).to_string()));
        log::LogLine::cut(at, core_level(line.level.unwrap_or(LogLevel::Info)), line.message, fields)
    };
    LogAppend { attempt, first, lines: lines.into_iter().map(line).collect() }
}

const fn core_level(level: LogLevel) -> log::LogLevel {
    match level {
        LogLevel::Debug => log::LogLevel::Debug,
        LogLevel::Info => log::LogLevel::Info,
        LogLevel::Warn => log::LogLevel::Warn,
        LogLevel::Error => log::LogLevel::Error,
    }
}

const fn level(level: log::LogLevel) -> LogLevel {
    match level {
        log::LogLevel::Debug => LogLevel::Debug,
        log::LogLevel::Info => LogLevel::Info,
        log::LogLevel::Warn => LogLevel::Warn,
        log::LogLevel::Error => LogLevel::Error,
    }
}

/// A line as a client reads it.
pub fn log_line(line: &NumberedLine, cursor: Option<String>) -> ApiResult<wire::LogLine> {
    Ok(wire::LogLine {
        attempt: line.attempt,
        number: line.number,
        time: Time::from_millis(line.line.at.as_millis()),
        level: level(line.line.level),
        message: line.line.message.clone(),
        fields: line.line.fields.as_ref().map(json).transpose()?,
        truncated: line.line.truncated,
        cursor,
    })
}

/// How far an attempt has come; `None`: it does not say.
pub fn progress(
    attempt: AttemptRef,
    percent: Option<f64>,
    message: Option<String>,
    now: Timestamp,
) -> Option<Progress> {
    let message = message.map(|message| {
        let plain = message.chars().map(|char| if char.is_control() { ' ' } else { char });
        plain.take(MESSAGE_CHARS_MAX).collect()
    });
    let says_something = percent.is_some() || message.is_some();
    says_something.then(|| Progress { attempt, percent: percent.map(Percent::from_number), message, at: now })
}

/// For whom a key is the same.
pub const fn once_scope(scope: wire::OnceScope) -> OnceScope {
    match scope {
        wire::OnceScope::Job => OnceScope::Job,
        wire::OnceScope::Tenant => OnceScope::Tenant,
    }
}

/// The answer to an attempt that asks for a key; `None`: it is not the current one.
pub fn once_answer(answer: OnceAnswer) -> ApiResult<Option<wire::OnceAnswer>> {
    let state = |state| wire::OnceAnswer { state, result: None, retry_in: None };
    Ok(match answer {
        OnceAnswer::First => Some(state(wire::OnceState::First)),
        OnceAnswer::InDoubt => Some(state(wire::OnceState::InDoubt)),
        OnceAnswer::Busy => {
            Some(wire::OnceAnswer { retry_in: Some(span(RETRY_IN)), ..state(wire::OnceState::Busy) })
        }
        OnceAnswer::Done(result) => {
            Some(wire::OnceAnswer { result: Some(json(&result)?), ..state(wire::OnceState::Done) })
        }
        OnceAnswer::Stale => None,
    })
}
