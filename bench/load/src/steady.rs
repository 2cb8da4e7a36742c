//! End to end over HTTP: jobs are submitted one a request at a steady rate and are due at once; how long until each one
//! is called?
//!
//! The load is open: every job has its moment, whatever became of those before it, and its lag counts from that moment
//! even if all connections were waiting for an answer then.

use std::time::Duration;

use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::clock::now_ms;
use crate::http::request;
use crate::jobs::{Due, Runner, job};
use crate::server::Server;
use crate::target::Target;

const HEAD_START_MS: f64 = 500.0;
/// More than ever wait for an answer at a rate that can be kept up.
const CONNECTIONS: usize = 256;

pub async fn measure(server: Server, rate: usize, seconds: usize) -> anyhow::Result<Value> {
    LocalSet::new().run_until(steady(server, rate, seconds)).await
}

async fn steady(server: Server, rate: usize, seconds: usize) -> anyhow::Result<Value> {
    let target = Target::start().await?;
    let jobs = rate * seconds;
    let submission =
        |number| request("POST", "/api/v1/jobs", &job(number, Due::Now, Runner::Endpoint(target.address)));
    let submissions: Vec<Vec<u8>> = (0..jobs).map(submission).collect();
    let first_ms = now_ms() + HEAD_START_MS;
    let moment_ms = |number: usize| first_ms + number as f64 * 1_000.0 / rate as f64;
    let submissions = &submissions;
    try_join_all((0..CONNECTIONS).map(async |connection| {
        let mut stream = server.connect().await?;
        for number in (connection..jobs).step_by(CONNECTIONS) {
            until(moment_ms(number)).await;
            stream.exchange(&submissions[number]).await?;
        }
        anyhow::Ok(())
    }))
    .await?;
    let calls = target.calls(jobs).await;
    let samples_ms: Vec<f64> = calls.iter().map(|call| call.at_ms - moment_ms(call.number)).collect();
    Ok(json!({ "samples_ms": samples_ms }))
}

async fn until(moment_ms: f64) {
    let wait_ms = moment_ms - now_ms();
    if wait_ms > 0.0 {
        tokio::time::sleep(Duration::from_secs_f64(wait_ms / 1_000.0)).await;
    }
}
