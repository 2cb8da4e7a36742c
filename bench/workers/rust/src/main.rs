//! A worker whose handlers do nothing, as somebody would write it with the Rust library.
//!
//! `rust-worker work CAPACITY` runs jobs of type `bench` and notes when each of them started. When it is asked to stop,
//! it prints those times as JSON. `rust-worker hold WORKERS CAPACITY` is that many workers in one process; their jobs,
//! of type `hold`, run until the process ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use futures::future::try_join_all;
use serde::{Deserialize, Serialize};
use tickwheel_worker::{Client, Ctx, JobError, JobType, Worker};

/// A job that is over at once.
#[derive(Serialize, Deserialize)]
struct NoOp {
    to: String,
    template: String,
    language: String,
    number: u64,
    n: u64,
}

impl JobType for NoOp {
    const NAME: &'static str = "bench";
    type Output = ();
}

/// A job that does not end by itself.
#[derive(Serialize, Deserialize)]
struct Hold {
    n: u64,
}

impl JobType for Hold {
    const NAME: &'static str = "hold";
    type Output = ();
}

/// When which job started, in milliseconds since 1970.
type Starts = Arc<Mutex<Vec<(u64, f64)>>>;

async fn run(job: NoOp, ctx: Ctx<Starts>) -> Result<(), JobError> {
    let at_ms = now_ms();
    ctx.state().lock().unwrap_or_else(PoisonError::into_inner).push((job.n, at_ms));
    Ok(())
}

async fn hold(_: Hold, ctx: Ctx) -> Result<(), JobError> {
    ctx.cancelled().await;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["work", capacity] => work(capacity.parse()?).await,
        ["hold", workers, capacity] => hold_all(workers.parse()?, capacity.parse()?).await,
        _ => bail!("usage: rust-worker work CAPACITY | rust-worker hold WORKERS CAPACITY"),
    }
}

async fn work(capacity: u32) -> anyhow::Result<()> {
    let starts = Starts::default();
    Worker::from_env().state(starts.clone()).capacity(capacity).handle(run).run().await?;
    let starts = starts.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{}", serde_json::json!({ "starts": *starts }));
    Ok(())
}

async fn hold_all(workers: usize, capacity: u32) -> anyhow::Result<()> {
    let client = Client::from_env()?;
    let worker = || Worker::new(client.clone()).capacity(capacity).handle(hold).run();
    try_join_all((0..workers).map(|_| worker())).await?;
    Ok(())
}

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1_000.0
}
