//! Punctuality through the HTTP executor: how long after its time does a job's call arrive? Jobs are submitted
//! beforehand and due evenly over a stretch of time, or all at the beginning of the same second.

use anyhow::ensure;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::clock::now_ms;
use crate::jobs::{Due, Runner, job};
use crate::server::Server;
use crate::target::Target;

const HEAD_START_MS: i64 = 2_000;
/// Submitting is far faster than this.
const SUBMITTED_PER_S: usize = 20_000;

/// Evenly at `rate` jobs a second.
pub async fn measure(server: Server, rate: usize, seconds: usize) -> anyhow::Result<Value> {
    let first_ms = now_ms() as i64 + HEAD_START_MS;
    let due_ms = |number: usize| first_ms + (number * 1_000 / rate) as i64;
    LocalSet::new().run_until(lags(server, rate * seconds, due_ms)).await
}

/// All at the beginning of the same second.
pub async fn measure_burst(server: Server, jobs: usize) -> anyhow::Result<Value> {
    let second = now_ms() as i64 / 1_000 + 2 + (jobs / SUBMITTED_PER_S) as i64;
    LocalSet::new().run_until(lags(server, jobs, |_| second * 1_000)).await
}

async fn lags(server: Server, jobs: usize, due_ms: impl Fn(usize) -> i64) -> anyhow::Result<Value> {
    let target = Target::start().await?;
    let all = (0..jobs).map(|number| {
        let due = Timestamp::from_millisecond(due_ms(number))?;
        Ok(job(number, Due::At(due), Runner::Endpoint(target.address)))
    });
    let all: Vec<String> = all.collect::<anyhow::Result<_>>()?;
    server.submit(&all).await?;
    ensure!(
        (now_ms() as i64) < due_ms(jobs.saturating_sub(1)),
        "the last job was due before all were submitted"
    );
    let calls = target.calls(jobs).await;
    let samples_ms: Vec<f64> = calls.iter().map(|call| call.at_ms - due_ms(call.number) as f64).collect();
    Ok(json!({ "samples_ms": samples_ms }))
}
