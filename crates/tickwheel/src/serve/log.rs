//! Where log lines go: to standard error, through a bounded buffer and a thread of its own.
//!
//! Invariant: logging never harms. Nobody who logs waits for standard error or hears of its errors: a line that finds
//! the buffer full (a reader that stands still) or cannot be written (a full disk, a reader that is gone) is dropped
//! and counted. A log line is one line: line breaks inside it are escaped.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::{counter, describe_counter};
use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait to be written.
const BUFFER_BYTES_MAX: usize = 1024 * 1024;

/// How many lines were dropped.
pub const DROPPED: &str = "tickwheel_log_lines_dropped_total";

/// Registers the counter, once metrics are collected.
pub fn describe_metrics() {
    describe_counter!(DROPPED, "Log lines that could not be written.");
    counter!(DROPPED).increment(0);
}

/// Takes log lines in. Clones share the buffer.
#[derive(Clone, Debug, Default)]
pub struct LogWriter(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    buffer: Mutex<Buffer>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Buffer {
    waiting: Vec<u8>,
    /// Lines are being written that are in the buffer no more.
    writing: bool,
    /// Lines that were dropped since it was last said.
    dropped: u64,
}

impl LogWriter {
    /// Starts the thread that writes to standard error.
    pub fn start() -> io::Result<Self> {
        let writer = Self::default();
        let ours = writer.clone();
        std::thread::Builder::new().name("log".into()).spawn(move || {
            loop {
                ours.write_waiting(&mut io::stderr());
            }
        })?;
        Ok(writer)
    }

    /// Waits until what was logged is written, but not for ever.
    pub fn flush_for(&self, at_most: Duration) {
        let buffer = self.lock();
        let unwritten = |buffer: &mut Buffer| buffer.writing || !buffer.waiting.is_empty();
        drop(self.0.changed.wait_timeout_while(buffer, at_most, unwritten));
    }

    fn take_in(&self, line: &[u8]) {
        let mut buffer = self.lock();
        if buffer.waiting.len() + line.len() > BUFFER_BYTES_MAX {
            buffer.drop_line();
        } else {
            push_as_one_line(&mut buffer.waiting, line);
            self.0.changed.notify_all();
        }
    }

    /// Waits for lines and writes them, one at a time so that what a pipe takes is whole.
    fn write_waiting(&self, out: &mut impl Write) {
        let mut buffer = self.lock();
        while buffer.waiting.is_empty() {
            buffer = self.0.changed.wait(buffer).unwrap_or_else(PoisonError::into_inner);
        }
        let lines = std::mem::take(&mut buffer.waiting);
        buffer.writing = true;
        drop(buffer);
        let mut written_last = true;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            written_last = out.write_all(line).is_ok();
            if !written_last {
                self.lock().drop_line();
            }
        }
        let mut buffer = self.lock();
        buffer.writing = false;
        let dropped = if written_last { std::mem::take(&mut buffer.dropped) } else { 0 };
        drop(buffer);
        self.0.changed.notify_all();
        if dropped > 0 {
            tracing::warn!(lines = dropped, "log lines were dropped because nobody read them");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.0.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    fn drop_line(&mut self) {
        self.dropped += 1;
        counter!(DROPPED).increment(1);
    }
}

fn push_as_one_line(waiting: &mut Vec<u8>, line: &[u8]) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    for byte in line {
        match byte {
            b'\n' => waiting.extend_from_slice(b"\\n"),
            b'\r' => waiting.extend_from_slice(b"\\r"),
            byte => waiting.push(*byte),
        }
    }
    waiting.push(b'\n');
}

/// The subscriber hands in one whole line at a time.
impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.take_in(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(writer: &LogWriter) -> String {
        let mut out = Vec::new();
        writer.write_waiting(&mut out);
        String::from_utf8(out).unwrap()
    }

    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_line_is_one_line() {
        let writer = LogWriter::default();
        writer.take_in(b"an error:\n  in two\r\nlines\n");
        writer.take_in(b"another\n");
        assert_eq!(written(&writer), "an error:\\n  in two\\r\\nlines\nanother\n");
    }

    #[test]
    fn what_nobody_takes_is_dropped_and_counted_until_there_is_room_again() {
        let writer = LogWriter::default();
        let line = [b'x'; 1000];
        for _ in 0..2 * BUFFER_BYTES_MAX / line.len() {
            writer.take_in(&line);
        }
        assert!(writer.lock().waiting.len() <= BUFFER_BYTES_MAX);
        assert!(writer.lock().dropped > 1_000);
        assert!(written(&writer).len() > BUFFER_BYTES_MAX / 2);
        assert_eq!(writer.lock().dropped, 0, "it was said");
        writer.take_in(b"room again\n");
        assert_eq!(written(&writer), "room again\n");
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_the_next_ones_tried() {
        let writer = LogWriter::default();
        writer.take_in(b"one\ntwo\n");
        writer.take_in(b"three\n");
        writer.write_waiting(&mut Broken);
        assert_eq!(writer.lock().dropped, 2);
        writer.take_in(b"four\n");
        assert_eq!(written(&writer), "four\n");
    }

    #[test]
    fn a_flush_does_not_wait_for_ever() {
        let writer = LogWriter::default();
        writer.flush_for(Duration::from_secs(3_600));
        writer.take_in(b"stuck\n");
        writer.flush_for(Duration::from_millis(1));
    }
}
