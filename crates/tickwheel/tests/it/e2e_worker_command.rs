//! `tickwheel worker` with the real program: targets that only the worker reaches, commands on the worker's machine, and
//! what becomes of them when the worker dies, stops or is told to cancel.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::api::{id_of, text};
use crate::e2e::{Stage, on_both_stores, with};
use crate::e2e_processes::{family, shell, until_there_are, unusual_seconds};
use crate::eventually::{PATIENCE, eventually};
use crate::program::{run, tickwheel};
use crate::remote_worker::RemoteWorker;
use crate::server::{Server, StoreKind};
use crate::target::Reply;

on_both_stores! {
    a_target_that_only_the_worker_reaches_is_called_by_the_worker,
    jobs_with_labels_run_only_on_a_worker_that_has_them,
    a_target_of_a_worker_may_report_later,
    the_jobs_of_a_killed_worker_run_elsewhere_within_its_lease,
    a_worker_that_is_asked_to_stop_finishes_what_it_runs,
    a_cancelled_command_ends_on_the_worker_with_everything_it_started,
    what_a_command_prints_is_the_log_of_its_job_while_it_runs,
}

/// The program as a worker. It is killed when dropped.
struct WorkerProcess {
    child: Child,
}

impl WorkerProcess {
    /// Starts one with the label `site=dmz` and waits until it is registered.
    async fn start(stage: &Stage, args: &[&str]) -> Self {
        let before = workers(stage).await.len();
        let started = Self::launch(stage.server.url(), args);
        let registered = async || (workers(stage).await.len() > before).then_some(());
        eventually("the worker to register", PATIENCE, registered).await;
        started
    }

    fn launch(server: &str, args: &[&str]) -> Self {
        let mut command = tickwheel(&["worker", "--server", server, "--label", "site=dmz", "--lease", "5s"]);
        command.args(args);
        let child = Command::from(command).stderr(Stdio::inherit()).kill_on_drop(true).spawn().unwrap();
        Self { child }
    }

    fn ask_to_stop(&self) {
        let pid = Pid::from_raw(self.child.id().expect("it runs").cast_signed()).expect("not zero");
        kill_process(pid, Signal::TERM).unwrap();
    }

    async fn exit_code(&mut self) -> Option<i32> {
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it did not end").unwrap().code()
    }
}

async fn workers(stage: &Stage) -> Vec<Value> {
    let list = stage.api.get("/api/v1/workers").await.expect(200).json();
    list["items"].as_array().expect("a list").clone()
}

fn in_dmz(job: Value) -> Value {
    with(job, json!({"requires": {"site": "dmz"}}))
}

/// A server that calls no private address and runs no command, so whatever does is the worker.
async fn stage(kind: StoreKind) -> Stage {
    Stage::on(Server::builder(kind).guarded().start().await).await
}

const ALL: [&str; 2] = ["--allow-private-targets", "--allow-process-targets"];

