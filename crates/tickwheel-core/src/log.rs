//! The logs of attempts: what a line is, how much of a log is kept, and what one says whose oldest lines are gone.
//!
//! Whoever writes numbers the lines of an attempt, so that what is sent twice is added once. Stores keep lines in
//! chunks; they carry out what is decided here.

use crate::job::JsonText;
use crate::time::Timestamp;
use crate::token::AttemptRef;
use crate::words::words;

/// Bytes of a line: its text and its fields. What is longer is cut.
pub const LINE_BYTES_MAX: usize = 16 << 10;
/// Bytes of the log of an attempt. When there are more, the oldest lines go.
pub const LOG_BYTES_MAX: usize = 1 << 20;
/// Lines of the log of an attempt. When there are more, the oldest go.
pub const LOG_LINES_MAX: usize = 10_000;

/// Bytes of a chunk; a line is never split.
pub const CHUNK_BYTES_MAX: usize = 64 << 10;
/// Lines of a chunk.
const CHUNK_LINES_MAX: usize = 500;

words! {
    /// How much a line matters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum LogLevel {
        /// For whoever looks for a fault.
        Debug = "debug",
        /// What happened.
        #[default]
        Info = "info",
        /// Something is odd.
        Warn = "warn",
        /// Something went wrong.
        Error = "error",
    }
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written, by the server's clock.
    pub at: Timestamp,
    /// How much it matters.
    pub level: LogLevel,
    /// The text.
    pub message: String,
    /// Facts beside the text: an object.
    pub fields: Option<JsonText>,
    /// Something of it was cut off.
    pub truncated: bool,
}

impl LogLine {
    /// A line that is no longer than a line may be. Its text is cut at the end; fields that do not fit are left out.
    pub fn cut(at: Timestamp, level: LogLevel, mut message: String, fields: Option<JsonText>) -> Self {
        let mut truncated = false;
        if message.len() > LINE_BYTES_MAX {
            message.truncate(message.floor_char_boundary(LINE_BYTES_MAX));
            truncated = true;
        }
        let room = LINE_BYTES_MAX - message.len();
        let fitting = fields.filter(|fields| {
            let fits = fields.as_str().len() <= room;
            truncated |= !fits;
            fits
        });
        Self { at, level, message, fields: fitting, truncated }
    }

    /// What it counts.
    pub fn bytes(&self) -> usize {
        self.message.len() + self.fields.as_ref().map_or(0, |fields| fields.as_str().len())
    }
}

/// Lines of one attempt that somebody sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogAppend {
    /// Whose.
    pub attempt: AttemptRef,
    /// The number of the first line; the others follow.
    pub first: u64,
    /// The lines.
    pub lines: Vec<LogLine>,
}

impl LogAppend {
    /// What its lines count.
    pub fn bytes(&self) -> usize {
        self.lines.iter().map(LogLine::bytes).sum()
    }
}

/// What a store knows about the log of an attempt without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LogHead {
    /// The number after that of the latest line.
    pub next: u64,
    /// No line with a smaller number is kept.
    pub first: u64,
    /// How many lines are kept.
    pub lines: u64,
    /// What they count.
    pub bytes: u64,
    /// How many lines were kept once, or came, and are gone.
    pub dropped: u64,
}

/// How large a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize {
    /// The number of its first line.
    pub first: u64,
    /// How many lines it has.
    pub lines: u64,
    /// What they count.
    pub bytes: u64,
}

/// Lines with consecutive numbers, kept together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogChunk {
    /// The number of the first line.
    pub first: u64,
    /// The lines.
    pub lines: Vec<LogLine>,
}

impl LogChunk {
    /// How large it is.
    pub fn size(&self) -> ChunkSize {
        ChunkSize {
            first: self.first,
            lines: self.lines.len() as u64,
            bytes: self.lines.iter().map(LogLine::bytes).sum::<usize>() as u64,
        }
    }
}

/// What has to be stored of lines that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// The chunks to add.
    pub chunks: Vec<LogChunk>,
    /// The oldest chunks may have to go first.
    pub must_drop: bool,
}

