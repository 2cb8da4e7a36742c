//! Jobs that run commands: what comes of them, that nothing of them is left, and who may run what.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::{Api, id_of, text};
use crate::e2e::{Stage, for_a_while, on_both_stores, quick_retries};
use crate::e2e_cli::cli;
use crate::e2e_declared::{Files, assert_says};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, ServerBuilder, StoreKind};

on_both_stores! {
    a_command_runs_and_the_job_ends_as_its_exit_code_says,
    a_command_that_is_too_early_is_snoozed_and_that_costs_nothing,
    a_cancelled_command_ends_with_everything_it_started,
    a_command_over_its_time_ends_with_everything_it_started,
    nothing_of_a_command_outlives_a_server_that_is_killed_and_it_runs_again,
    a_server_that_stops_gives_its_commands_back_and_leaves_none_behind,
    a_server_that_may_not_run_commands_refuses_them_and_lets_others_wait,
    only_what_is_listed_may_run,
    a_crontab_is_imported_applied_and_runs,
}

fn allowed(kind: StoreKind) -> ServerBuilder {
    Server::builder(kind).arg("--allow-process-targets")
}

async fn stage(kind: StoreKind) -> Stage {
    Stage::on(allowed(kind).start().await).await
}

pub fn shell(script: &str) -> Value {
    json!({"type": "t", "target": {"process": {"command": ["/bin/sh", "-c", script]}}})
}

/// A number of seconds that no other process of this machine sleeps for.
pub fn unusual_seconds() -> String {
    format!("{}.{:09}", 2_000_000 + std::process::id(), rand::random_range(0..1_000_000_000))
}

