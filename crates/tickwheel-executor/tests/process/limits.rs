//! Memory, processor time and files.

use std::time::Duration;

use tickwheel_core::job::ProcessTarget;
use tickwheel_core::ports::Executor as _;
use tickwheel_core::settle::Outcome;
use tickwheel_executor::executor::{ProcessExecutor, ProcessExecutorOptions};

use crate::fixture::{attempt_within, failure_of, options, shell};

async fn limited(options: ProcessExecutorOptions, target: ProcessTarget) -> Outcome {
    ProcessExecutor::new(options).run(&attempt_within(target, Duration::from_secs(20))).await
}

#[tokio::test]
async fn a_process_gets_no_more_memory_than_that() {
    let options = ProcessExecutorOptions { memory_bytes_max: Some(64 << 20), ..options() };
    let greedy = "head -c 200000000 /dev/zero | tail -c 150000000 > /dev/null";
    let (failure, _) = failure_of(limited(options.clone(), shell(greedy)).await);
    assert_eq!(failure.code, "exit_code", "{failure:?}");
    let modest = limited(options, shell("ulimit -v; ulimit -H -v")).await;
    let Outcome::Completed { result: Some(result) } = modest else { panic!("{modest:?}") };
    assert_eq!(result.as_str(), "65536", "in KiB, and nobody can raise it");
}

#[tokio::test]
async fn a_process_gets_no_more_processor_time_than_that() {
    let options = ProcessExecutorOptions { cpu_seconds_max: Some(1), ..options() };
    let (failure, _) = failure_of(limited(options, shell("exec sh -c 'while :; do :; done'")).await);
    assert_eq!(failure.code, "signalled", "{failure:?}");
    assert!(failure.message.contains("SIGXCPU"), "{failure:?}");
}

#[tokio::test]
async fn a_process_opens_no_more_files_than_that() {
    let options = ProcessExecutorOptions { open_files_max: Some(16), ..options() };
    let outcome = limited(options, shell("ulimit -n; ulimit -H -n")).await;
    let Outcome::Completed { result: Some(result) } = outcome else { panic!("{outcome:?}") };
    assert_eq!(result.as_str(), "16");
}
