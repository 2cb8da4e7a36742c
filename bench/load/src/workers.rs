//! The same questions to a server whose jobs are run by workers. The workers are processes of their own and note when
//! jobs started; what is printed here says when they should have.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::now_ms;
use crate::http::request;
use crate::jobs::{Due, Runner, job};
use crate::server::Server;

const PAUSE: Duration = Duration::from_millis(20);
const HEAD_START_MS: i64 = 2_000;
const SERVED: Runner = Runner::Worker("bench");
/// Jobs are made and sent so many at a time.
const FILL_LEN: usize = 50_000;

/// Many jobs are due, none has started, and the workers wait: how long until all are durably completed?
pub async fn drain(server: Server, jobs: usize) -> anyhow::Result<Value> {
    server.set_halted(true).await?;
    let before = server.count_completed().await?;
    server.submit(&due_now(SERVED, 0, jobs)).await?;
    let begun = Instant::now();
    server.set_halted(false).await?;
    server.completed(before, before + jobs).await?;
    Ok(json!({ "jobs": jobs, "drain_per_s": jobs as f64 / begun.elapsed().as_secs_f64() }))
}

/// Jobs that are due evenly at `rate` a second, submitted beforehand: when is each of them due?
pub async fn lag(server: Server, rate: usize, seconds: usize) -> anyhow::Result<Value> {
    let before = server.count_completed().await?;
    let jobs = rate * seconds;
    let first_ms = now_ms() as i64 + HEAD_START_MS;
    let due_ms: Vec<i64> = (0..jobs).map(|number| first_ms + (number * 1_000 / rate) as i64).collect();
    let submission = |(number, due_ms): (usize, &i64)| {
        Ok(job(number, Due::At(Timestamp::from_millisecond(*due_ms)?), SERVED))
    };
    let all: Vec<String> = due_ms.iter().enumerate().map(submission).collect::<anyhow::Result<_>>()?;
    server.submit(&all).await?;
    ensure!((now_ms() as i64) < first_ms, "the first job was due before all were submitted");
    // Nobody asks the server for anything while it is watched.
    let last_ms = due_ms.last().context("no job was asked for")?;
    let rest_ms = *last_ms as f64 - now_ms();
    tokio::time::sleep(Duration::from_secs_f64(rest_ms.max(0.0) / 1_000.0)).await;
    server.completed(before, before + jobs).await?;
    Ok(json!({ "due_ms": due_ms }))
}

/// One job at a time, due at once: when was each of them sent, and when did its submitter hear of its end?
pub async fn idle(server: Server, jobs: usize) -> anyhow::Result<Value> {
    let mut connection = server.connect().await?;
    let (mut submitted_ms, mut completed_ms) = (Vec::with_capacity(jobs), Vec::with_capacity(jobs));
    for number in 0..jobs {
        tokio::time::sleep(PAUSE).await;
        let submission = request("POST", "/api/v1/jobs", &job(number, Due::Now, SERVED));
        submitted_ms.push(now_ms());
        let answer: Value = serde_json::from_slice(connection.exchange(&submission).await?)?;
        let id = answer["id"].as_str().context("the answer has no id")?;
        let ask = request("GET", &format!("/api/v1/jobs/{id}?wait=10s"), "");
        let ended: Value = serde_json::from_slice(connection.exchange(&ask).await?)?;
        completed_ms.push(now_ms());
        ensure!(ended["status"] == "completed", "a job is {}", ended["status"]);
    }
    Ok(json!({ "submitted_ms": submitted_ms, "completed_ms": completed_ms }))
}

/// A few jobs in one request, due at once: when was it sent?
pub async fn together(server: Server, jobs: usize) -> anyhow::Result<Value> {
    let before = server.count_completed().await?;
    let all = due_now(SERVED, 0, jobs);
    let submitted_ms = now_ms();
    server.submit(&all).await?;
    server.completed(before, before + jobs).await?;
    Ok(json!({ "submitted_ms": vec![submitted_ms; jobs] }))
}

/// Jobs that are due and do not end: workers hold them, or nobody serves them.
pub async fn fill(server: Server, name: &str, jobs: usize) -> anyhow::Result<Value> {
    let runner = Runner::Worker(match name {
        "hold" => "hold",
        "unserved" => "unserved",
        _ => bail!("nobody knows jobs of type {name}"),
    });
    let begun = Instant::now();
    for first in (0..jobs).step_by(FILL_LEN) {
        server.submit(&due_now(runner, first, FILL_LEN.min(jobs - first))).await?;
    }
    Ok(json!({ "jobs": jobs, "submit_per_s": jobs as f64 / begun.elapsed().as_secs_f64() }))
}

fn due_now(runner: Runner, first: usize, jobs: usize) -> Vec<String> {
    (first..first + jobs).map(|number| job(number, Due::Now, runner)).collect()
}
