//! The worker against a server that loses answers, forgets sessions and changes its mind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fake_server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fake_server::{FakeServer, problem};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tickwheel_client::protocol::Code;
use tickwheel_worker::{BatchOptions, CancelReason, Ctx, Error, JobError, JobType, LogLevel, Worker};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);

macro_rules! job_types {
    ($($name:literal $payload:ident;)+) => {
        $(#[derive(Serialize, Deserialize)]
        struct $payload {
            #[serde(default)]
            n: u64,
        }
        impl JobType for $payload {
            const NAME: &'static str = $name;
            type Output = u64;
        })+
    };
}
job_types! { "echo" Echo; "wait" Wait; "block" Block; "batch" Batch; "talk" Talk; }

type Seen = mpsc::UnboundedSender<String>;

async fn echo(job: Echo, ctx: Ctx<Seen>) -> Result<u64, JobError> {
    let _ = ctx.state().send(format!("echo {}", job.n));
    Ok(job.n)
}

async fn wait(job: Wait, ctx: Ctx<Seen>) -> Result<u64, JobError> {
    let _ = ctx.state().send(format!("wait {}", job.n));
    let reason = ctx.cancelled().await;
    let _ = ctx.state().send(format!("cancelled {reason}"));
    ctx.check()?;
    Ok(job.n)
}

async fn block(job: Block, ctx: Ctx<Seen>) -> Result<u64, JobError> {
    let _ = ctx.state().send("block".into());
    // sleep: the handler blocks its thread, which is what the test is about
    std::thread::sleep(Duration::from_millis(job.n));
    Ok(job.n)
}

async fn talk(job: Talk, ctx: Ctx<Seen>) -> Result<u64, JobError> {
    ctx.log(LogLevel::Info, "first");
    ctx.progress(50, "half");
    let _ = ctx.state().send("talk".into());
    ctx.cancelled().await;
    ctx.log(LogLevel::Warn, "second");
    Ok(job.n)
}

async fn batch(jobs: Vec<Batch>, ctx: Ctx<Seen>) -> Result<Vec<Result<u64, JobError>>, JobError> {
    let _ = ctx.state().send(format!("batch of {}", jobs.len()));
    let entry = |job: &Batch| if job.n == 7 { Err(JobError::new("seven")) } else { Ok(job.n) };
    let mut entries: Vec<_> = jobs.iter().map(entry).collect();
    if jobs.iter().any(|job| job.n == 99) {
        entries.pop();
    }
    Ok(entries)
}

struct Running {
    seen: mpsc::UnboundedReceiver<String>,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<(), Error>>,
}

impl Running {
    fn start(server: &FakeServer) -> Self {
        Self::start_with(server, 4)
    }

