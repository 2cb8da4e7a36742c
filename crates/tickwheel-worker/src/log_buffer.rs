//! The lines of an attempt's log that the server does not have yet: numbered, bounded, the oldest go first.
//!
//! A line keeps its number whatever happens to it, so that lines which are sent twice are added once. When lines are
//! dropped, one line in the place of the last of them says how many.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Map, Value};
use tickwheel_protocol::Span;
use tickwheel_protocol::worker::{LogLevel, ReportedLine, ReportedLines};

use crate::error::cut;

/// Bytes of the lines of one attempt.
const ATTEMPT_BYTES_MAX: usize = 256 << 10;
/// Bytes of the lines of all attempts.
const ALL_BYTES_MAX: usize = 16 << 20;
/// Bytes of one line, unless the server says otherwise.
const LINE_BYTES_MAX: usize = 16 << 10;
/// What a line costs beside its text.
const LINE_OVERHEAD: usize = 64;

/// Bytes that are sent at once, without waiting for more.
const SEND_BYTES: usize = 64 << 10;

/// Bytes of the lines of all attempts.
#[derive(Debug, Default)]
pub(crate) struct LogBudget(AtomicUsize);

/// A line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    at: Instant,
    level: LogLevel,
    message: String,
    fields: Option<Map<String, Value>>,
    bytes: usize,
}

impl Line {
    pub fn new(level: LogLevel, message: &str, fields: Map<String, Value>) -> Self {
        let message = cut(message, LINE_BYTES_MAX).to_owned();
        let fields = Some(fields).filter(|fields| !fields.is_empty());
        let fields_bytes = fields.as_ref().map_or(0, |fields| Value::from(fields.clone()).to_string().len());
        // What a line says beside its text must fit as well.
        let fields = fields.filter(|_| fields_bytes + message.len() <= LINE_BYTES_MAX);
        let bytes = message.len() + fields.as_ref().map_or(0, |_| fields_bytes) + LINE_OVERHEAD;
        Self { at: Instant::now(), level, message, fields, bytes }
    }

    fn dropped(count: u64) -> Self {
        let noun = if count == 1 { "line was" } else { "lines were" };
        Self::new(
            LogLevel::Warn,
            &format!("{count} {noun} dropped: the log is written faster than it is sent"),
            Map::new(),
        )
    }

    fn on_the_wire(self, now: Instant) -> ReportedLine {
        let age = now.saturating_duration_since(self.at).as_millis();
        ReportedLine {
            age: Some(Span::from_millis(u64::try_from(age).unwrap_or(u64::MAX))),
            level: Some(self.level),
            message: self.message,
            fields: self.fields,
        }
    }
}

/// Lines with consecutive numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    first: u64,
    lines: Vec<Line>,
}

impl Lines {
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The number after the last one.
    pub fn end(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    pub fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.bytes).sum()
    }

    pub fn on_the_wire(self, now: Instant) -> ReportedLines {
        ReportedLines {
            first: self.first,
            lines: self.lines.into_iter().map(|line| line.on_the_wire(now)).collect(),
        }
    }

    #[cfg(test)]
    pub fn messages(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.message.as_str()).collect()
    }
}

/// What a new line means for whoever sends lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is the first that waits.
    First,
    /// Others wait before it.
    Another,
    /// There are now so many that they should go at once.
    Many,
}

/// The lines of one attempt.
#[derive(Debug, Default)]
pub(crate) struct LogBuffer {
    /// The number of the first line in `lines`.
    first: u64,
    lines: VecDeque<Line>,
    bytes: usize,
    /// How many lines before `first` were dropped since the last notice of it.
    dropped: u64,
    dropped_total: u64,
}

impl LogBuffer {
    /// Adds a line.
    pub fn push(&mut self, line: Line, budget: &LogBudget) -> Pushed {
        let (was_empty, bytes_before) = (self.lines.is_empty(), self.bytes);
        let all = budget.0.fetch_add(line.bytes, Ordering::Relaxed) + line.bytes;
        self.bytes += line.bytes;
        self.lines.push_back(line);
        let mut over = all.saturating_sub(ALL_BYTES_MAX).max(self.bytes.saturating_sub(ATTEMPT_BYTES_MAX));
        while over > 0 && self.lines.len() > 1 {
            over = over.saturating_sub(self.pop(budget));
            self.dropped += 1;
            self.dropped_total += 1;
        }
        match (was_empty, bytes_before < SEND_BYTES && self.bytes >= SEND_BYTES) {
            (_, true) => Pushed::Many,
            (true, false) => Pushed::First,
            (false, false) => Pushed::Another,
        }
    }