impl LogHead {
    /// Takes in lines: those that came before are left out, and so are the oldest of more than a log may have. Before
    /// the store adds the chunks, it has to [drop its oldest](Self::drop_oldest). What is taken in here always fits.
    pub fn append(&mut self, first: u64, lines: Vec<LogLine>) -> Appended {
        let known = usize::try_from(self.next.saturating_sub(first)).unwrap_or(usize::MAX);
        let mut lines = lines;
        if known >= lines.len() {
            return Appended::default();
        }
        lines.drain(..known);
        let mut first = first + known as u64;
        let surplus = surplus(&lines);
        if surplus > 0 {
            lines.drain(..surplus);
            first += surplus as u64;
            self.dropped += surplus as u64;
            // What was there before is older than what is dropped.
            self.first = first;
        }
        let chunks = into_chunks(first, lines);
        for size in chunks.iter().map(LogChunk::size) {
            self.next = size.first + size.lines;
            self.lines += size.lines;
            self.bytes += size.bytes;
        }
        let is_over = self.bytes > LOG_BYTES_MAX as u64 || self.lines > LOG_LINES_MAX as u64;
        Appended { chunks, must_drop: is_over || surplus > 0 }
    }

    /// Drops those of the oldest chunks that have to go, and says which: the first of them.
    pub fn drop_oldest<'c>(&mut self, oldest: &'c [ChunkSize]) -> &'c [ChunkSize] {
        let mut count = 0;
        while let Some(size) = oldest.get(count).filter(|size| self.is_over(**size)) {
            self.forget(*size);
            count += 1;
        }
        &oldest[..count]
    }

    const fn is_over(&self, oldest: ChunkSize) -> bool {
        self.bytes > LOG_BYTES_MAX as u64 || self.lines > LOG_LINES_MAX as u64 || oldest.first < self.first
    }

    fn forget(&mut self, oldest: ChunkSize) {
        self.lines = self.lines.saturating_sub(oldest.lines);
        self.bytes = self.bytes.saturating_sub(oldest.bytes);
        self.dropped += oldest.lines;
        self.first = self.first.max(oldest.first + oldest.lines);
    }
}

/// How many of the oldest lines are too many.
fn surplus(lines: &[LogLine]) -> usize {
    let mut bytes = 0;
    let fits = |line: &&LogLine| {
        bytes += line.bytes();
        bytes <= LOG_BYTES_MAX
    };
    lines.len() - lines.iter().rev().take(LOG_LINES_MAX).take_while(fits).count()
}

fn into_chunks(first: u64, lines: Vec<LogLine>) -> Vec<LogChunk> {
    let mut chunks: Vec<LogChunk> = Vec::new();
    let (mut number, mut bytes) = (first, 0);
    for line in lines {
        let len = line.bytes();
        match chunks.last_mut().filter(|chunk| chunk.lines.len() < CHUNK_LINES_MAX) {
            Some(chunk) if bytes + len <= CHUNK_BYTES_MAX => chunk.lines.push(line),
            _ => {
                chunks.push(LogChunk { first: number, lines: vec![line] });
                bytes = 0;
            }
        }
        number += 1;
        bytes += len;
    }
    chunks
}

/// A place in the log of a job: the next line to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LogPlace {
    /// The attempt.
    pub attempt: u32,
    /// The number of the line.
    pub line: u64,
}

/// A line and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedLine {
    /// Of which attempt.
    pub attempt: u32,
    /// Its number.
    pub number: u64,
    /// The line.
    pub line: LogLine,
}

impl NumberedLine {
    /// The place after it.
    pub const fn next(&self) -> LogPlace {
        LogPlace { attempt: self.attempt, line: self.number + 1 }
    }
}

/// A page of a log in the making. Stores pass it the chunks from its place on, in order.
#[derive(Clone, Debug)]
pub struct LogReading {
    place: LogPlace,
    lines: Vec<NumberedLine>,
    bytes: usize,
    lines_max: usize,
    bytes_max: usize,
    is_full: bool,
}

impl LogReading {
    /// Nothing yet. There is room for at least one line.
    pub const fn new(place: LogPlace, lines_max: usize, bytes_max: usize) -> Self {
        Self { place, lines: Vec::new(), bytes: 0, lines_max, bytes_max, is_full: false }
    }

    /// Whether it takes no further line.
    pub const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Adds a chunk of an attempt's log. If lines before it are gone, one line says how many: as many as there are
    /// smaller numbers, because whoever writes faster than he sends leaves some out.
    pub fn add(&mut self, attempt: u32, head: &LogHead, chunk: LogChunk) {
        if self.is_full {
            return;
        }
        if attempt > self.place.attempt {
            self.place = LogPlace { attempt, line: 0 };
        }
        if head.dropped > 0
            && self.place.line < head.first
            && let Some(first) = chunk.lines.first()
        {
            let line = missing(chunk.first, first.at);
            self.push(NumberedLine { attempt, number: head.first - 1, line });
        }
        for (number, line) in (chunk.first..).zip(chunk.lines) {
            if number >= self.place.line {
                self.push(NumberedLine { attempt, number, line });
            }
        }
    }

