//! apalis on PostgreSQL, asked as the other peers are: `apalis-peer submit JOBS | drain JOBS | lag RATE SECONDS | idle
//! JOBS`.
//!
//! Batches of 500, every task on a thread of the pool, no second write to lock a task, a poll every ten milliseconds.
//! Its times are whole seconds: a job is ordered for the second after its time, as it would run early otherwise.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const BATCH_LEN: usize = 500;
/// As many as ours gets.
const SUBMITS_IN_FLIGHT: usize = 4;
const QUEUE: &str = "noop";
const TABLE: &str = "apalis.jobs";
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
    let batches = (0..jobs).step_by(BATCH_LEN).map(|first| first..jobs.min(first + BATCH_LEN));
    let submits = stream::iter(batches.map(|numbers| submit(pool, numbers, |_| None)));
    submits.buffer_unordered(SUBMITS_IN_FLIGHT).try_collect::<()>().await?;
    Ok(json!({ "jobs": jobs, "submit_per_s": jobs as f64 / begun.elapsed().as_secs_f64() }))
}

async fn drain(pool: &PgPool, jobs: usize) -> anyhow::Result<Value> {
    submit(pool, 0..jobs, |_| None).await?;
    let lock = Lock::hold()?;
    let starts = work(pool);
    let begun = lock.release_when_asked().await?;
    starts.wait_for(jobs).await;
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

/// A lock on the table of jobs that the worker runs into: see `../shared/hold`.
struct Lock {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Lock {
    fn hold() -> anyhow::Result<Self> {
        let hold = std::env::var("BENCH_HOLD")?;
        let mut child = Command::new(hold).arg(TABLE).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let said = child.stdout.take().context("the output is piped")?;
        let mut lock = Self { child, lines: BufReader::new(said).lines() };
        lock.says("held")?;
        Ok(lock)
    }

    /// Lets the worker begin when it is up, and answers when that was.
    async fn release_when_asked(mut self) -> anyhow::Result<Instant> {
        tokio::task::spawn_blocking(move || {
            self.says("asked")?;
            let begun = Instant::now();
            self.child.stdin.take().context("the input is piped")?.write_all(b"\n")?;
            Ok(begun)
        })
        .await?
    }

    fn says(&mut self, word: &str) -> anyhow::Result<()> {
        let said = self.lines.next().context("the lock has ended")??;
        ensure!(said == word, "the lock said {said} and not {word}");
        Ok(())
    }
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