    fn pop(&mut self, budget: &LogBudget) -> usize {
        let Some(line) = self.lines.pop_front() else { return 0 };
        self.first += 1;
        self.bytes -= line.bytes;
        budget.0.fetch_sub(line.bytes, Ordering::Relaxed);
        line.bytes
    }

    /// Whether so many wait that they should go at once.
    pub fn is_large(&self) -> bool {
        self.bytes >= SEND_BYTES
    }

    /// How many lines were dropped so far.
    pub fn dropped_total(&self) -> u64 {
        self.dropped_total
    }

    /// The lines that the server does not have, up to `bytes_max` of them.
    pub fn unsent(&self, bytes_max: usize) -> Lines {
        let mut lines = Vec::new();
        let mut bytes = 0;
        let notice = (self.dropped > 0).then(|| Line::dropped(self.dropped));
        let first = if notice.is_some() { self.first - 1 } else { self.first };
        for line in notice.into_iter().chain(self.lines.iter().cloned()) {
            bytes += line.bytes;
            if bytes > bytes_max && !lines.is_empty() {
                break;
            }
            lines.push(line);
        }
        Lines { first, lines }
    }

    /// The server has all lines before `end`.
    pub fn acknowledge(&mut self, end: u64, budget: &LogBudget) {
        if end >= self.first {
            self.dropped = 0;
        }
        while self.first < end && !self.lines.is_empty() {
            self.pop(budget);
        }
    }

    /// Takes all that is left, at the end of the attempt.
    pub fn take(&mut self, budget: &LogBudget) -> Lines {
        let lines = self.unsent(usize::MAX);
        self.acknowledge(u64::MAX, budget);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(lines: usize, bytes: usize, budget: &LogBudget) -> LogBuffer {
        let mut buffer = LogBuffer::default();
        for i in 0..lines {
            let text = format!("{i} {}", "x".repeat(bytes));
            buffer.push(Line::new(LogLevel::Info, &text, Map::new()), budget);
        }
        buffer
    }

    #[test]
    fn lines_are_numbered_and_stay_until_the_server_has_them() {
        let budget = LogBudget::default();
        let mut buffer = buffer(3, 1, &budget);
        let sent = buffer.unsent(usize::MAX);
        assert_eq!((sent.first, sent.end()), (0, 3));
        assert_eq!(buffer.unsent(usize::MAX).messages(), sent.messages());
        buffer.acknowledge(2, &budget);
        let rest = buffer.take(&budget);
        assert_eq!((rest.first, rest.messages()), (2, vec!["2 x"]));
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn when_there_are_too_many_the_oldest_go_and_one_line_says_how_many() {
        let budget = LogBudget::default();
        let mut buffer = buffer(1000, 1000, &budget);
        assert!(buffer.bytes <= ATTEMPT_BYTES_MAX);
        let kept = buffer.lines.len() as u64;
        let sent = buffer.take(&budget);
        let dropped = 1000 - kept;
        assert_eq!(sent.first, dropped - 1, "the notice has the number of a line that is gone");
        assert!(
            sent.messages()[0].starts_with(&format!("{dropped} lines were dropped")),
            "{}",
            sent.messages()[0]
        );
        assert_eq!(sent.end(), 1000);
        assert!(buffer.unsent(usize::MAX).is_empty());
    }

    #[test]
    fn all_attempts_together_are_bounded() {
        let budget = LogBudget::default();
        let buffers: Vec<_> = (0..100).map(|_| buffer(300, 1000, &budget)).collect();
        assert!(budget.0.load(Ordering::Relaxed) <= ALL_BYTES_MAX + 100 * 1100);
        assert!(buffers.iter().any(|buffer| buffer.dropped_total() > 0));
    }

    #[test]
    fn a_request_takes_so_many_bytes_and_at_least_one_line() {
        let budget = LogBudget::default();
        let buffer = buffer(10, 1000, &budget);
        assert_eq!(buffer.unsent(2_500).lines.len(), 2);
        assert_eq!(buffer.unsent(1).lines.len(), 1);
    }
}
