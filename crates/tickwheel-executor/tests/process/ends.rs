//! How commands end, and what that means.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use tickwheel_core::JsonText;
use tickwheel_core::job::{ExitCodes, ProcessTarget};
use tickwheel_core::ports::Executor as _;
use tickwheel_core::settle::Outcome;
use tickwheel_executor::executor::{ProcessExecutor, ProcessExecutorOptions, ProcessPolicy};

use crate::fixture::{attempt, command, executor, failing, failure_of, options, outcome, shell};

#[tokio::test]
async fn the_last_json_line_is_the_result() {
    let target = shell("echo starting; echo '{\"rows\": 5}'; echo >&2 '{\"no\": 1}'; echo bye");
    let result = Some(JsonText::from_checked("{\"rows\": 5}"));
    assert_eq!(outcome(target).await, Outcome::Completed { result });
    assert_eq!(outcome(command(&["true"])).await, Outcome::Completed { result: None });
}

#[tokio::test]
async fn a_failure_says_with_which_code_and_what_was_said_last() {
    let (failure, retryable) = failure_of(outcome(shell("echo no such disk >&2; exit 3")).await);
    assert_eq!(failure.code, "exit_code");
    assert_eq!((failure.message.as_str(), retryable), ("the command exited with 3: no such disk", true));
}

#[tokio::test]
async fn codes_mean_what_the_job_says() {
    let with = |script: &str, exit_codes| ProcessTarget { exit_codes, ..shell(script) };
    assert!(!failure_of(outcome(with("exit 3", failing(&[3]))).await).1);
    assert!(failure_of(outcome(with("exit 4", failing(&[3]))).await).1);
    let only_75 = ExitCodes { retry: Some(vec![75]), ..ExitCodes::default() };
    assert!(!failure_of(outcome(with("exit 3", only_75.clone())).await).1);
    assert!(failure_of(outcome(with("exit 75", only_75)).await).1);
    let snooze = ExitCodes { snooze: vec![75], snooze_ms: 60_000, ..ExitCodes::default() };
    let again_in = Duration::from_secs(60);
    assert_eq!(outcome(with("exit 75", snooze)).await, Outcome::Snoozed { again_in });
}

#[tokio::test]
async fn a_signal_counts_as_128_and_its_number() {
    let (failure, retryable) = failure_of(outcome(shell("kill -SEGV $$")).await);
    assert_eq!((failure.code.as_str(), retryable), ("signalled", true));
    assert!(failure.message.contains("signal 11 (SIGSEGV)"), "{failure:?}");
    let rules = ProcessTarget { exit_codes: failing(&[139]), ..shell("kill -SEGV $$") };
    assert!(!failure_of(outcome(rules).await).1);
}

#[tokio::test]
async fn what_cannot_be_run_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    let bad = folder.path().join("bad");
    std::fs::write(&bad, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&bad, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = |file: &std::path::Path| file.display().to_string();
    for (target, code, words) in [
        (command(&["no-such-program"]), "cannot_run", "no program \"no-such-program\" in PATH"),
        (command(&["/no/such/program"]), "cannot_run", "No such file"),
        (command(&["/bin"]), "cannot_run", "not a file"),
        (command(&[&path(&plain)]), "cannot_run", "not executable"),
        (ProcessTarget { cwd: Some("/no/such".into()), ..command(&["true"]) }, "cannot_run", "in /no/such"),
        (command(&[&path(&bad)]), "exit_code", "exited with 127: tickwheel: cannot run"),
    ] {
        let (failure, retryable) = failure_of(outcome(target).await);
        assert!(failure.code == code && failure.message.contains(words) && retryable, "{failure:?}");
    }
}

#[tokio::test]
async fn what_the_operator_does_not_allow_does_not_run() {
    let policy = ProcessPolicy { commands: vec!["/bin/sh".into()] };
    let executor = ProcessExecutor::new(ProcessExecutorOptions { policy, ..options() });
    let done = executor.run(&attempt(shell("exit 0"))).await;
    assert_eq!(done, Outcome::Completed { result: None });
    let preload = ("LD_PRELOAD".to_owned(), "x".to_owned());
    for target in [command(&["/bin/ls"]), ProcessTarget { env: vec![preload], ..shell("exit 0") }] {
        let (failure, retryable) = failure_of(executor.run(&attempt(target)).await);
        assert_eq!((failure.code.as_str(), retryable), ("command_forbidden", false), "{failure:?}");
    }
}

#[tokio::test]
async fn trouble_of_this_machine_is_not_the_jobs() {
    for launcher in ["/no/such/launcher", "/bin/false", "/bin/true"] {
        let executor =
            ProcessExecutor::new(ProcessExecutorOptions { launcher: launcher.into(), ..options() });
        let outcome = executor.run(&attempt(command(&["true"]))).await;
        assert!(matches!(outcome, Outcome::NotSent { .. }), "{launcher}: {outcome:?}");
    }
}

#[tokio::test]
async fn many_run_at_once() {
    let executor = executor();
    let attempts: Vec<_> = (0..30).map(|n| attempt(shell(&format!("echo {n}")))).collect();
    let mut running = tokio::task::JoinSet::new();
    let executor = std::sync::Arc::new(executor);
    for (n, attempt) in attempts.into_iter().enumerate() {
        let executor = executor.clone();
        running.spawn(async move { (n, executor.run(&attempt).await) });
    }
    for (n, outcome) in running.join_all().await {
        let result = Some(JsonText::from_checked(n.to_string()));
        assert_eq!(outcome, Outcome::Completed { result });
    }
}
