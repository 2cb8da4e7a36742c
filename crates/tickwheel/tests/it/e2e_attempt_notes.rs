//! What attempts say beside how they ended: log lines that are followed while they come, progress, and effects that
//! happen once.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::api::{Api, text};
use crate::e2e::{Stage, on_both_stores, quick_retries};
use crate::e2e_cli::{cli, ok, ok_json};
use crate::eventually::eventually;
use crate::program::tickwheel;
use crate::server::{Server, StoreKind};
use crate::target::{Reply, Target};

on_both_stores! {
    a_log_is_followed_while_the_job_runs,
    a_log_survives_a_retry_and_a_restart,
    a_worker_logs_while_it_runs_and_with_its_report,
    a_long_log_loses_its_oldest_lines_and_says_so,
    progress_is_shown_while_the_attempt_runs,
    an_effect_whose_answer_was_lost_happens_once,
    who_dies_between_effect_and_done_leaves_it_in_doubt,
}

const SOON: Duration = Duration::from_secs(20);

async fn accepting(kind: StoreKind) -> Stage {
    let stage = Stage::set(kind).await;
    stage.target.reply("/later", Reply::status(202));
    stage
}

/// The token of the job's latest attempt, once its 202 is on record.
async fn accepted(stage: &Stage, id: &str, attempt: usize) -> String {
    let calls = stage.target.called("/later", attempt).await;
    stage.awaits_report(id).await;
    calls.last().unwrap().header("tickwheel-token").to_owned()
}

async fn say(api: &Api, token: &str, verb: &str, body: Value) {
    api.post(&format!("/api/v1/attempts/{token}/{verb}"), &body).await.success();
}

async fn log(api: &Api, token: &str, first: u64, messages: &[&str]) {
    let lines: Vec<Value> = messages.iter().map(|message| json!({"message": message})).collect();
    say(api, token, "logs", json!({"first": first, "lines": lines})).await;
}

async fn messages(api: &Api, path: &str) -> Vec<String> {
    api.list(path).await.iter().map(|line| text(line, "message").to_owned()).collect()
}

/// The program that follows a log, and the lines it prints.
struct Followed {
    program: Child,
    lines: mpsc::UnboundedReceiver<String>,
}

