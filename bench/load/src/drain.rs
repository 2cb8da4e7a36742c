//! The drain rate through the HTTP executor: many jobs are due, none has started; how long until all are durably
//! completed?

use std::time::Instant;

use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::jobs::{Due, Runner, job};
use crate::server::Server;
use crate::target::Target;

pub async fn measure(server: Server, jobs: usize) -> anyhow::Result<Value> {
    LocalSet::new().run_until(drain(server, jobs)).await
}

async fn drain(server: Server, jobs: usize) -> anyhow::Result<Value> {
    let target = Target::start().await?;
    let all: Vec<String> =
        (0..jobs).map(|number| job(number, Due::Now, Runner::Endpoint(target.address))).collect();
    server.set_halted(true).await?;
    server.submit(&all).await?;
    let begun = Instant::now();
    server.set_halted(false).await?;
    target.calls(jobs).await;
    server.completed(0, jobs).await?;
    Ok(json!({ "jobs": jobs, "drain_per_s": jobs as f64 / begun.elapsed().as_secs_f64() }))
}