/// The processes whose command line has this word.
fn processes_with(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

pub async fn until_there_are(count: usize, word: &str) {
    let look = async || (processes_with(word) == count).then_some(());
    eventually(&format!("{count} processes with {word}"), PATIENCE, look).await;
}

/// Three processes: a shell, a child, and one that left the shell's session.
pub fn family(seconds: &str) -> Value {
    shell(&format!("setsid sleep {seconds} & sleep {seconds}"))
}

async fn a_command_runs_and_the_job_ends_as_its_exit_code_says(kind: StoreKind) {
    let stage = stage(kind).await;
    let process = json!({
        "command": ["sh", "-c", "echo working; printf '{\"got\": %s, \"key\": \"%s\", \"a\": \"%s\"}\n' \"$(cat)\" \"$TICKWHEEL_IDEMPOTENCY_KEY\" \"$A\""],
        "env": {"A": "b"}, "cwd": "/tmp"
    });
    let job = json!({"type": "t", "target": {"process": process}, "payload": {"n": 1}});
    let id = id_of(&stage.api.submit(&job).await);
    let done = stage.until(&id, "completed").await;
    assert_eq!(done["result"], json!({"got": {"n": 1}, "key": id, "a": "b"}));
    assert_eq!(done["target"]["process"]["cwd"], "/tmp");

    let mut job = shell("echo 'no such disk' >&2; exit 9");
    job["retry"] = quick_retries(1);
    let id = id_of(&stage.api.submit(&job).await);
    let failed = stage.until(&id, "failed").await;
    assert_eq!(failed["error"]["code"], "exit_code");
    assert_eq!(failed["error"]["message"], "the command exited with 9: no such disk");
    assert_eq!(failed["attempt"], 2);

    job["target"]["process"]["exit_codes"] = json!({"fail": [9]});
    let id = id_of(&stage.api.submit(&job).await);
    assert_eq!(stage.until(&id, "failed").await["attempt"], 1);
    assert_eq!(stage.dead_letter(&id).await.json()["reason"], "not_retryable");
}

async fn a_command_that_is_too_early_is_snoozed_and_that_costs_nothing(kind: StoreKind) {
    let stage = stage(kind).await;
    let mut job = shell("[ \"$TICKWHEEL_ATTEMPT\" = 3 ] || exit 75");
    job["target"]["process"]["exit_codes"] = json!({"snooze": {"codes": [75], "delay": "1s"}});
    job["retry"] = json!({"max_retries": 0});
    let id = id_of(&stage.api.submit(&job).await);
    let done = stage.until(&id, "completed").await;
    assert_eq!((&done["attempt"], &done["retries"]), (&json!(3), &json!(0)));
    let attempts = stage.api.attempts(&id).await;
    let outcomes: Vec<_> = attempts.iter().map(|attempt| text(attempt, "outcome")).collect();
    assert_eq!(outcomes, ["snoozed", "snoozed", "completed"]);
}

async fn a_cancelled_command_ends_with_everything_it_started(kind: StoreKind) {
    let stage = stage(kind).await;
    let seconds = unusual_seconds();
    let id = id_of(&stage.api.submit(&family(&seconds)).await);
    until_there_are(3, &seconds).await;
    stage.act(&id, "cancel").await.success();
    stage.until(&id, "cancelled").await;
    until_there_are(0, &seconds).await;
}

async fn a_command_over_its_time_ends_with_everything_it_started(kind: StoreKind) {
    let stage = stage(kind).await;
    let seconds = unusual_seconds();
    let mut job = family(&seconds);
    (job["timeout"], job["retry"]) = (json!("1s"), json!({"max_retries": 0}));
    let id = id_of(&stage.api.submit(&job).await);
    let failed = stage.until(&id, "failed").await;
    assert_eq!(failed["error"]["code"], "timed_out");
    assert_eq!(processes_with(&seconds), 0, "they are gone before anybody hears of it");
}

async fn nothing_of_a_command_outlives_a_server_that_is_killed_and_it_runs_again(kind: StoreKind) {
    let mut stage = stage(kind).await;
    let seconds = unusual_seconds();
    let script = format!("[ $TICKWHEEL_ATTEMPT -gt 1 ] || {{ setsid sleep {seconds} & sleep {seconds}; }}");
    let id = id_of(&stage.api.submit(&shell(&script)).await);
    until_there_are(3, &seconds).await;
    stage.server.kill9().await;
    until_there_are(0, &seconds).await;
    stage.restart().await;
    let done = stage.until(&id, "completed").await;
    assert_eq!(done["attempt"], 2);
    assert_eq!(text(&stage.api.attempts(&id).await[0], "outcome"), "lost");
}

async fn a_server_that_stops_gives_its_commands_back_and_leaves_none_behind(kind: StoreKind) {
    let server = allowed(kind).env("TICKWHEEL_ENGINE_DRAIN_TIMEOUT", "200ms").start().await;
    let mut stage = Stage::on(server).await;
    let seconds = unusual_seconds();
    let id = id_of(&stage.api.submit(&family(&seconds)).await);
    until_there_are(3, &seconds).await;
    assert!(stage.server.terminate().await.success());
    until_there_are(0, &seconds).await;
    stage.restart().await;
    until_there_are(3, &seconds).await;
    assert_eq!(text(&stage.api.attempts(&id).await[0], "outcome"), "released");
    stage.act(&id, "cancel").await.success();
    until_there_are(0, &seconds).await;
}

async fn a_server_that_may_not_run_commands_refuses_them_and_lets_others_wait(kind: StoreKind) {
    let mut first = allowed(kind).start().await;
    let mut job = shell("echo 1");
    job["delay"] = json!("1s");
    let id = id_of(&first.api().submit(&job).await);
    first.kill9().await;

    let mut second = Server::builder(kind).beside(&first).start().await;
    let api = second.api();
    let problem = api.post("/api/v1/jobs", &job).await.expect(422).json();
    let error = &problem["errors"][0];
    assert_eq!((text(error, "code"), text(error, "pointer")), ("not_allowed", "/target/process"));
    assert!(text(error, "detail").contains("--allow-process-targets"), "{problem}");
    let in_workflow = json!({"name": "w", "tasks": [{"name": "a", "job": shell("true")}]});
    let problem = api.post("/api/v1/workflows", &in_workflow).await.expect(422).json();
    assert_eq!(problem["errors"][0]["pointer"], "/tasks/0/job/target/process");
    let scheduled = json!({"name": "s", "cron": "@daily", "job": shell("true")});
    let problem = api.post("/api/v1/schedules", &scheduled).await.expect(422).json();
    assert_eq!(problem["errors"][0]["pointer"], "/job/target/process");
    let why = async || {
        let why = api.get(&format!("/api/v1/jobs/{id}/why")).await.expect(200).json();
        Some(text(&why, "code").to_owned()).filter(|code| code != "not_yet_due")
    };
    assert_eq!(eventually("the job to be due", PATIENCE, why).await, "process_not_allowed");
    for_a_while(async || assert_eq!(api.job(&id).await["attempt"], 0)).await;
    second.kill9().await;

    first.restart().await;
    assert_eq!(first.api().wait(&id).await["result"], 1);
}

async fn only_what_is_listed_may_run(kind: StoreKind) {
    let config = "[process]\ncommands = [\"/bin/echo\", \"true\"]\nopen_files_max = 77\n";
    let stage = Stage::on(allowed(kind).config(config).start().await).await;
    let refused = stage.api.post("/api/v1/jobs", &shell("true")).await.expect(422).json();
    let error = &refused["errors"][0];
    assert_eq!((text(error, "code"), text(error, "pointer")), ("not_allowed", "/target/process/command/0"));
    for (command, result) in [(json!(["/bin/echo", "7"]), json!(7)), (json!(["true"]), Value::Null)] {
        let job = json!({"type": "t", "target": {"process": {"command": command}}});
        let id = id_of(&stage.api.submit(&job).await);
        assert_eq!(stage.until(&id, "completed").await["result"], result);
    }
}

/// A crontab as people have it: comments, variables in all spellings, a percent sign as input and one that is escaped, a
/// home, a shell, somebody to mail to.
fn crontab(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"# m h  dom mon dow   command
SHELL=/bin/bash
PATH=/usr/local/bin:/usr/bin:/bin
MAILTO="ops@example.org"
GREETING = "hello  there"
HOME={folder}

# every minute
* * * * *	[[ $SHELL == /bin/bash ]] && echo "$GREETING from $PWD" > greeting
*/1 * * * * cat > letter%Dear Ann,%100\% true.
* * * * * date +\%Y > year; echo "$PATH" > path
@daily touch never
"#
    )
}

