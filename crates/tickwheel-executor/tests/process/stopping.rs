//! Commands that are to end: they do, with everything that they started, and nothing stays behind.

use std::time::{Duration, Instant};

use tickwheel_core::ports::Executor as _;
use tickwheel_core::settle::Outcome;

use crate::fixture::{
    attempt, attempt_within, executor, options, outcome, processes_with, running, shell, until_there_are,
    unusual_seconds,
};
use tickwheel_executor::executor::{ProcessExecutor, ProcessExecutorOptions};

const SOON: Duration = Duration::from_millis(700);

/// A command with children in its group, outside it, and outside its session.
fn family(seconds: &str) -> String {
    format!(
        "sleep {seconds} & setsid sleep {seconds} & (setsid sh -c 'sleep {seconds} & sleep {seconds}' &); sleep {seconds}"
    )
}

#[tokio::test]
async fn the_timeout_ends_the_command_and_all_its_descendants() {
    let seconds = unusual_seconds();
    let started = Instant::now();
    let task = running(executor(), attempt_within(shell(&family(&seconds)), SOON));
    until_there_are(1, &format!("sh -c sleep {seconds} & setsid")).await;
    assert_eq!(task.await.unwrap(), Outcome::TimedOut);
    assert!(started.elapsed() >= SOON && started.elapsed() < Duration::from_secs(3));
    assert_eq!(processes_with(&seconds), [""; 0], "when the attempt is over, they are gone");
}

#[tokio::test]
async fn a_dropped_attempt_ends_the_command_and_all_its_descendants() {
    let seconds = unusual_seconds();
    let task = running(executor(), attempt(shell(&family(&seconds))));
    until_there_are(7, &seconds).await;
    task.abort();
    until_there_are(0, &seconds).await;
}

#[tokio::test]
async fn a_command_that_ignores_the_polite_signal_gets_the_other_one() {
    let seconds = unusual_seconds();
    let script = format!("trap '' TERM; sleep {seconds} & while :; do sleep {seconds}; done");
    let started = Instant::now();
    assert_eq!(executor().run(&attempt_within(shell(&script), SOON)).await, Outcome::TimedOut);
    let took = started.elapsed();
    assert!(
        took >= SOON + Duration::from_millis(300) && took < SOON + Duration::from_millis(1_400),
        "{took:?}"
    );
    assert_eq!(processes_with(&seconds), [""; 0]);
}

#[tokio::test]
async fn a_command_may_tidy_up_when_it_is_asked_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let script = format!(
        "trap 'echo yes > {path}/tidied; exit 0' TERM; echo > {path}/ready; while :; do sleep 0.02; done"
    );
    let task = running(executor(), attempt(shell(&script)));
    until_there_is(&folder.path().join("ready")).await;
    task.abort();
    until_there_is(&folder.path().join("tidied")).await;
}

async fn until_there_is(file: &std::path::Path) {
    for _ in 0..1_000 {
        if file.exists() {
            return;
        }
        // sleep: the system does not tell
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there is no {}", file.display());
}

#[tokio::test]
async fn a_stopped_command_is_ended_too() {
    let seconds = unusual_seconds();
    let script = format!("kill -STOP $$; sleep {seconds}");
    assert_eq!(executor().run(&attempt_within(shell(&script), SOON)).await, Outcome::TimedOut);
    assert_eq!(processes_with(&seconds), [""; 0]);
}

#[tokio::test]
async fn who_closes_its_streams_and_goes_on_is_still_waited_for_and_ended() {
    let script = "exec >&- 2>&- <&-; sleep 0.3; exit 7";
    let Outcome::Failed { failure, .. } = outcome(shell(script)).await else { panic!("it exits with 7") };
    assert_eq!(failure.message, "the command exited with 7");
    let seconds = unusual_seconds();
    let script = format!("exec >&- 2>&- <&-; sleep {seconds}");
    assert_eq!(executor().run(&attempt_within(shell(&script), SOON)).await, Outcome::TimedOut);
    assert_eq!(processes_with(&seconds), [""; 0]);
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_after_it() {
    let seconds = unusual_seconds();
    let script =
        format!("sleep {seconds} & setsid sleep {seconds} & trap '' TERM; setsid sleep {seconds} & echo 1");
    let started = Instant::now();
    let done = outcome(shell(&script)).await;
    assert!(matches!(done, Outcome::Completed { .. }), "{done:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(processes_with(&seconds), [""; 0]);
}

#[tokio::test]
async fn a_command_whose_supervisor_is_killed_dies_and_the_attempt_fails() {
    let seconds = unusual_seconds();
    let script = format!("kill -9 $PPID; sleep {seconds}");
    let Outcome::Failed { failure, retryable, .. } = outcome(shell(&script)).await else {
        panic!("it is lost")
    };
    assert_eq!((failure.code.as_str(), retryable), ("process_lost", true));
    until_there_are(0, &seconds).await;
}

#[tokio::test]
async fn nobody_is_left_on_the_systems_list_of_the_dead() {
    let options = ProcessExecutorOptions { stop_grace: Duration::from_millis(50), ..options() };
    for script in ["exit 0", "sleep 0.1 & exit 1", "no-such-command"] {
        ProcessExecutor::new(options.clone()).run(&attempt(shell(script))).await;
    }
    drop(running(ProcessExecutor::new(options), attempt(shell("exit 0"))).await);
    for _ in 0..500 {
        if zombies().is_empty() {
            return;
        }
        // sleep: the runtime takes them off when it hears of them
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("dead and not forgotten: {:?}", zombies());
}

fn zombies() -> Vec<String> {
    let own = format!(" {} ", std::process::id());
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(&format!(" Z{own}"))))
        .collect()
}