    fn start_with(server: &FakeServer, capacity: u32) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::new(server.client())
            .name("test")
            .capacity(capacity)
            .drain_timeout(Duration::from_millis(300))
            .state(sender)
            .handle(echo)
            .handle(wait)
            .handle(block)
            .handle(talk)
            .handle_batch(BatchOptions { jobs_max: 3, wait_max: Duration::from_millis(300) }, batch);
        let ended = tokio::spawn(worker.run_until(async move {
            let _ = stopped.await;
        }));
        Self { seen, stop: Some(stop), ended }
    }

    async fn hear(&mut self) -> String {
        tokio::time::timeout(PATIENCE, self.seen.recv())
            .await
            .expect("something happens")
            .expect("the worker lives")
    }

    async fn stop(&mut self) {
        drop(self.stop.take());
        (&mut self.ended).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_poll_whose_answer_was_lost_is_repeated_with_its_number_and_its_job_runs_once() {
    let server = FakeServer::start(&[]);
    server.lose_answer("poll");
    let token = server.give("echo", json!({"n": 5}));
    let mut worker = Running::start(&server);
    assert_eq!(worker.hear().await, "echo 5");
    let reports = server.reports(1).await;
    assert_eq!((&reports[0]["token"], &reports[0]["result"]), (&json!(token), &json!(5)));
    let polls = server.asked("poll", 2).await;
    assert_eq!(polls[0].body["seq"], polls[1].body["seq"]);
    worker.stop().await;
    assert!(worker.seen.try_recv().is_err(), "one call of the handler");
}

#[tokio::test]
async fn a_report_is_repeated_until_it_is_accepted() {
    let server = FakeServer::start(&[]);
    server.lose_answer("report");
    server.answer("report", 503, problem(Code::StoreUnavailable));
    let token = server.give("echo", json!({"n": 1}));
    let mut worker = Running::start(&server);
    let reports = server.reports(3).await;
    assert!(
        reports.iter().all(|report| report["token"] == token.as_str() && report["outcome"] == "completed")
    );
    worker.stop().await;
    assert_eq!(server.reports(3).await.len(), 3, "accepted means done");
}

#[tokio::test]
async fn when_the_server_forgets_the_session_handlers_stop_nothing_is_reported_and_there_is_a_new_one() {
    let server = FakeServer::start(&[]);
    server.give("wait", json!({}));
    let mut worker = Running::start(&server);
    assert_eq!(worker.hear().await, "wait 0");
    server.answer("heartbeat", 404, problem(Code::UnknownWorker));
    assert_eq!(worker.hear().await, "cancelled lease_lost");
    let sessions = server.asked("workers", 2).await;
    assert_ne!(sessions[0].body["instance"], sessions[1].body["instance"]);
    let token = server.give("echo", json!({"n": 2}));
    assert_eq!(worker.hear().await, "echo 2");
    let reports = server.reports(1).await;
    assert_eq!(reports[0]["token"], token.as_str(), "the lost attempt is not reported");
    worker.stop().await;
}

#[tokio::test]
async fn a_cancel_reaches_a_full_worker() {
    let server = FakeServer::start(&[]);
    let token = server.give("wait", json!({}));
    let mut worker = Running::start_with(&server, 1);
    assert_eq!(worker.hear().await, "wait 0");
    server.until("poll", |polls| polls.last().is_some_and(|poll| poll.body["max"] == 0)).await;
    server.cancel(&token);
    assert_eq!(worker.hear().await, format!("cancelled {}", CancelReason::Requested));
    assert_eq!(server.reports(1).await[0]["outcome"], "cancelled");
    server.until("poll", |polls| polls.last().is_some_and(|poll| poll.body["max"] == 1)).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_the_server_drains_takes_nothing_until_it_may_again() {
    let server = FakeServer::start(&[]);
    server.drain(true);
    let mut worker = Running::start(&server);
    server.until("poll", |polls| polls.last().is_some_and(|poll| poll.body["max"] == 0)).await;
    server
        .until("heartbeat", |beats| beats.last().is_some_and(|beat| beat.body["state"] == "draining"))
        .await;
    server.give("echo", json!({"n": 3}));
    server.drain(false);
    assert_eq!(worker.hear().await, "echo 3");
    worker.stop().await;
}

#[tokio::test]
async fn what_the_server_counts_otherwise_is_listed() {
    let server = FakeServer::start(&[]);
    let token = server.give("wait", json!({}));
    let mut worker = Running::start(&server);
    worker.hear().await;
    server.resync();
    let beats =
        server.until("heartbeat", |beats| beats.iter().any(|beat| beat.body["tokens"].is_array())).await;
    let listing = beats.iter().find(|beat| beat.body["tokens"].is_array()).unwrap();
    assert_eq!((&listing.body["tokens"], &listing.body["held"]), (&json!([token]), &json!(1)));
    worker.stop().await;
}

#[tokio::test]
async fn a_drain_cancels_what_does_not_end_gives_it_back_and_leaves() {
    let server = FakeServer::start(&[]);
    let token = server.give("wait", json!({}));
    let mut worker = Running::start(&server);
    worker.hear().await;
    worker.stop().await;
    assert_eq!(worker.hear().await, "cancelled shutdown");
    let reports = server.reports(1).await;
    assert_eq!((&reports[0]["token"], &reports[0]["outcome"]), (&json!(token), &json!("released")));
    let leave = server.asked("leave", 1).await;
    assert!(leave[0].path.ends_with("?reason=drained"), "{}", leave[0].path);
}

#[tokio::test]
async fn progress_and_log_lines_are_sent_while_the_handler_runs_and_the_rest_with_the_report() {
    let server = FakeServer::start(&["logs"]);
    let token = server.give("talk", json!({}));
    let mut worker = Running::start(&server);
    worker.hear().await;
    let logs = server.asked("logs", 1).await;
    let sent = &logs[0].body["logs"][0];
    assert_eq!((&sent["token"], &sent["first"]), (&json!(token), &json!(0)));
    assert_eq!((&sent["lines"][0]["message"], &sent["lines"][0]["level"]), (&json!("first"), &json!("info")));
    let has_progress = |beat: &fake_server::Asked| beat.body["attempts"][0]["progress"] == 50.0;
    server.until("heartbeat", |beats| beats.iter().any(has_progress)).await;
    server.cancel(&token);
    let reports = server.reports(1).await;
    assert_eq!(reports[0]["outcome"], "completed", "a result that is returned counts");
    assert_eq!(
        (&reports[0]["logs"]["first"], &reports[0]["logs"]["lines"][0]["message"]),
        (&json!(1), &json!("second"))
    );
    worker.stop().await;
}

#[tokio::test]
async fn a_server_without_logs_gets_the_lines_with_the_report() {
    let server = FakeServer::start(&[]);
    let token = server.give("talk", json!({}));
    let mut worker = Running::start(&server);
    worker.hear().await;
    server.cancel(&token);
    let reports = server.reports(1).await;
    assert_eq!(reports[0]["logs"]["lines"].as_array().unwrap().len(), 2);
    worker.stop().await;
    assert!(server.until("logs", |_| true).await.is_empty(), "it is not asked for what it does not have");
}

/// On a runtime with one thread, a handler that blocks stops everything but the worker's own thread.
#[tokio::test(flavor = "current_thread")]
async fn a_blocked_runtime_keeps_its_lease_and_what_it_cannot_start_goes_back() {
    let server = FakeServer::start(&[]);
    server.give("block", json!({"n": 4000}));
    let stuck = server.give("echo", json!({"n": 1}));
    let mut worker = Running::start(&server);
    assert_eq!(worker.hear().await, "block");
    let reports = server.reports(2).await;
    let echo = reports.iter().find(|report| report["token"] == stuck.as_str()).unwrap();
    assert_eq!(echo["outcome"], "released");
    let beats = server.asked("heartbeat", 3).await;
    let gaps = beats.windows(2).map(|pair| pair[1].at - pair[0].at);
    assert!(gaps.max().unwrap() < Duration::from_secs(3), "heartbeats went on");
    worker.stop().await;
    assert!(worker.seen.try_recv().is_err(), "what went back was not started");
}

#[tokio::test]
async fn a_batch_is_gathered_and_each_job_has_its_own_end() {
    let server = FakeServer::start(&[]);
    let tokens: Vec<_> = [1, 7, 3].iter().map(|n| server.give("batch", json!({"n": n}))).collect();
    let mut worker = Running::start(&server);
    assert_eq!(worker.hear().await, "batch of 3");
    let reports = server.reports(3).await;
    let of = |token: &str| reports.iter().find(|report| report["token"] == token).unwrap();
    assert_eq!(of(&tokens[0])["result"], 1);
    assert_eq!((&of(&tokens[1])["outcome"], &of(&tokens[1])["retryable"]), (&json!("failed"), &json!(true)));
    assert_eq!(of(&tokens[2])["result"], 3);
    server.give("batch", json!({"n": 99}));
    worker.hear().await;
    assert_eq!(server.reports(4).await[3]["error"]["code"], "batch_result_mismatch");
    worker.stop().await;
}

#[tokio::test]
async fn a_payload_of_the_wrong_type_and_a_panic_are_failures_and_the_worker_lives() {
    #[derive(Serialize, Deserialize)]
    struct Explode {}
    impl JobType for Explode {
        const NAME: &'static str = "explode";
        type Output = ();
    }
    let server = FakeServer::start(&[]);
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(server.client()).name("test").handle(async |_: Explode, _: Ctx| panic!("boom"));
    let ended = tokio::spawn(worker.run_until(async move {
        let _ = stopped.await;
    }));
    server.give("explode", json!({}));
    server.give("explode", json!("nothing of the kind"));
    let reports = server.reports(2).await;
    let of = |code: &str| reports.iter().find(|report| report["error"]["code"] == code).unwrap();
    assert_eq!((&of("panic")["error"]["message"], &of("panic")["retryable"]), (&json!("boom"), &json!(true)));
    assert_eq!(of("invalid_payload")["retryable"], false);
    drop(stop);
    ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn middleware_is_called_in_order_and_the_handlers_result_counts() {
    let server = FakeServer::start(&[]);
    let calls = Arc::new(AtomicU32::new(0));
    let (outer, inner) = (calls.clone(), calls.clone());
    let (sender, _seen) = mpsc::unbounded_channel::<String>();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(server.client())
        .name("test")
        .state(sender)
        .handle(echo)
        .middleware(move |_, next| {
            let outer = outer.clone();
            async move {
                assert_eq!(outer.fetch_add(1, Ordering::SeqCst), 0);
                next.run().await?;
                Err(JobError::new("too late to matter"))
            }
        })
        .middleware(move |_, next| {
            let inner = inner.clone();
            async move {
                assert_eq!(inner.fetch_add(1, Ordering::SeqCst), 1);
                next.run().await
            }
        });
    let ended = tokio::spawn(worker.run_until(async move {
        let _ = stopped.await;
    }));
    server.give("echo", json!({"n": 9}));
    let reports = server.reports(1).await;
    assert_eq!((&reports[0]["outcome"], &reports[0]["result"]), (&json!("completed"), &json!(9)));
    drop(stop);
    ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_refusal_at_the_start_ends_the_worker_with_its_reason() {
    let server = FakeServer::start(&[]);
    server.answer("workers", 401, problem(Code::NotFound));
    let mut worker = Running::start(&server);
    let error = (&mut worker.ended).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    let info = json!({"version": "9", "worker_protocol": {"min": 2, "max": 3}, "features": []});
    server.answer("server", 200, info);
    let error = Running::start(&server).ended.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("versions 2 to 3"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_away_at_the_start_is_waited_for() {
    let server = FakeServer::start(&[]);
    for _ in 0..3 {
        server.answer("server", 503, problem(Code::NotReady));
    }
    server.lose_answer("workers");
    server.give("echo", json!({"n": 4}));
    let began = Instant::now();
    let mut worker = Running::start(&server);
    assert_eq!(worker.hear().await, "echo 4");
    assert!(began.elapsed() < Duration::from_secs(10));
    let sessions = server.asked("workers", 2).await;
    assert_eq!(sessions[0].body["instance"], sessions[1].body["instance"], "the same session");
    worker.stop().await;
}

#[tokio::test]
async fn once_begins_runs_records_and_fails_without_the_feature() {
    #[derive(Serialize, Deserialize)]
    struct Pay {}
    impl JobType for Pay {
        const NAME: &'static str = "pay";
        type Output = Value;
    }
    for (features, expected) in [(vec!["once"], "completed"), (vec![], "failed")] {
        let server = FakeServer::start(&features);
        server.answer("card", 200, json!({"state": "busy", "retry_in": "10ms"}));
        server.answer("card", 200, json!({"state": "first"}));
        server.answer("done", 204, Value::Null);
        let (stop, stopped) = oneshot::channel::<()>();
        let pay = async |_: Pay, ctx: Ctx| -> Result<Value, JobError> {
            ctx.once("card", |key| async move { Ok::<_, JobError>(json!({"key": key})) }).await
        };
        let worker = Worker::new(server.client()).name("test").handle(pay);
        let ended = tokio::spawn(worker.run_until(async move {
            let _ = stopped.await;
        }));
        server.give("pay", json!({}));
        let reports = server.reports(1).await;
        assert_eq!(reports[0]["outcome"], expected);
        if expected == "completed" {
            assert!(reports[0]["result"]["key"].as_str().unwrap().ends_with(":card"));
            assert_eq!(server.asked("done", 1).await[0].body["result"], reports[0]["result"]);
        } else {
            assert_eq!(reports[0]["error"]["code"], "once_unavailable");
        }
        drop(stop);
        ended.await.unwrap().unwrap();
    }
}