async fn a_target_that_only_the_worker_reaches_is_called_by_the_worker(kind: StoreKind) {
    let stage = stage(kind).await;
    let refused = stage.api.post("/api/v1/jobs", &stage.job("/run", json!({}))).await;
    assert_eq!(refused.status, 422, "this server does not call it");
    stage.target.reply("/run", Reply::json(json!({"done": true})));
    let fields = json!({"payload": {"n": 1}, "tags": ["a"], "metadata": {"ticket": 7}});
    let id = id_of(&stage.api.submit(&in_dmz(stage.job("/run", fields))).await);
    let why = stage.why(&id).await;
    assert_eq!(why["code"], "unroutable");
    let sentence = text(&why, "sentence");
    assert!(sentence.contains("executor for HTTP targets") && sentence.contains("site = dmz"), "{sentence}");

    let _worker = WorkerProcess::start(&stage, &ALL).await;
    let done = stage.until(&id, "completed").await;
    assert_eq!((&done["result"], &done["attempt"]), (&json!({"done": true}), &json!(1)));
    let calls = stage.target.calls_to("/run");
    assert_eq!((calls.len(), calls[0].json()), (1, json!({"n": 1})));
    assert_eq!((calls[0].job_id(), calls[0].header("tickwheel-tags")), (id.as_str(), "a"));
    assert_eq!(calls[0].header("tickwheel-metadata"), r#"{"ticket":7}"#);

    stage.target.reply("/no", Reply::status(404));
    let id = id_of(&stage.api.submit(&in_dmz(stage.job("/no", json!({})))).await);
    let failed = stage.until(&id, "failed").await;
    assert_eq!((&failed["error"]["code"], &failed["attempt"]), (&json!("http_status"), &json!(1)));
    assert!(!text(&failed["error"], "message").contains(".rs:"), "{failed}");
}

async fn jobs_with_labels_run_only_on_a_worker_that_has_them(kind: StoreKind) {
    let stage = stage(kind).await;
    // One with handlers is no executor, whatever its labels are and its types are called.
    let fields = json!({"types": ["t", "test", "http", "process"], "labels": {"site": "dmz"}});
    let by_hand = RemoteWorker::register(&stage.api, fields).await;
    let command = id_of(&stage.api.submit(&in_dmz(shell("echo '\"here\"'"))).await);
    let handled = id_of(&stage.api.submit(&in_dmz(json!({"type": "t"}))).await);
    let taken = by_hand.take(1).await;
    assert_eq!(text(&taken[0]["job"], "id"), handled);
    assert!(text(&stage.why(&command).await, "sentence").contains("executor for commands"));

    let _elsewhere =
        WorkerProcess::start(&stage, &["--label", "site=office", "--allow-process-targets"]).await;
    assert_eq!(stage.why(&command).await["code"], "unroutable");
    let _without_leave = WorkerProcess::start(&stage, &[]).await;
    assert_eq!(stage.why(&command).await["code"], "unroutable", "it may not run commands");
    let handled = id_of(&stage.api.submit(&in_dmz(json!({"type": "t"}))).await);
    assert_eq!(by_hand.take(1).await.len(), 1, "only who has a handler gets {handled}");
    let _worker = WorkerProcess::start(&stage, &["--allow-process-targets"]).await;
    assert_eq!(stage.until(&command, "completed").await["result"], "here");

    let only = TempDir::new().unwrap();
    let config = only.path().join("worker.toml");
    std::fs::write(&config, "[process]\ncommands = [\"/bin/true\"]\n").unwrap();
    let args = ["--label", "zone=small", "--allow-process-targets", "--config", config.to_str().unwrap()];
    let _small = WorkerProcess::start(&stage, &args).await;
    let job = with(shell("true"), json!({"requires": {"zone": "small"}}));
    let failed = stage.until(&id_of(&stage.api.submit(&job).await), "failed").await;
    assert_eq!(failed["error"]["code"], "command_forbidden", "the worker's own list counts");
}

async fn a_target_of_a_worker_may_report_later(kind: StoreKind) {
    let stage = stage(kind).await;
    stage.target.reply("/later", Reply::status(202));
    let mut worker = WorkerProcess::start(&stage, &ALL).await;
    let id = id_of(&stage.api.submit(&in_dmz(stage.job("/later", json!({})))).await);
    let token = stage.target.called("/later", 1).await[0].header("tickwheel-token").to_owned();
    stage.awaits_report(&id).await;
    // It hangs on the worker no longer.
    worker.ask_to_stop();
    assert_eq!(worker.exit_code().await, Some(0));
    stage.api.post(&format!("/api/v1/attempts/{token}/complete"), &json!({"result": 7})).await.success();
    let done = stage.until(&id, "completed").await;
    assert_eq!((&done["result"], &done["attempt"]), (&json!(7), &json!(1)));

    let _worker = WorkerProcess::start(&stage, &ALL).await;
    let fields = json!({"timeout": "1s", "retry": {"max_retries": 0}});
    let id = id_of(&stage.api.submit(&in_dmz(stage.job("/later", fields))).await);
    assert_eq!(stage.until(&id, "failed").await["error"]["code"], "timed_out");
}

async fn the_jobs_of_a_killed_worker_run_elsewhere_within_its_lease(kind: StoreKind) {
    let stage = stage(kind).await;
    let seconds = unusual_seconds();
    let script = format!("[ \"$TICKWHEEL_ATTEMPT\" = 2 ] || exec sleep {seconds}");
    let mut job = in_dmz(shell(&script));
    job["retry"] = json!({"max_retries": 0});
    let mut first = WorkerProcess::start(&stage, &["--allow-process-targets"]).await;
    let id = id_of(&stage.api.submit(&job).await);
    until_there_are(1, &seconds).await;
    let _second = WorkerProcess::start(&stage, &["--allow-process-targets"]).await;
    first.child.kill().await.unwrap();
    let killed = Instant::now();
    until_there_are(0, &seconds).await;
    let done = stage.until(&id, "completed").await;
    assert!(killed.elapsed() < Duration::from_secs(20), "a lease is 5 s: {:?}", killed.elapsed());
    assert_eq!((&done["attempt"], &done["retries"]), (&json!(2), &json!(0)));
    assert_eq!(text(&stage.api.attempts(&id).await[0], "outcome"), "lost");
}

async fn a_worker_that_is_asked_to_stop_finishes_what_it_runs(kind: StoreKind) {
    let stage = stage(kind).await;
    let (files, mut worker) = (TempDir::new().unwrap(), WorkerProcess::start(&stage, &ALL).await);
    let path = |name: &str| files.path().join(name).display().to_string();
    let script = format!("touch {}; until [ -e {} ]; do sleep 0.05; done", path("begun"), path("go"));
    let id = id_of(&stage.api.submit(&in_dmz(shell(&script))).await);
    eventually("the command to run", PATIENCE, async || files.path().join("begun").exists().then_some(()))
        .await;
    worker.ask_to_stop();
    let draining =
        async || workers(&stage).await.iter().any(|worker| worker["state"] == "draining").then_some(());
    eventually("the worker to drain", PATIENCE, draining).await;
    let waiting = id_of(&stage.api.submit(&in_dmz(shell("true"))).await);
    std::fs::write(path("go"), "").unwrap();
    assert_eq!(worker.exit_code().await, Some(0));
    assert_eq!(stage.until(&id, "completed").await["attempt"], 1, "nothing is repeated");
    assert_eq!(stage.api.job(&waiting).await["status"], "scheduled");

    // What does not end in time goes elsewhere, and costs no retry.
    let mut hasty =
        WorkerProcess::start(&stage, &["--allow-process-targets", "--drain-timeout", "100ms"]).await;
    let seconds = unusual_seconds();
    let script = format!("[ \"$TICKWHEEL_ATTEMPT\" = 2 ] || exec sleep {seconds}");
    let id =
        id_of(&stage.api.submit(&with(in_dmz(shell(&script)), json!({"retry": {"max_retries": 0}}))).await);
    until_there_are(1, &seconds).await;
    hasty.ask_to_stop();
    assert_eq!(hasty.exit_code().await, Some(0));
    until_there_are(0, &seconds).await;
    let _next = WorkerProcess::start(&stage, &ALL).await;
    assert_eq!(stage.until(&id, "completed").await["retries"], 0);
    assert_eq!(text(&stage.api.attempts(&id).await[0], "outcome"), "released");
}

async fn a_cancelled_command_ends_on_the_worker_with_everything_it_started(kind: StoreKind) {
    let stage = stage(kind).await;
    let _worker = WorkerProcess::start(&stage, &ALL).await;
    let seconds = unusual_seconds();
    let id = id_of(&stage.api.submit(&in_dmz(family(&seconds))).await);
    until_there_are(3, &seconds).await;
    stage.act(&id, "cancel").await.success();
    stage.until(&id, "cancelled").await;
    until_there_are(0, &seconds).await;

    let mut job = in_dmz(family(&seconds));
    (job["timeout"], job["retry"]) = (json!("1s"), json!({"max_retries": 0}));
    let id = id_of(&stage.api.submit(&job).await);
    assert_eq!(stage.until(&id, "failed").await["error"]["code"], "timed_out");
    until_there_are(0, &seconds).await;
}

async fn what_a_command_prints_is_the_log_of_its_job_while_it_runs(kind: StoreKind) {
    let stage = stage(kind).await;
    let _worker = WorkerProcess::start(&stage, &ALL).await;
    let files = TempDir::new().unwrap();
    let go = files.path().join("go");
    let script =
        format!("echo one; echo two >&2; until [ -e {} ]; do sleep 0.05; done; echo three", go.display());
    let id = id_of(&stage.api.submit(&in_dmz(shell(&script))).await);
    let lines = async || {
        let log = stage.api.get(&format!("/api/v1/jobs/{id}/attempts/1/logs")).await;
        let items = if log.status == 200 { log.json()["items"].as_array().cloned() } else { None };
        items.unwrap_or_default()
    };
    let two = async || Some(lines().await).filter(|lines| lines.len() == 2);
    let seen = eventually("the first lines, while it runs", PATIENCE, two).await;
    let mut messages: Vec<_> = seen.iter().map(|line| (text(line, "message"), text(line, "level"))).collect();
    messages.sort_unstable();
    assert_eq!(messages, [("one", "info"), ("two", "warn")]);
    assert_eq!(stage.api.job(&id).await["status"], "running");
    std::fs::write(&go, "").unwrap();
    assert_eq!(stage.until(&id, "completed").await["result"], "one\nthree");
    assert_eq!(text(lines().await.last().expect("three lines"), "message"), "three");
}

#[tokio::test]
async fn a_worker_says_with_its_exit_code_why_it_ended() {
    let bad = run(&mut tickwheel(&["worker", "--lease", "1s", "--label", "site=dmz"]));
    assert_eq!(bad.code, Some(2), "{}", bad.stderr);
    assert!(bad.stderr.contains("expected 5s to 10m"), "{}", bad.stderr);
    let bad = run(&mut tickwheel(&["worker", "--label", "site"]));
    assert_eq!(bad.code, Some(2), "{}", bad.stderr);

    // Nobody is there: it waits until it is asked to stop.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let health = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut worker =
        WorkerProcess::launch(&format!("http://{closed}"), &["--health-port", &health.to_string()]);
    let api = crate::api::Api::new(&format!("http://127.0.0.1:{health}"));
    let not_ready = async || {
        let answer = api.send(http::Method::GET, "/readyz", None).await;
        answer.is_ok_and(|answer| answer.status == 503).then_some(())
    };
    eventually("the worker to be up and not ready", PATIENCE, not_ready).await;
    worker.ask_to_stop();
    assert_eq!(worker.exit_code().await, Some(3));
}
