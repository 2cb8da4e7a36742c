//! Punctuality through the HTTP executor: how long after its time does a job's call arrive?

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::clock::now_ms;
use crate::jobs::{Due, job};
use crate::server::Server;
use crate::target::Target;

const HEAD_START_MS: i64 = 2_000;

pub async fn measure(server: Server, rate: usize, seconds: usize) -> anyhow::Result<Value> {
    LocalSet::new().run_until(lag(server, rate, seconds)).await
}

async fn lag(server: Server, rate: usize, seconds: usize) -> anyhow::Result<Value> {
    let target = Target::start().await?;
    let jobs = rate * seconds;
    let first_ms = now_ms() as i64 + HEAD_START_MS;
    let due_ms = |number: usize| first_ms + (number * 1_000 / rate) as i64;
    let all = (0..jobs).map(|number| {
        let due = Timestamp::from_millisecond(due_ms(number))?;
        Ok(job(number, Due::At(due), target.address))
    });
    let all: Vec<String> = all.collect::<anyhow::Result<_>>()?;
    server.submit(&all).await?;
    let calls = target.calls(jobs).await;
    let samples_ms: Vec<f64> = calls.iter().map(|call| call.at_ms - due_ms(call.number) as f64).collect();
    Ok(json!({ "samples_ms": samples_ms }))
}
