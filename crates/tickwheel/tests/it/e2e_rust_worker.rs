//! Workers built on the Rust library, against the real program: what a user of the library relies on.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tickwheel_client::{Client, Error, JobHandle, JobOptions, JobType};
use tickwheel_worker::{CancelReason, Ctx, HandlerOptions, JobError, OnLeaseLost, Worker};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::eventually::{PATIENCE, eventually};
use crate::proxy::Proxy;
use crate::server::{Server, StoreKind};

const LEASE: Duration = Duration::from_secs(5);

/// A job that ends when the test says so, or when it is cancelled.
#[derive(Clone, Serialize, Deserialize)]
pub struct Held {
    n: u32,
}

impl JobType for Held {
    const NAME: &'static str = "held";
    type Output = Ended;
    fn options() -> JobOptions {
        JobOptions::default().max_retries(0).timeout(Duration::from_secs(300))
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    n: u32,
    attempt: u32,
    by: String,
}

/// What the test hears of handlers and says to them.
#[derive(Clone)]
struct Stage {
    name: &'static str,
    seen: mpsc::UnboundedSender<Seen>,
    go_on: Arc<Notify>,
}

#[derive(Debug, PartialEq)]
enum Seen {
    Started(&'static str, u32),
    Cancelled(CancelReason),
}

async fn held(job: Held, ctx: Ctx<Stage>) -> Result<Ended, JobError> {
    let stage = ctx.state();
    let _ = stage.seen.send(Seen::Started(stage.name, ctx.attempt()));
    tokio::select! {
        () = stage.go_on.notified() => Ok(Ended { n: job.n, attempt: ctx.attempt(), by: stage.name.into() }),
        reason = ctx.cancelled() => {
            let _ = stage.seen.send(Seen::Cancelled(reason));
            ctx.check()?;
            Err(JobError::new("cancelled and not cancelled"))
        }
    }
}

/// A worker inside this test.
struct Running {
    stage: Stage,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), tickwheel_worker::Error>>,
}

impl Running {
    fn start(
        name: &'static str,
        url: &str,
        seen: &mpsc::UnboundedSender<Seen>,
        options: HandlerOptions,
    ) -> Self {
        let stage = Stage { name, seen: seen.clone(), go_on: Arc::new(Notify::new()) };
        let (stop, stopped) = oneshot::channel();
        let worker = Worker::new(Client::new(url).unwrap())
            .name(name)
            .capacity(3)
            .lease(LEASE)
            .drain_timeout(Duration::from_secs(1))
            .state(stage.clone())
            .handle_with(options, held);
        let ended = tokio::spawn(worker.run_until(async move {
            let _ = stopped.await;
        }));
        Self { stage, stop, ended }
    }

    async fn stop(self) {
        drop(self.stop);
        self.ended.await.unwrap().unwrap();
    }
}

fn stage() -> (mpsc::UnboundedSender<Seen>, mpsc::UnboundedReceiver<Seen>) {
    mpsc::unbounded_channel()
}

async fn hear(seen: &mut mpsc::UnboundedReceiver<Seen>) -> Seen {
    tokio::time::timeout(PATIENCE, seen.recv()).await.expect("something happens").expect("the worker lives")
}

async fn submit(client: &Client, n: u32) -> JobHandle<Ended> {
    client.submit(Held { n }).await.unwrap()
}

async fn outcomes(server: &Server, job: &JobHandle<Ended>) -> Vec<String> {
    let attempts = server.api().attempts(&job.id().to_string()).await;
    attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap_or("running").to_owned()).collect()
}

#[tokio::test]
async fn a_handler_gets_its_payload_and_its_result_comes_back() {
    let server = Server::start(StoreKind::Sqlite).await;
    let client = Client::new(server.url()).unwrap();
    let (sender, mut seen) = stage();
    let worker = Running::start("a", server.url(), &sender, HandlerOptions::default());
    let job = submit(&client, 7).await;
    assert_eq!(hear(&mut seen).await, Seen::Started("a", 1));
    worker.stage.go_on.notify_one();
    assert_eq!(job.wait(PATIENCE).await.unwrap(), Ended { n: 7, attempt: 1, by: "a".into() });
    worker.stop().await;
    assert!(server.api().list("/api/v1/workers").await.is_empty(), "it has left");
}

#[tokio::test]
async fn a_cancelled_handler_stops_and_its_job_is_cancelled() {
    let server = Server::start(StoreKind::Sqlite).await;
    let client = Client::new(server.url()).unwrap();
    let (sender, mut seen) = stage();
    let worker = Running::start("a", server.url(), &sender, HandlerOptions::default());
    let job = submit(&client, 1).await;
    hear(&mut seen).await;
    job.cancel().await.unwrap();
    assert_eq!(hear(&mut seen).await, Seen::Cancelled(CancelReason::Requested));
    let error = job.wait(PATIENCE).await.unwrap_err();
    assert!(matches!(error, Error::JobCancelled { .. }), "{error}");
    assert_eq!(outcomes(&server, &job).await, ["cancelled"]);
    worker.stop().await;
}

