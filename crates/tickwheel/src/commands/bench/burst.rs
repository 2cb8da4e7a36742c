//! A burst: many jobs are due at the very beginning of the same second; how long until the last one has started?

use std::time::Duration;

use anyhow::ensure;
use tickwheel_core::Timestamp;
use tickwheel_core::ports::Clock as _;
use tickwheel_engine::SystemClock;

use super::figure::{Figure, Spread};
use super::load::Bench;

/// Submitting is far faster than this.
const SUBMITTED_PER_S: u64 = 20_000;

pub(super) async fn measure(bench: &Bench, jobs: usize) -> anyhow::Result<Figure> {
    let due = second_after(SystemClock.now() + Duration::from_secs(1 + jobs as u64 / SUBMITTED_PER_S));
    bench.submit(jobs, |_| due).await?;
    ensure!(SystemClock.now() < due, "the jobs were due before all were submitted: take fewer");
    let starts = bench.finished(jobs).await;
    Ok(Figure::Burst { jobs, lag_ms: Spread::of(starts.iter().map(|start| start.lag)) })
}

fn second_after(time: Timestamp) -> Timestamp {
    Timestamp::from_millis((time.as_millis() / 1_000 + 1) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_due_when_a_second_begins() {
        assert_eq!(second_after(Timestamp::from_millis(1_001)), Timestamp::from_millis(2_000));
        assert_eq!(second_after(Timestamp::from_millis(2_000)), Timestamp::from_millis(3_000));
    }
}
