//! The command line against a real server: what a person and a script see, and the exit codes scripts rely on.

use serde_json::{Value, json};

use crate::api::text;
use crate::e2e::{Stage, on_both_stores, quick_retries};
use crate::program::{Run, run, run_with_input, tickwheel};
use crate::server::StoreKind;
use crate::target::{Gate, Reply};

on_both_stores! {
    a_job_is_submitted_waited_for_and_looked_at,
    waiting_for_a_job_that_fails_has_exit_code_1,
    what_the_server_refuses_has_exit_code_2,
    jobs_are_listed_and_filtered,
    jobs_are_cancelled_run_and_retried,
    a_job_says_why_it_is_not_running,
    a_job_is_submitted_after_others_and_shows_how_they_stand,
    dead_letters_are_listed_redriven_and_discarded,
    queues_are_paused_and_resumed,
    the_stop_switch_is_turned_both_ways,
    many_jobs_come_from_a_file_of_lines,
}

/// Runs the program against the stage's server, while the stage's target goes on answering.
pub async fn cli(stage: &Stage, args: &[&str]) -> Run {
    cli_with_input(stage, args, "").await
}

/// The same, with `input` as standard input.
pub async fn cli_with_input(stage: &Stage, args: &[&str], input: &str) -> Run {
    let mut command = tickwheel(args);
    command.env("TICKWHEEL_SERVER", stage.server.url());
    let input = input.to_owned();
    let running =
        move || if input.is_empty() { run(&mut command) } else { run_with_input(&mut command, &input) };
    tokio::task::spawn_blocking(running).await.unwrap()
}

/// What the program prints if all goes well.
pub async fn ok(stage: &Stage, args: &[&str]) -> String {
    let run = cli(stage, args).await;
    assert_eq!(run.code, Some(0), "{args:?}: {run:?}");
    run.stdout
}

pub async fn ok_json(stage: &Stage, args: &[&str]) -> Value {
    let printed = ok(stage, &[args, &["--json"]].concat()).await;
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{args:?}: {error} in {printed}"))
}

/// Submits a job for `path` of the target with these further options; its id.
pub async fn submit(stage: &Stage, path: &str, options: &[&str]) -> String {
    let url = stage.target.url(path);
    let printed = ok(stage, &[&["jobs", "submit", "test", "--url", &url], options].concat()).await;
    printed.trim().to_owned()
}

async fn a_job_is_submitted_waited_for_and_looked_at(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/run", Reply::ok().body(r#"{"pages": 12}"#));
    let options =
        ["--payload", r#"{"to": "ann"}"#, "--header", "X-Team: mail", "--tag", "a", "--delay", "50ms"];
    let id = submit(&stage, "/run", &options).await;
    let waited = ok(&stage, &["jobs", "wait", &id, "--timeout", "30s"]).await;
    for part in ["completed", r#"{"pages": 12}"#, &id] {
        assert!(waited.contains(part), "{part} in {waited}");
    }
    let call = &stage.target.called("/run", 1).await[0];
    assert_eq!((call.json(), call.header("x-team")), (json!({"to": "ann"}), "mail"));

    let job = ok_json(&stage, &["jobs", "get", &id]).await;
    assert_eq!(job, stage.api.job(&id).await);
    let attempts = ok(&stage, &["jobs", "attempts", &id]).await;
    assert!(attempts.contains("completed"), "{attempts}");
    assert_eq!(ok_json(&stage, &["jobs", "attempts", &id]).await["items"].as_array().unwrap().len(), 1);
    ok(&stage, &["jobs", "logs", &id]).await;

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), stage.job("/run", json!({"type": "from_file"})).to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    let waited = ok_json(&stage, &["jobs", "submit", "--file", path, "--wait=30s"]).await;
    assert_eq!((text(&waited, "type"), text(&waited, "status")), ("from_file", "completed"));
}

async fn waiting_for_a_job_that_fails_has_exit_code_1(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/broken", Reply::status(400).body("no such order"));
    let url = stage.target.url("/broken");
    let run = cli(&stage, &["jobs", "submit", "test", "--url", &url, "--wait"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("no such order") && run.stderr.contains("failed"), "{run:?}");

    let id = submit(&stage, "/run", &["--delay", "1h"]).await;
    let run = cli(&stage, &["jobs", "wait", &id, "--timeout", "50ms"]).await;
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("not ended"), "{run:?}");
}

