//! Punctuality: jobs are spread evenly over a stretch of time; how long after its moment does each one start?

use std::time::Duration;

use tickwheel_core::ports::Clock as _;
use tickwheel_engine::SystemClock;

use super::figure::{Figure, Spread};
use super::load::Bench;

/// From the last submission to the first start.
const HEAD_START: Duration = Duration::from_secs(2);

pub(super) async fn measure(bench: &Bench, rate: u32, seconds: u32) -> anyhow::Result<Figure> {
    let jobs = rate as usize * seconds as usize;
    let first = SystemClock.now() + HEAD_START;
    bench
        .submit(jobs, |number| first + Duration::from_millis(number as u64 * 1_000 / u64::from(rate)))
        .await?;
    let starts = bench.finished(jobs).await;
    Ok(Figure::Punctuality { jobs, rate, lag_ms: Spread::of(starts.iter().map(|start| start.lag)) })
}
