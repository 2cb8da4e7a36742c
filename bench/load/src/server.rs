//! The server under load, through its public API.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::future::try_join_all;
use tokio::net::TcpStream;

use crate::http::{Connection, request};

const POLL_INTERVAL: Duration = Duration::from_millis(2);
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(1);
const BATCH_LEN: usize = 500;
const BATCHES_IN_FLIGHT: usize = 4;
const FINISHED: &str = "tickwheel_jobs_finished_total{state=\"completed\"} ";

/// Where a server is.
#[derive(Clone, Copy)]
pub struct Server(SocketAddr);

impl Server {
    /// The server at that address.
    pub fn at(address: SocketAddr) -> Self {
        Self(address)
    }

    /// A new connection.
    pub async fn connect(self) -> anyhow::Result<Connection> {
        Connection::new(TcpStream::connect(self.0).await.context("cannot reach the server")?)
    }

    /// Turns the stop switch on or off.
    pub async fn set_halted(self, halted: bool) -> anyhow::Result<()> {
        let path = if halted { "/api/v1/admin/halt" } else { "/api/v1/admin/resume" };
        self.connect().await?.exchange(&request("POST", path, "")).await?;
        Ok(())
    }

    /// Submits jobs in batches, several at once.
    pub async fn submit(self, jobs: &[String]) -> anyhow::Result<()> {
        let batches: Vec<Vec<u8>> = jobs.chunks(BATCH_LEN).map(batch).collect();
        let share = batches.len().div_ceil(BATCHES_IN_FLIGHT).max(1);
        try_join_all(batches.chunks(share).map(|share| self.send_in_turn(share))).await?;
        Ok(())
    }

    /// Sends requests one after the other over one connection.
    pub async fn send_in_turn(self, requests: &[Vec<u8>]) -> anyhow::Result<()> {
        let mut connection = self.connect().await?;
        for request in requests {
            connection.exchange(request).await?;
        }
        Ok(())
    }

    /// How many jobs have been completed so far.
    pub async fn count_completed(self) -> anyhow::Result<usize> {
        finished(self.connect().await?.exchange(&request("GET", "/metrics", "")).await?)
    }

    /// Waits until that many jobs are durably completed, `before` of them before now. It asks seldom while many are
    /// left, for the answer costs the server time.
    pub async fn completed(self, before: usize, jobs: usize) -> anyhow::Result<()> {
        let mut connection = self.connect().await?;
        let ask = request("GET", "/metrics", "");
        let begun = Instant::now();
        loop {
            let finished = finished(connection.exchange(&ask).await?)?;
            if finished >= jobs {
                return Ok(());
            }
            let each = begun.elapsed() / u32::try_from(finished - before)?.max(1);
            let half = each * u32::try_from((jobs - finished) / 2)?;
            tokio::time::sleep(half.clamp(POLL_INTERVAL, POLL_INTERVAL_MAX)).await;
        }
    }
}

/// One request that submits all of these.
pub fn batch(jobs: &[String]) -> Vec<u8> {
    request("POST", "/api/v1/jobs/batch", &format!(r#"{{"jobs":[{}]}}"#, jobs.join(",")))
}

fn finished(metrics: &[u8]) -> anyhow::Result<usize> {
    let text = std::str::from_utf8(metrics)?;
    let count =
        text.lines().find_map(|line| line.strip_prefix(FINISHED)).context("no count of finished jobs")?;
    Ok(count.parse::<f64>()? as usize)
}
