//! What a process prints: passed on line by line, and its end kept.
//!
//! Nothing here grows: a process may print without end. What goes beyond the first megabytes is read at a measured
//! pace, so that a process that prints as fast as it can does not take the server's processor with it.

use std::collections::VecDeque;
use std::time::Duration;

use tickwheel_core::ports::AttemptContext;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Which of its two streams a process wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Where the lines of processes go.
///
/// An implementation MUST NOT block and MUST bound what it keeps: a process may print without end.
pub trait OutputSink: Send + Sync {
    /// A line without its end, of any bytes. One of more than [`LINE_BYTES_MAX`] comes in pieces.
    fn line(&self, attempt: &AttemptContext, stream: OutputStream, line: &[u8]);
}

/// Keeps nothing. The end of the output is kept by the executor itself, for the result and the failure.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl OutputSink for NoSink {
    fn line(&self, _: &AttemptContext, _: OutputStream, _: &[u8]) {}
}

/// A longer line is passed on in pieces.
pub const LINE_BYTES_MAX: usize = 8 << 10;

const READ_BYTES: usize = 64 << 10;
/// So much is read as fast as it comes …
const FAST_BYTES_MAX: u64 = 16 << 20;
/// … and then a buffer for each of these: 16 MiB a second at the most.
const PACE: Duration = Duration::from_millis(4);

/// Reads to the end of a stream, giving its lines to `line` and its end to `tail`.
pub(super) async fn read_all(
    mut stream: impl AsyncRead + Unpin,
    tail: &mut Tail,
    mut line: impl FnMut(&[u8]),
) -> std::io::Result<()> {
    let mut lines = Lines::default();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            lines.finish(&mut line);
            return Ok(());
        }
        tail.push(&buffer[..count]);
        lines.push(&buffer[..count], &mut line);
        if tail.total > FAST_BYTES_MAX {
            tokio::time::sleep(PACE).await;
        }
    }
}

/// The end of a stream.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    bytes_max: usize,
    total: u64,
}

impl Tail {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes: VecDeque::new(), bytes_max, total: 0 }
    }

    fn push(&mut self, new: &[u8]) {
        self.total += new.len() as u64;
        let new = &new[new.len().saturating_sub(self.bytes_max)..];
        let too_many = (self.bytes.len() + new.len()).saturating_sub(self.bytes_max);
        self.bytes.drain(..too_many);
        self.bytes.extend(new);
    }

    /// Whether its beginning was dropped.
    pub(super) fn is_cut(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// What was kept.
    pub(super) fn bytes(&mut self) -> &[u8] {
        self.bytes.make_contiguous()
    }
}

/// Takes a stream apart into lines.
#[derive(Debug, Default)]
struct Lines {
    open: Vec<u8>,
}

impl Lines {
    fn push(&mut self, mut bytes: &[u8], line: &mut impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            let room = LINE_BYTES_MAX - self.open.len();
            let end = bytes.iter().take(room).position(|b| *b == b'\n');
            let taken = end.unwrap_or_else(|| bytes.len().min(room));
            self.open.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken + usize::from(end.is_some())..];
            if end.is_some() || self.open.len() == LINE_BYTES_MAX {
                line(&self.open);
                self.open.clear();
            }
        }
    }

    fn finish(mut self, line: &mut impl FnMut(&[u8])) {
        if !self.open.is_empty() {
            line(&std::mem::take(&mut self.open));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_however_it_comes() {
        let text: Vec<u8> = (0..1000_u32).map(|n| (n % 251) as u8).collect();
        for piece in [1, 7, 100, 999, 1000] {
            let mut tail = Tail::new(100);
            text.chunks(piece).for_each(|chunk| tail.push(chunk));
            assert_eq!(tail.bytes(), &text[900..], "{piece}");
            assert!(tail.is_cut());
        }
        let mut whole = Tail::new(100);
        whole.push(&text[..100]);
        assert!(!whole.is_cut() && whole.bytes() == &text[..100]);
    }

    fn lines_of(text: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let (mut lines, mut seen) = (Lines::default(), Vec::new());
        let mut see = |line: &[u8]| seen.push(line.to_vec());
        text.chunks(piece).for_each(|chunk| lines.push(chunk, &mut see));
        lines.finish(&mut see);
        seen
    }

    #[test]
    fn lines_are_the_same_however_they_come() {
        for piece in [1, 2, 3, 100] {
            assert_eq!(lines_of(b"a\n\nbcd\ne", piece), [&b"a"[..], b"", b"bcd", b"e"], "{piece}");
        }
    }

    #[test]
    fn a_line_without_end_comes_in_pieces() {
        let pieces = lines_of(&vec![b'x'; 3 * LINE_BYTES_MAX + 1], 1000);
        let lengths: Vec<_> = pieces.iter().map(Vec::len).collect();
        assert_eq!(lengths, [LINE_BYTES_MAX, LINE_BYTES_MAX, LINE_BYTES_MAX, 1]);
    }
}
