//! The logs of attempts: numbered, bounded, and readable while they grow.

use std::sync::Arc;

use tickwheel_core::log::{LOG_BYTES_MAX, LogAppend, LogLevel, LogLine, LogPage, LogPlace};
use tickwheel_core::ports::{LogQuery, Store};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{Job, JobId, JsonText};

use super::bench::{Bench, ODD_TEXT, answered, completes, goes_again};
use crate::fixtures::{at, job, job_id};

fn line(text: impl Into<String>) -> LogLine {
    LogLine::cut(at(5), LogLevel::Info, text.into(), None)
}

fn lines<const N: usize>(texts: [&str; N]) -> Vec<LogLine> {
    texts.map(line).to_vec()
}

fn append(job_id: JobId, attempt: u32, first: u64, lines: Vec<LogLine>) -> LogAppend {
    LogAppend { attempt: AttemptRef { job_id, attempt }, first, lines }
}

fn all(job_id: JobId) -> LogQuery {
    LogQuery { job_id, attempt: None, from: LogPlace::default(), lines_max: 1_000, bytes_max: usize::MAX }
}

impl Bench {
    async fn log(&self, appends: impl IntoIterator<Item = LogAppend>) -> Vec<bool> {
        answered(self.store.append_logs(appends.into_iter().collect()).await)
    }

    async fn log_page(&self, query: LogQuery) -> LogPage {
        answered(self.store.read_logs(query).await)
    }

    /// The texts of all lines, page after page.
    async fn texts(&self, mut query: LogQuery) -> Vec<String> {
        let mut texts = Vec::new();
        loop {
            let page = self.log_page(query).await;
            texts.extend(page.lines.into_iter().map(|line| line.line.message));
            if page.is_last {
                return texts;
            }
            query.from = page.next;
        }
    }

    async fn logging(&self) -> Job {
        self.running(job()).await
    }
}

