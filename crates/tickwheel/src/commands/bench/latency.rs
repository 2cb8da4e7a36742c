//! Latency: one job at a time on an engine that has nothing else to do; how long until it starts, and until its end is written?

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::figure::{Figure, Spread};
use super::load::Bench;

/// Between two jobs, so that nothing of the last one is still going on.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn measure(bench: &Bench, jobs: usize) -> anyhow::Result<Figure> {
    let mut to_start = Vec::with_capacity(jobs);
    let mut to_completed = Vec::with_capacity(jobs);
    for _ in 0..jobs {
        tokio::time::sleep(PAUSE).await;
        let submitting = Instant::now();
        let ended = bench.run_one().await?;
        let starts = bench.finished(1).await;
        let start = starts.first().context("the job ended and never started")?;
        to_start.push(start.at.duration_since(submitting));
        to_completed.push(ended.duration_since(submitting));
    }
    Ok(Figure::Latency {
        jobs,
        to_start_ms: Spread::of(to_start.into_iter()),
        to_completed_ms: Spread::of(to_completed.into_iter()),
    })
}
