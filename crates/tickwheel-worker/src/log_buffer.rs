//! The lines of an attempt's log that the server does not have yet: numbered, bounded, the oldest go first.
//!
//! A line gets its number when it is sent, and stays until it has arrived: lines which are sent twice are added once.
//! When lines that wait are dropped, one line in their place says how many. It is sent alone, and the numbers of the
//! others are left out after it. So the server can say how many lines are missing by the number of the first it keeps,
//! also when it no longer keeps ours.

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
    /// Lines that were sent and are not known to have arrived.
    sent: Lines,
    /// So many numbers are left out after them.
    left_out: u64,
    waiting: VecDeque<Line>,
    waiting_bytes: usize,
    /// How many lines before those that wait were dropped since the last notice of it.
    dropped: u64,
    dropped_total: u64,
}

impl LogBuffer {
    /// Adds a line.
    pub fn push(&mut self, line: Line, budget: &LogBudget) -> Pushed {
        let (was_empty, bytes_before) = (self.is_empty(), self.waiting_bytes);
        let all = budget.0.fetch_add(line.bytes, Ordering::Relaxed) + line.bytes;
        self.waiting_bytes += line.bytes;
        self.waiting.push_back(line);
        let bytes = self.waiting_bytes + self.sent.bytes();
        let mut over = all.saturating_sub(ALL_BYTES_MAX).max(bytes.saturating_sub(ATTEMPT_BYTES_MAX));
        while over > 0 && self.waiting.len() > 1 {
            let Some(line) = self.next_waiting() else { break };
            budget.0.fetch_sub(line.bytes, Ordering::Relaxed);
            over = over.saturating_sub(line.bytes);
            self.dropped += 1;
            self.dropped_total += 1;
        }
        match (was_empty, bytes_before < SEND_BYTES && self.is_large()) {
            (_, true) => Pushed::Many,
            (true, false) => Pushed::First,
            (false, false) => Pushed::Another,
        }
    }

    fn next_waiting(&mut self) -> Option<Line> {
        let line = self.waiting.pop_front()?;
        self.waiting_bytes -= line.bytes;
        Some(line)
    }

    /// The notice of dropped lines, if there are any.
    fn next_notice(&mut self, budget: &LogBudget) -> Option<Line> {
        let count = std::mem::take(&mut self.dropped);
        let notice = (count > 0).then(|| Line::dropped(count))?;
        budget.0.fetch_add(notice.bytes, Ordering::Relaxed);
        self.left_out = count - 1;
        Some(notice)
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.waiting.is_empty()
    }

    /// Whether so many wait that they should go at once.
    pub fn is_large(&self) -> bool {
        self.waiting_bytes >= SEND_BYTES
    }

    /// How many lines were dropped so far.
    pub fn dropped_total(&self) -> u64 {
        self.dropped_total
    }

    /// The lines to send next, up to `bytes_max` of them: the same again until they are acknowledged.
    pub fn unsent(&mut self, bytes_max: usize, budget: &LogBudget) -> Lines {
        if self.sent.is_empty() {
            if let Some(notice) = self.next_notice(budget) {
                self.sent.lines.push(notice);
                return self.sent.clone();
            }
            let mut bytes = 0;
            while let Some(line) = self.waiting.front() {
                bytes += line.bytes;
                if bytes > bytes_max && !self.sent.is_empty() {
                    break;
                }
                let line = self.next_waiting();
                self.sent.lines.extend(line);
            }
        }
        self.sent.clone()
    }

    /// The server has all lines before `end`.
    pub fn acknowledge(&mut self, end: u64, budget: &LogBudget) {
        if self.sent.is_empty() || end < self.sent.end() {
            return;
        }
        budget.0.fetch_sub(self.sent.bytes(), Ordering::Relaxed);
        self.sent = Lines { first: self.sent.end() + self.left_out, lines: Vec::new() };
        self.left_out = 0;
    }

    /// Takes all that is left, at the end of the attempt. The server keeps it all, so no number has to be left out.
    pub fn take(&mut self, budget: &LogBudget) -> Lines {
        let notice = self.next_notice(budget);
        self.sent.lines.extend(notice.into_iter().chain(self.waiting.drain(..)));
        self.waiting_bytes = 0;
        let lines = self.sent.clone();
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
        let sent = buffer.unsent(2 * (3 + LINE_OVERHEAD), &budget);
        assert_eq!((sent.first, sent.messages()), (0, vec!["0 x", "1 x"]));
        assert_eq!(buffer.unsent(usize::MAX, &budget).messages(), sent.messages());
        buffer.acknowledge(sent.end(), &budget);
        let rest = buffer.take(&budget);
        assert_eq!((rest.first, rest.messages()), (2, vec!["2 x"]));
        assert!(buffer.is_empty());
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_was_sent_and_has_not_arrived_goes_again_with_the_rest() {
        let budget = LogBudget::default();
        let mut buffer = buffer(3, 1, &budget);
        buffer.unsent(1, &budget);
        let all = buffer.take(&budget);
        assert_eq!((all.first, all.messages()), (0, vec!["0 x", "1 x", "2 x"]));
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn when_there_are_too_many_the_oldest_go_and_one_line_says_how_many() {
        let budget = LogBudget::default();
        let mut buffer = buffer(1000, 1000, &budget);
        assert!(buffer.waiting_bytes <= ATTEMPT_BYTES_MAX);
        let dropped = 1000 - buffer.waiting.len();
        let sent = buffer.take(&budget);
        let notice = format!("{dropped} lines were dropped");
        assert!(sent.messages()[0].starts_with(&notice), "{}", sent.messages()[0]);
        assert_eq!((sent.first, sent.lines.len()), (0, 1 + 1000 - dropped));
        assert!(buffer.is_empty());
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }

    /// Whoever keeps only the newest lines knows by the number of the first how many there were before it.
    #[test]
    fn the_numbers_of_dropped_lines_are_left_out() {
        let budget = LogBudget::default();
        let mut buffer = buffer(1000, 1000, &budget);
        let dropped = 1000 - buffer.waiting.len() as u64;
        let notice = buffer.unsent(usize::MAX, &budget);
        assert_eq!((notice.first, notice.lines.len()), (0, 1));
        buffer.acknowledge(notice.end(), &budget);
        let rest = buffer.unsent(usize::MAX, &budget);
        assert_eq!((rest.first, rest.end()), (dropped, 1000));
    }

    #[test]
    fn lines_on_their_way_are_not_dropped() {
        let budget = LogBudget::default();
        let mut buffer = buffer(10, 1000, &budget);
        let sent = buffer.unsent(2_500, &budget);
        for _ in 0..1000 {
            buffer.push(Line::new(LogLevel::Info, &"y".repeat(1000), Map::new()), &budget);
        }
        assert_eq!(buffer.unsent(usize::MAX, &budget).messages(), sent.messages());
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
        assert_eq!(buffer(10, 1000, &budget).unsent(2_500, &budget).lines.len(), 2);
        assert_eq!(buffer(10, 1000, &budget).unsent(1, &budget).lines.len(), 1);
    }
}
