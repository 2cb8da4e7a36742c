//! apalis on PostgreSQL, asked as the other peers are: `apalis-peer submit JOBS | drain JOBS | lag RATE SECONDS | idle JOBS`.
//!
//! Batches of 500, every task on a thread of the pool, no second write to lock a task, a poll every ten milliseconds. Its times are
//! whole seconds: a job is ordered for the second after its time, as it would run early otherwise.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage};
use futures::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const BATCH_LEN: usize = 500;
const QUEUE: &str = "noop";
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const WAIT_INTERVAL: Duration = Duration::from_millis(2);
const HEAD_START_MS: f64 = 2_000.0;
const PAUSE: Duration = Duration::from_millis(20);
/// As many digits for every job.
const FIRST_NUMBER: usize = 10_000_000;

/// A hundred bytes of JSON, and in them which job it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Payload {
    to: String,
    template: String,
    language: String,
    number: u64,
    n: usize,
}

impl Payload {
    fn new(number: usize) -> Self {
        Self {
            to: "somebody@example.org".into(),
            template: "welcome".into(),
            language: "en".into(),
            number: 1_234_567_890,
            n: FIRST_NUMBER + number,
        }
    }
}

/// Which job started when, in milliseconds since 1970.
#[derive(Clone, Default)]
struct Starts(Arc<Mutex<Vec<(usize, f64)>>>);

impl Starts {
    fn note(&self, payload: &Payload) {
        self.lock().push((payload.n - FIRST_NUMBER, now_ms()));
    }

    async fn wait_for(&self, count: usize) -> Vec<(usize, f64)> {
        while self.lock().len() < count {
            tokio::time::sleep(WAIT_INTERVAL).await;
        }
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(usize, f64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let pool = PgPool::connect(&std::env::var("BENCH_SERVER")?).await?;
    PostgresStorage::setup(&pool).await?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let seen = match words[..] {
        ["submit", jobs] => submit_all(&pool, jobs.parse()?).await?,
        ["drain", jobs] => drain(&pool, jobs.parse()?).await?,
        ["lag", rate, seconds] => lag(&pool, rate.parse()?, seconds.parse()?).await?,
        ["idle", jobs] => idle(&pool, jobs.parse()?).await?,
        _ => bail!("usage: apalis-peer submit JOBS | drain JOBS | lag RATE SECONDS | idle JOBS"),
    };
    println!("{seen}");
    // The worker has no end of its own.
    std::process::exit(0);
}

async fn submit_all(pool: &PgPool, jobs: usize) -> anyhow::Result<Value> {
    let begun = Instant::now();
    submit(pool, 0..jobs, |_| None).await?;
    Ok(json!({ "jobs": jobs, "submit_per_s": jobs as f64 / begun.elapsed().as_secs_f64() }))
}

async fn drain(pool: &PgPool, jobs: usize) -> anyhow::Result<Value> {
    submit(pool, 0..jobs, |_| None).await?;
    let begun = Instant::now();
    work(pool).wait_for(jobs).await;
    while unfinished(pool).await? > 0 {
        tokio::time::sleep(WAIT_INTERVAL).await;
    }
    Ok(json!({ "jobs": jobs, "drain_per_s": jobs as f64 / begun.elapsed().as_secs_f64() }))
}

async fn lag(pool: &PgPool, rate: usize, seconds: usize) -> anyhow::Result<Value> {
    let jobs = rate * seconds;
    let starts = work(pool);
    let first = now_ms().trunc() + HEAD_START_MS;
    let due = |number: usize| first + (number * 1_000 / rate) as f64;
    submit(pool, 0..jobs, |number| Some((due(number) / 1_000.0).ceil() as u64)).await?;
    let starts = starts.wait_for(jobs).await;
    let samples_ms: Vec<f64> = starts.into_iter().map(|(number, at)| at - due(number)).collect();
    Ok(json!({ "samples_ms": samples_ms }))
}

async fn idle(pool: &PgPool, jobs: usize) -> anyhow::Result<Value> {
    let starts = work(pool);
    let mut samples_ms = Vec::with_capacity(jobs);
    for number in 0..jobs {
        tokio::time::sleep(PAUSE).await;
        let begun = now_ms();
        submit(pool, number..number + 1, |_| None).await?;
        samples_ms.extend(starts.wait_for(1).await.into_iter().map(|(_, at)| at - begun));
    }
    Ok(json!({ "samples_ms": samples_ms }))
}

fn storage(pool: &PgPool) -> PostgresStorage<Payload> {
    let config = Config::default().queue(QUEUE).batch_size(BATCH_LEN).lock_tasks(false);
    PostgresStorage::new(pool).with_config(config)
}

async fn submit(
    pool: &PgPool,
    numbers: std::ops::Range<usize>,
    run_at_s: impl Fn(usize) -> Option<u64>,
) -> anyhow::Result<()> {
    let mut storage = storage(pool);
    let numbers: Vec<usize> = numbers.collect();
    for batch in numbers.chunks(BATCH_LEN) {
        let tasks = batch.iter().map(|number| {
            let task = TaskBuilder::new(Payload::new(*number));
            match run_at_s(*number) {
                Some(second) => task.run_at_timestamp(second).build(),
                None => task.build(),
            }
        });
        let tasks: Vec<_> = tasks.collect();
        storage.push_all(&mut stream::iter(tasks)).await?;
    }
    Ok(())
}

fn work(pool: &PgPool) -> Starts {
    let starts = Starts::default();
    let noted = starts.clone();
    let worker = WorkerBuilder::new("noop")
        .backend(storage(pool).poll_with_interval(POLL_INTERVAL))
        .data(noted)
        .parallelize(tokio::spawn)
        .build(noop);
    tokio::spawn(worker.run());
    starts
}

async fn noop(payload: Payload, starts: Data<Starts>) -> Result<(), BoxDynError> {
    starts.note(&payload);
    Ok(())
}

async fn unfinished(pool: &PgPool) -> anyhow::Result<i64> {
    let count = "SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'";
    Ok(sqlx::query_scalar(count).fetch_one(pool).await?)
}

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1_000.0
}