    fn push(&mut self, line: NumberedLine) {
        let has_room = self.lines.len() < self.lines_max && self.bytes < self.bytes_max;
        if self.is_full || !(has_room || self.lines.is_empty()) {
            self.is_full = true;
            return;
        }
        self.bytes += line.line.bytes();
        self.place = line.next();
        self.lines.push(line);
    }

    /// The page. `is_all`: there are no further chunks.
    pub fn finish(self, is_all: bool) -> LogPage {
        LogPage { is_last: is_all && !self.is_full, next: self.place, lines: self.lines }
    }
}

/// A page of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// The lines, in order.
    pub lines: Vec<NumberedLine>,
    /// Continue here, also with lines that do not exist yet.
    pub next: LogPlace,
    /// There is nothing more for now.
    pub is_last: bool,
}

/// The line that stands for those that are gone.
fn missing(count: u64, at: Timestamp) -> LogLine {
    let lines = if count == 1 { "line is" } else { "lines are" };
    let message = format!("{count} earlier {lines} missing: the log of an attempt is bounded");
    LogLine { at, level: LogLevel::Warn, message, fields: None, truncated: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> LogLine {
        LogLine::cut(Timestamp::from_millis(7), LogLevel::Info, text.into(), None)
    }

    fn lines(count: usize, bytes: usize) -> Vec<LogLine> {
        vec![line(&"x".repeat(bytes)); count]
    }

    /// A log with all its chunks, as a store keeps it.
    #[derive(Default)]
    struct Log {
        head: LogHead,
        chunks: Vec<LogChunk>,
    }

    impl Log {
        fn append(&mut self, first: u64, lines: Vec<LogLine>) {
            let new = self.head.append(first, lines);
            let sizes: Vec<ChunkSize> = self.chunks.iter().map(LogChunk::size).collect();
            let dropped = self.head.drop_oldest(&sizes).len();
            assert!(dropped == 0 || new.must_drop);
            self.chunks.drain(..dropped);
            self.chunks.extend(new.chunks);
            let sizes: Vec<ChunkSize> = self.chunks.iter().map(LogChunk::size).collect();
            assert_eq!(self.head.lines, sizes.iter().map(|size| size.lines).sum::<u64>());
            assert_eq!(self.head.bytes, sizes.iter().map(|size| size.bytes).sum::<u64>());
            assert!(self.head.bytes <= LOG_BYTES_MAX as u64 && self.head.lines <= LOG_LINES_MAX as u64);
        }

        fn read(&self, place: LogPlace, lines_max: usize) -> LogPage {
            let mut reading = LogReading::new(place, lines_max, usize::MAX);
            self.chunks.iter().for_each(|chunk| reading.add(1, &self.head, chunk.clone()));
            reading.finish(true)
        }

        fn numbers(&self) -> Vec<u64> {
            self.read(LogPlace::default(), usize::MAX).lines.iter().map(|line| line.number).collect()
        }
    }

    #[test]
    fn a_line_that_came_before_is_not_added_again() {
        let mut log = Log::default();
        log.append(0, lines(3, 10));
        log.append(0, lines(3, 10));
        log.append(1, lines(4, 10));
        log.append(2, lines(1, 10));
        assert_eq!(log.numbers(), [0, 1, 2, 3, 4]);
        log.append(9, lines(1, 10));
        assert_eq!(log.numbers(), [0, 1, 2, 3, 4, 9], "what never came leaves a gap");
    }

    #[test]
    fn a_line_is_cut_at_a_character_and_fields_that_do_not_fit_are_left_out() {
        let long = line(&"ä".repeat(LINE_BYTES_MAX));
        assert!(long.truncated && long.message.len() <= LINE_BYTES_MAX && long.message.ends_with('ä'));
        let fields = |len: usize| Some(JsonText::from_checked(format!(r#"{{"a":"{}"}}"#, "x".repeat(len))));
        let cut = |message: &str, len| {
            LogLine::cut(Timestamp::from_millis(0), LogLevel::Info, message.into(), fields(len))
        };
        assert!(cut("m", 100).fields.is_some() && !cut("m", 100).truncated);
        assert!(cut("m", LINE_BYTES_MAX).fields.is_none() && cut("m", LINE_BYTES_MAX).truncated);
    }

    #[test]
    fn of_too_much_the_oldest_goes_and_one_line_says_how_much() {
        let mut log = Log::default();
        for request in 0..100 {
            log.append(request * 100, lines(100, 1_000));
        }
        let page = log.read(LogPlace::default(), usize::MAX);
        let kept = page.lines.len() - 1;
        assert!(kept > 900 && kept <= LOG_BYTES_MAX / 1_000, "{kept}");
        assert_eq!(log.head.dropped, 10_000 - kept as u64);
        let first = &page.lines[0];
        assert_eq!(
            first.line.message,
            format!("{} earlier lines are missing: the log of an attempt is bounded", 10_000 - kept)
        );
        assert_eq!(page.lines[1].number, first.number + 1);
        assert_eq!(page.lines.last().unwrap().number, 9_999);
        let again = log.read(page.lines[5].next(), 3);
        assert_eq!(again.lines[0].number, page.lines[6].number, "the line is not repeated on later pages");
        assert!(!again.is_last);
    }

    /// The notice of a worker that it dropped lines may be among those that are gone.
    #[test]
    fn numbers_that_were_left_out_count_as_missing() {
        let mut log = Log::default();
        log.append(0, lines(1, 10));
        log.append(500, lines(2 * LOG_BYTES_MAX / 1_000, 1_000));
        let page = log.read(LogPlace::default(), usize::MAX);
        let missing = 500 + 2 * LOG_BYTES_MAX / 1_000 - (page.lines.len() - 1);
        let notice = &page.lines[0].line.message;
        assert!(notice.starts_with(&format!("{missing} earlier lines are missing")), "{notice}");
    }

    #[test]
    fn a_gap_right_after_what_is_gone_counts_as_missing() {
        let mut log = Log::default();
        log.append(0, lines(1, 10));
        for request in 0..16 {
            log.append(300 + request * 64, lines(64, LOG_BYTES_MAX / (16 * 64)));
        }
        let page = log.read(LogPlace::default(), usize::MAX);
        assert_eq!(page.lines[1].number, 300);
        assert!(page.lines[0].line.message.starts_with("300 earlier"), "{}", page.lines[0].line.message);
    }

    #[test]
    fn one_request_of_too_much_leaves_its_end_and_nothing_of_before() {
        let mut log = Log::default();
        log.append(0, lines(5, 10));
        log.append(5, lines(3_000, 1_000));
        let page = log.read(LogPlace::default(), usize::MAX);
        assert_eq!(page.lines.len() - 1, LOG_BYTES_MAX / 1_000);
        assert_eq!(log.head.dropped, 3_005 - (LOG_BYTES_MAX / 1_000) as u64);
        log.append(3_005, lines(20_000, 0));
        assert_eq!(log.head.lines, LOG_LINES_MAX as u64);
        log.append(23_005, lines(1, 0));
        assert_eq!(*log.numbers().last().unwrap(), 23_005);
    }

    #[test]
    fn pages_of_any_size_have_no_gaps_and_no_repeats() {
        let mut log = Log::default();
        for request in 0..10 {
            log.append(request * 7, lines(7, 30_000));
        }
        for lines_max in [1, 3, 69, 70, 71, 1_000] {
            let (mut place, mut seen) = (LogPlace::default(), Vec::new());
            loop {
                let page = log.read(place, lines_max);
                place = page.next;
                seen.extend(page.lines.iter().map(|line| line.number));
                if page.is_last {
                    break;
                }
            }
            assert_eq!(seen, log.numbers(), "{lines_max}");
        }
    }

    #[test]
    fn a_page_ends_when_it_has_enough_bytes_and_has_at_least_one_line() {
        let chunk = LogChunk { first: 0, lines: lines(10, 100) };
        let head = LogHead { next: 10, lines: 10, bytes: 1_000, ..LogHead::default() };
        let page = |bytes_max| {
            let mut reading = LogReading::new(LogPlace::default(), 1_000, bytes_max);
            reading.add(1, &head, chunk.clone());
            reading.finish(true)
        };
        assert_eq!((page(0).lines.len(), page(250).lines.len(), page(1_001).lines.len()), (1, 3, 10));
        assert!(!page(250).is_last && page(1_001).is_last);
    }

    #[test]
    fn each_attempt_has_its_own_numbers() {
        let mut reading = LogReading::new(LogPlace { attempt: 1, line: 1 }, 100, usize::MAX);
        let (head, chunk) = (LogHead::default(), LogChunk { first: 0, lines: lines(2, 1) });
        reading.add(1, &head, chunk.clone());
        reading.add(3, &head, chunk);
        let page = reading.finish(true);
        let places: Vec<(u32, u64)> = page.lines.iter().map(|line| (line.attempt, line.number)).collect();
        assert_eq!(places, [(1, 1), (3, 0), (3, 1)]);
        assert_eq!(page.next, LogPlace { attempt: 3, line: 2 });
    }
}
