//! Commands and attempts to test with, and a look at the processes of this machine.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tickwheel_core::job::{ExitCodes, ProcessTarget};
use tickwheel_core::payload::Document;
use tickwheel_core::ports::{AttemptContext, Executor};
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Failure, Job, JobId, JobSpec, JsonText, Target, Timestamp};
use tickwheel_executor::executor::{ProcessExecutor, ProcessExecutorOptions};
use uuid::Uuid;

/// 2026-12-01T15:00:00Z.
pub const NOW: Timestamp = Timestamp::from_millis(1_796_137_200_000);
pub const JOB_ID: &str = "01990000-0000-7000-8000-000000000001";

pub fn options() -> ProcessExecutorOptions {
    ProcessExecutorOptions {
        passed_on: vec!["PATH".into()],
        stop_grace: Duration::from_millis(300),
        ..ProcessExecutorOptions::new(env!("CARGO_BIN_EXE_tickwheel-test-launcher"))
    }
}

pub fn executor() -> ProcessExecutor {
    ProcessExecutor::new(options())
}

pub fn command(words: &[&str]) -> ProcessTarget {
    ProcessTarget { command: words.iter().map(|word| (*word).to_owned()).collect(), ..Default::default() }
}

pub fn shell(script: &str) -> ProcessTarget {
    command(&["/bin/sh", "-c", script])
}

/// Exit codes of which these are not retried.
pub fn failing(codes: &[u8]) -> ExitCodes {
    ExitCodes { fail: codes.to_vec(), ..ExitCodes::default() }
}

/// The third attempt of a job that runs this, with time enough.
pub fn attempt(target: ProcessTarget) -> AttemptContext {
    attempt_within(target, Duration::from_secs(30))
}

pub fn attempt_within(target: ProcessTarget, timeout: Duration) -> AttemptContext {
    let timeout_ms = u64::try_from(timeout.as_millis()).unwrap();
    let spec = JobSpec { timeout_ms, ..JobSpec::new(Target::Process(target)) };
    let id = JobId::from_uuid(Uuid::try_parse(JOB_ID).unwrap());
    let mut job = Job::new(id, "back up", spec, NOW);
    job.attempt = 3;
    AttemptContext {
        payload: Document::Whole(JsonText::from_checked(r#"{"to": "you"}"#)),
        job: Box::new(job),
        token: "opaque-token".into(),
        deadline: NOW + timeout,
    }
}

/// What becomes of this command.
pub async fn outcome(target: ProcessTarget) -> Outcome {
    executor().run(&attempt(target)).await
}

/// What this script printed, as the result of its job.
pub async fn printed(target: ProcessTarget) -> String {
    match outcome(target).await {
        Outcome::Completed { result: Some(result) } => {
            serde_json::from_str(result.as_str()).unwrap_or_else(|_| result.as_str().to_owned())
        }
        other => panic!("it printed nothing: {other:?}"),
    }
}

pub fn failure_of(outcome: Outcome) -> (Failure, bool) {
    match outcome {
        Outcome::Failed { failure, retryable, retry_after: None } => (failure, retryable),
        other => panic!("it should have failed: {other:?}"),
    }
}

/// A number of seconds that no other process of this machine sleeps for: how to tell ours from others.
pub fn unusual_seconds() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}.{:03}", 1_000_000 + std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The processes whose command line has this word. Of a process that has ended nothing is left but its number.
pub fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(word)).collect()
}

/// Waits until so many are there.
pub async fn until_there_are(count: usize, word: &str) {
    for _ in 0..500 {
        if processes_with(word).len() == count {
            return;
        }
        // sleep: the system does not tell
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not {count} but {:?}", processes_with(word));
}

/// A running attempt that can be dropped.
pub fn running(executor: ProcessExecutor, attempt: AttemptContext) -> tokio::task::JoinHandle<Outcome> {
    let executor = Arc::new(executor);
    tokio::spawn(async move { executor.run(&attempt).await })
}
