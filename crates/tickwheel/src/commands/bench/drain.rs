//! The drain rate: many jobs are due, none has started; how long until the last one is durably completed?

use std::time::{Duration, Instant};

use tickwheel_core::ports::Clock as _;
use tickwheel_engine::SystemClock;

use super::figure::Figure;
use super::load::Bench;

pub(super) async fn measure(bench: &Bench, jobs: usize) -> anyhow::Result<Figure> {
    bench.scheduler.set_halted(true).await?;
    let submitting = Instant::now();
    let due = SystemClock.now();
    bench.submit(jobs, |_| due).await?;
    let submitting = submitting.elapsed();
    let draining = Instant::now();
    bench.scheduler.set_halted(false).await?;
    bench.finished(jobs).await;
    let per_s = |took: Duration| jobs as f64 / took.as_secs_f64();
    Ok(Figure::Drain { jobs, submit_per_s: per_s(submitting), drain_per_s: per_s(draining.elapsed()) })
}