async fn what_the_server_refuses_has_exit_code_2(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    for (args, said) in [
        (&["jobs", "get", unknown][..], "not_found"),
        (&["jobs", "get", "nonsense"], "invalid_id"),
        (&["jobs", "cancel", unknown], "not_found"),
        (&["jobs", "submit", "x", "--url", "ftp://a/"], "/target/http/url"),
        (&["jobs", "submit", "x", "--payload", "{oops"], "--payload is not valid JSON"),
        (&["jobs", "submit", "x", "--delay", "soon"], "duration"),
        (&["jobs", "list", "--from", "once"], "RFC 3339"),
        (&["dead-letters", "get", unknown], "not_found"),
        (&["jobs", "fly"], "unrecognized subcommand"),
    ] {
        let run = cli(&stage, args).await;
        assert_eq!(run.code, Some(2), "{args:?}: {run:?}");
        assert!(run.stdout.is_empty() && run.stderr.contains(said), "{args:?}: {run:?}");
    }
    assert!(stage.api.list("/api/v1/jobs").await.is_empty());
}

async fn jobs_are_listed_and_filtered(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let nothing = cli(&stage, &["jobs", "list"]).await;
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "{nothing:?}");
    let mail = submit(&stage, "/run", &["--queue", "mail", "--priority", "high", "--delay", "1h"]).await;
    let other = submit(&stage, "/run", &["--delay", "1h", "--tag", "a b&c"]).await;
    let table = ok(&stage, &["jobs", "list"]).await;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[1].starts_with(&other) && lines[2].starts_with(&mail), "newest first: {table}");
    for filter in
        [&["--queue", "mail"][..], &["--priority", "high"], &["--status", "scheduled", "--queue", "mail"]]
    {
        let list = ok_json(&stage, &[&["jobs", "list"], filter].concat()).await;
        assert_eq!((list["items"].as_array().unwrap().len(), &list["items"][0]["id"]), (1, &json!(mail)));
    }
    assert_eq!(ok_json(&stage, &["jobs", "list", "--tag", "a b&c"]).await["items"][0]["id"], other);
    let limited = cli(&stage, &["jobs", "list", "--limit", "1"]).await;
    assert_eq!(limited.stdout.lines().count(), 2);
    assert!(limited.stderr.contains("more"), "{limited:?}");
}

async fn jobs_are_cancelled_run_and_retried(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let id = submit(&stage, "/run", &["--delay", "1h"]).await;
    for (verb, status) in
        [("pause", "paused"), ("resume", "scheduled"), ("cancel", "cancelled"), ("retry", "scheduled")]
    {
        let printed = ok(&stage, &["jobs", verb, &id]).await;
        assert!(printed.contains(&id) && printed.contains(status), "{verb}: {printed}");
        if verb == "retry" {
            stage.until(&id, "completed").await;
        }
    }
    let later = submit(&stage, "/run", &["--delay", "1h"]).await;
    ok(&stage, &["jobs", "run", &later]).await;
    stage.until(&later, "completed").await;
    let refused = cli(&stage, &["jobs", "cancel", &later]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("illegal_state"), "{refused:?}");
}

async fn a_job_says_why_it_is_not_running(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let waiting = submit(&stage, "/run", &["--delay", "1h"]).await;
    let said = ok(&stage, &["jobs", "why", &waiting]).await;
    assert!(said.contains("its time has not come yet") && said.contains("expected start"), "{said}");
    let running = submit(&stage, "/long", &[]).await;
    stage.target.called("/long", 1).await;
    assert_eq!(text(&ok_json(&stage, &["jobs", "why", &running]).await, "code"), "running");
    gate.open();
}