async fn a_crontab_is_imported_applied_and_runs(kind: StoreKind) {
    // Two seconds before a full minute, so that nobody has to wait for one.
    let second = Timestamp::now().as_second().rem_euclid(60).unsigned_abs();
    let ahead = Duration::from_secs((58 + 60 - second) % 60);
    let stage = Stage::on(allowed(kind).clock_ahead(ahead).start().await).await;
    let (files, folder) = (Files::new(), TempDir::new().unwrap());
    let file = files.write("crontab", &crontab(folder.path()));
    let imported = cli(&stage, &["import", "crontab", &file, "--user"]).await;
    assert_says(&imported, 0, &["nothing is mailed: MAILTO is only kept in the metadata"]);
    let schedules = files.write("schedules.yaml", &imported.stdout);
    assert_says(&cli(&stage, &["apply", "-f", &schedules, "--yes"]).await, 0, &["created cat"]);

    for (name, content) in [
        ("greeting", format!("hello  there from {}\n", folder.path().display())),
        ("letter", "Dear Ann,\n100% true.\n".into()),
        ("path", "/usr/local/bin:/usr/bin:/bin\n".into()),
    ] {
        let look = async || fs::read_to_string(folder.path().join(name)).ok().filter(|text| *text == content);
        eventually(&format!("{name} to be {content:?}"), PATIENCE, look).await;
    }
    let year = fs::read_to_string(folder.path().join("year")).unwrap();
    assert!(year.trim().len() == 4 && year.starts_with("20"), "{year}");
    assert!(!folder.path().join("never").exists());
    let jobs = ended_jobs(&stage.api).await;
    assert!(jobs.iter().all(|job| job["status"] == "completed"), "{jobs:?}");
    assert!(jobs.iter().all(|job| job["metadata"]["mailto"] == "ops@example.org"));
    let again = cli(&stage, &["diff", "-f", &schedules]).await;
    assert_says(&again, 0, &["nothing to change"]);
}

async fn ended_jobs(api: &Api) -> Vec<Value> {
    let look = async || {
        let jobs = api.list("/api/v1/jobs").await;
        Some(jobs).filter(|jobs| jobs.len() >= 3 && jobs.iter().all(crate::api::has_ended))
    };
    eventually("the jobs to end", PATIENCE, look).await
}
