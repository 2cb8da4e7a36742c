//! How many jobs a second are durably accepted: one job a request or a batch, over many connections at once.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use anyhow::ensure;
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::http::request;
use crate::jobs::{Due, Runner, job};
use crate::server::{Server, batch};

/// Nobody is called within the hour.
const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

pub async fn measure(
    server: Server,
    in_flight: usize,
    batch_len: usize,
    jobs: usize,
) -> anyhow::Result<Value> {
    ensure!(in_flight > 0 && batch_len > 0, "nothing is in flight");
    let all: Vec<String> =
        (0..jobs).map(|number| job(number, Due::InAnHour, Runner::Endpoint(NOBODY))).collect();
    let requests: Vec<Vec<u8>> = all.chunks(batch_len).map(submission).collect();
    let share = requests.len().div_ceil(in_flight).max(1);
    let begun = Instant::now();
    try_join_all(requests.chunks(share).map(|share| server.send_in_turn(share))).await?;
    Ok(json!({ "jobs": jobs, "submit_per_s": jobs as f64 / begun.elapsed().as_secs_f64() }))
}

fn submission(jobs: &[String]) -> Vec<u8> {
    match jobs {
        [only] => request("POST", "/api/v1/jobs", only),
        several => batch(several),
    }
}
