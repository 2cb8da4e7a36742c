//! What a command prints.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickwheel_core::ports::{AttemptContext, Executor as _};
use tickwheel_core::settle::Outcome;
use tickwheel_executor::executor::{OutputSink, OutputStream, ProcessExecutor, ProcessExecutorOptions};

use crate::fixture::{attempt, attempt_within, command, failure_of, options, outcome, shell};

#[derive(Default)]
struct Lines(Mutex<Vec<(OutputStream, Vec<u8>)>>);

impl OutputSink for Lines {
    fn line(&self, _: &AttemptContext, stream: OutputStream, line: &[u8]) {
        let mut lines = self.0.lock().unwrap();
        if lines.len() < 1_000 {
            lines.push((stream, line.to_vec()));
        }
    }
}

#[tokio::test]
async fn every_line_reaches_the_sink() {
    let sink = Arc::new(Lines::default());
    let options = ProcessExecutorOptions { sink: sink.clone(), ..options() };
    let target = shell("echo one; echo; printf 'th\\000\\377ree'; echo oops >&2");
    ProcessExecutor::new(options).run(&attempt(target)).await;
    let lines = sink.0.lock().unwrap();
    let of = |wanted| {
        lines.iter().filter(|(stream, _)| *stream == wanted).map(|(_, line)| line.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(OutputStream::Stdout), [&b"one"[..], b"", b"th\0\xffree"]);
    assert_eq!(of(OutputStream::Stderr), [b"oops"]);
}

#[tokio::test]
async fn of_much_output_the_end_is_kept() {
    let script = "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo '{\"n\": 1}'";
    let Outcome::Completed { result: Some(result) } = outcome(shell(script)).await else { panic!() };
    assert_eq!(result.as_str(), "{\"n\": 1}");
    let script = "head -c 5000000 /dev/zero | tr '\\0' x; printf end";
    let Outcome::Completed { result: Some(result) } = outcome(shell(script)).await else { panic!() };
    assert!(result.as_str().len() < (64 << 10) + 100 && result.as_str().contains("xend\""));
}

#[tokio::test]
async fn who_prints_without_end_ends_with_the_timeout_and_takes_no_memory() {
    let before = memory_kib();
    let timeout = Duration::from_millis(1_500);
    let started = Instant::now();
    let outcome = ProcessExecutor::new(options()).run(&attempt_within(command(&["yes"]), timeout)).await;
    assert_eq!(outcome, Outcome::TimedOut);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert!(memory_kib() < before + 30_000, "{before} KiB have become {} KiB", memory_kib());
}

#[tokio::test]
async fn garbage_is_no_reason_to_fail() {
    let result = outcome(shell("head -c 100000 /dev/urandom; head -c 100000 /dev/urandom >&2")).await;
    assert!(matches!(result, Outcome::Completed { .. }), "{result:?}");
    let (failure, _) = failure_of(outcome(shell("head -c 100000 /dev/urandom >&2; exit 1")).await);
    assert!(!failure.message.contains('\0') && failure.message.chars().count() < 3_000);
}

fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}