pub async fn lines_are_read_as_they_were_written(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let job = bench.logging().await;
    let fields = Some(JsonText::from_checked(r#"{"to":"a@b","n":[1,2.50,null]}"#));
    let written = vec![
        LogLine::cut(at(1), LogLevel::Debug, ODD_TEXT.into(), fields),
        LogLine::cut(at(2), LogLevel::Error, "\0 and \u{1b}[31m".into(), None),
        LogLine { truncated: true, ..line("") },
    ];
    assert_eq!(bench.log([append(job.id, 1, 0, written.clone())]).await, [true]);
    let page = bench.log_page(all(job.id)).await;
    assert!(page.is_last);
    assert_eq!(page.next, LogPlace { attempt: 1, line: 3 });
    let numbers: Vec<(u32, u64)> = page.lines.iter().map(|line| (line.attempt, line.number)).collect();
    assert_eq!(numbers, [(1, 0), (1, 1), (1, 2)]);
    assert_eq!(page.lines.into_iter().map(|line| line.line).collect::<Vec<_>>(), written);
}

pub async fn a_line_that_is_sent_twice_is_there_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let id = bench.logging().await.id;
    bench.log([append(id, 1, 0, lines(["a", "b"]))]).await;
    bench.log([append(id, 1, 0, lines(["a", "b"])), append(id, 1, 1, lines(["b", "c", "d"]))]).await;
    bench
        .log([append(id, 1, 3, lines(["d"])), append(id, 1, 4, lines(["e"])), append(id, 1, 4, lines(["e"]))])
        .await;
    assert_eq!(bench.texts(all(id)).await, ["a", "b", "c", "d", "e"]);
    bench.log([append(id, 1, 9, lines(["j"]))]).await;
    assert_eq!(bench.log_page(all(id)).await.lines.last().map(|line| line.number), Some(9));
}

pub async fn each_attempt_of_each_job_has_its_own_log(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (first, second) = (bench.logging().await, bench.logging().await);
    let written = [
        append(first.id, 2, 0, lines(["again"])),
        append(first.id, 1, 0, lines(["once"])),
        append(second.id, 1, 0, lines(["other"])),
    ];
    assert_eq!(bench.log(written).await, [true; 3]);
    assert_eq!(bench.texts(all(first.id)).await, ["once", "again"]);
    assert_eq!(bench.texts(all(second.id)).await, ["other"]);
    for (attempt, expected) in [(1, &["once"][..]), (2, &["again"][..]), (3, &[][..])] {
        assert_eq!(bench.texts(LogQuery { attempt: Some(attempt), ..all(first.id) }).await, expected);
    }
    let later = LogQuery { from: LogPlace { attempt: 2, line: 0 }, ..all(first.id) };
    assert_eq!(bench.texts(later).await, ["again"]);
    assert_eq!(bench.texts(LogQuery { attempt: Some(1), ..later }).await, [""; 0]);
}

/// Who writes lines may be late: what they say matters all the more.
pub async fn lines_of_an_attempt_that_is_over_are_kept(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.logging().await;
    bench.log([append(running.id, 1, 0, lines(["a"]))]).await;
    bench.settle(goes_again(&running)).await;
    assert_eq!(bench.log([append(running.id, 1, 1, lines(["b"]))]).await, [true]);
    let again = bench.start(&bench.job(running.id).await).await;
    assert_eq!(again.attempt, 2);
    bench.log([append(running.id, 2, 0, lines(["c"]))]).await;
    bench.settle(completes(&again)).await;
    assert_eq!(bench.log([append(running.id, 2, 1, lines(["d"]))]).await, [true]);
    assert_eq!(bench.texts(all(running.id)).await, ["a", "b", "c", "d"]);
}

pub async fn a_job_that_does_not_exist_has_no_log(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (unknown, job) = (job_id(at(0), 1 << 40), bench.logging().await);
    let written = [append(unknown, 1, 0, lines(["a"])), append(job.id, 1, 0, lines(["b"]))];
    assert_eq!(bench.log(written).await, [false, true]);
    let page = bench.log_page(all(unknown)).await;
    assert_eq!((page.lines.len(), page.is_last, page.next), (0, true, LogPlace::default()));
    assert_eq!(bench.texts(all(job.id)).await, ["b"]);
}

pub async fn pages_of_a_log_have_no_gaps_and_no_repeats(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let id = bench.logging().await.id;
    let mut expected = Vec::new();
    for attempt in 1..=3 {
        let mut first = 0;
        for count in [1, 7, 1, 600, 2] {
            let texts: Vec<String> = (first..first + count).map(|n| format!("{attempt}-{n}")).collect();
            bench.log([append(id, attempt, first, texts.iter().map(line).collect())]).await;
            expected.extend(texts);
            first += count;
        }
    }
    for lines_max in [1, 2, 8, 500, 611, 1_000] {
        let texts = bench.texts(LogQuery { lines_max, ..all(id) }).await;
        assert_eq!(texts, expected, "{lines_max}");
        let page = bench.log_page(LogQuery { lines_max, ..all(id) }).await;
        assert!(page.lines.len() <= lines_max);
    }
}

pub async fn a_page_of_a_log_ends_when_it_has_enough_bytes(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let id = bench.logging().await.id;
    let text = |n: usize| format!("{n:>10000}");
    for request in 0..9 {
        let texts = (request * 11..(request + 1) * 11).map(|n| line(text(n)));
        bench.log([append(id, 1, request as u64 * 11, texts.collect())]).await;
    }
    for bytes_max in [1, 9_999, 25_000, 70_000, 130_000, 1 << 20] {
        let page = bench.log_page(LogQuery { bytes_max, ..all(id) }).await;
        assert!(!page.lines.is_empty() && page.lines.len() <= bytes_max / 10_000 + 1, "{bytes_max}");
        let texts = bench.texts(LogQuery { bytes_max, ..all(id) }).await;
        assert_eq!(texts, (0..99).map(text).collect::<Vec<_>>(), "{bytes_max}");
    }
}

pub async fn a_long_log_loses_its_oldest_lines_and_says_so(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let id = bench.logging().await.id;
    let text = |n: u64| format!("{n:>1000}");
    let mut sent = 0;
    // Many small ones, some large ones, and one that is larger than a log.
    for count in [1; 130].into_iter().chain([700, 700]).chain([1; 130]).chain([2_000, 1]) {
        bench.log([append(id, 1, sent, (sent..sent + count).map(|n| line(text(n))).collect())]).await;
        sent += count;
        let texts = bench.texts(all(id)).await;
        let (notice, kept) = if sent as usize * 1_000 > LOG_BYTES_MAX {
            let (notice, kept) = texts.split_first().expect("a line");
            (Some(notice), kept)
        } else {
            (None, &texts[..])
        };
        let missing = sent - kept.len() as u64;
        assert_eq!(notice.is_some(), missing > 0);
        if let Some(notice) = notice {
            assert!(notice.starts_with(&format!("{missing} earlier lines are missing")), "{notice}");
            assert!(kept.len() > LOG_BYTES_MAX / 1_000 - 66, "{}", kept.len());
        }
        assert!(kept.len() * 1_000 <= LOG_BYTES_MAX);
        assert_eq!(kept, (missing..sent).map(text).collect::<Vec<_>>());
    }
}

/// Whoever reads on from a place whose lines are gone hears of it.
pub async fn a_reader_that_is_too_slow_is_told_what_it_missed(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let id = bench.logging().await.id;
    let some = |count: u64| (0..count).map(|_| line("x".repeat(1_000))).collect::<Vec<_>>();
    bench.log([append(id, 1, 0, some(10))]).await;
    let place = bench.log_page(all(id)).await.next;
    bench.log([append(id, 1, 10, some(1_048)), append(id, 1, 1_058, some(500))]).await;
    let rest = bench.log_page(LogQuery { from: place, ..all(id) }).await;
    assert!(rest.lines[0].line.message.contains("missing"));
    assert_eq!(rest.lines[1].number, rest.lines[0].number + 1);
    let on = bench.log_page(LogQuery { from: rest.lines[0].next(), ..all(id) }).await;
    assert_eq!(on.lines[0].number, rest.lines[1].number);
}

pub async fn many_who_write_to_one_log_add_each_line_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let id = bench.logging().await.id;
    for round in 0..5_u64 {
        let first = round * 3;
        let write = async || bench.log([append(id, 1, first, lines(["a", "b", "c"]))]).await;
        let (one, two, three) = tokio::join!(write(), write(), write());
        assert_eq!([one, two, three], [[true], [true], [true]]);
    }
    let numbers: Vec<u64> = bench.log_page(all(id)).await.lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, (0..15).collect::<Vec<_>>());
}