impl Followed {
    fn start(server: &str, id: &str) -> Self {
        let mut command = tickwheel(&["jobs", "logs", id, "--follow"]);
        command.env("TICKWHEEL_SERVER", server).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut program = command.spawn().expect("it starts");
        let printed = BufReader::new(program.stdout.take().expect("a pipe"));
        let (send, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in printed.lines() {
                let _ = send.send(line.expect("UTF-8"));
            }
        });
        Self { program, lines }
    }

    async fn next(&mut self) -> String {
        tokio::time::timeout(SOON, self.lines.recv()).await.expect("soon").expect("another line")
    }

    /// It ends by itself, with nothing more to say.
    async fn ends(mut self) {
        assert_eq!(tokio::time::timeout(SOON, self.lines.recv()).await.expect("soon"), None);
        assert!(self.program.wait().expect("it ended").success());
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

async fn a_log_is_followed_while_the_job_runs(kind: StoreKind) {
    let stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": "1h"})).await;
    let mut followed = Followed::start(stage.server.url(), &id);
    let token = accepted(&stage, &id, 1).await;
    log(&stage.api, &token, 0, &["one", "two"]).await;
    for expected in ["one", "two"] {
        assert!(followed.next().await.ends_with(expected));
    }
    log(&stage.api, &token, 1, &["two", "three"]).await;
    assert!(followed.next().await.contains("  1  info   three"), "a repeat adds nothing");
    assert_eq!(text(&stage.api.job(&id).await, "status"), "running");
    log(&stage.api, &token, 3, &["four"]).await;
    say(&stage.api, &token, "complete", json!({})).await;
    assert!(followed.next().await.ends_with("four"));
    followed.ends().await;
    let printed = ok(&stage, &["jobs", "logs", &id]).await;
    assert_eq!(printed.lines().count(), 4, "{printed}");
    let page = ok_json(&stage, &["jobs", "logs", &id, "--attempt", "1"]).await;
    assert_eq!(page["items"][3]["message"], "four");
    assert_eq!(cli(&stage, &["jobs", "logs", &id, "--attempt", "2"]).await.code, Some(2));
}

async fn a_log_survives_a_retry_and_a_restart(kind: StoreKind) {
    let mut stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": "1h", "retry": quick_retries(3)})).await;
    let first = accepted(&stage, &id, 1).await;
    log(&stage.api, &first, 0, &["a"]).await;
    let mut followed = Followed::start(stage.server.url(), &id);
    assert!(followed.next().await.ends_with('a'));
    say(&stage.api, &first, "fail", json!({})).await;
    let second = accepted(&stage, &id, 2).await;
    drop(followed);
    stage.restart().await;
    let mut followed = Followed::start(stage.server.url(), &id);
    assert!(followed.next().await.ends_with('a'), "what was there before the restart");
    log(&stage.api, &second, 0, &["b"]).await;
    assert!(followed.next().await.contains("  2  info   b"));
    log(&stage.api, &first, 1, &["late"]).await;
    say(&stage.api, &second, "complete", json!({})).await;
    followed.ends().await;
    assert_eq!(messages(&stage.api, &format!("/api/v1/jobs/{id}/logs")).await, ["a", "late", "b"]);
    assert_eq!(messages(&stage.api, &format!("/api/v1/jobs/{id}/attempts/2/logs")).await, ["b"]);
}

async fn worker_with_a_job(stage: &Stage) -> (String, String, String) {
    let job = stage.api.submit(&json!({"type": "work", "retry": quick_retries(3)})).await;
    let worker =
        stage.api.post("/api/v1/workers", &json!({"name": "w", "types": ["work"]})).await.success().json();
    let worker = format!("/api/v1/workers/{}", text(&worker, "worker_id"));
    let polled = stage.api.post(&format!("{worker}/poll"), &json!({"wait": "20s"})).await.success().json();
    let token = text(&polled["jobs"][0], "token").to_owned();
    (text(&job, "id").to_owned(), worker, token)
}

async fn a_worker_logs_while_it_runs_and_with_its_report(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let (id, worker, token) = worker_with_a_job(&stage).await;
    let logs = json!({"logs": [{"token": token, "first": 0, "lines": [
        {"age": "2s", "level": "warn", "message": "slow", "fields": {"n": 1}}]}]});
    for _ in 0..2 {
        let answer = stage.api.post(&format!("{worker}/logs"), &logs).await.success().json();
        assert_eq!(answer, json!({"results": [{"status": "accepted"}]}));
    }
    assert_eq!(messages(&stage.api, &format!("/api/v1/jobs/{id}/attempts/1/logs")).await, ["slow"]);
    let beat = json!({"attempts": [{"token": token, "progress": 40, "message": "almost"}]});
    stage.api.post(&format!("{worker}/heartbeat"), &beat).await.success();
    eventually("progress", SOON, async || {
        let job = stage.api.job(&id).await;
        (job["progress"] == 40.0 && job["progress_message"] == "almost").then_some(())
    })
    .await;
    let report = json!({"reports": [{"token": token, "outcome": "completed", "result": 1,
                                     "logs": {"first": 1, "lines": [{"message": "done"}]}}]});
    stage.api.post(&format!("{worker}/report"), &report).await.success();
    let job = stage.api.job(&id).await;
    assert_eq!((text(&job, "status"), job.get("progress")), ("completed", None));
    let lines = stage.api.list(&format!("/api/v1/jobs/{id}/logs")).await;
    assert_eq!((text(&lines[0], "level"), &lines[0]["fields"]), ("warn", &json!({"n": 1})));
    assert_eq!(text(&lines[1], "message"), "done", "with the end there is the whole log");
}

async fn a_long_log_loses_its_oldest_lines_and_says_so(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let (id, worker, token) = worker_with_a_job(&stage).await;
    for request in 0..10 {
        let lines: Vec<Value> = (0..300).map(|n| json!({"message": format!("{n:>1000}")})).collect();
        let logs = json!({"logs": [{"token": token, "first": request * 300, "lines": lines}]});
        stage.api.post(&format!("{worker}/logs"), &logs).await.success();
    }
    let messages = messages(&stage.api, &format!("/api/v1/jobs/{id}/logs")).await;
    let kept = messages.len() - 1;
    assert!((900..=1_048).contains(&kept), "{kept}");
    assert!(
        messages[0].starts_with(&format!("{} earlier lines are missing", 3_000 - kept)),
        "{}",
        messages[0]
    );
}

async fn progress_is_shown_while_the_attempt_runs(kind: StoreKind) {
    let stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": "1h", "retry": quick_retries(3)})).await;
    let token = accepted(&stage, &id, 1).await;
    for percent in [10.0, 20.0, 12.5] {
        say(&stage.api, &token, "heartbeat", json!({"progress": percent, "message": "frames"})).await;
    }
    eventually("the latest progress", SOON, async || {
        (stage.api.job(&id).await["progress"] == 12.5).then_some(())
    })
    .await;
    let shown = ok(&stage, &["jobs", "get", &id]).await;
    assert!(shown.contains("progress") && shown.contains("12.5 %  frames"), "{shown}");
    say(&stage.api, &token, "fail", json!({})).await;
    let second = accepted(&stage, &id, 2).await;
    assert_eq!(stage.api.job(&id).await.get("progress"), None, "the next attempt starts without");
    say(&stage.api, &second, "complete", json!({})).await;
}

async fn ask(api: &Api, token: &str) -> Value {
    api.post(&format!("/api/v1/attempts/{token}/once/send"), &json!({"ttl": "1h"})).await.expect(200).json()
}

/// The server is killed after each call, as if its answer had been lost.
async fn an_effect_whose_answer_was_lost_happens_once(kind: StoreKind) {
    let mut stage = accepting(kind).await;
    let id = stage.submit("/later", json!({"timeout": "1h", "retry": quick_retries(3)})).await;
    let token = accepted(&stage, &id, 1).await;
    for _ in 0..2 {
        assert_eq!(ask(&stage.api, &token).await, json!({"state": "first"}));
        stage.restart().await;
    }
    for _ in 0..2 {
        say(&stage.api, &token, "once/send/done", json!({"result": {"receipt": 7}})).await;
        stage.restart().await;
    }
    say(&stage.api, &token, "fail", json!({})).await;
    let second = accepted(&stage, &id, 2).await;
    assert_eq!(ask(&stage.api, &second).await, json!({"state": "done", "result": {"receipt": 7}}));
    let stale = stage.api.post(&format!("/api/v1/attempts/{token}/once/send"), &json!({})).await;
    assert_eq!(stale.expect(409).code(), "stale_token");
    say(&stage.api, &second, "complete", json!({})).await;
}

async fn who_dies_between_effect_and_done_leaves_it_in_doubt(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let (id, worker, token) = worker_with_a_job(&stage).await;
    assert_eq!(ask(&stage.api, &token).await["state"], "first");
    stage.api.delete(&format!("{worker}?reason=crashed")).await.expect(204);
    let other =
        stage.api.post("/api/v1/workers", &json!({"name": "w", "types": ["work"]})).await.success().json();
    let poll = format!("/api/v1/workers/{}/poll", text(&other, "worker_id"));
    let polled = stage.api.post(&poll, &json!({"wait": "20s"})).await.success().json();
    let second = text(&polled["jobs"][0], "token").to_owned();
    assert_ne!(token, second);
    assert_eq!(ask(&stage.api, &second).await["state"], "in_doubt");
    let done =
        stage.api.post(&format!("/api/v1/attempts/{token}/once/send/done"), &json!({"result": 1})).await;
    assert_eq!(done.expect(409).code(), "stale_token");
    say(&stage.api, &second, "once/send/done", json!({"result": 2})).await;
    assert_eq!(ask(&stage.api, &second).await, json!({"state": "done", "result": 2}));
    say(&stage.api, &second, "complete", json!({})).await;
    assert_eq!(text(&stage.api.job(&id).await, "status"), "completed");
}

#[tokio::test]
async fn a_log_is_followed_through_another_server_than_the_one_that_is_written_to() {
    let target = Target::start().await;
    let one = Server::start(StoreKind::Postgres).await;
    let other = Server::builder(StoreKind::Postgres).beside(&one).start().await;
    target.reply("/later", Reply::status(202));
    let job = crate::e2e::with(crate::api::http_job(&target.url("/later")), json!({"timeout": "1h"}));
    let id = crate::api::id_of(&one.api().submit(&job).await);
    let token = target.called("/later", 1).await[0].header("tickwheel-token").to_owned();
    let mut followed = Followed::start(other.url(), &id);
    log(&one.api(), &token, 0, &["over there"]).await;
    assert!(followed.next().await.ends_with("over there"));
    one.api().post(&format!("/api/v1/attempts/{token}/complete"), &json!({})).await.success();
    followed.ends().await;
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_those_who_follow() {
    let mut stage = accepting(StoreKind::Sqlite).await;
    let id = stage.submit("/later", json!({"timeout": "1h"})).await;
    let token = accepted(&stage, &id, 1).await;
    log(&stage.api, &token, 0, &["a"]).await;
    let mut followed = Followed::start(stage.server.url(), &id);
    assert!(followed.next().await.ends_with('a'));
    let asked = std::time::Instant::now();
    assert!(stage.server.terminate().await.success());
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
}
