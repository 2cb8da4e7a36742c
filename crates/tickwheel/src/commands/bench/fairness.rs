//! Fairness: many jobs of one tenant are due before a few of another; how long do the few wait?

use std::time::{Duration, Instant};

use tickwheel_core::ports::Clock as _;
use tickwheel_engine::SystemClock;

use super::figure::{Figure, Spread};
use super::load::Bench;

const MANY: &str = "many";
const FEW: &str = "few";
const FEW_JOBS: usize = 10;

pub(super) async fn measure(bench: &Bench, jobs: usize) -> anyhow::Result<Figure> {
    bench.scheduler.set_halted(true).await?;
    let due = SystemClock.now();
    bench.submit_for(MANY, jobs, |_| due).await?;
    bench.submit_for(FEW, FEW_JOBS, |_| due + Duration::from_millis(1)).await?;
    let released_at = Instant::now();
    bench.scheduler.set_halted(false).await?;
    let starts = bench.finished(jobs + FEW_JOBS).await;
    let waits = |tenant: &'static str| {
        let own = starts.iter().filter(move |start| &*start.tenant == tenant);
        Spread::of(own.map(|start| start.at.saturating_duration_since(released_at)))
    };
    Ok(Figure::Fairness { jobs, few_wait_ms: waits(FEW), many_wait_ms: waits(MANY) })
}
