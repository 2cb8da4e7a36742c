//! Latency over HTTP: one job at a time on a server that has nothing else to do, from sending the submission to the
//! call.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::clock::now_ms;
use crate::http::request;
use crate::jobs::{Due, Runner, job};
use crate::server::Server;
use crate::target::Target;

const PAUSE: Duration = Duration::from_millis(20);

pub async fn measure(server: Server, jobs: usize) -> anyhow::Result<Value> {
    LocalSet::new().run_until(idle(server, jobs)).await
}

async fn idle(server: Server, jobs: usize) -> anyhow::Result<Value> {
    let target = Target::start().await?;
    let mut connection = server.connect().await?;
    let mut samples_ms = Vec::with_capacity(jobs);
    for number in 0..jobs {
        tokio::time::sleep(PAUSE).await;
        let submission =
            request("POST", "/api/v1/jobs", &job(number, Due::Now, Runner::Endpoint(target.address)));
        let begun = now_ms();
        connection.exchange(&submission).await?;
        let calls = target.calls(1).await;
        samples_ms.push(calls.first().context("a call was counted and not kept")?.at_ms - begun);
    }
    Ok(json!({ "samples_ms": samples_ms }))
}