async fn a_job_is_submitted_after_others_and_shows_how_they_stand(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let done = submit(&stage, "/run", &[]).await;
    stage.until(&done, "completed").await;
    let running = submit(&stage, "/long", &[]).await;
    stage.target.called("/long", 1).await;
    let both = format!("{done},{running}");
    let url = stage.target.url("/child");
    let run = cli(&stage, &["jobs", "submit", "child", "--url", &url, "--depends-on", &both]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("once the jobs it depends on have completed"), "{run:?}");
    let child = run.stdout.trim();
    let shown = ok(&stage, &["jobs", "get", child]).await;
    let parents = format!("{done} (completed), {running} (running)");
    assert!(shown.contains("pending") && shown.contains(&parents), "{shown}");
    let why = ok(&stage, &["jobs", "why", child]).await;
    assert!(why.contains(&format!("1 of 2 jobs it depends on: {running} (running)")), "{why}");
    let refused = cli(&stage, &["jobs", "submit", "child", "--depends-on", "x"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("/depends_on/0"), "{refused:?}");
    gate.open();
    let ended = ok_json(&stage, &["jobs", "wait", child]).await;
    assert_eq!(text(&ended, "status"), "completed");
}

async fn dead_letters_are_listed_redriven_and_discarded(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.on("/picky", |call| Reply::status(if call.json()["mended"] == true { 200 } else { 422 }));
    let give_up = async |fields: Value| {
        let id = stage.submit("/picky", fields).await;
        stage.until(&id, "failed").await;
        id
    };
    let one = give_up(json!({"payload": {}, "retry": quick_retries(0)})).await;
    let other = give_up(json!({"payload": {}, "type": "mail"})).await;
    let table = ok(&stage, &["dead-letters", "list"]).await;
    assert!(table.contains(&one) && table.contains("not_retryable"), "{table}");
    assert!(ok(&stage, &["dead-letters", "get", &one]).await.contains("422"));

    ok(&stage, &["dead-letters", "redrive", &one, "--payload", r#"{"mended": true}"#]).await;
    stage.until(&one, "completed").await;
    let all = ok(&stage, &["dead-letters", "redrive", "--all", "--type", "mail"]).await;
    assert!(all.starts_with('1'), "{all}");
    stage.until(&other, "failed").await;
    ok(&stage, &["dead-letters", "discard", &other]).await;
    assert_eq!(ok_json(&stage, &["dead-letters", "list"]).await["items"], json!([]));
    assert_eq!(cli(&stage, &["dead-letters", "discard", &other]).await.code, Some(2));
}

async fn queues_are_paused_and_resumed(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    assert!(ok(&stage, &["queues", "pause", "mail", "--yes"]).await.contains("paused"));
    let id = submit(&stage, "/run", &["--queue", "mail"]).await;
    let table = ok(&stage, &["queues"]).await;
    assert!(table.contains("mail") && table.contains("paused"), "{table}");
    assert_eq!(ok_json(&stage, &["queues", "list"]).await["items"][0]["paused"], true);
    assert!(ok(&stage, &["queues", "resume", "mail"]).await.contains("open"));
    stage.until(&id, "completed").await;
}

async fn the_stop_switch_is_turned_both_ways(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    assert!(ok(&stage, &["halt"]).await.contains("halted"));
    let id = submit(&stage, "/run", &[]).await;
    assert!(ok(&stage, &["jobs", "why", &id]).await.contains("halted"));
    assert_eq!(ok_json(&stage, &["resume"]).await["halted"], false);
    stage.until(&id, "completed").await;
    assert_eq!(ok_json(&stage, &["halt"]).await["halted"], true);
}

async fn many_jobs_come_from_a_file_of_lines(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let lines: String = (0..2_500)
        .map(|n| format!("{}\n", stage.job("/run", json!({"payload": n, "delay": "1h"}))))
        .collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &lines).unwrap();
    let printed = ok(&stage, &["jobs", "submit", "--batch", file.path().to_str().unwrap()]).await;
    assert_eq!(printed.trim(), "2500 submitted, 0 refused");
    assert_eq!(stage.api.list("/api/v1/jobs?limit=1000").await.len(), 2_500);

    let some_bad = format!("{}\n{{\"type\": \"\"}}\nnot json\n", stage.job("/run", json!({})));
    let run = cli_with_input(&stage, &["jobs", "submit", "--batch", "-"], &some_bad).await;
    assert_eq!(run.code, Some(2), "{run:?}");
    assert_eq!(run.stdout.trim(), "1 submitted, 2 refused");
    assert!(run.stderr.contains("line 2: ") && run.stderr.contains("line 3: "), "{run:?}");
    stage.target.called("/run", 1).await;
}

#[test]
fn a_server_that_is_not_there_has_exit_code_3() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for args in [&["queues"][..], &["halt"], &["dead-letters", "list"], &["jobs", "submit", "x"]] {
        let run = run(tickwheel(args).env("TICKWHEEL_SERVER", format!("http://{closed}")));
        assert_eq!(run.code, Some(3), "{args:?}: {run:?}");
        assert!(run.stdout.is_empty());
    }
}
