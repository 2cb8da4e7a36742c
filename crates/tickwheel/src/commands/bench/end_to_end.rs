//! End to end: jobs come one by one at a steady rate and are due at once; how long until each one starts?
//!
//! The load is open: every job has its moment, whatever became of those before it, and its lag counts from that moment even if
//! it could not be submitted in time.

use std::time::Duration;

use tickwheel_core::ports::Clock as _;
use tickwheel_engine::SystemClock;
use tokio::task::JoinSet;

use super::figure::{Figure, Spread};
use super::jobs::new_job;
use super::load::Bench;

const HEAD_START: Duration = Duration::from_millis(200);
/// More than ever wait for their commit at a rate that can be kept up.
const SUBMITTERS: usize = 512;

pub(super) async fn measure(bench: &Bench, rate: u32, seconds: u32) -> anyhow::Result<Figure> {
    let jobs = submit_steadily(bench, rate, seconds).await?;
    let starts = bench.finished(jobs).await;
    Ok(Figure::EndToEnd { jobs, rate, lag_ms: Spread::of(starts.iter().map(|start| start.lag)) })
}

/// Submits jobs one by one at that rate, each due at its moment, and answers how many.
pub(super) async fn submit_steadily(bench: &Bench, rate: u32, seconds: u32) -> anyhow::Result<usize> {
    let jobs = rate as usize * seconds as usize;
    let first = SystemClock.now() + HEAD_START;
    let moment = move |number: usize| first + Duration::from_millis(number as u64 * 1_000 / u64::from(rate));
    let mut submitters = JoinSet::new();
    for submitter in 0..SUBMITTERS {
        let scheduler = bench.scheduler.clone();
        submitters.spawn(async move {
            for number in (submitter..jobs).step_by(SUBMITTERS) {
                let due = moment(number);
                tokio::time::sleep(SystemClock.until(due)).await;
                scheduler.submit(vec![new_job(due)]).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(submitted) = submitters.join_next().await {
        submitted??;
    }
    Ok(jobs)
}
