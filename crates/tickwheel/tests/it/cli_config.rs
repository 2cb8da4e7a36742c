//! The configuration as a user meets it on the command line.

use std::path::PathBuf;

use crate::program::{run, tickwheel};

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tickwheel.toml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn a_valid_configuration_is_said_to_be_so() {
    let (_dir, path) = file("[engine]\nslots = 7\n");
    let checked = run(tickwheel(&["config", "check", "--config"]).arg(&path));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("valid"));
}

#[test]
fn all_problems_are_printed_with_line_and_caret_and_exit_code_2() {
    let (_dir, path) = file("[engine]\nslots = 0\nlanes = 3\n");
    for args in [&["config", "check", "--config"][..], &["serve", "--config"]] {
        let checked = run(tickwheel(args).env("TICKWHEEL_DEMO", "perhaps").arg(&path));
        assert_eq!(checked.code, Some(2), "{checked:?}");
        assert!(checked.stdout.is_empty());
        for part in [
            "3 problems",
            "toml:2:9: engine.slots",
            "2 | slots = 0\n    |         ^",
            "`lanes`",
            "TICKWHEEL_DEMO",
        ] {
            assert!(checked.stderr.contains(part), "{part:?} in {}", checked.stderr);
        }
    }
}

#[test]
fn the_effective_configuration_is_shown_without_secrets() {
    let (_dir, path) = file("[http]\nsigning_secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'\n");
    let mut command = tickwheel(&["config", "show"]);
    let command =
        command.env("TICKWHEEL_CONFIG", &path).env("TICKWHEEL_STORE", "postgres://ann:pssst@db/jobs");
    let shown = run(command);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("signing_secret = \"***\""), "{}", shown.stdout);
    assert!(shown.stdout.contains("url = \"postgres://ann:***@db/jobs\""), "{}", shown.stdout);
    assert!(!shown.stdout.contains("pssst") && !shown.stdout.contains("MfKQ"));
}

#[test]
fn serving_beyond_loopback_without_keys_is_refused_unless_asked_for() {
    let refused = run(&mut tickwheel(&["serve", "--listen", "0.0.0.0:0"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--allow-open-access"), "{}", refused.stderr);
}

#[test]
fn a_user_that_does_not_exist_cannot_run_commands() {
    let directory = tempfile::TempDir::new().unwrap();
    let data = format!("--data-dir={}", directory.path().display());
    let args = ["serve", "--allow-process-targets", "--listen=127.0.0.1:0", &data];
    let refused = run(tickwheel(&args).env("TICKWHEEL_PROCESS_USER", "no-such-user"));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("there is no user \"no-such-user\""), "{}", refused.stderr);
}

#[test]
fn bad_usage_has_exit_code_2() {
    for args in
        [&["jobs"][..], &["jobs", "fly"], &["jobs", "submit"], &["jobs", "list", "--status", "asleep"], &[]]
    {
        assert_eq!(run(&mut tickwheel(args)).code, Some(2), "{args:?}");
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let printed = run(&mut tickwheel(&["completions", shell]));
        assert_eq!(printed.code, Some(0), "{printed:?}");
        assert!(printed.stdout.contains("dead-letters"), "{shell}");
    }
}

#[test]
fn machines_get_the_configuration_as_json() {
    let (_dir, path) = file("[engine]\nslots = 7\n");
    let read = |args: &[&str], path: &PathBuf, code: i32| -> serde_json::Value {
        let run = run(tickwheel(args).arg(path));
        assert_eq!((run.code, run.stderr.as_str()), (Some(code), ""), "{run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    };
    assert_eq!(read(&["config", "show", "--json", "--config"], &path, 0)["engine"]["slots"], 7);
    assert_eq!(read(&["config", "check", "--json", "--config"], &path, 0)["valid"], true);
    let (_dir, bad) = file("[engine]\nslots = 0\n");
    let checked = read(&["config", "check", "--json", "--config"], &bad, 2);
    assert_eq!(checked["valid"], false);
    assert!(checked["problems"][0].as_str().unwrap().contains("engine.slots"), "{checked}");
}
