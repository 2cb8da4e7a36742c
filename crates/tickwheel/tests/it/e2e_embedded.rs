//! A whole server inside a program: it starts, serves, stops, starts again, and its clock can be moved.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tickwheel::embedded::{Embedded, EmbeddedOptions};
use tickwheel_client::{Client, JobType, NewJob, NewSchedule};
use tickwheel_worker::{Ctx, JobError, Worker};
use tokio::sync::{mpsc, oneshot};

use crate::eventually::PATIENCE;

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl JobType for Greet {
    const NAME: &'static str = "greet";
    type Output = String;
}

async fn greet(job: Greet, ctx: Ctx<mpsc::UnboundedSender<u32>>) -> Result<String, JobError> {
    let _ = ctx.state().send(ctx.attempt());
    if job.name == "nobody" && ctx.attempt() == 1 {
        return Err(JobError::retry_after(HOUR, "nobody is there yet"));
    }
    Ok(format!("hello {}", job.name))
}

struct Greeter {
    greeted: mpsc::UnboundedReceiver<u32>,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<Result<(), tickwheel_worker::Error>>,
}

impl Greeter {
    fn start(client: Client) -> Self {
        let (sender, greeted) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let worker = Worker::new(client).name("greeter").state(sender).handle(greet);
        let ended = tokio::spawn(worker.run_until(async move {
            let _ = stopped.await;
        }));
        Self { greeted, stop, ended }
    }

    async fn next(&mut self) -> u32 {
        tokio::time::timeout(PATIENCE, self.greeted.recv()).await.expect("it is called").expect("it lives")
    }

    async fn stop(self) {
        drop(self.stop);
        self.ended.await.unwrap().unwrap();
    }
}

fn greeting(name: &str) -> Greet {
    Greet { name: name.into() }
}

#[tokio::test]
async fn a_program_and_its_server_in_one_process() {
    let server = Embedded::start(EmbeddedOptions::default()).await.unwrap();
    let client = server.client().unwrap();
    let greeter = Greeter::start(client.clone());
    let job = client.submit(greeting("you")).await.unwrap();
    assert_eq!(job.wait(PATIENCE).await.unwrap(), "hello you");
    greeter.stop().await;
    server.stop().await.unwrap();
}

#[tokio::test]
async fn nothing_is_lost_when_it_stops_and_starts_again_in_mid_job() {
    let directory = tempfile::tempdir().unwrap();
    let options = |listen: SocketAddr| EmbeddedOptions {
        data_dir: Some(directory.path().to_owned()),
        listen: Some(listen),
        ..EmbeddedOptions::default()
    };
    let server = Embedded::start(options("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let address: SocketAddr = server.url().unwrap().trim_start_matches("http://").parse().unwrap();
    let client = server.client().unwrap();
    let (sender, mut started) = mpsc::unbounded_channel();
    let (go_on, wait) = oneshot::channel::<()>();
    let wait = std::sync::Arc::new(tokio::sync::Mutex::new(wait));
    let held = move |job: Greet, ctx: Ctx<()>| {
        let (wait, sender) = (wait.clone(), sender.clone());
        async move {
            let _ = sender.send(ctx.attempt());
            let _ = (&mut *wait.lock().await).await;
            Ok(format!("{} in attempt {}", job.name, ctx.attempt()))
        }
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(client.clone()).name("greeter").handle(held);
    let ended = tokio::spawn(worker.run_until(async move {
        let _ = stopped.await;
    }));
    let job = client.submit(greeting("you")).await.unwrap();
    assert_eq!(started.recv().await, Some(1));
    server.stop().await.unwrap();
    let server = Embedded::start(options(address)).await.unwrap();
    go_on.send(()).unwrap();
    assert_eq!(job.wait(PATIENCE).await.unwrap(), "you in attempt 1");
    drop(stop);
    ended.await.unwrap().unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_test_moves_the_clock_and_what_is_due_happens() {
    let options = EmbeddedOptions {
        manual_clock: Some("2026-03-02T08:00:00Z".parse().unwrap()),
        ..EmbeddedOptions::default()
    };
    let server = Embedded::start(options).await.unwrap();
    let client = server.client().unwrap();
    let mut greeter = Greeter::start(client.clone());
    let later = client.submit(greeting("later")).delay(5 * Duration::from_secs(60)).await.unwrap();
    assert_eq!(later.job().execute_at.to_string(), "2026-03-02T08:05:00.000Z");
    assert!(later.wait(Duration::from_millis(300)).await.is_err(), "the clock stands still");
    server.advance(5 * Duration::from_secs(60));
    assert_eq!(later.wait(PATIENCE).await.unwrap(), "hello later");
    assert_eq!(greeter.next().await, 1);

    let digest = NewSchedule::cron("digest", "0 9 * * *", NewJob::of(&greeting("morning")));
    let digest = client.schedules().put(digest).await.unwrap();
    assert_eq!(digest.next_fire_at.unwrap().to_string(), "2026-03-02T09:00:00.000Z");
    // In steps that a worker's lease outlives.
    for _ in 0..11 {
        server.advance(5 * Duration::from_secs(60));
    }
    assert_eq!(greeter.next().await, 1);
    greeter.stop().await;
    server.stop().await.unwrap();
}

#[tokio::test]
async fn retries_wait_for_the_clock_that_the_test_moves() {
    let options = EmbeddedOptions {
        manual_clock: Some("2026-03-02T08:00:00Z".parse().unwrap()),
        ..EmbeddedOptions::default()
    };
    let server = Embedded::start(options).await.unwrap();
    let client = server.client().unwrap();
    let mut greeter = Greeter::start(client.clone());
    let mut job = client.submit(greeting("nobody")).await.unwrap();
    assert_eq!(greeter.next().await, 1);
    crate::eventually::eventually("the failure to be recorded", PATIENCE, async || {
        (job.refresh().await.unwrap().status.as_str() == "scheduled").then_some(())
    })
    .await;
    greeter.stop().await;
    // A jump of an hour ends the session of any worker, so this one comes after it.
    server.advance(HOUR + Duration::from_secs(1));
    let mut greeter = Greeter::start(client.clone());
    assert_eq!(greeter.next().await, 2);
    assert_eq!(job.wait(PATIENCE).await.unwrap(), "hello nobody");
    greeter.stop().await;
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_data_directory_is_free_again_once_it_has_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions {
        data_dir: Some(directory.path().to_owned()),
        listen: None,
        ..EmbeddedOptions::default()
    };
    let first = Embedded::start(options.clone()).await.unwrap();
    assert!(first.client().is_err(), "it has no API");
    let taken = Embedded::start(options.clone()).await.unwrap_err();
    assert!(taken.to_string().contains("another server"), "{taken}");
    first.stop().await.unwrap();
    Embedded::start(options).await.unwrap().stop().await.unwrap();
}
