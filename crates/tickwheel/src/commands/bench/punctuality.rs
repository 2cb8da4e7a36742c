//! Punctuality: jobs are spread evenly over a stretch of time; how long after its moment does each one start?

use std::time::Duration;

use tickwheel_core::ports::Clock as _;
use tickwheel_engine::SystemClock;

use super::Figure;
use super::load::Bench;

/// From the last submission to the first start.
const HEAD_START: Duration = Duration::from_secs(2);

pub(super) async fn measure(
    bench: &Bench,
    store: &'static str,
    rate: u32,
    seconds: u32,
) -> anyhow::Result<Figure> {
    let count = rate as usize * seconds as usize;
    let first = SystemClock.now() + HEAD_START;
    bench
        .submit(count, |number| first + Duration::from_millis(number as u64 * 1_000 / u64::from(rate)))
        .await?;
    let lags = bench.finished(count).await;
    let at = |part: f64| lags[((lags.len() - 1) as f64 * part) as usize] as f64 / 1_000.0;
    Ok(Figure {
        store,
        what: format!("lag at {rate}/s"),
        value: format!("p50 {:.1} ms, p99 {:.1} ms", at(0.5), at(0.99)),
        detail: format!("p99.9 {:.1} ms, max {:.1} ms, {count} jobs", at(0.999), at(1.0)),
    })
}