#[tokio::test]
async fn what_does_not_end_while_a_worker_drains_goes_to_another_and_costs_no_retry() {
    let server = Server::start(StoreKind::Sqlite).await;
    let client = Client::new(server.url()).unwrap();
    let (sender, mut seen) = stage();
    let first = Running::start("a", server.url(), &sender, HandlerOptions::default());
    let job = submit(&client, 1).await;
    assert_eq!(hear(&mut seen).await, Seen::Started("a", 1));
    let second = Running::start("b", server.url(), &sender, HandlerOptions::default());
    first.stop().await;
    assert_eq!(hear(&mut seen).await, Seen::Cancelled(CancelReason::Shutdown));
    // A poll that ends while its job is claimed uses up a number.
    assert!(matches!(hear(&mut seen).await, Seen::Started("b", 2..)));
    second.stage.go_on.notify_one();
    assert_eq!(job.wait(PATIENCE).await.unwrap().by, "b");
    assert_eq!(outcomes(&server, &job).await, ["released", "completed"]);
    second.stop().await;
}

#[tokio::test]
async fn a_worker_that_is_cut_off_stops_its_handlers_and_comes_back() {
    let server = Server::start(StoreKind::Sqlite).await;
    let client = Client::new(server.url()).unwrap();
    let wire = Proxy::start(server.url().trim_start_matches("http://").to_owned()).await;
    let (sender, mut seen) = stage();
    let url = format!("http://{}", wire.address());
    let worker = Running::start("a", &url, &sender, HandlerOptions::default());
    let job = submit(&client, 1).await;
    assert_eq!(hear(&mut seen).await, Seen::Started("a", 1));
    wire.cut();
    assert_eq!(hear(&mut seen).await, Seen::Cancelled(CancelReason::LeaseLost));
    let id = job.id().to_string();
    eventually("the server to take the job back", PATIENCE, async || {
        (server.api().job(&id).await["status"] == "scheduled").then_some(())
    })
    .await;
    wire.mend();
    assert_eq!(hear(&mut seen).await, Seen::Started("a", 2));
    worker.stage.go_on.notify_one();
    assert_eq!(job.wait(PATIENCE).await.unwrap().attempt, 2);
    assert_eq!(outcomes(&server, &job).await, ["lost", "completed"]);
    worker.stop().await;
}

#[tokio::test]
async fn a_handler_that_continues_is_not_stopped_and_its_stale_result_changes_nothing() {
    let server = Server::start(StoreKind::Sqlite).await;
    let client = Client::new(server.url()).unwrap();
    let wire = Proxy::start(server.url().trim_start_matches("http://").to_owned()).await;
    let (sender, mut seen) = stage();
    let options = HandlerOptions::default().on_lease_lost(OnLeaseLost::Continue);
    let cut_off = Running::start("a", &format!("http://{}", wire.address()), &sender, options);
    let job = submit(&client, 1).await;
    assert_eq!(hear(&mut seen).await, Seen::Started("a", 1));
    wire.cut();
    let other = Running::start("b", server.url(), &sender, HandlerOptions::default());
    assert_eq!(hear(&mut seen).await, Seen::Started("b", 2), "the first was not cancelled");
    wire.mend();
    cut_off.stage.go_on.notify_one();
    // It has nothing left once the server has refused its report.
    cut_off.stop().await;
    other.stage.go_on.notify_one();
    assert_eq!(job.wait(PATIENCE).await.unwrap().by, "b");
    other.stop().await;
}

const CHILD_SERVER: &str = "TICKWHEEL_TEST_WORKER_OF";

/// Not a test by itself: the process that the tests below kill and freeze.
#[tokio::test]
async fn a_worker_in_a_process_of_its_own() {
    let Ok(url) = std::env::var(CHILD_SERVER) else { return };
    let (sender, _seen) = stage();
    Running::start("child", &url, &sender, HandlerOptions::default()).ended.await.unwrap().unwrap();
}

fn child_worker(server: &Server) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "e2e_rust_worker::a_worker_in_a_process_of_its_own"]);
    command.env(CHILD_SERVER, server.url()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().unwrap()
}

async fn runs(server: &Server, job: &JobHandle<Ended>) {
    let id = job.id().to_string();
    eventually("the job to run", PATIENCE, async || {
        (server.api().job(&id).await["status"] == "running").then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_jobs_of_a_killed_worker_run_elsewhere() {
    let server = Server::start(StoreKind::Sqlite).await;
    let client = Client::new(server.url()).unwrap();
    let (sender, mut seen) = stage();
    let mut child = child_worker(&server);
    let job = submit(&client, 1).await;
    runs(&server, &job).await;
    child.kill().await.unwrap();
    let worker = Running::start("a", server.url(), &sender, HandlerOptions::default());
    assert_eq!(hear(&mut seen).await, Seen::Started("a", 2));
    worker.stage.go_on.notify_one();
    assert_eq!(job.wait(PATIENCE).await.unwrap(), Ended { n: 1, attempt: 2, by: "a".into() });
    assert_eq!(outcomes(&server, &job).await, ["lost", "completed"]);
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_was_frozen_has_lost_its_jobs_and_registers_anew() {
    let server = Server::start(StoreKind::Sqlite).await;
    let client = Client::new(server.url()).unwrap();
    let child = child_worker(&server);
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    let job = submit(&client, 1).await;
    runs(&server, &job).await;
    let session =
        || async { server.api().list("/api/v1/workers").await.first().map(|worker| worker["id"].clone()) };
    let before = session().await.expect("it is registered");
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let id = job.id().to_string();
    eventually("the server to take the job back", PATIENCE, async || {
        (server.api().job(&id).await["status"] == "scheduled").then_some(())
    })
    .await;
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    eventually("another session and another attempt", PATIENCE, async || {
        let is_new = session().await.is_some_and(|now| now != before);
        (is_new && server.api().job(&id).await["attempt"] == 2).then_some(())
    })
    .await;
    assert_eq!(outcomes(&server, &job).await, ["lost", "running"]);
    assert_eq!(server.api().job(&id).await["retries"], json!(0));
}
